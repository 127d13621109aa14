package sweep

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"llmsim/plan"
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/workload"
)

// A Figure is a number that a measure gives, and how it is shown.
type Figure struct {
	Name string // with its unit, as in a CSV file's head
	Head string // of a table; a share of 1 is shown in percent
	show func(float64) string
}

// A Measure says what is found out about one point. Of returns a number for every figure, NaN where
// there is none; it is called from several goroutines at once.
type Measure struct {
	Name    string
	Figures []Figure
	People  []string // the figures of a table, unless others are asked for; the first are of most use
	Of      func(ctx context.Context, s *scenarios.Scenario) ([]float64, error)
}

// names are those of the measure's figures.
func (m Measure) names() (names []string) {
	for _, f := range m.Figures {
		names = append(names, f.Name)
	}
	return names
}

// Simulate runs a point's scenario once, as written.
var Simulate = simulated()

type reading struct {
	name, head string
	show       func(float64) string
	of         func(*report.Summary) float64
}

func simulated() Measure {
	count := func(x float64) string {
		if x == math.Trunc(x) {
			return report.Count(int64(x))
		}
		return report.Figure(x)
	}
	readings := []reading{
		{"arrived", "arrived", count, func(s *report.Summary) float64 { return float64(s.Requests.Arrived) }},
		{"completed", "completed", count, func(s *report.Summary) float64 { return float64(s.Requests.Completed) }},
		{"refused", "refused", count, func(s *report.Summary) float64 { return float64(s.Requests.Refused) }},
		{"offered_rps", "offered/s", report.Figure, func(s *report.Summary) float64 { return s.Throughput.Offered }},
		{"completed_rps", "req/s", report.Figure, func(s *report.Summary) float64 { return s.Throughput.Completed }},
		{"input_tokens_per_s", "input tok/s", report.Figure, func(s *report.Summary) float64 { return s.Throughput.Input }},
		{"output_tokens_per_s", "tokens/s", report.Figure, func(s *report.Summary) float64 { return s.Throughput.Output }},
	}
	for _, l := range []struct {
		name, head string
		of         func(*report.Summary) report.Latency
	}{
		{"ttft", "TTFT", func(s *report.Summary) report.Latency { return s.Latency.TTFT }},
		{"itl", "ITL", func(s *report.Summary) report.Latency { return s.Latency.ITL }},
		{"tpot", "TPOT", func(s *report.Summary) report.Latency { return s.Latency.TPOT }},
		{"e2e", "E2E", func(s *report.Summary) report.Latency { return s.Latency.E2E }},
		{"queue", "queue", func(s *report.Summary) report.Latency { return s.Latency.Queue }},
	} {
		for _, statistic := range []struct {
			name string
			of   func(report.Latency) float64
		}{
			{"mean", func(l report.Latency) float64 { return l.Mean }},
			{"p50", func(l report.Latency) float64 { return l.P50 }},
			{"p90", func(l report.Latency) float64 { return l.P90 }},
			{"p95", func(l report.Latency) float64 { return l.P95 }},
			{"p99", func(l report.Latency) float64 { return l.P99 }},
			{"max", func(l report.Latency) float64 { return l.Max }},
		} {
			readings = append(readings, reading{
				l.name + "_" + statistic.name + "_ms", l.head + " " + statistic.name + " (ms)", report.Figure,
				func(s *report.Summary) float64 {
					if of := l.of(s); of.Count > 0 {
						return statistic.of(of)
					}
					return math.NaN()
				},
			})
		}
	}
	readings = append(readings, []reading{
		{"preemptions", "preemptions", count, func(s *report.Summary) float64 { return float64(s.Preemptions.Total) }},
		{"steps", "steps", count, func(s *report.Summary) float64 { return float64(s.Steps.Count) }},
		{"step_mean_ms", "step (ms)", report.Figure, func(s *report.Summary) float64 { return s.Steps.MeanMS }},
		{"batch_mean", "batch", report.Figure, func(s *report.Summary) float64 { return s.Steps.MeanBatch }},
		{"waiting_mean", "waiting", report.Figure, func(s *report.Summary) float64 { return s.Queue.Mean }},
		{"kv_use_mean", "KV (%)", report.Percent, func(s *report.Summary) float64 { return s.KV.UseMean }},
		{"kv_use_max", "KV max (%)", report.Percent, func(s *report.Summary) float64 { return s.KV.UseMax }},
		{"prefix_hit_rate", "hits (%)", report.Percent, func(s *report.Summary) float64 { return s.PrefixCache.HitRate }},
		{"bound_compute", "compute (%)", report.Percent, func(s *report.Summary) float64 { return s.Bound.Time.Compute }},
		{"bound_weights", "weights (%)", report.Percent, func(s *report.Summary) float64 { return s.Bound.Time.Weights }},
		{"bound_kv", "KV reads (%)", report.Percent, func(s *report.Summary) float64 { return s.Bound.Time.KV }},
		{"bound_overhead", "overhead (%)", report.Percent, func(s *report.Summary) float64 { return s.Bound.Time.Overhead }},
		{"blocked_slots", "by slots (%)", report.Percent, func(s *report.Summary) float64 { return s.Blocked.Slots }},
		{"blocked_kv", "by KV (%)", report.Percent, func(s *report.Summary) float64 { return s.Blocked.KV }},
		{"blocked_budget", "by budget (%)", report.Percent, func(s *report.Summary) float64 { return s.Blocked.Budget }},
		{"virtual_s", "simulated (s)", report.Figure, func(s *report.Summary) float64 { return s.VirtualS }},
	}...)
	m := Measure{
		Name:   "simulate",
		People: []string{"completed_rps", "output_tokens_per_s", "ttft_p99_ms", "itl_p99_ms", "slo_met", "kv_use_mean", "batch_mean"},
		Of: func(ctx context.Context, s *scenarios.Scenario) ([]float64, error) {
			watch := plan.NewWatch(s.SLO)
			recorder, err := record(ctx, s, watch)
			if err != nil {
				return nil, err
			}
			summary := recorder.Summary(report.Identity{})
			values := make([]float64, 0, len(readings)+1)
			for _, r := range readings {
				values = append(values, r.of(&summary))
			}
			return append(values, metSLO(s, recorder, watch)), nil
		},
	}
	for _, r := range readings {
		m.Figures = append(m.Figures, Figure{r.name, r.head, r.show})
	}
	m.Figures = append(m.Figures, Figure{"slo_met", "SLO (%)", report.Percent})
	return m
}

