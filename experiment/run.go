package experiment

import (
	"context"
	"fmt"
	"math"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/workload"
)

// Run runs a scenario in virtual time from its start to the end of its last request, and explains
// what the time of its steps went to. Of its identity the summary has what the scenario says.
func Run(ctx context.Context, s *scenarios.Scenario) (report.Summary, error) {
	source, _, err := s.Source()
	if err != nil {
		return report.Summary{}, err
	}
	digest, err := s.Digest()
	if err != nil {
		return report.Summary{}, err
	}
	var recorder report.Recorder
	var costs []cost.Explainer
	for _, pool := range s.Pools() {
		costs = append(costs, pool.StepCost())
	}
	explainer := report.NewExplainer(costs, s.PoolOf())
	run := sim.NewRun(s.Cluster(), source)
	for rounds := 0; ; rounds++ {
		p, more := run.Advance()
		if !more {
			break
		}
		recorder.Take(p)
		explainer.Take(p)
		if rounds%1024 == 0 && ctx.Err() != nil {
			return report.Summary{}, ctx.Err()
		}
	}
	if err := run.Err(); err != nil {
		return report.Summary{}, err
	}
	if replay, ok := source.(*workload.Replay); ok && replay.Err() != nil {
		return report.Summary{}, replay.Err()
	}
	blocks, _ := s.KVBlocks()
	summary := recorder.Summary(report.Identity{
		Scenario: s.Name, Digest: digest, Seed: s.Seed, Policy: s.Engine.Policy, Models: s.Engine.Models,
		Blocks: blocks, BlockSize: s.Engine.BlockSize,
	})
	summary.Explain = explainer.Explanation()
	return summary, nil
}

// Figures are the numbers of a summary by their keys.
func Figures(s report.Summary) (map[string]float64, error) {
	fields, err := report.Flatten(s)
	if err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	for _, f := range fields {
		if x, ok := number(f.Value); ok {
			figures[f.Key] = x
		}
	}
	return figures, nil
}

// A Target serves a scenario's workload and tells what came of it.
type Target interface {
	Measure(context.Context, *scenarios.Scenario) (Observed, error)
}

// Observed is what one run came to.
type Observed struct {
	Summary  report.Summary
	Distrust []string // why the figures are not to be trusted
}

// Virtual measures in virtual time. A run that refuses requests measures another workload than the
// one that was asked for, and is not to be trusted.
type Virtual struct{}

// Measure runs the scenario once.
func (Virtual) Measure(ctx context.Context, s *scenarios.Scenario) (Observed, error) {
	summary, err := Run(ctx, s)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{Summary: summary}
	if r := summary.Requests; r.Refused > 0 {
		o.Distrust = append(o.Distrust, fmt.Sprintf("%d of %d requests were refused", r.Refused, r.Arrived))
	}
	return o, nil
}

// outcome is the figures of every model's runs.
type outcome struct {
	figures  map[string]map[string][]float64 // by model, by key, by run
	distrust []string
}

// of is a model's figure over its runs. A run that does not have it counts as 0.
func (o outcome) of(model, key, overRuns string, runs int) float64 {
	all := o.figures[model][key]
	n, sum := float64(runs), 0.0
	for _, x := range all {
		sum += x
	}
	mean := sum / n
	if overRuns != Deviation {
		return mean
	}
	squares := float64((n - float64(len(all))) * mean * mean)
	for _, x := range all {
		squares += float64((x - mean) * (x - mean))
	}
	return math.Sqrt(squares / (n - 1))
}

// run measures every model so often, under the seeds from one on.
func (e *Experiment) run(ctx context.Context, target Target, seed uint64, progress func(done int64)) (outcome, error) {
	o := outcome{figures: map[string]map[string][]float64{}}
	done := int64(0)
	for _, m := range e.Models {
		runs := map[string][]float64{}
		for i := range e.Runs {
			s, err := m.Scenario.With(scenarios.Edit{Path: "seed", Value: fmt.Sprint(seed + uint64(i))})
			if err != nil {
				return o, err
			}
			observed, err := target.Measure(ctx, s)
			if err != nil {
				return o, fmt.Errorf("%s: model %s: %w", e.Name, m.Name, err)
			}
			for _, why := range observed.Distrust {
				o.distrust = append(o.distrust, fmt.Sprintf("model %s, seed %d: %s", m.Name, s.Seed, why))
			}
			figures, err := Figures(observed.Summary)
			if err != nil {
				return o, err
			}
			for key, x := range figures {
				runs[key] = append(runs[key], x)
			}
			done++
			progress(done)
		}
		o.figures[m.Name] = runs
	}
	return o, nil
}

// A Value is what a metric came to.
type Value struct {
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	By     string  `json:"by,omitempty"` // of a prediction: who made it
}

// values are those of all metrics, in their order.
func (e *Experiment) values(o outcome) (all []Value, err error) {
	for _, m := range e.Metrics {
		x := o.of(m.Model, m.Key, m.Runs, e.Runs)
		if m.Over != "" {
			x, err = ratio(x, o.of(m.Over, m.Key, m.Runs, e.Runs))
			if err != nil {
				return nil, fmt.Errorf("%s: metric %s: %s of %s: %w", e.Name, m.Name, m.Key, m.Over, err)
			}
		}
		all = append(all, Value{Metric: m.Name, Value: x})
	}
	return all, nil
}

func ratio(a, b float64) (float64, error) {
	if b == 0 {
		return 0, fmt.Errorf("must not be 0 to be divided by, is 0")
	}
	return a / b, nil
}
