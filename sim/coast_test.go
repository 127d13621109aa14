package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// restless hides that a step is quiet, so that every step is decided and ended on its own.
type restless struct{ policy.Policy }

func (restless) Quiet() (cost.Shape, bool) { return cost.Shape{}, false }

type vllmSetup struct {
	setup
	options policy.VLLMV1Options
	limits  policy.Limits
	caching bool
	first   bool
}

func randomVLLMSetup(r *rand.Rand) vllmSetup {
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	v := vllmSetup{setup: randomSetup(r), caching: r.IntN(2) == 0, first: r.IntN(2) == 0}
	v.blocks = max(v.blocks, 2*ceilDiv(v.maxModelLen, v.block)) + 1
	v.limits = policy.Limits{MaxNumSeqs: v.slots, MaxNumBatchedTokens: v.budget, LongPrefillTokenThreshold: pick(0, 0, 3, 20)}
	v.options = policy.VLLMV1Options{
		NumGPUBlocks: v.blocks, Watermark: v.watermark, EnableChunkedPrefill: true,
		SchedulerReserveFullISL: r.IntN(2) == 0, Priority: r.IntN(3) == 0,
		AsyncScheduling: r.IntN(2) == 0, DropStale: r.IntN(4) == 0, CursorSlips: r.IntN(4) == 0,
	}
	for i := range v.requests {
		q := &v.requests[i]
		q.Priority = r.IntN(2)
		if r.IntN(2) == 0 {
			q.PrefixBlock = 2 * v.block
			for k := 0; k*q.PrefixBlock < q.Prompt; k++ {
				q.Prefix = append(q.Prefix, uint64(r.IntN(2)))
			}
		}
	}
	return v
}

func (v vllmSetup) cluster(wrap func(policy.Policy) policy.Policy) *sim.Cluster {
	return sim.New(sim.Config{
		Replicas: v.replicas,
		Policy: func() policy.Policy {
			pool := kv.NewPool(v.blocks-1, v.block)
			if v.caching {
				pool = kv.NewCachingPool(v.blocks-1, v.block, v.first)
			}
			return wrap(policy.NewVLLMV1(pool, v.limits, v.options))
		},
		Cost: v.cost, Router: v.router(), MaxModelLen: v.maxModelLen, KVTokens: (v.blocks - 1) * v.block,
		Ahead: v.options.AsyncScheduling,
	})
}

// Bulk advances change nothing under vllm-v1 either, decided ahead or not, however the caller
// slices time; and every request's life is causal: its gaps and its first token add up to its
// last.
func TestCoastingChangesNothing(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 300
	}
	ways := map[string]slicing{"just in time": justInTime, "all ahead": allAhead, "chopped": chopped}
	coasted := 0
	for i := range uint64(n) + 1 {
		seed := i
		if i == uint64(n) {
			seed = 4967 // someone is preempted without a step, and the next one is quiet
		}
		r := rand.New(rand.NewPCG(seed, 3))
		v := randomVLLMSetup(r)
		want := justInTime(v.cluster(func(p policy.Policy) policy.Policy { return restless{p} }), v.setup, r)
		for name, way := range ways {
			c := v.cluster(func(p policy.Policy) policy.Policy { return counting{p, &coasted} })
			got := way(c, v.setup, r)
			what := fmt.Sprintf("seed %d, %s, %v, %+v", seed, name, v.setup, v.options)
			compareSteps(t, what, got, want)
			if counts := c.Counts(); counts.Queued+counts.Running != 0 || counts.Arrived != counts.Completed+counts.Refused+counts.Cancelled {
				t.Fatalf("%s: counts at the end %+v", what, counts)
			}
			checkLives(t, what, v.requests, got)
		}
	}
	if coasted < n {
		t.Errorf("only %d steps were coasted", coasted)
	}
}

type counting struct {
	policy.Policy
	coasted *int
}

func (c counting) Coast() int {
	*c.coasted++
	return c.Policy.Coast()
}

// checkLives follows every finished request through the steps: the tokens it was given, and when.
func checkLives(t *testing.T, what string, requests []workload.Request, steps []sim.Step) {
	t.Helper()
	tokens := 0
	for i := range steps {
		s := &steps[i]
		tokens += s.Steady + len(s.Gaps) + len(s.Firsts)
		if s.Steady+len(s.Gaps)+len(s.Firsts) > s.Shape.Sampled {
			t.Fatalf("%s: step %+v emits more than it samples", what, s)
		}
		for _, g := range s.Gaps {
			if g.Time < s.End-s.Start {
				t.Fatalf("%s: gap %+v is shorter than its step %+v", what, g, s)
			}
		}
		for _, f := range s.Finished {
			if f.Arrival > f.FirstSchedule || f.FirstSchedule >= f.FirstToken || f.FirstToken > f.LastToken || f.LastToken != s.End {
				t.Fatalf("%s: %+v is not causal", what, f)
			}
			if f.Output > 1 == (f.FirstToken == f.LastToken) {
				t.Fatalf("%s: %+v has %d tokens", what, f, f.Output)
			}
		}
	}
}
