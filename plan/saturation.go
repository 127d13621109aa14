package plan

import (
	"fmt"
	"math"
	"slices"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim/rng"
)

// A saturation is what one replica serves when more is offered than it can.
type saturation struct {
	mean, half float64 // requests per second, and half the width of its 95% confidence interval
	least      float64 // of the runs
	summary    report.Summary
}

const (
	saturatedRuns     = 8
	saturatedRequests = 6000 // of one run
	excess            = 1.15
	leastRate         = 1.0 / 1024 // requests per second
	mostRate          = 1 << 20
	student           = 2.365 // 97.5% point of Student's distribution with 7 degrees of freedom
)

// saturate measures one replica that is offered a little more than it serves, in eight runs with
// arrivals and lengths of their own; nil when no rate saturates it. The runs differ by more than
// the noise of each: with all slots full, the order in which sequences came in may persist, and
// decide the throughput. What rate was asked for plays no part.
func saturate(p *pace, s scenarios.Scenario) (*saturation, error) {
	s.Fleet.Replicas = 1
	served, saturates := 0.0, false
	for rate := leastRate; rate <= mostRate && !saturates; rate *= 4 {
		s.Workload.Arrivals.Rate = rate
		t, err := saturated(p, s, saturatedRequests/2, false)
		if err != nil {
			return nil, err
		}
		served = t.throughput()
		saturates = served < 0.9*rate
	}
	if !saturates || served == 0 {
		return nil, nil
	}
	// The harder a replica is pushed, the more its sequences come in bunches, and the less it
	// serves: so the push is made gentle.
	for range 3 {
		s.Workload.Arrivals.Rate = excess * served
		t, err := saturated(p, s, saturatedRequests/2, false)
		if err != nil {
			return nil, err
		}
		served = t.throughput()
	}
	s.Workload.Arrivals.Rate = excess * served
	seed := s.Seed
	sat := &saturation{least: math.Inf(1)}
	var rates [saturatedRuns]float64
	for i := range rates {
		s.Seed = rng.New(seed, fmt.Sprintf("saturated run %d", i)).Uint64() >> 1
		t, err := saturated(p, s, saturatedRequests, i == 0)
		if err != nil {
			return nil, err
		}
		rates[i] = t.throughput()
		sat.mean += float64(rates[i] / saturatedRuns)
		if i == 0 {
			sat.summary = t.recorder.Summary(report.Identity{})
		}
	}
	variance := 0.0
	for _, r := range rates {
		variance += float64((r-sat.mean)*(r-sat.mean)) / (saturatedRuns - 1)
	}
	sat.half = student * math.Sqrt(variance/saturatedRuns)
	sat.least = slices.Min(rates[:])
	return sat, nil
}

func saturated(p *pace, s scenarios.Scenario, requests int64, record bool) (*trial, error) {
	t, err := newTrial(p, s)
	if err != nil {
		return nil, err
	}
	if record {
		t.recorder = new(report.Recorder)
	}
	return t, t.extend(requests)
}
