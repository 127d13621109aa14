package plan

import (
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
)

// A Watch follows how an SLO's goodput fares in a run.
type Watch struct{ good *goodput }

// NewWatch follows a run of a scenario with an SLO.
func NewWatch(slo []scenarios.Objective) Watch { return Watch{newGoodput(slo)} }

// Take takes in a stretch of the run.
func (w Watch) Take(p *sim.Progress) {
	if w.good != nil {
		w.good.take(p, 0)
	}
}

// Met says whether a run met every objective; what has no samples is not met.
func (w Watch) Met(slo []scenarios.Objective, r *report.Recorder) bool {
	for _, o := range slo {
		if !o.Each && !fareOf(o, r, w.good).Met {
			return false
		}
	}
	return true
}
