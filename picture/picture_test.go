package picture

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/sim/cost"
)

// Ticks are round, and within the axis.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis Axis
		want string
	}{
		{Axis{Max: 100}, "[0 20 40 60 80 100]"},
		{Axis{Max: 128}, "[0 25 50 75 100 125]"},
		{Axis{Min: -3, Max: 3}, "[-3 -2 -1 0 1 2 3]"},
		{Axis{Max: 0.003}, "[0 0.0005 0.001 0.0015 0.002 0.0025 0.003]"},
		{Axis{Min: 5, Max: 200, Log: true}, "[5 10 20 50 100 200]"},
		{Axis{Min: 0.5, Max: 2e4, Log: true}, "[1 10 100 1000 10000]"},
	} {
		var got []float64
		for _, v := range c.axis.ticks(6) {
			got = append(got, math.Round(v*1e6)/1e6)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v.ticks(6) = %v, want %v", c.axis, got, c.want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 12: "12", 1500: "1,500", 25_000: "25k", 3e6: "3M", 0.0001: "1e-04"} {
		if got := tick(v); got != want {
			t.Errorf("tick(%v) = %q, want %q", v, got, want)
		}
	}
}

// An axis without a range takes that of what is drawn on it, stacked as it is.
func TestFit(t *testing.T) {
	c := Chart{X: Axis{Log: true}, Series: []Series{
		{Style: Stack, X: []float64{3, 40}, Y: []float64{4, 5}},
		{Style: Stack, X: []float64{3, 40}, Y: []float64{1, 8}},
	}, Marks: []Mark{{At: 13.5, Across: true}}}
	c.fit()
	if c.X.Min != 2 || c.X.Max != 50 || c.Y.Min != 0 || c.Y.Max != 15 {
		t.Errorf("fit() = %+v, %+v, want 2 to 50 and 0 to 15", c.X, c.Y)
	}
	for v, want := range map[float64][2]float64{0.7: {0.5, 1}, 1: {1, 1}, 3: {2, 5}, 99: {50, 100}, 5000: {5000, 5000}} {
		if lo, hi := niceLog(v, false), niceLog(v, true); math.Abs(lo-want[0]) > 1e-9 || math.Abs(hi-want[1]) > 1e-9 {
			t.Errorf("niceLog(%v) = %v, %v, want %v", v, lo, hi, want)
		}
	}
}

// However long a run is, its history is short and its areas are kept.
func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory(1)
	var now time.Duration
	var area float64
	for i := range 200_000 {
		took := time.Duration(1+i%7) * time.Millisecond
		s := sim.Step{Start: now, End: now + took, Running: 1 + i%5, UsedBlocks: 1, FreeBlocks: 3,
			Shape: cost.Shape{Tokens: 3, Decodes: 1}}
		if i%1000 == 0 {
			s.Preempted = []int64{1}
		}
		h.Take(&sim.Progress{Steps: []sim.Step{s}})
		area += took.Seconds() * float64(s.Running)
		now += took
	}
	if n := len(h.moments); n > mostMoments || n < mostMoments/2-1 {
		t.Errorf("%d moments, want about %d to %d", n, mostMoments/2, mostMoments)
	}
	var got, tokens float64
	preempted := 0
	for _, m := range h.moments {
		got += m.running
		tokens += m.prefill
		preempted += m.preempted
		if math.Abs(m.used*4-m.blocks) > 1e-9 {
			t.Fatalf("%v of %v blocks in use, want a quarter", m.used, m.blocks)
		}
	}
	if math.Abs(got-area) > 1e-6*area || math.Abs(tokens-400_000) > 1e-3 || preempted != 200 {
		t.Errorf("area %v, prefill %v, preempted %d, want %v, 400000, 200", got, tokens, preempted, area)
	}
	x, y := h.over(func(m *moment, s float64) float64 { return m.running / s })
	if !slices.IsSorted(x) || slices.Min(y) < 2.5 || slices.Max(y) > 3.5 {
		t.Errorf("running from %v to %v, want about 3", slices.Min(y), slices.Max(y))
	}
}

