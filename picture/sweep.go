package picture

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sweep"
)

// Bounds of what is drawn of a sweep.
const (
	mostCurves = 12   // of a chart
	mostPoints = 500  // of a curve
	mostRows   = 2000 // of the table
	mostNamed  = 20   // curves that are not drawn
)

// WriteSweep writes the page of a sweep. The SLO is what its points have in common, and may be empty.
func WriteSweep(w io.Writer, r sweep.Result, slo []scenarios.Objective) error {
	p := newPage(w, "llmsim sweep: "+r.Scenario)
	l := layOut(r)
	p.text("<h1>", esc(plural(r.Points, "point")+" of scenario "+r.Scenario), "</h1>\n<p class=\"sub\">", esc(l.seeds()), "</p>\n",
		"<p class=\"sub\">sweep ", esc(r.Sweep), ", llmsim ", esc(r.Version), "</p>\n")
	p.table(l.table())
	p.heading("Against "+l.axis.Label, l.about())
	if charts := l.charts(slo); slices.ContainsFunc(charts, func(c Chart) bool { return c.drawn() }) {
		p.charts(charts...)
	} else {
		p.text("<p>No point has such a figure: there is nothing to draw.</p>\n")
	}
	about := ""
	if r.Points > mostRows {
		about = fmt.Sprintf("The first %s of %s points.", report.Count(mostRows), report.Count(int64(r.Points)))
	}
	p.heading("All points", about)
	p.table(r.Table(mostRows))
	p.notes(r.Assumptions)
	return p.end(r.Version)
}

// SweepCharts are the charts of a sweep's page.
func SweepCharts(r sweep.Result, slo []scenarios.Objective) []Chart { return layOut(r).charts(slo) }

// A dimension is fields of a sweep that move together, and the names of their stops in order.
type dimension struct {
	fields []int
	stops  []string
}

// of is the stop of a point, by the values of all fields.
func (d dimension) of(at []string) string {
	values := make([]string, len(d.fields))
	for i, f := range d.fields {
		values[i] = at[f]
	}
	return strings.Join(values, ":")
}

// name writes the fields, short or as they were given.
func (d dimension) name(field func(int) string) string {
	names := make([]string, len(d.fields))
	for i, f := range d.fields {
		names[i] = field(f)
	}
	return strings.Join(names, ":")
}

