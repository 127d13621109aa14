package picture

import (
	"fmt"
	"io"
	"strings"

	"llmsim/plan"
	"llmsim/report"
)

// WritePlan writes the page of a plan: verdict first, then its evidence. The curve is one replica's, and may be
// empty; the run is one of the answer's replicas, and may be nil.
func WritePlan(w io.Writer, a *plan.Answer, curve []plan.Point, r *Run) error {
	p := newPage(w, "llmsim plan: "+a.Scenario.Name)
	p.verdict(a.Verdict, verdictOf(a.Verdict.Holds, fmt.Sprintf("%s, %s", plural(a.Replicas, "replica"), plural(a.GPUs, "GPU"))))
	p.identity(a.Run)
	p.capacity(a)

	p.heading("What breaks first", capital(a.Bottleneck.Of)+": "+a.Bottleneck.What+".")
	p.charts(curveCharts(a, curve, r)...)
	p.text("<div class=\"grid\">\n")
	p.bound(a.Bottleneck.Bound, a.Bottleneck.Blocked, ", of "+a.Bottleneck.Of)
	p.text("</div>\n")

	p.sensitivity(a.Sensitivity)
	if len(a.SLO) > 0 {
		p.heading("The SLO", "")
		p.objectives(a.SLO)
	}
	p.heading("Memory", "")
	m := a.Memory
	p.memory(m.Weights, m.KV, m.Reserve, m.Free, m.KVTokens, m.Stage)

	p.heading("What was simulated", "Numbers of replicas that were tried, without the warm-up.")
	p.table(a.TrialsTable())
	p.figures(a.Run)
	if r != nil {
		p.text("<p class=\"about\">", esc(r.Note), "</p>\n")
		p.run(r)
	}
	p.heading("All figures", fmt.Sprintf("Of %s, without the warm-up.", plural(a.Replicas, "replica")))
	p.tables(a.Run)
	p.notes(append(append([]string(nil), a.Run.Assumptions...), a.Notes...))
	return p.end(a.Version)
}

func verdictOf(holds bool, what string) string {
	if holds {
		return "Holds: " + what
	}
	return "Does not hold: " + what
}

func (p *page) verdict(v plan.Verdict, title string) {
	class := "verdict"
	if !v.Holds {
		class += " no"
	}
	say, rest, _ := strings.Cut(title, ":")
	p.text("<div class=\"", class, "\"><h1><span class=\"say\">", esc(say), ":</span>", esc(rest), "</h1>\n<p>", esc(capital(sentence(v.Reason))), "</p>\n")
	if v.Margin != "" {
		p.text("<p><b>Beware:</b> ", esc(sentence(v.Margin)), "</p>\n")
	}
	p.text("</div>\n")
}

func sentence(s string) string { return strings.TrimSuffix(s, ".") + "." }

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func (p *page) capacity(a *plan.Answer) {
	var all []card
	if c := a.Capacity; c != nil {
		interval := fmt.Sprintf("%s to %s (95%%)", report.Figure(c.CI[0]), report.Figure(c.CI[1]))
		if c.Speedup > 0 {
			all = append(all, card{"the trace may come", report.Figure(c.Speedup), "x as fast", "and the replicas keep up"})
		} else {
			all = append(all, card{"one replica sustains", report.Figure(c.PerReplica), "req/s", interval})
		}
		if c.Saturation > 0 && c.Saturation > 1.001*c.PerReplica {
			all = append(all, card{"and saturates at", report.Figure(c.Saturation), "req/s",
				fmt.Sprintf("%s to %s (95%%)", report.Figure(c.SaturationCI[0]), report.Figure(c.SaturationCI[1]))})
		}
		if a.Verdict.Holds && c.Speedup == 0 {
			all = append(all, card{"headroom", report.Percent(c.Headroom), "%", "above what is asked"})
		}
	}
	if x := a.Price; x != nil {
		all = append(all, card{"price", fmt.Sprintf("$%.2f", x.PerHour), "per hour", fmt.Sprintf("$%.2f per GPU and hour", x.PerGPUHour)},
			card{"per million output tokens", money(x.PerMillionOutput), "", money(x.PerThousand) + " per 1,000 requests"})
	}
	p.cards(all...)
	if a.Price != nil {
		p.text("<p class=\"sub\">Price of a GPU: ", esc(a.Price.Source), "</p>\n")
	}
}

func money(x float64) string {
	if x >= 1 {
		return fmt.Sprintf("$%.2f", x)
	}
	return fmt.Sprintf("$%.3g", x)
}

