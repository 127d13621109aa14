package picture

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
)

// A Run is one run to be drawn: whoever drives it lets it take in every stretch.
type Run struct {
	Scenario *scenarios.Scenario
	Recorder *report.Recorder
	History  *History
	Summary  report.Summary // when the run has ended
	Note     string         // on how the run differs from what the page is of; may be empty
}

// NewRun starts to watch a run of a scenario.
func NewRun(s *scenarios.Scenario) *Run {
	return &Run{Scenario: s, Recorder: new(report.Recorder), History: NewHistory(s.Fleet.Replicas * s.Engine.DataParallelSize)}
}

// Take takes in a stretch.
func (r *Run) Take(p *sim.Progress) {
	r.Recorder.Take(p)
	r.History.Take(p)
}

// WriteRun writes the page of one run.
func WriteRun(w io.Writer, r *Run) error {
	s := r.Summary
	p := newPage(w, "llmsim simulate: "+s.Scenario.Name)
	p.text("<h1>", esc(r.title()), "</h1>\n")
	p.identity(s)
	p.figures(s)
	p.run(r)
	p.heading("Where the time goes", "")
	p.spent(s)
	p.heading("Memory", "")
	_, m := r.Scenario.KVBlocks()
	p.memory(m.WeightsBytes, m.KVBytes, m.ReserveBytes, m.FreeBytes, s.KV.Tokens, m.Stage)
	p.heading("All figures", "")
	p.tables(s)
	p.notes(s.Assumptions)
	return p.end(s.Version)
}

func (r *Run) title() string {
	s := r.Scenario
	what := fmt.Sprintf("%s of %s on %s", plural(s.Fleet.Replicas, "replica"), named(s.Model.Name, "a model"), named(s.Hardware.Name, "a GPU"))
	if n := s.Engine.GPUs(); n > 1 {
		what += fmt.Sprintf(" x %d", n)
	}
	return what
}

func named(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return given
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return report.Count(int64(n)) + " " + what + "s"
}

// identity says which run a page is of.
func (p *page) identity(s report.Summary) {
	digest := s.Scenario.Digest
	if len(digest) > 19 {
		digest = digest[:19]
	}
	p.text("<p class=\"sub\">", esc(s.Workload), "</p>\n<p class=\"sub\">scenario ", esc(s.Scenario.Name), " (", esc(digest), "), seed ", fmt.Sprint(s.Seed),
		", policy ", esc(s.Engine.Policy), ", models ", esc(s.Engine.Models), "</p>\n")
}

// figures are those of a run that are looked at first.
func (p *page) figures(s report.Summary) {
	ms := func(l report.Latency) (string, string) {
		if l.Count == 0 {
			return "", ""
		}
		return report.Figure(l.P50), "p99 " + report.Figure(l.P99) + " ms"
	}
	latency := func(name string, l report.Latency) card {
		v, note := ms(l)
		return card{name, v, "ms", note}
	}
	all := []card{
		latency("TTFT, median", s.Latency.TTFT), latency("ITL, median", s.Latency.ITL), latency("E2E, median", s.Latency.E2E),
		{"requests completed", report.Figure(s.Throughput.Completed), "/s", fmt.Sprintf("%s of %s", report.Count(s.Requests.Completed), report.Count(s.Requests.Arrived))},
		{"output tokens", report.Figure(s.Throughput.Output), "/s", "input " + report.Figure(s.Throughput.Input) + " /s"},
		{"KV cache in use", report.Percent(s.KV.UseMean), "%", "at most " + report.Percent(s.KV.UseMax) + "%"},
	}
	if s.Preemptions.Total > 0 {
		all = append(all, card{"preemptions", report.Count(s.Preemptions.Total), "", fmt.Sprintf("of %s requests", report.Count(s.Preemptions.Requests))})
	}
	if s.Requests.Refused > 0 {
		all = append(all, card{"refused", report.Count(s.Requests.Refused), "", "too long"})
	}
	p.cards(all...)
}

// run draws what a run was like.
func (p *page) run(r *Run) {
	if r.Summary.Requests.Completed == 0 {
		p.text("<p>No request was completed: there is nothing to draw.</p>\n")
		return
	}
	p.heading("Latency", "")
	p.charts(r.latencies(), r.gaps())
	p.heading("Over time", "Levels are of all replicas together, each point a mean over a moment.")
	p.charts(r.load(), r.cache(), r.work(), r.busy(), r.preemptions())
}

// Charts are all charts of a run.
func (r *Run) Charts() []Chart {
	return []Chart{r.latencies(), r.gaps(), r.load(), r.cache(), r.work(), r.busy(), r.preemptions()}
}

// shares are where a distribution function is drawn: more of them where it is asked most.
func shares() (all []float64) {
	for i := range 100 {
		all = append(all, float64(i)/100)
	}
	for i := range 10 {
		all = append(all, 0.99+float64(i)/1000)
	}
	return append(all, 0.9995, 0.9999, 1)
}

