package calibration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/validation"
	"llmsim/workload"
)

// Weights of the figures of a run's requests and of a table's rows, and the scales of their errors. E2E of
// a run has the same bias as its TPOT and less scatter; TTFT is mostly waiting, which E2E tells already,
// and in a table how a burst of prompts was sent.
const (
	tpotWeight, e2eWeight, ttftWeight = 1, 0.5, 0.02
	rowTTFTWeight                     = 0.2
	runScale, rowScale                = 0.005, 0.03
	// neighbours of a run whose errors are taken to go together: whoever runs at the same time meets the
	// same steps.
	runBlocks = 20
)

// edits put values of parameters over whatever else a scenario has.
func edits(parameters []cost.Parameter, values []float64) (all []scenarios.Edit) {
	for i, p := range parameters {
		all = append(all, scenarios.Edit{Path: "cost.parameters." + p.Name, Value: strconv.FormatFloat(values[i], 'f', -1, 64), Label: "fitting " + p.Name})
	}
	return all
}

// A replay is the runs and tables of a problem.
type replay struct {
	fitted, heldOut []validation.Source
	options         validation.Options
	parameters      []cost.Parameter
}

// figures are what is compared of an item, in this order: TPOT, E2E, TTFT; weights are of each figure and
// not of each request.
func figures(isRun bool, t validation.Times) []struct {
	name   string
	weight float64
	ms     float64
} {
	type figure = struct {
		name   string
		weight float64
		ms     float64
	}
	if isRun {
		return []figure{{"TPOT", tpotWeight, t.TPOT}, {"E2E", e2eWeight, t.E2E}, {"TTFT", ttftWeight, t.TTFT}}
	}
	return []figure{{"TPOT", tpotWeight, t.TPOT}, {"E2E", 0, t.E2E}, {"TTFT", rowTTFTWeight, t.TTFT}}
}

// whole says whether a figure can be compared.
func whole(measured, simulated float64) bool {
	return measured >= 1e-6 && !math.IsInf(measured, 0) && simulated > 0 && !math.IsInf(simulated, 0)
}

// evidence simulates once, to see what can be. Blocks are counted from first.
func (r *replay) evidence(ctx context.Context, first int) (e Evidence, skips []string, err error) {
	var items []int     // of each source
	var places [][3]int // source among the fitted and then the held out, item, figure
	for side, sources := range [][]validation.Source{r.fitted, r.heldOut} {
		predictions, err := validation.Predict(ctx, sources, r.options, nil)
		if err != nil {
			return e, nil, err
		}
		skips = append(skips, validation.SkipLines(predictions)...)
		for s, p := range predictions {
			items = append(items, len(p.Items))
			isRun := p.Source.Run != nil
			count := map[string]float64{}
			for _, item := range p.Items {
				measured := figures(isRun, item.Measured)
				for k, simulated := range figures(isRun, item.Simulated) {
					if whole(measured[k].ms, simulated.ms) {
						count[simulated.name]++
					}
				}
			}
			for i, item := range p.Items {
				block := first + i
				if isRun {
					block = first + i*runBlocks/len(p.Items)
				}
				scale := rowScale
				if isRun {
					scale = runScale
				}
				measured := figures(isRun, item.Measured)
				for k, simulated := range figures(isRun, item.Simulated) {
					if !whole(measured[k].ms, simulated.ms) {
						continue
					}
					places = append(places, [3]int{side*len(r.fitted) + s, i, k})
					e.Points = append(e.Points, Point{
						Source: p.Source.Path, Figure: simulated.name, Block: block, HeldOut: side == 1,
						Weight: simulated.weight / count[simulated.name], Scale: scale, Measured: measured[k].ms,
					})
				}
			}
			first += max(len(p.Items), runBlocks)
		}
	}
	e.Simulate = func(ctx context.Context, values []float64, heldOut bool) ([]float64, error) {
		sources := r.fitted
		if heldOut {
			sources = slices.Concat(r.fitted, r.heldOut)
		}
		o := r.options
		o.Edits = slices.Concat(o.Edits, edits(r.parameters, values))
		predictions, err := validation.Predict(ctx, sources, o, nil)
		if err != nil {
			return nil, err
		}
		out := make([]float64, len(places))
		for n, at := range places {
			out[n] = math.NaN()
			if at[0] >= len(predictions) {
				continue
			}
			p := predictions[at[0]]
			if len(p.Items) != items[at[0]] {
				return nil, fmt.Errorf("%s: what could be simulated at the start can no longer: %s", p.Source.Path, strings.Join(validation.SkipLines(predictions), "; "))
			}
			out[n] = figures(p.Source.Run != nil, p.Items[at[1]].Simulated)[at[2]].ms
		}
		return out, nil
	}
	e.Steps, e.StepWeights, err = r.steps(ctx)
	return e, skips, err
}

