package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// What must hold of every run, whatever its configuration, without knowing what the run should be.
// The step-by-step twin says that, and covers states, slices of time and look-ahead exactly; the
// transcripts in policy hold every block against its owner after every operation. Relations between
// runs stand in metamorphic_test.go, queueing theory in analytic_test.go.

const setups = 400

// known returns a random set-up priced by a roofline whose figures are given too, and its requests
// but for those that never fit.
func known(seed uint64) (setup, cost.Roofline) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := randomSetup(r)
	prices := cost.Roofline{
		Parameters: 1e6 * (1 + r.Float64()), WeightBytes: 2e6, KVBytesPerToken: 1e4 * r.Float64(),
		PeakFLOPS: 1e11 * (0.2 + r.Float64()), Bandwidth: 1e9 * (0.5 + r.Float64()),
		ComputeEfficiency: 0.3 + 0.7*r.Float64(), MemoryEfficiency: 0.3 + 0.7*r.Float64(),
	}
	s.cost = prices.Model()
	s.requests = slices.DeleteFunc(s.requests, func(q workload.Request) bool {
		return q.Prompt+q.Output > min(s.maxModelLen, s.blocks*s.block)
	})
	return s, prices
}

// An observed run knows the pools of its replicas.
type observed struct {
	*testing.T
	setup
	seed    uint64
	cluster *sim.Cluster
	pools   []*kv.Pool
}

func (o *observed) failf(format string, args ...any) {
	o.Helper()
	o.Fatalf("seed %d, %v: %s", o.seed, o.setup, fmt.Sprintf(format, args...))
}

// observe runs a set-up in random slices and asks at every stop where everything is.
func observe(t *testing.T, seed uint64, s setup) (*observed, []sim.Step) {
	o := &observed{T: t, setup: s, seed: seed}
	o.cluster = sim.New(sim.Config{
		Replicas: s.replicas, Cost: s.cost, Router: s.router(), MaxModelLen: s.maxModelLen, KVTokens: s.blocks * s.block,
		Policy: func() policy.Policy {
			o.pools = append(o.pools, kv.NewPool(s.blocks, s.block))
			return policy.NewClassic(o.pools[len(o.pools)-1], policy.Limits{MaxNumSeqs: s.slots, MaxNumBatchedTokens: s.budget}, s.watermark)
		},
	})
	var steps []sim.Step
	left, now, r := s.requests, time.Duration(0), rand.New(rand.NewPCG(seed, 8))
	for {
		for len(left) > 0 && left[0].Arrival <= o.cluster.Now() {
			ticket, err := o.cluster.Submit(left[0])
			if at, ok := s.cancels[left[0].ID]; ok && err == nil {
				o.cluster.Cancel(ticket, at)
			}
			left = left[1:]
		}
		next, ok := o.cluster.Next()
		if !ok && len(left) == 0 {
			break
		}
		o.where(len(s.requests) - len(left))
		to := o.cluster.Now() + 1 + time.Duration(r.ExpFloat64()*2e6)
		if ok && r.IntN(2) == 0 {
			to = next
		}
		if len(left) > 0 {
			to = min(to, left[0].Arrival)
		}
		steps = append(steps, clone(o.cluster.Advance(to))...)
		if o.cluster.Now() < now {
			o.failf("Now() = %v after %v", o.cluster.Now(), now)
		}
		now = o.cluster.Now()
	}
	o.where(len(s.requests))
	if n := o.cluster.Counts(); n.Queued+n.Running != 0 {
		o.failf("Counts() = %+v at the end", n)
	}
	for i, p := range o.pools {
		if p.Used() != 0 {
			o.failf("%d blocks of replica %d in use at the end", p.Used(), i)
		}
	}
	return o, steps
}

// where checks that all that was submitted is in exactly one place.
func (o *observed) where(arrived int) {
	n := o.cluster.Counts()
	if n.Arrived != arrived || n.Arrived != n.Completed+n.Refused+n.Cancelled+n.Queued+n.Running {
		o.failf("Counts() = %+v at %v, with %d arrived", n, o.cluster.Now(), arrived)
	}
	for i, p := range o.pools {
		if p.Free() < 0 || p.Used() < 0 || n.Queued+n.Running == 0 && p.Used() != 0 {
			o.failf("%d blocks of replica %d used and %d free, with %d requests", p.Used(), i, p.Free(), n.Queued+n.Running)
		}
	}
}

