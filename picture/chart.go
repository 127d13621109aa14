package picture

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"llmsim/report"
	"llmsim/sim/rng"
)

// An Axis goes from Min to Max; a logarithmic one is of positive numbers, and one of names of 0, 1, 2 and so on.
type Axis struct {
	Label    string
	Unit     string
	Min, Max float64
	Log      bool
	Names    []string // of the numbers from 0 on
}

// A Style says how a series is drawn.
type Style int

const (
	Line  Style = iota
	Dash        // a line of dashes
	Area        // a line, filled down to zero
	Stack       // an area on top of that of the series before
	Steps       // bars without gaps: Y[i] from X[i] to X[i+1], the last Y means nothing
	Dots
)

// A Series is a curve. Its colour is one of six that people who confuse colours tell apart.
type Series struct {
	Name   string
	Colour int // 0 to 5
	Style  Style
	X, Y   []float64
	Errors []float64 // of Y, to both sides; may be nil
	Points bool      // show where the curve is known
	Labels []string  // of dots
}

// A Mark is a line across a chart.
type Mark struct {
	Name    string
	At      float64
	Across  bool // at a Y, else at an X
	Warning bool // a limit, drawn as such
}

// A Chart is series on two axes.
type Chart struct {
	Title, About string
	X, Y         Axis
	Series       []Series
	Marks        []Mark
	Zoom         bool   // a part of X may be looked at; charts of one page go along
	Note         string // beside the names of the curves
}

// drawn reports whether there is anything to draw.
func (c *Chart) drawn() bool {
	return slices.ContainsFunc(c.Series, func(s Series) bool { return len(s.X) > 0 })
}

// title is what stands beside an axis.
func (a Axis) title() string {
	if a.Unit == "" {
		return a.Label
	}
	return a.Label + " (" + a.Unit + ")"
}

// fit sets an axis to the range of what is drawn where it has none, to round numbers.
func (c *Chart) fit() {
	if c.X.Min == c.X.Max {
		c.X.span(func(s *Series) []float64 { return s.X }, c.Series, false, c.X.Log)
	}
	if c.Y.Min == c.Y.Max {
		tops := make([]Series, len(c.Series))
		for i, y := range c.tops() {
			tops[i].Y = y
			for k, e := range c.Series[i].Errors {
				tops = append(tops, Series{Y: []float64{y[k] + e}})
			}
		}
		for _, m := range c.Marks {
			if m.Across {
				above := 1.1 // room for its name
				if c.Y.Log {
					above = 1.4
				}
				tops = append(tops, Series{Y: []float64{m.At, above * m.At}})
			}
		}
		c.Y.span(func(s *Series) []float64 { return s.Y }, tops, true, true)
	}
}

// span takes the range of some series, from zero on unless the axis is logarithmic, and widens it to ticks.
func (a *Axis) span(of func(*Series) []float64, all []Series, zero, round bool) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range all {
		for _, v := range of(&all[i]) {
			if !a.Log || v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if lo > hi {
		lo, hi = 1, 2
	}
	if !a.Log && (zero || lo > 0 && lo < hi/3) {
		lo = min(lo, 0)
	}
	if a.Log {
		hi = max(hi, lo*1.5)
		if round {
			lo, hi = niceLog(lo, false), niceLog(hi, true)
		}
	} else if hi == lo {
		hi = lo + 1
	}
	a.Min, a.Max = lo, hi
	if !a.Log && round {
		step := a.step(5)
		a.Max = math.Ceil(hi/step-1e-9) * step
	}
}

// niceLog is the nearest of 1, 2 and 5 times a power of ten, below or above.
func niceLog(v float64, up bool) float64 {
	power := math.Pow10(int(math.Floor(log10(v) + 1e-12)))
	steps := []float64{1, 2, 5, 10}
	for i, s := range steps {
		if v <= s*power*(1+1e-9) {
			if up || v >= s*power*(1-1e-9) || i == 0 {
				return s * power
			}
			return steps[i-1] * power
		}
	}
	return 10 * power
}

func log10(v float64) float64 { return rng.Log(v) / math.Ln10 }

// step is the distance of about so many ticks: 1, 2, 2.5 or 5 times a power of ten.
func (a Axis) step(n int) float64 {
	rough := (a.Max - a.Min) / float64(n)
	power := math.Pow10(int(math.Floor(log10(rough))))
	for _, s := range []float64{1, 2, 2.5, 5} {
		if rough <= s*power*1.0001 {
			return s * power
		}
	}
	return 10 * power
}

// ticks are round numbers within an axis, about so many.
func (a Axis) ticks(n int) (all []float64) {
	if a.Names != nil {
		for i := 0; i < len(a.Names); i += 1 + (len(a.Names)-1)/(2*n) {
			all = append(all, float64(i))
		}
		return all
	}
	if a.Log {
		steps := []float64{1, 2, 5}
		if a.Max/a.Min > 300 {
			steps = []float64{1}
		}
		for p := math.Floor(log10(a.Min)) - 1; p <= log10(a.Max)+1; p++ {
			for _, s := range steps {
				if v := s * math.Pow10(int(p)); v >= a.Min*(1-1e-9) && v <= a.Max*(1+1e-9) {
					all = append(all, v)
				}
			}
		}
		return all
	}
	step := a.step(n)
	for i := int64(math.Ceil(a.Min/step - 1e-9)); float64(i)*step <= a.Max*(1+1e-9); i++ {
		all = append(all, float64(i)*step)
	}
	return all
}

// place is where a value stands on an axis: 0 at Min, 1 at Max.
func (a Axis) place(v float64) float64 {
	if a.Log {
		return min(max(rng.Log(max(v, a.Min/1e3)/a.Min)/rng.Log(a.Max/a.Min), -0.5), 1.5)
	}
	return (v - a.Min) / (a.Max - a.Min)
}

// tops are the curves as they are drawn: stacked ones on those below them.
func (c *Chart) tops() [][]float64 {
	all := make([][]float64, len(c.Series))
	for i, s := range c.Series {
		all[i] = s.Y
		if s.Style == Stack && i > 0 {
			top := make([]float64, len(s.Y))
			for k, y := range s.Y {
				top[k] = all[i-1][k] + y
			}
			all[i] = top
		}
	}
	return all
}

// mostName is how many letters of a name there is room for below an axis.
const mostName = 12

// tick writes a number of an axis, or what it stands for.
func (a Axis) tick(v float64) string {
	if a.Names == nil {
		return tick(v)
	}
	name := []rune(a.Names[int(v)])
	if len(name) > mostName {
		name = append(name[:mostName-2], '.', '.')
	}
	return string(name)
}

// tick writes a number below an axis.
func tick(v float64) string {
	short := func(x float64, unit string) string {
		return strconv.FormatFloat(math.Round(x*1000)/1000, 'f', -1, 64) + unit
	}
	switch a := math.Abs(v); {
	case a >= 1e6:
		return short(v/1e6, "M")
	case a >= 1e4:
		return short(v/1e3, "k")
	case a >= 1000:
		return report.Count(int64(math.Round(v)))
	case a < 0.001 && a > 0:
		return strings.ToLower(strconv.FormatFloat(v, 'e', 0, 64))
	}
	return short(v, "")
}
