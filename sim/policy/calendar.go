package policy

// A calendar finds the sequences that finish in a step without looking at the others: days are
// steps, taken modulo its size; an entry of a later round stays where it is.
type calendar struct {
	days []Handle // first entry of each day
	mask int64
}

var calendarDays int64 = 4096 // a power of two; longer outputs come round again

func newCalendar() calendar {
	c := calendar{days: make([]Handle, calendarDays), mask: calendarDays - 1}
	for i := range c.days {
		c.days[i] = none
	}
	return c
}

func (c *calendar) add(s []sequence, h Handle) {
	day := &c.days[s[h].due&c.mask]
	s[h].earlier, s[h].later = none, *day
	if *day != none {
		s[*day].earlier = h
	}
	*day = h
}

func (c *calendar) remove(s []sequence, h Handle) {
	earlier, later := s[h].earlier, s[h].later
	if earlier == none {
		c.days[s[h].due&c.mask] = later
	} else {
		s[earlier].later = later
	}
	if later != none {
		s[later].earlier = earlier
	}
}

// empty reports whether no entry stands on the day of a step, of whatever round.
func (c *calendar) empty(step int64) bool { return c.days[step&c.mask] == none }

// due appends the sequences that finish in a step.
func (c *calendar) due(s []sequence, step int64, to []Handle) []Handle {
	for h := c.days[step&c.mask]; h != none; h = s[h].later {
		if s[h].due == step {
			to = append(to, h)
		}
	}
	return to
}