// latencies are distribution functions. A logarithmic axis starts where somebody waits at all.
func (r *Run) latencies() Chart {
	c := Chart{Title: "Latency", About: "Share of requests, or of gaps between tokens, that took no longer.",
		X: Axis{Label: "time", Unit: "ms", Log: true}, Y: Axis{Label: "share", Unit: "%", Max: 100}, Marks: r.limits("")}
	lo, hi := math.Inf(1), 0.0
	ps := shares()
	for i, d := range []struct {
		name string
		of   *report.Dist
	}{{"TTFT", &r.Recorder.TTFT}, {"E2E", &r.Recorder.E2E}, {"ITL", &r.Recorder.ITL}, {"TPOT", &r.Recorder.TPOT}, {"queue", &r.Recorder.Queue}} {
		if d.of.Count() == 0 || d.of.Max() == 0 {
			continue
		}
		s := Series{Name: d.name, Colour: i}
		if d.name == "queue" {
			s.Style = Dash
		}
		for k, ns := range d.of.Quantiles(ps...) {
			s.X, s.Y = append(s.X, ns/1e6), append(s.Y, 100*ps[k])
			if d.name != "queue" && k >= 1 {
				lo = min(lo, max(ns/1e6, 1e-3))
			}
		}
		hi = max(hi, s.X[len(s.X)-1])
		c.Series = append(c.Series, s)
	}
	if len(c.Series) > 0 {
		for _, m := range c.Marks {
			lo, hi = min(lo, m.At), max(hi, m.At)
		}
		lo = min(max(lo, hi/1e6), hi/10)
		c.X.Min, c.X.Max = niceLog(lo, false), niceLog(hi, true)
	}
	return c
}

// limits are the scenario's bounds of a metric, or of all.
func (r *Run) limits(metric string) (marks []Mark) {
	for _, o := range r.Scenario.SLO {
		if o.Limit > 0 && (metric == "" || o.Metric == metric) {
			marks = append(marks, Mark{Name: o.Name + " " + short(o.Limit), At: o.Limit.Seconds() * 1e3, Warning: true})
		}
	}
	return marks
}

