package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"llmsim/scenarios"
)

// mostTold bounds a list of faults or notes.
const mostTold = 20

// A listing gathers what is said of points, each thing once.
type listing struct{ all map[string]*saying }

type saying struct {
	text         string
	first, order int // the first point of which it is said, and its place there
	points       int
}

func newListing() *listing { return &listing{map[string]*saying{}} }

func (l *listing) add(point int, texts ...string) {
	for order, text := range texts {
		s := l.all[text]
		if s == nil {
			s = &saying{text: text, first: point, order: order}
			l.all[text] = s
		}
		if point < s.first {
			s.first, s.order = point, order
		}
		s.points++
	}
}

// tell lists what was said in the order of the points, the same whichever was first to say it, and of how
// many points unless of all.
func (l *listing) tell(points int, name func(point int) string) (told []string) {
	var all []*saying
	for _, s := range l.all {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *saying) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.order, b.order), cmp.Compare(a.text, b.text))
	})
	for i, s := range all {
		if i == mostTold {
			return append(told, fmt.Sprintf("and %d more", len(all)-mostTold))
		}
		if s.points < points {
			s.text += fmt.Sprintf(" (%d of %d points, first %s)", s.points, points, name(s.first))
		}
		told = append(told, s.text)
	}
	return told
}

// lines are the faults of an error, apart.
func lines(err error) (all []string) {
	var faults scenarios.Faults
	switch {
	case err == nil:
		return nil
	case errors.As(err, &faults):
		for _, f := range faults {
			all = append(all, f.String())
		}
		return all
	}
	return []string{err.Error()}
}