// metSLO is 1 if the run meets the whole SLO and 0 if not, NaN without one.
func metSLO(s *scenarios.Scenario, r *report.Recorder, w plan.Watch) float64 {
	if len(s.SLO) == 0 {
		return math.NaN()
	}
	if !w.Met(s.SLO, r) {
		return 0
	}
	return 1
}

// record runs a scenario from its start to the end of its last request.
func record(ctx context.Context, s *scenarios.Scenario, w plan.Watch) (*report.Recorder, error) {
	source, _, err := s.Source()
	if err != nil {
		return nil, err
	}
	if c, ok := source.(io.Closer); ok {
		defer c.Close()
	}
	recorder := new(report.Recorder)
	run := sim.NewRun(s.Cluster(), source)
	for rounds := 0; ; rounds++ {
		if rounds%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p, more := run.Advance()
		if !more {
			break
		}
		recorder.Take(p)
		w.Take(p)
	}
	if err := run.Err(); err != nil {
		return nil, err
	}
	if replay, ok := source.(*workload.Replay); ok && replay.Err() != nil {
		return nil, replay.Err()
	}
	return recorder, nil
}

// MeasureOf is the measure whose figures a part holds.
func MeasureOf(p Part) (Measure, error) {
	if p.Measure != Simulate.Name || !slices.Equal(p.Figures, Simulate.names()) {
		return Measure{}, fmt.Errorf("%s: must hold the figures of %s, holds others, of %q", p.path, Simulate.Name, p.Measure)
	}
	return Simulate, nil
}

// Columns reads names of figures with commas between them; an empty text is none.
func (m Measure) Columns(text string) (names []string, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	known := m.names()
	var faults []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case !slices.Contains(known, name):
			hint := "there is " + strings.Join(known, ", ")
			if near := scenarios.Nearest(name, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			faults = append(faults, fmt.Sprintf("%q is not known, %s", name, hint))
		case slices.Contains(names, name):
			faults = append(faults, name+" is given twice")
		}
		names = append(names, name)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return names, nil
}