// numbers are the stops as numbers; nil where one is none.
func (d dimension) numbers() (all []float64) {
	for _, s := range d.stops {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// distinct are the stops that fields have in points, in the order in which they come.
func distinct(at [][]string, fields ...int) dimension {
	d := dimension{fields: fields}
	seen := map[string]bool{}
	for _, values := range at {
		if s := d.of(values); !seen[s] {
			seen[s] = true
			d.stops = append(d.stops, s)
		}
	}
	return d
}

// dimensions divides the fields of a grid: two whose values don't come in all combinations move together.
func dimensions(fields int, at [][]string) (all []dimension) {
	for f := range fields {
		own := distinct(at, f)
		if n := len(all); n > 0 {
			last := all[n-1]
			both := distinct(at, append(slices.Clone(last.fields), f)...)
			if len(both.stops) < len(last.stops)*len(own.stops) {
				all[n-1] = both
				continue
			}
		}
		all = append(all, own)
	}
	return all
}

// A layout says which points make which curves.
type layout struct {
	r      sweep.Result
	all    []dimension
	x      int       // among all
	place  []float64 // of every stop of x
	axis   Axis
	thin   int // of the stops of x every so manyth is drawn
	curves []curve
}

// A curve is points in the order of x.
type curve struct {
	name   string
	points []int
	x      []float64
}

func layOut(r sweep.Result) *layout {
	at := r.At()
	l := &layout{r: r, all: dimensions(len(r.Fields), at)}
	l.choose()
	x := l.all[l.x]
	places := map[string]int{}
	for i, s := range x.stops {
		places[s] = i
	}
	// Few values are drawn all, many such that both ends of a long range are seen.
	l.thin = (len(x.stops) + mostPoints - 1) / mostPoints
	index := map[string]int{}
	for i, values := range at {
		name := l.curveOf(values)
		k, known := index[name]
		if !known {
			k = len(l.curves)
			index[name] = k
			l.curves = append(l.curves, curve{name: name})
		}
		if stop := places[x.of(values)]; stop%l.thin == 0 || stop == len(x.stops)-1 {
			l.curves[k].points = append(l.curves[k].points, i)
			l.curves[k].x = append(l.curves[k].x, l.place[stop])
		}
	}
	for i := range l.curves {
		l.curves[i].sort()
	}
	return l
}

func (c *curve) sort() {
	order := make([]int, len(c.x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case c.x[a] < c.x[b]:
			return -1
		case c.x[a] > c.x[b]:
			return 1
		}
		return 0
	})
	sorted := curve{name: c.name}
	for _, i := range order {
		sorted.points, sorted.x = append(sorted.points, c.points[i]), append(sorted.x, c.x[i])
	}
	*c = sorted
}

// choose takes the axis to draw against: the first of numbers that moves, else the first that moves.
func (l *layout) choose() {
	moves := func(d dimension) bool { return len(d.stops) > 1 }
	l.x = slices.IndexFunc(l.all, func(d dimension) bool { return moves(d) && d.numbers() != nil })
	if l.x < 0 {
		l.x = max(slices.IndexFunc(l.all, moves), 0)
	}
	d := l.all[l.x]
	l.axis.Label = d.name(func(f int) string { return l.r.Fields[f] })
	if l.axis.Label == "rate" || l.axis.Label == "workload.arrivals.rate" {
		l.axis.Unit = "req/s"
	}
	l.place = d.numbers()
	if l.place == nil {
		l.axis.Names = d.stops
		for i := range d.stops {
			l.place = append(l.place, float64(i))
		}
		l.axis.Min, l.axis.Max = -0.5, float64(len(d.stops))-0.5
		return
	}
	sorted := slices.Clone(l.place)
	slices.Sort(sorted)
	lo, hi := sorted[0], sorted[len(sorted)-1]
	n := len(sorted)
	switch {
	case lo == hi:
		room := max(math.Abs(lo)/10, 1e-3)
		l.axis.Min, l.axis.Max = lo-room, hi+room
	case n > 3 && lo > 0 && hi >= 16*lo && hi-sorted[n-2] > 0.4*(hi-lo): // values that grow by a factor
		l.axis.Log, l.axis.Min, l.axis.Max = true, lo/1.1, hi*1.1
	default:
		room := float64(0.03 * (hi - lo))
		l.axis.Min, l.axis.Max = lo-room, hi+room
	}
}

// curveOf names the curve of a point by the axes that are not drawn against.
func (l *layout) curveOf(at []string) string {
	var parts []string
	for i, d := range l.all {
		if i != l.x && len(d.stops) > 1 {
			parts = append(parts, d.name(l.r.Short)+"="+d.of(at))
		}
	}
	return strings.Join(parts, ", ")
}

// charts are one for each figure.
func (l *layout) charts(slo []scenarios.Objective) (all []Chart) {
	for _, f := range l.r.Drawn() {
		all = append(all, l.chart(f, slo))
	}
	return all
}

func (l *layout) chart(f sweep.Figure, slo []scenarios.Objective) Chart {
	title, unit := f.Head, ""
	if name, rest, ok := strings.Cut(f.Head, " ("); ok {
		title, unit = name, strings.TrimSuffix(rest, ")")
	}
	scale := 1.0
	if unit == "%" {
		scale = 100
	}
	c := Chart{Title: title, About: f.Name + " against " + l.axis.Label, X: l.axis, Y: Axis{Label: title, Unit: unit}}
	means, stderrs := l.r.Averages(f.Name)
	lo, hi := math.Inf(1), 0.0
	for i, curve := range l.curves[:min(len(l.curves), mostCurves)] {
		s := Series{Name: named(curve.name, title), Colour: i % len(palette), Points: true}
		if i >= len(palette) {
			s.Style = Dash
		}
		for k, point := range curve.points {
			if math.IsNaN(means[point]) {
				continue
			}
			y := float64(scale * means[point])
			s.X, s.Y = append(s.X, curve.x[k]), append(s.Y, y)
			if l.r.Seeds > 1 {
				s.Errors = append(s.Errors, float64(scale*stderrs[point]))
			}
			lo, hi = min(lo, y), max(hi, y)
		}
		c.Series = append(c.Series, s)
	}
	c.Y.Log = unit == "ms" && lo > 0 && hi > 30*lo // as where some points are overloaded
	if n := len(l.curves); n > mostCurves {
		c.Note = fmt.Sprintf("%d of %s curves", mostCurves, report.Count(int64(n)))
	}
	for _, o := range slo {
		if o.Limit > 0 && !o.Each && f.Name == figureOf(o) {
			c.Marks = append(c.Marks, Mark{Name: o.Name + " " + short(o.Limit), At: o.Limit.Seconds() * 1e3, Across: true, Warning: true})
		}
	}
	return c
}

// figureOf names the figure that an objective bounds.
func figureOf(o scenarios.Objective) string {
	statistic := "p" + strconv.FormatFloat(o.P, 'f', -1, 64)
	switch o.P {
	case 0:
		statistic = "mean"
	case 100:
		statistic = "max"
	}
	return o.Metric + "_" + statistic + "_ms"
}

func (l *layout) seeds() string {
	if l.r.Seeds == 1 {
		return "Each point is one run; all points have the same seed unless that is swept."
	}
	return fmt.Sprintf("Each point is the mean of %d seeds, which all points share; whiskers and +/- are its standard error.", l.r.Seeds)
}

// table says what was swept.
func (l *layout) table() report.Table {
	t := report.Table{Head: []string{"axis", "values", "first", "last"}}
	for _, d := range l.all {
		t.Rows = append(t.Rows, []string{d.name(func(f int) string { return l.r.Fields[f] }), report.Count(int64(len(d.stops))), d.stops[0], d.stops[len(d.stops)-1]})
	}
	return t
}

// about tells what the charts leave out.
func (l *layout) about() string {
	var parts []string
	if n := len(l.all[l.x].stops); l.thin > 1 {
		parts = append(parts, fmt.Sprintf("Of %s values of %s one in %d is drawn.", report.Count(int64(n)), l.axis.Label, l.thin))
	}
	if n := len(l.curves); n > mostCurves {
		var names []string
		for _, c := range l.curves[mostCurves:min(n, mostCurves+mostNamed)] {
			names = append(names, c.name)
		}
		if more := n - mostCurves - mostNamed; more > 0 {
			names = append(names, fmt.Sprintf("and %s more", report.Count(int64(more))))
		}
		parts = append(parts, fmt.Sprintf("The first %d curves are drawn; not drawn: %s.", mostCurves, strings.Join(names, "; ")))
	}
	return strings.Join(parts, " ")
}
