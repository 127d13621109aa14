package plan

import (
	"fmt"
	"math"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim/rng"
)

// A saturation is what one replica serves when more is offered than it can.
type saturation struct {
	mean, half float64 // requests per second, and half the width of its 95% confidence interval
	spread     float64 // standard deviation of the runs
	requests   int64   // of each
	summary    report.Summary
}

// low is what a saturated replica serves all but seldom: in fourteen runs of fifteen, if they are
// spread normally. A load above that may not drain once a burst has filled the replica.
func (s *saturation) low() float64 { return s.mean - float64(1.5*s.spread) }

// service is how long a request is worked on in a saturated replica, in seconds.
func (s *saturation) service() float64 {
	return (s.summary.Latency.E2E.Mean - s.summary.Latency.Queue.Mean) / 1e3
}

const (
	saturatedRuns  = 32
	leastSaturated = 4_000  // requests of one run
	mostSaturated  = 40_000 // likewise
	saturatedSteps = 300_000
	excess         = 1.15
	leastRate      = 1.0 / 1024 // requests per second
	mostRate       = 1 << 20
	student        = 2.040 // 97.5% point of Student's distribution with 31 degrees of freedom
)

// saturate measures one replica that is offered a little more than it serves, in 32 runs with
// arrivals and lengths of their own; nil when no rate saturates it. It is saturated when somebody
// waits all the time. The runs differ by more than the noise of each: with all slots full, the
// order in which sequences came in may persist, and decide the throughput. What rate was asked for
// plays no part.
func saturate(p *pace, s scenarios.Scenario) (*saturation, error) {
	s.Fleet.Replicas = 1
	// Long enough to fill the slots in the first of its halves, and to empty them in the second.
	requests := min(max(leastSaturated, 8*int64(s.Engine.MaxNumSeqs*s.Engine.DataParallelSize)), mostSaturated)
	served, standing := 0.0, false
	for rate := leastRate; rate <= mostRate && !standing; rate *= 4 {
		t, err := saturated(p, s, rate, requests/2, false)
		if err != nil {
			return nil, err
		}
		served, standing = t.throughput()
	}
	if !standing || served == 0 {
		return nil, nil
	}
	// The harder a replica is pushed, the more its sequences come in bunches, and the less it
	// serves: the push is to be just above the most that one serves.
	for range 4 {
		t, err := saturated(p, s, excess*served, requests/2, false)
		if err != nil {
			return nil, err
		}
		gentler, _ := t.throughput()
		served = max(served, gentler)
	}
	seed, rate := s.Seed, excess*served
	sat := &saturation{requests: requests}
	var rates [saturatedRuns]float64
	for i := range rates {
		s.Seed = rng.New(seed, fmt.Sprintf("saturated run %d", i)).Uint64() >> 1
		for push := rate; ; push *= 1.5 {
			t, err := saturated(p, s, push, requests, i == 0)
			if err != nil {
				return nil, err
			}
			// Nobody waits now and then in a run that serves what it is offered, and in one whose
			// arrivals have gaps; the latter must be pushed harder.
			if rates[i], standing = t.throughput(); standing || rates[i] > 0.95*served || push > mostRate {
				if i == 0 {
					sat.summary = t.recorder.Summary(report.Identity{})
				}
				break
			}
		}
		sat.mean += float64(rates[i] / saturatedRuns)
	}
	variance := 0.0
	for _, r := range rates {
		variance += float64((r-sat.mean)*(r-sat.mean)) / (saturatedRuns - 1)
	}
	sat.half = student * math.Sqrt(variance/saturatedRuns)
	sat.spread = math.Sqrt(variance)
	return sat, nil
}

func saturated(p *pace, s scenarios.Scenario, rate float64, requests int64, record bool) (*trial, error) {
	s.Workload.Arrivals.Rate = rate
	t, err := newTrial(p, s)
	if err != nil {
		return nil, err
	}
	t.most = saturatedSteps
	if record {
		t.recorder = new(report.Recorder)
	}
	return t, t.extend(requests)
}
