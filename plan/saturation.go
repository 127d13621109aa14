package plan

import (
	"fmt"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim/rng"
)

// A saturation is what one replica serves when more is offered than it can.
// A load above its low may not drain once a burst has filled the replica.
type saturation struct {
	estimate       // requests per second
	requests int64 // of each run
	steps    int   // of all runs
	summary  report.Summary
}

// service is how long a request is worked on in a saturated replica, in seconds.
func (s *saturation) service() float64 {
	return (s.summary.Latency.E2E.Mean - s.summary.Latency.Queue.Mean) / 1e3
}

const (
	saturatedRuns  = 32
	fewRuns        = 8
	agreement      = 0.01   // standard deviation of few runs that is not looked into further, as a share
	leastSaturated = 4_000  // requests of one run
	mostSaturated  = 40_000 // likewise
	saturatedSteps = 300_000
	excess         = 1.15
	leastRate      = 1.0 / 1024 // requests per second
	mostRate       = 1 << 20
)

// saturate measures one replica that is offered a little more than it serves, in up to so many runs with
// arrivals and lengths of their own; nil when no rate saturates it. It is saturated when somebody
// waits all the time. The runs differ by more than the noise of each: with all slots full, the
// order in which sequences came in may persist, and decide the throughput. What rate was asked for
// plays no part.
func saturate(p *pace, s scenarios.Scenario, runs int) (*saturation, error) {
	s.Fleet.Replicas = 1
	slots := int64(s.Engine.MaxNumSeqs * s.Engine.DataParallelSize)
	requests := longEnough(slots)
	served, standing := 0.0, false
	for rate := leastRate; rate <= mostRate && !standing; rate *= 4 {
		// A short run in which most requests have left tells that nobody waits, unless
		// arrivals come in bursts.
		if s.Workload.Arrivals.CV <= 1 {
			t, err := saturated(p, s, rate, leastSaturated/16, true)
			if err != nil {
				return nil, err
			}
			left := t.recorder.Summary(report.Identity{}).Requests.Completed
			if _, standing := t.throughput(); !standing && left > t.arrived*8/10 {
				continue
			}
		}
		t, err := saturated(p, s, rate, requests/2, true)
		if err != nil {
			return nil, err
		}
		if served, standing = t.throughput(); standing {
			// Often memory or the budget leaves slots empty.
			running := t.recorder.Summary(report.Identity{}).Running
			requests = longEnough(min(slots, int64(running.Max)))
		}
	}
	sat := &saturation{requests: requests}
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
	rates, steps := make([]float64, runs), make([]int, runs)
	run := func(i int) error {
		s := s
		s.Seed = rng.New(seed, fmt.Sprintf("saturated run %d", i)).Uint64() >> 1
		for push := rate; ; push *= 1.5 {
			t, err := saturated(p, s, push, requests, i == 0)
			if err != nil {
				return err
			}
			steps[i] += t.steps
			// Nobody waits now and then in a run that serves what it is offered, and in one whose
			// arrivals have gaps; the latter must be pushed harder.
			standing := false
			if rates[i], standing = t.throughput(); standing || rates[i] > 0.95*served || push > mostRate {
				if i == 0 {
					sat.summary = t.recorder.Summary(report.Identity{})
				}
				return nil
			}
		}
	}
	// Few runs tell enough where they agree.
	few := min(fewRuns, runs)
	if err := each(few, run); err != nil {
		return nil, err
	}
	if sat.estimate = estimated(rates[:few]); sat.spread > agreement*sat.mean {
		if err := each(runs-few, func(i int) error { return run(few + i) }); err != nil {
			return nil, err
		}
		sat.estimate = estimated(rates)
	}
	for _, n := range steps[:sat.runs] {
		sat.steps += n
	}
	return sat, nil
}

// longEnough is how many requests fill so many slots in the first half of a run, and empty them in
// the second.
func longEnough(slots int64) int64 { return min(max(leastSaturated, 8*slots), mostSaturated) }

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