// The limits of a step, its price, and the order of a replica's steps.
func TestEveryStep(t *testing.T) {
	for seed := range uint64(setups) {
		s, prices := known(seed)
		o, steps := observe(t, seed, s)
		last := make([]sim.Step, s.replicas)
		for i := range last {
			last[i].Index = -1
		}
		var tokens float64
		busy := 0.0
		for _, p := range steps {
			before := last[p.Replica]
			took := p.End - p.Start
			if took < 1 || p.Start < before.End || p.Index != before.Index+1 {
				o.failf("step %+v after %+v", p, before)
			}
			if p.Shape.Tokens > s.budget || p.Running > s.slots || p.Shape.Sequences > p.Running || p.Shape.Tokens < 1 ||
				p.Shape.Decodes > p.Shape.Sampled || p.Shape.Sampled > p.Shape.Sequences {
				o.failf("step %+v exceeds its limits", p)
			}
			if p.UsedBlocks+p.FreeBlocks != s.blocks || min(p.UsedBlocks, p.FreeBlocks) < 0 || p.Shape.Context > int64(p.UsedBlocks*s.block) {
				o.failf("step %+v: blocks do not add up to %d, or hold less than is read", p, s.blocks)
			}
			bandwidth, peak := prices.Bandwidth*prices.MemoryEfficiency, prices.PeakFLOPS*prices.ComputeEfficiency
			floor := max((prices.WeightBytes+prices.KVBytesPerToken*float64(p.Shape.Context))/bandwidth,
				2*prices.Parameters*float64(p.Shape.Tokens)/peak)
			if float64(took) < floor*1e9-1 {
				o.failf("step %+v takes %v, below the physical floor of %g s", p, took, floor)
			}
			tokens += float64(p.Shape.Tokens)
			busy += took.Seconds()
			last[p.Replica] = p
		}
		if peak := prices.PeakFLOPS / (2 * prices.Parameters); tokens > busy*peak {
			o.failf("%g tokens/s, above the %g that the arithmetic allows", tokens/busy, peak)
		}
	}
}

// A request's instants are in causal order; its tokens are as many as it asked for, none twice,
// and their gaps add up from the first to the last, also when it was preempted. A replica that has
// a request computes until it has answered. The run ends with its last token.
func TestEveryRequest(t *testing.T) {
	preempted := 0
	for seed := range uint64(setups) {
		s, _ := known(seed)
		s.cancels = nil
		o, steps := observe(t, seed, s)
		first := map[int64]time.Duration{}
		var firsts, emitted, sampled, outputs, lost, preemptions int
		var gaps, spans, end time.Duration
		holes := make([][][2]time.Duration, s.replicas) // in which a replica was idle
		ends := make([]time.Duration, s.replicas)
		for _, p := range steps {
			for _, id := range p.Firsts {
				if _, twice := first[id]; twice {
					o.failf("request %d: a second first token at %v", id, p.End)
				}
				first[id] = p.End
			}
			firsts += len(p.Firsts)
			emitted += p.Steady + len(p.Gaps) + len(p.Firsts)
			sampled += p.Shape.Sampled
			lost += len(p.Preempted)
			gaps += time.Duration(p.Steady) * (p.End - p.Start)
			for _, g := range p.Gaps {
				gaps += g.Time
			}
			if p.Start > ends[p.Replica] {
				holes[p.Replica] = append(holes[p.Replica], [2]time.Duration{ends[p.Replica], p.Start})
			}
			ends[p.Replica] = p.End
			end = max(end, p.End)
		}
		all := answers(steps)
		lastToken := time.Duration(0)
		for _, f := range all {
			q := s.requests[slices.IndexFunc(s.requests, func(q workload.Request) bool { return q.ID == f.ID })]
			if f.Arrival != q.Arrival || f.Prompt != q.Prompt || f.Output != q.Output {
				o.failf("finished %+v, want %+v", f, q)
			}
			if f.FirstSchedule < f.Arrival || f.FirstToken <= f.FirstSchedule || f.LastToken < f.FirstToken ||
				(f.Output > 1) != (f.LastToken > f.FirstToken) || f.FirstToken != first[f.ID] {
				o.failf("finished %+v with its first token at %v", f, first[f.ID])
			}
			for _, h := range holes[f.Replica] {
				if h[0] < f.LastToken && h[1] > f.Arrival {
					o.failf("replica %d idle from %v to %v while it has %+v", f.Replica, h[0], h[1], f)
				}
			}
			spans += f.LastToken - f.FirstToken
			outputs += f.Output
			preemptions += f.Preemptions
			lastToken = max(lastToken, f.LastToken)
		}
		if len(all) != len(s.requests) || firsts != len(all) {
			o.failf("%d finished and %d first tokens, of %d requests", len(all), firsts, len(s.requests))
		}
		if emitted != outputs || sampled != outputs || gaps != spans || lost != preemptions {
			o.failf("%d tokens emitted, %d sampled, want %d; gaps of %v, want %v; %d preemptions, want %d",
				emitted, sampled, outputs, gaps, spans, lost, preemptions)
		}
		if end != lastToken || o.cluster.Now() != lastToken {
			o.failf("ends at %v, Now() = %v, want the last token's %v", end, o.cluster.Now(), lastToken)
		}
		preempted += lost
	}
	if preempted < setups {
		t.Errorf("too quiet: %d preemptions", preempted)
	}
}

// A cache that holds just the longest request serves all of them. The first of the running is
// never preempted by another, gets at least one token in every step, and lacks at most its prompt
// and, after preemption, its answer twice: that bounds the steps.
func TestProgressInTheSmallestCache(t *testing.T) {
	for seed := range uint64(setups) {
		s, _ := known(seed)
		s.cancels, s.blocks, s.maxModelLen = nil, 1, 1000
		bound := 0
		for _, q := range s.requests {
			s.blocks = max(s.blocks, ceilDiv(q.Prompt+q.Output, s.block))
			bound += q.Prompt + 2*q.Output
		}
		o, steps := observe(t, seed, s)
		if n := o.cluster.Counts(); n.Completed != len(s.requests) || len(steps) > bound {
			o.failf("%+v after %d steps, want %d completed within %d", n, len(steps), len(s.requests), bound)
		}
	}
}
