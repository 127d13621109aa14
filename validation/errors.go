package validation

import (
	"cmp"
	"math"
	"slices"
)

// Errors are of one figure, as fractions: simulated / measured - 1.
//
// Of a run's requests, Mean is that of the means, P50, P90 and P99 those of the percentiles of either
// side, and MAPE and MedianAPE the mean and the median of the requests' absolute errors. Of a table's
// rows, which are means themselves, Mean is the mean of the errors, and the percentiles are those of the
// absolute errors.
type Errors struct {
	N         int     `json:"n"`
	Mean      float64 `json:"mean"`
	MAPE      float64 `json:"mape"`
	MedianAPE float64 `json:"median_ape"`
	P50       float64 `json:"p50"`
	P90       float64 `json:"p90"`
	P99       float64 `json:"p99"`
}

// Metrics are the errors of all figures; nil: nothing to compare.
type Metrics struct {
	TTFT       *Errors `json:"ttft,omitempty"`
	TPOT       *Errors `json:"tpot,omitempty"`
	E2E        *Errors `json:"e2e,omitempty"`
	Throughput *Errors `json:"throughput,omitempty"` // output tokens per second; of a run, over the whole of it
}

// A Band is the errors of what met one utilisation of the replica.
type Band struct {
	Utilisation string  `json:"utilisation"`
	N           int     `json:"n"`
	Errors      Metrics `json:"errors"`
}

// A Width is the errors of one tensor parallelism.
type Width struct {
	TP     int     `json:"tp"`
	N      int     `json:"n"`
	Errors Metrics `json:"errors"`
}

// A Group is what is judged together: a run, or a table's rows of one model, GPU and side of the split.
type Group struct {
	Source        string   `json:"source"`
	Kind          string   `json:"kind"` // run or table
	Model         string   `json:"model"`
	GPU           string   `json:"gpu"`
	RecordedModel string   `json:"recorded_model"` // as the measurement calls them
	RecordedGPU   string   `json:"recorded_gpu"`
	Engines       []string `json:"engine"` // versions modelled
	N             int      `json:"n"`
	InSample      bool     `json:"in_sample"`
	OtherSetup    bool     `json:"other_setup,omitempty"` // rows that contradict their table's set-up
	Errors        Metrics  `json:"errors"`
	Bands         []Band   `json:"bands"`
	Widths        []Width  `json:"tp"`
	Notes         []string `json:"notes,omitempty"`
}

// Judge sums predictions up, in the order of the sources; the groups of a table by model, GPU and side
// of the split, in sample first; rows of another set-up than the table's after all others.
func Judge(predictions []Prediction) (groups []Group) {
	for _, p := range predictions {
		var parts [][]Item
		type key struct {
			model, gpu string
			other      bool
			blind      bool
		}
		at := map[key]int{}
		var keys []key
		for _, one := range p.Items {
			k := key{one.Model, one.GPU, one.OtherSetup, !one.InSample}
			i, known := at[k]
			if !known {
				i = len(parts)
				at[k] = i
				parts, keys = append(parts, nil), append(keys, k)
			}
			parts[i] = append(parts[i], one)
		}
		slices.SortFunc(keys, func(a, b key) int {
			last := func(a, b bool) int {
				switch {
				case a == b:
					return 0
				case a:
					return 1
				}
				return -1
			}
			return cmp.Or(last(a.other, b.other), cmp.Compare(a.model, b.model), cmp.Compare(a.gpu, b.gpu), last(a.blind, b.blind))
		})
		for _, k := range keys {
			groups = append(groups, p.group(parts[at[k]]))
		}
	}
	return groups
}

