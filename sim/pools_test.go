package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// pool is the replicas of a set-up as a part of a cluster.
func (s setup) pool() sim.Pool {
	return sim.Pool{
		Replicas: s.replicas, Cost: s.cost, MaxModelLen: s.maxModelLen, KVTokens: s.blocks * s.block,
		Policy: func() policy.Policy {
			return policy.NewClassic(kv.NewPool(s.blocks, s.block),
				policy.Limits{MaxNumSeqs: s.slots, MaxNumBatchedTokens: s.budget}, s.watermark)
		},
	}
}

func (v vllmSetup) pool() sim.Pool {
	p := v.setup.pool()
	p.KVTokens = (v.blocks - 1) * v.block
	p.Ahead = v.options.AsyncScheduling
	p.Policy = func() policy.Policy {
		pool := kv.NewPool(v.blocks-1, v.block)
		if v.caching {
			pool = kv.NewCachingPool(v.blocks-1, v.block, v.first)
		}
		return policy.NewVLLMV1(pool, v.limits, v.options)
	}
	return p
}

// Pools that share no prompt are clusters of their own: split by length, each gets its requests as
// if the others were not there, to the nanosecond, whatever the engines, routers and slices.
func TestSplitPoolsAreClustersOfTheirOwn(t *testing.T) {
	n := 1500
	if testing.Short() {
		n = 200
	}
	ways := map[string]slicing{"just in time": justInTime, "all ahead": allAhead, "chopped": chopped}
	served := [2]int{}
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 11))
		short, long := randomSetup(r), randomVLLMSetup(r)
		pools := []sim.Pool{short.pool(), long.pool()}
		threshold := 1 + r.IntN(60)
		pools[0].Accepts, pools[1].Accepts = sim.Range{Hi: threshold}, sim.Range{Lo: threshold + 1}
		for i := range pools {
			pools[i].Delay = time.Duration(r.IntN(3)) * 700_000
		}
		all := setup{cancels: map[int64]time.Duration{}}
		for _, of := range []setup{short, long.setup} {
			from := int64(len(all.requests))
			for _, q := range of.requests {
				if at, ok := of.cancels[q.ID]; ok {
					all.cancels[q.ID+from] = at
				}
				q.ID += from
				all.requests = append(all.requests, q)
			}
		}
		slices.SortStableFunc(all.requests, func(a, b workload.Request) int { return int(a.Arrival - b.Arrival) })
		routers := []func() sim.Router{short.router, long.router}

		var want []sim.Step
		refused := 0
		for i, p := range pools {
			own := setup{cancels: all.cancels, requests: slices.DeleteFunc(slices.Clone(all.requests), func(q workload.Request) bool {
				return p.Accepts.Has(q.Prompt) == false
			})}
			alone := sim.New(sim.Config{
				Replicas: p.Replicas, Policy: p.Policy, Cost: p.Cost, MaxModelLen: p.MaxModelLen, KVTokens: p.KVTokens,
				Ahead: p.Ahead, Delay: p.Delay, Router: routers[i](),
			})
			for _, step := range justInTime(alone, own, r) {
				step.Replica += i * pools[0].Replicas
				for k := range step.Finished {
					step.Finished[k].Replica += i * pools[0].Replicas
				}
				served[i] += len(step.Finished)
				want = append(want, step)
			}
			refused += alone.Counts().Refused
		}
		for name, way := range ways {
			c := sim.New(sim.Config{Pools: pools, Routers: func(set uint64) sim.Router { return routers[set-1]() }})
			got := way(c, all, r)
			compareSteps(t, fmt.Sprintf("seed %d, %s, split at %d, %v and %v", seed, name, threshold, short, long.setup), got, want)
			counts := c.Counts()
			if counts.Refused != refused || counts.Queued+counts.Running != 0 ||
				counts.Arrived != len(all.requests) || counts.Arrived != counts.Completed+counts.Refused+counts.Cancelled {
				t.Fatalf("seed %d, %s: counts at the end %+v, want %d of %d refused", seed, name, counts, refused, len(all.requests))
			}
		}
	}
	if min(served[0], served[1]) < 5*n {
		t.Errorf("the pools served %v requests, too few to prove something", served)
	}
}

// A watched router sees that it is asked about the replicas it should be.
type watched struct {
	sim.Router
	check func(a sim.Arrival, loads []sim.Load)
}

func (w watched) Route(a sim.Arrival, loads []sim.Load) int {
	w.check(a, loads)
	return w.Router.Route(a, loads)
}

// Routers choose among the replicas of all pools that accept and hold a request, in order, and see
// what each of them holds; what none does is refused. Ranges may overlap and leave gaps.
func TestRoutersSeeThePoolsThatAcceptAndHold(t *testing.T) {
	refused, scattered := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 12))
		s := randomSetup(r)
		s.cancels = nil
		var pools []sim.Pool
		var poolOf []int
		for i := range 2 + r.IntN(4) {
			of := randomSetup(r)
			p := of.pool()
			if p.Accepts.Lo = r.IntN(30); r.IntN(2) == 0 {
				p.Accepts.Hi = p.Accepts.Lo + r.IntN(100)
			}
			pools = append(pools, p)
			for range p.Replicas {
				poolOf = append(poolOf, i)
			}
		}
		for i := range s.requests {
			s.requests[i].Prompt = 1 + i // which tells a router's request
		}
		candidates := func(q workload.Request) (all []int32) {
			for i, at := range poolOf {
				p := pools[at]
				if total := q.Prompt + q.Output; p.Accepts.Has(q.Prompt) && total <= p.MaxModelLen && total <= p.KVTokens {
					all = append(all, int32(i))
				}
			}
			return all
		}
		held := make([]int, len(poolOf))
		c := sim.New(sim.Config{Pools: pools, Routers: func(uint64) sim.Router {
			return watched{sim.LeastLoaded{}, func(a sim.Arrival, loads []sim.Load) {
				want := candidates(s.requests[a.Prompt-1])
				var got []int32
				for _, l := range loads {
					got = append(got, l.Replica)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d: a request of %d tokens is routed among %v, want %v", seed, a.Prompt, got, want)
				}
				if int(want[len(want)-1]-want[0]) >= len(want) {
					scattered++
				}
			}}
		}})
		for _, step := range justInTime(c, s, r) {
			for _, f := range step.Finished {
				if !slices.Contains(candidates(s.requests[f.Prompt-1]), int32(f.Replica)) {
					t.Fatalf("seed %d: %+v was served by a replica that is no candidate", seed, f)
				}
				held[f.Replica]++
			}
		}
		none := 0
		for _, q := range s.requests {
			if len(candidates(q)) == 0 {
				none++
			}
		}
		n := c.Counts()
		if n.Refused != none || n.Completed != len(s.requests)-none {
			t.Fatalf("seed %d: counts %+v, want %d of %d refused", seed, n, none, len(s.requests))
		}
		refused += none
	}
	if min(refused, scattered) < 100 {
		t.Errorf("too quiet: %d refused, %d routed among replicas with others between", refused, scattered)
	}
}