// curveCharts are latency against the rate, with where it bends and what the SLO allows.
func curveCharts(a *plan.Answer, curve []plan.Point, r *Run) []Chart {
	if len(curve) == 0 {
		return nil
	}
	asked := a.Run.Throughput.Offered / float64(max(a.Replicas, 1))
	if r != nil && r.Scenario.Workload.Arrivals.Rate > 0 {
		asked = r.Scenario.Workload.Arrivals.Rate / float64(max(a.Replicas, 1))
	}
	last := curve[len(curve)-1].Rate
	marks := []Mark{}
	if c := a.Capacity; c != nil {
		if c.PerReplica > 0 && c.PerReplica < 0.98*c.Saturation {
			marks = append(marks, Mark{Name: "sustains " + report.Figure(c.PerReplica), At: c.PerReplica})
		}
		marks = append(marks, Mark{Name: "saturates at " + report.Figure(c.Saturation), At: c.Saturation, Warning: true})
	}
	if asked > 0 && asked <= last {
		marks = append(marks, Mark{Name: "asked " + report.Figure(asked), At: asked})
	}
	chart := func(title, metric string, of func(l *report.Latencies) *report.Latency) Chart {
		c := Chart{Title: title, About: "One replica, each point a run of its own.", X: Axis{Label: "rate of one replica", Unit: "req/s", Max: 1.02 * last}, Y: Axis{Label: metric, Unit: "ms", Log: true},
			Marks: append([]Mark(nil), marks...)}
		for _, o := range a.SLO {
			if o.Unit == "" && strings.HasPrefix(o.Name, strings.ToLower(metric)) {
				c.Marks = append(c.Marks, Mark{Name: fmt.Sprintf("%s %g ms", o.Name, o.Limit), At: o.Limit, Across: true, Warning: true})
			}
		}
		mid, high := Series{Name: "median", Colour: 0, Points: true}, Series{Name: "p99", Colour: 1, Points: true}
		for i := range curve {
			l := of(&curve[i].Latency)
			if l.Count == 0 {
				continue
			}
			mid.X, mid.Y = append(mid.X, curve[i].Rate), append(mid.Y, l.P50)
			high.X, high.Y = append(high.X, curve[i].Rate), append(high.Y, l.P99)
		}
		if len(mid.X) > 0 {
			c.Series = []Series{mid, high}
		}
		return c
	}
	return []Chart{
		chart("Time to first token against rate", "TTFT", func(l *report.Latencies) *report.Latency { return &l.TTFT }),
		chart("Gaps between tokens against rate", "ITL", func(l *report.Latencies) *report.Latency { return &l.ITL }),
	}
}

func (p *page) sensitivity(all []plan.Sensitivity) {
	var rows []bar
	var impossible []string
	for _, x := range all {
		name := x.Short() + ": " + x.To
		if x.Reason != "" {
			impossible = append(impossible, name)
			continue
		}
		b := bar{name: name, label: fmt.Sprintf("%+.1f%%, %s req/s", 100*x.Change, report.Figure(x.PerReplica)), value: x.Change, colour: 2}
		if x.Change < 0 {
			b.colour = 1
		}
		rows = append(rows, b)
	}
	if len(rows) == 0 {
		return
	}
	p.heading("What one setting would change", "")
	about := "What a replica sustains, with one setting changed alone"
	if len(impossible) > 0 {
		about += "; impossible: " + strings.Join(impossible, ", ")
	}
	p.bars("Sensitivity", about, rows)
}

func (p *page) objectives(all []plan.Objective) {
	var rows []bar
	for _, o := range all {
		unit := o.Unit
		if unit == "" {
			unit = " ms"
		}
		b := bar{name: o.Name, value: o.Value / o.Limit, limit: 1, colour: 2, label: fmt.Sprintf("%s of %s%s, met", report.Figure(o.Value), report.Figure(o.Limit), unit)}
		if !o.Met {
			b.colour, b.label = 1, strings.Replace(b.label, ", met", ", missed", 1)
		}
		// A bound that is missed by far must not hide the others.
		b.value = min(b.value, 2)
		rows = append(rows, b)
	}
	p.bars("Bounds of the SLO", "The dashed line is the bound; bars are cut at twice the bound", rows)
}

// WriteComparison writes the page of a comparison of GPUs.
func WriteComparison(w io.Writer, c *plan.Comparison) error {
	p := newPage(w, "llmsim plan: GPUs compared")
	title := "Does not hold: no GPU"
	if c.Verdict.Holds {
		title = "Cheapest: " + c.Best
	}
	p.verdict(c.Verdict, title)
	if len(c.Choices) > 0 {
		p.heading("Speed for users against work for money", "Up and to the right is better; no other GPU has more of both than those on the front.")
		p.charts(pareto(c))
		var rows []bar
		for _, x := range c.Choices {
			if x.Price != nil {
				rows = append(rows, bar{name: fmt.Sprintf("%s, %s", x.GPU, plural(x.GPUs, "GPU")), value: x.Price.PerHour, colour: 0, label: fmt.Sprintf("$%.2f", x.Price.PerHour)})
			}
		}
		p.bars("Price per hour", "Of as many as it takes", rows)
		p.heading("All that hold", "*: on the front. ?: nothing was measured on it, its step times are defaults.")
		p.table(c.ChoicesTable())
	}
	if len(c.Others) > 0 {
		t := report.Table{Head: []string{"not among them", "because"}}
		for _, o := range c.Others {
			t.Rows = append(t.Rows, []string{o.GPU, o.Reason})
		}
		p.table(t)
	}
	p.notes(c.Notes)
	return p.end(c.Version)
}

func pareto(c *plan.Comparison) Chart {
	front, others := Series{Name: "on the front", Colour: 2, Style: Dots}, Series{Name: "others", Colour: 5, Style: Dots}
	for _, x := range c.Choices {
		s := &others
		if x.Pareto {
			s = &front
		}
		name := x.GPU
		if x.TP > 1 {
			name += fmt.Sprintf(" x %d", x.TP)
		}
		s.X, s.Y, s.Labels = append(s.X, x.PerUser), append(s.Y, x.PerGPU), append(s.Labels, name)
	}
	chart := Chart{Title: "Output tokens", About: "What one user sees, and what one GPU yields at the rate asked for.",
		X: Axis{Label: "per user", Unit: "tokens/s"}, Y: Axis{Label: "per GPU", Unit: "tokens/s"}}
	for _, s := range []Series{front, others} {
		if len(s.X) > 0 {
			chart.Series = append(chart.Series, s)
		}
	}
	most := 0.0
	for _, x := range c.Choices {
		most = max(most, x.PerUser)
	}
	chart.X.Max = most * 1.1
	return chart
}