func (p Prediction) group(items []Item) Group {
	first := items[0]
	isRun := p.Source.Run != nil
	g := Group{
		Source: first.Source, Kind: p.Source.Kind(), Model: first.Model, GPU: first.GPU, RecordedModel: first.recordedModel,
		RecordedGPU: first.recordedGPU, N: len(items), InSample: first.InSample, OtherSetup: first.OtherSetup, Errors: metrics(items, isRun), Bands: []Band{},
	}
	if isRun {
		g.Errors.Throughput = ofPercentiles([]pair{p.throughput})
	}
	widths := map[int][]Item{}
	byBand := map[string][]Item{}
	for _, one := range items {
		g.Engines, g.Notes = appendNew(g.Engines, one.engine), appendNew(g.Notes, one.notes...)
		widths[one.TP] = append(widths[one.TP], one)
		byBand[one.Band] = append(byBand[one.Band], one)
	}
	slices.Sort(g.Engines)
	for _, name := range bands {
		if in := byBand[name]; len(in) > 0 {
			g.Bands = append(g.Bands, Band{name, len(in), metrics(in, isRun)})
		}
	}
	for tp, in := range widths {
		g.Widths = append(g.Widths, Width{tp, len(in), metrics(in, isRun)})
	}
	slices.SortFunc(g.Widths, func(a, b Width) int { return a.TP - b.TP })
	return g
}

// A pair is one figure, measured and simulated.
type pair struct{ measured, simulated float64 }

func (p pair) err() float64 { return p.simulated/p.measured - 1 }

// whole says whether both sides are there, and the measured one something to divide by.
func (p pair) whole() bool {
	return p.measured >= 1e-9 && !math.IsInf(p.measured, 0) && !math.IsNaN(p.simulated) && !math.IsInf(p.simulated, 0)
}

func metrics(items []Item, isRun bool) Metrics {
	of := func(figure func(Item) pair) *Errors {
		var pairs []pair
		for _, one := range items {
			pairs = append(pairs, figure(one))
		}
		if isRun {
			return ofPercentiles(pairs)
		}
		return ofErrors(pairs)
	}
	m := Metrics{
		TTFT: of(func(i Item) pair { return pair{i.Measured.TTFT, i.Simulated.TTFT} }),
		TPOT: of(func(i Item) pair { return pair{i.Measured.TPOT, i.Simulated.TPOT} }),
		E2E:  of(func(i Item) pair { return pair{i.Measured.E2E, i.Simulated.E2E} }),
	}
	if !isRun {
		m.Throughput = of(func(i Item) pair { return i.throughput })
	}
	return m
}

// ofPercentiles compares two samples: their means and percentiles, and each with its own.
func ofPercentiles(pairs []pair) *Errors {
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return !p.whole() })
	if len(pairs) == 0 {
		return nil
	}
	e := absolute(pairs)
	var measured, simulated []float64
	var sum pair
	for _, p := range pairs {
		measured, simulated = append(measured, p.measured), append(simulated, p.simulated)
		sum.measured += p.measured
		sum.simulated += p.simulated
	}
	slices.Sort(measured)
	slices.Sort(simulated)
	e.Mean = sum.err()
	for _, at := range []struct {
		p   float64
		out *float64
	}{{0.5, &e.P50}, {0.9, &e.P90}, {0.99, &e.P99}} {
		*at.out = pair{quantile(measured, at.p), quantile(simulated, at.p)}.err()
	}
	return e
}

// ofErrors sums up the errors of figures that are means already.
func ofErrors(pairs []pair) *Errors {
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return !p.whole() })
	if len(pairs) == 0 {
		return nil
	}
	e := absolute(pairs)
	var all []float64
	sum := 0.0
	for _, p := range pairs {
		sum += p.err()
		all = append(all, math.Abs(p.err()))
	}
	slices.Sort(all)
	e.Mean = sum / float64(len(pairs))
	e.P50, e.P90, e.P99 = quantile(all, 0.5), quantile(all, 0.9), quantile(all, 0.99)
	return e
}

// absolute has the mean and the median of the absolute errors.
func absolute(pairs []pair) *Errors {
	var all []float64
	sum := 0.0
	for _, p := range pairs {
		all = append(all, math.Abs(p.err()))
		sum += math.Abs(p.err())
	}
	slices.Sort(all)
	return &Errors{N: len(pairs), MAPE: sum / float64(len(pairs)), MedianAPE: quantile(all, 0.5)}
}

// quantile interpolates linearly between the two of the sorted values around rank p*(n-1), as numpy
// does by default. Values must not be empty.
func quantile(sorted []float64, p float64) float64 {
	rank := float64(p * float64(len(sorted)-1))
	low := int(rank)
	if low >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + float64((sorted[low+1]-sorted[low])*(rank-float64(low)))
}