// Steps that are kept of each simulation; of more, every second, fourth and so on.
const mostSteps = 2048

// A trajectory is steps of one simulation.
type trajectory struct {
	scenario *scenarios.Scenario
	shapes   []cost.Shape
}

// steps simulates what is fitted once more, keeps the shapes of its steps, and prices them. Each simulation
// weighs the same, its steps by what they took.
func (r *replay) steps(ctx context.Context) (price func([]float64) []float64, weights []float64, err error) {
	var all []trajectory
	add := func(s *scenarios.Scenario, err error) error {
		if err != nil {
			return nil // told of by what is compared
		}
		shapes, took, err := shapesOf(ctx, s)
		if err != nil || len(shapes) == 0 {
			return err
		}
		all = append(all, trajectory{s, shapes})
		sum := 0.0
		for _, t := range took {
			sum += t
		}
		for _, t := range took {
			weights = append(weights, t/sum)
		}
		return nil
	}
	for _, s := range r.fitted {
		if s.Run != nil {
			if err := add(s.Run.Scenario(r.options)); err != nil {
				return nil, nil, err
			}
		}
		for _, row := range s.Rows {
			if err := add(row.Scenario(r.options)); err != nil {
				return nil, nil, err
			}
		}
	}
	return func(values []float64) (times []float64) {
		for _, t := range all {
			s := *t.scenario
			for i, p := range r.parameters {
				*p.Of(&s.Cost.Constants) = values[i]
			}
			model := s.StepCost()
			for _, shape := range t.shapes {
				b := model.Explain(shape)
				times = append(times, b.Total())
			}
		}
		return times
	}, weights, nil
}

func shapesOf(ctx context.Context, s *scenarios.Scenario) (shapes []cost.Shape, took []float64, err error) {
	source, _, err := s.Source()
	if err != nil {
		return nil, nil, err
	}
	if replay, ok := source.(*workload.Replay); ok {
		defer replay.Close()
	}
	run := sim.NewRun(s.Cluster(), source)
	every, n := 1, 0
	for {
		p, more := run.Advance()
		if !more || ctx.Err() != nil {
			break
		}
		for i := range p.Steps {
			step := &p.Steps[i]
			if n++; n%every != 0 || step.End <= step.Start {
				continue
			}
			shapes, took = append(shapes, step.Shape), append(took, (step.End-step.Start).Seconds())
			if len(shapes) == mostSteps {
				for k := range mostSteps / 2 {
					shapes[k], took[k] = shapes[2*k+1], took[2*k+1]
				}
				shapes, took = shapes[:mostSteps/2], took[:mostSteps/2]
				every *= 2
			}
		}
	}
	if replay, ok := source.(*workload.Replay); ok && replay.Err() != nil {
		return nil, nil, replay.Err()
	}
	return shapes, took, errors.Join(ctx.Err(), run.Err())
}

// split takes the rows of a GPU, of all if it is empty, and parts those that constants may be fitted to from the blind ones.
// Rows that are the same measurement as one of the fitting half are in neither.
func split(s validation.Source, gpu string, c scenarios.Catalogue) (fitted, blind validation.Source, err error) {
	fitted, blind = s, s
	fitted.Rows, blind.Rows = nil, nil
	o := validation.Options{FittedOn: []string{s.Digest}}
	for _, row := range s.Rows {
		if gpu != "" {
			if found, err := c.FindGPU(row.GPU); err != nil || found.Name != gpu {
				continue
			}
		}
		switch {
		case validation.FittingHalf(row.ID):
			fitted.Rows = append(fitted.Rows, row)
		case !o.RowInSample(s, row):
			blind.Rows = append(blind.Rows, row)
		}
	}
	if len(fitted.Rows) == 0 {
		return fitted, blind, fmt.Errorf("%s: has no row of %s that may be fitted to", s.Path, gpu)
	}
	return fitted, blind, nil
}
