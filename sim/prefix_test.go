package sim_test

import (
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/rng"
	"llmsim/workload"
)

func cachingCluster(budget int, blocks int) *sim.Cluster {
	return sim.New(sim.Config{
		Replicas: 1,
		Policy: func() policy.Policy {
			return policy.NewVLLMV1(kv.NewCachingPool(blocks-1, 16, true),
				policy.Limits{MaxNumSeqs: 64, MaxNumBatchedTokens: budget},
				policy.VLLMV1Options{NumGPUBlocks: blocks, EnableChunkedPrefill: true, SchedulerReserveFullISL: true})
		},
		Cost: article.Model(), Router: &sim.RoundRobin{}, MaxModelLen: 1 << 20, KVTokens: (blocks - 1) * 16,
	})
}

// sharing is requests that share prompts in groups, far enough apart that none meets another.
func sharing(n int) (all []workload.Request) {
	stream := rng.New(1, "sharing")
	for i := range n {
		q := workload.Request{
			ID: int64(i), Arrival: time.Duration(i) * time.Minute,
			Prompt: 1 + stream.IntN(3000), Output: 1 + stream.IntN(50), PrefixBlock: 64,
		}
		for k := 0; k*q.PrefixBlock < q.Prompt; k++ {
			q.Prefix = append(q.Prefix, uint64(stream.IntN(2)))
		}
		all = append(all, q)
	}
	return all
}

// What the prefix cache has does not depend on how prompts are cut into chunks, and what it has
// and what is computed make up the prompts; at least one token of each is computed.
func TestCachedAndComputedMakeUpThePrompts(t *testing.T) {
	requests := sharing(300)
	prompts := int64(0)
	for _, q := range requests {
		prompts += int64(q.Prompt)
	}
	var first int64
	for i, budget := range []int{16, 100, 8192} {
		s := setup{requests: requests}
		steps := justInTime(cachingCluster(budget, 20_000), s, nil)
		var hits, queries, computed int64
		for _, step := range steps {
			hits += step.CacheHits
			queries += step.CacheQueries
			computed += int64(step.Shape.PrefillTokens())
			// A prompt of which only one token was missing counts as a decode in the shape.
			computed += int64(step.Shape.Decodes - step.Steady - len(step.Gaps))
		}
		if i == 0 {
			first = hits
		}
		if hits != first || hits == 0 {
			t.Errorf("hits with budget %d = %d tokens, want %d as with others, and some", budget, hits, first)
		}
		if queries != prompts || hits+computed != prompts {
			t.Errorf("budget %d: %d tokens asked for, %d found and %d computed, want %d in all", budget, queries, hits, computed, prompts)
		}
		if computed < int64(len(requests)) {
			t.Errorf("budget %d: %d tokens computed for %d prompts, want one of each at least", budget, computed, len(requests))
		}
	}
}

// The true length of an answer stops it and does nothing else: until a sequence ends, making it
// longer changes no decision.
func TestOutputLengthIsNoOracle(t *testing.T) {
	requests := sharing(60)
	for i := range requests {
		requests[i].Arrival /= 6000 // now they meet
	}
	longer := append([]workload.Request(nil), requests...)
	last := len(longer) - 1
	shortest := requests[last].Output
	longer[last].Output += 400
	a := justInTime(cachingCluster(512, 900), setup{requests: requests}, nil)
	b := justInTime(cachingCluster(512, 900), setup{requests: longer}, nil)
	same := 0
	for i := range min(len(a), len(b)) {
		if len(a[i].Finished) > 0 && a[i].Finished[len(a[i].Finished)-1].ID == int64(last) {
			break
		}
		if !equal(&a[i], &b[i]) {
			t.Fatalf("step %d = %+v with an answer of %d tokens, want %+v as with %d", i, b[i], longer[last].Output, a[i], shortest)
		}
		same++
	}
	if same < 100 {
		t.Errorf("only %d steps were compared", same)
	}
}
