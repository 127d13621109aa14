package report

import (
	"math"

	"llmsim/sim"
	"llmsim/sim/cost"
)

// An Explanation says what the time of all steps went to. Shares are of step time.
type Explanation struct {
	Terms []TermShare `json:"terms"` // those that took any, in the order of cost.Term
	// MemoryRoof is the time that reading the weights and the KV of each step would take at the full
	// bandwidth, ComputeRoof that of its arithmetic at the full peak, both over the time it took.
	MemoryRoof  float64 `json:"memory_roof"`
	ComputeRoof float64 `json:"compute_roof"`
	// Of the steps that only decode, and of those that compute prompts.
	Decode  Roofs `json:"decode"`
	Prefill Roofs `json:"prefill"`
}

// A TermShare is one term's part.
type TermShare struct {
	Term  string  `json:"term"`
	Share float64 `json:"share"`
}

// Roofs are how much of the hardware some of the steps reach, and their share of the time.
type Roofs struct {
	Time        float64 `json:"time"`
	MemoryRoof  float64 `json:"memory_roof"`
	ComputeRoof float64 `json:"compute_roof"`
}

// An Explainer prices steps once more to tell what their time is made of.
type Explainer struct {
	costs   []cost.Explainer
	poolOf  []int
	terms   [cost.Terms]float64 // seconds
	decode  roofTimes
	prefill roofTimes
}

type roofTimes struct{ took, memory, compute float64 } // seconds

// NewExplainer explains steps that cost models have priced: one for each pool, of which poolOf tells
// that of each replica, or nil if there is one.
func NewExplainer(costs []cost.Explainer, poolOf []int) *Explainer {
	return &Explainer{costs: costs, poolOf: poolOf}
}

// Take adds the steps of a stretch of a run.
func (e *Explainer) Take(p *sim.Progress) {
	for i := range p.Steps {
		s := &p.Steps[i]
		pool := 0
		if e.poolOf != nil {
			pool = e.poolOf[s.Replica]
		}
		b := e.costs[pool].Explain(s.Shape)
		for t, x := range b.Time {
			e.terms[t] += x
		}
		r := &e.decode
		if s.Shape.PrefillTokens() > 0 {
			r = &e.prefill
		}
		r.took += (s.End - s.Start).Seconds()
		r.memory += b.MemoryTime
		r.compute += b.ComputeTime
	}
}

// Explanation is what the steps so far came to; nil without any.
func (e *Explainer) Explanation() *Explanation {
	took := e.decode.took + e.prefill.took
	if took <= 0 {
		return nil
	}
	all := roofTimes{took, e.decode.memory + e.prefill.memory, e.decode.compute + e.prefill.compute}.roofs(took)
	x := &Explanation{
		MemoryRoof: all.MemoryRoof, ComputeRoof: all.ComputeRoof,
		Decode: e.decode.roofs(took), Prefill: e.prefill.roofs(took),
	}
	for t, seconds := range e.terms {
		if share := millionths(seconds / took); share > 0 {
			x.Terms = append(x.Terms, TermShare{cost.Term(t).String(), share})
		}
	}
	return x
}

func (r roofTimes) roofs(all float64) Roofs {
	if r.took <= 0 {
		return Roofs{}
	}
	return Roofs{millionths(r.took / all), millionths(r.memory / r.took), millionths(r.compute / r.took)}
}

// millionths rounds to what a summary gives.
func millionths(x float64) float64 { return math.Round(x*millionth) / millionth }

// tables are what Explanation says to people.
func (x *Explanation) tables() []Table {
	terms := Table{Head: []string{"step time goes to", "share (%)"}}
	for _, t := range x.Terms {
		terms.Rows = append(terms.Rows, []string{t.Term, percentOf(t.Share)})
	}
	roofs := Table{Head: []string{"of the hardware is reached (%)", "of time", "memory", "compute"}}
	for _, r := range []struct {
		what string
		Roofs
	}{{"steps that only decode", x.Decode}, {"steps that compute prompts", x.Prefill}, {"all steps", Roofs{1, x.MemoryRoof, x.ComputeRoof}}} {
		if r.Time > 0 {
			roofs.Rows = append(roofs.Rows, []string{r.what, percentOf(r.Time), percentOf(r.MemoryRoof), percentOf(r.ComputeRoof)})
		}
	}
	return []Table{terms, roofs}
}

func percentOf(share float64) string { return figure(100*share, 1) }