// watched is a short run of a scenario.
func watched(t *testing.T, name string, edits ...string) *Run {
	t.Helper()
	var all []scenarios.Edit
	for _, text := range edits {
		edit, err := scenarios.ParseEdit(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, edit)
	}
	s, err := scenarios.Load(name, all)
	if err != nil {
		t.Fatal(err)
	}
	source, notes, err := s.Source()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRun(s)
	run := sim.NewRun(s.Cluster(), source)
	for {
		p, more := run.Advance()
		if !more {
			break
		}
		r.Take(p)
	}
	r.Summary = r.Recorder.Summary(report.Identity{Version: "x", Scenario: "<b>&\"", Assumptions: notes, Blocks: 100, BlockSize: 16})
	return r
}

// The same run gives the same files, each of the format that it says.
func TestPlotFormats(t *testing.T) {
	r := watched(t, "base", "workload.requests=300", "slo={itl-p99: 9ms}")
	for format, magic := range map[string]string{"png": "\x89PNG\r\n", "svg": "<?xml", "pdf": "%PDF-1."} {
		var once, again bytes.Buffer
		for _, out := range []*bytes.Buffer{&once, &again} {
			if err := WritePlot(out, format, r.Charts()); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.HasPrefix(once.String(), magic) || once.Len() < 10_000 || !bytes.Equal(once.Bytes(), again.Bytes()) {
			t.Errorf("%s: %d bytes that start with %q, again %d, want the same and %q", format, once.Len(), once.String()[:8], again.Len(), magic)
		}
	}
	if err := WritePlot(new(bytes.Buffer), "gif", nil); err == nil || err.Error() != `a plot is written as one of png, svg, pdf, not "gif"` {
		t.Errorf("WritePlot as gif = %v, want a refusal", err)
	}
	if f, err := FormatOf("a/b.PNG"); f != "png" || err != nil {
		t.Errorf("FormatOf(a/b.PNG) = %q, %v, want png", f, err)
	}
	if _, err := FormatOf("png"); err == nil {
		t.Error("FormatOf(png) succeeds, want an error")
	}
}

// What has nothing to show is still written.
func TestEmptyRuns(t *testing.T) {
	for _, edits := range [][]string{
		{"workload.requests=3", "engine.num_gpu_blocks=40", "workload.prompt_tokens={lognormal: [5000, 0.1]}"}, // all refused
		{"workload.requests=1", "workload.output_tokens=1"},                                                    // without a gap between tokens
	} {
		r := watched(t, "base", edits...)
		var page, plot bytes.Buffer
		if err := WriteRun(&page, r); err != nil {
			t.Fatal(err)
		}
		if err := WritePlot(&plot, "svg", r.Charts()); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"NaN", "Inf"} {
			if strings.Contains(page.String(), bad) || strings.Contains(plot.String(), bad) {
				t.Errorf("%v: the page or the plot has a %s", edits, bad)
			}
		}
	}
}

// A name is text, whatever is in it.
func TestNamesAreEscaped(t *testing.T) {
	var page bytes.Buffer
	if err := WriteRun(&page, watched(t, "base", "workload.requests=5")); err != nil {
		t.Fatal(err)
	}
	if text := page.String(); strings.Contains(text, "scenario <b>") || !strings.Contains(text, "&lt;b&gt;&amp;&#34;") {
		t.Error("the scenario's name is not escaped")
	}
}

// A preempted run shows it.
func TestPreemptionsAreDrawn(t *testing.T) {
	r := watched(t, "e5")
	if len(r.Charts()) < 7 || r.preemptions().Title != "Preemptions" || slices.Max(r.preemptions().Series[0].Y) <= 0 {
		t.Errorf("%d charts, preemptions %+v, want some", len(r.Charts()), r.preemptions().Title)
	}
}