// short is a time without the zeros that time.Duration writes.
func short(d time.Duration) string {
	if d >= time.Second {
		return report.Figure(d.Seconds()) + " s"
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", d.Seconds()*1e3), "0"), ".") + " ms"
}

// gaps is the histogram of ITL: in equal bins, or, where gaps differ much, in bins of equal ratio.
func (r *Run) gaps() Chart {
	const bins = 56
	c := Chart{Title: "Gaps between tokens", About: "Histogram of ITL, over all tokens of all requests.",
		X: Axis{Label: "ITL", Unit: "ms"}, Y: Axis{Label: "share of gaps", Unit: "%"}, Marks: r.limits("itl")}
	d := &r.Recorder.ITL
	if d.Count() == 0 {
		return c
	}
	// The few longest, after a preemption, would leave no room for the others.
	ends := d.Quantiles(0.0005, 0.999)
	lo, hi := max(ends[0], 1000), max(ends[1], 1001)
	if longest := float64(d.Max()); longest > 1.5*hi {
		c.About += fmt.Sprintf(" One in a thousand is longer, up to %s.", short(d.Max()))
	} else {
		lo, hi = min(lo, max(float64(d.Min()), 1000)), max(hi, longest)
	}
	c.X.Log = hi > 4*lo
	if hi < 1.02*lo {
		lo, hi = lo*0.98, hi*1.02
	}
	edges := make([]time.Duration, bins+1)
	for i := range edges {
		share := float64(i) / bins
		v := lo + float64((hi-lo)*share)
		if c.X.Log {
			v = lo * math.Pow(hi/lo, share)
		}
		edges[i] = time.Duration(v)
	}
	edges[bins] = time.Duration(math.Ceil(hi))
	counts := d.AtMost(edges[1:]...)
	s := Series{Name: "ITL", Colour: 2, Style: Steps}
	below := 0.0
	for i, n := range counts {
		s.X, s.Y = append(s.X, edges[i].Seconds()*1e3), append(s.Y, 100*(n-below)/float64(d.Count()))
		below = n
	}
	s.X, s.Y = append(s.X, edges[bins].Seconds()*1e3), append(s.Y, 0)
	c.X.Min, c.X.Max = s.X[0], s.X[bins]
	for _, m := range c.Marks {
		c.X.Min, c.X.Max = min(c.X.Min, m.At/1.05), max(c.X.Max, m.At*1.05)
	}
	c.Series = []Series{s}
	return c
}

// over is a chart over time.
func (r *Run) over(title, about string, y Axis, series ...Series) Chart {
	return Chart{Title: title, About: about, X: Axis{Label: "time", Unit: "s", Max: r.History.end.Seconds()}, Y: y, Series: series, Zoom: true}
}

func (r *Run) series(name string, colour int, style Style, figure func(m *moment, seconds float64) float64) Series {
	x, y := r.History.over(figure)
	return Series{Name: name, Colour: colour, Style: style, X: x, Y: y}
}

func (r *Run) load() Chart {
	return r.over("Requests in the system", "Running ones have a slot and KV blocks, waiting ones neither.", Axis{Label: "requests"},
		r.series("running", 0, Area, func(m *moment, s float64) float64 { return m.running / s }),
		r.series("waiting", 1, Line, func(m *moment, s float64) float64 { return m.waiting / s }))
}

// cache is drawn over busy time: what an idle replica keeps is not told.
func (r *Run) cache() Chart {
	c := r.over("KV cache", "Blocks in use of those there are, while steps run.", Axis{Label: "in use", Unit: "%"},
		r.series("KV blocks in use", 3, Area, func(m *moment, _ float64) float64 {
			if m.blocks == 0 {
				return 0
			}
			return 100 * m.used / m.blocks
		}))
	// A cache that stays almost empty has an axis of its own.
	if slices.ContainsFunc(c.Series[0].Y, func(y float64) bool { return y > 20 }) {
		c.Y.Max = 100
	}
	return c
}

// preemptions is a chart without series where there were none.
func (r *Run) preemptions() Chart {
	if r.Summary.Preemptions.Total == 0 {
		return Chart{}
	}
	return r.over("Preemptions", "Of requests whose KV blocks were taken for others.", Axis{Label: "preemptions", Unit: "per s"},
		r.series("preemptions", 1, Area, func(m *moment, s float64) float64 { return float64(m.preempted) / s }))
}

func (r *Run) work() Chart {
	return r.over("What steps compute", "Prompt tokens and decoded ones, of which a batch is made up.", Axis{Label: "tokens", Unit: "per s"},
		r.series("decode", 2, Stack, func(m *moment, s float64) float64 { return m.decode / s }),
		r.series("prefill", 4, Stack, func(m *moment, s float64) float64 { return m.prefill / s }))
}

func (r *Run) busy() Chart {
	n := float64(r.History.replicas)
	return r.over("Replicas at work", "Share of the time in which a replica has a step under way.", Axis{Label: "busy", Unit: "%", Max: 100},
		r.series("busy", 5, Area, func(m *moment, s float64) float64 { return min(100*m.busy/s/n, 100) }))
}

// spent says what step time was bound by and what held requests back.
func (p *page) spent(s report.Summary) {
	p.text("<div class=\"grid\">\n")
	p.bound(s.Bound, s.Blocked, "")
	p.text("</div>\n")
}

func (p *page) bound(b report.Bounds, held report.Blocked, of string) {
	share := func(name string, x float64, colour int) part { return part{name, x, report.Percent(x) + "%", colour} }
	p.split("Steps are bound by", "Share of step time"+of, []part{
		share("compute", b.Time.Compute, 0), share("weight reads", b.Time.Weights, 4),
		share("KV reads", b.Time.KV, 3), share("overhead", b.Time.Overhead, 5),
	})
	row := func(name string, x float64) bar {
		return bar{name: name, label: report.Percent(x) + "%", value: x, colour: 1}
	}
	all := []bar{row("sequence slots", held.Slots), row("KV blocks", held.KV), row("token budget", held.Budget), row("nothing", max(1-held.Slots-held.KV-held.Budget, 0))}
	all[3].colour = 5
	p.bars("Requests are held back by", "Share of step time"+of, all)
}

func (p *page) memory(weights, kv, reserve, free float64, tokens, stage int) {
	hbm := weights + kv + reserve + max(free, 0)
	gib := func(name string, x float64, colour int) part {
		return part{name, x, fmt.Sprintf("%s GiB, %s%%", report.Figure(x/(1<<30)), report.Percent(x/hbm)), colour}
	}
	about := fmt.Sprintf("%s GiB; its KV cache holds %s tokens", report.Figure(hbm/(1<<30)), report.Count(int64(tokens)))
	if stage > 0 {
		about += fmt.Sprintf("; the fullest is stage %d", stage)
	}
	p.split("Memory of a GPU", about, []part{gib("weights", weights, 4), gib("KV cache", kv, 3), gib("reserve", reserve, 5), gib("free", free, -1)})
}

func (p *page) tables(s report.Summary) {
	p.text("<div class=\"tables\">\n")
	for _, t := range s.Tables() {
		p.table(t)
	}
	p.text("</div>\n")
}

func (p *page) notes(all []string) {
	if len(all) == 0 {
		return
	}
	p.heading("What the numbers rest on", "")
	p.list(all)
}

func (p *page) list(all []string) {
	if len(all) == 0 {
		return
	}
	p.text("<ul class=\"notes\">\n")
	for _, n := range all {
		p.text("<li>", esc(n), "</li>\n")
	}
	p.text("</ul>\n")
}
