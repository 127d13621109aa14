package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/rng"
	"llmsim/workload"
)

func (s setup) cluster() *sim.Cluster {
	return sim.New(sim.Config{
		Replicas: s.replicas,
		Policy: func() policy.Policy {
			return policy.NewClassic(kv.NewPool(s.blocks, s.block),
				policy.Limits{MaxNumSeqs: s.slots, MaxNumBatchedTokens: s.budget}, s.watermark)
		},
		Cost: s.cost, Router: s.router(), MaxModelLen: s.maxModelLen, KVTokens: s.blocks * s.block,
	})
}

func (s setup) String() string {
	return fmt.Sprintf("replicas %d blocks %dx%d slots %d budget %d watermark %g requests %d cancels %d",
		s.replicas, s.blocks, s.block, s.slots, s.budget, s.watermark, len(s.requests), len(s.cancels))
}

// clone copies the steps of one call, whose slices the next call overwrites. Empty slices become
// nil, so that steps compare by content.
func clone(steps []sim.Step) []sim.Step {
	steps = slices.Clone(steps)
	for i := range steps {
		s := &steps[i]
		s.Gaps = append([]sim.Gap(nil), s.Gaps...)
		s.Firsts = append([]int64(nil), s.Firsts...)
		s.Preempted = append([]int64(nil), s.Preempted...)
		s.Finished = append([]sim.Finished(nil), s.Finished...)
	}
	return steps
}

const forever = time.Duration(math.MaxInt64)

// A slicing is a way for a caller to submit and to cut time.
type slicing func(c *sim.Cluster, s setup, r *rand.Rand) []sim.Step

// justInTime submits each request at its arrival, as sim.Run does.
func justInTime(c *sim.Cluster, s setup, _ *rand.Rand) (steps []sim.Step) {
	for _, q := range s.requests {
		for c.Now() < q.Arrival {
			steps = append(steps, clone(c.Advance(q.Arrival))...)
		}
		if t, err := c.Submit(q); err == nil {
			if at, ok := s.cancels[q.ID]; ok {
				c.Cancel(t, at)
			}
		}
	}
	return append(steps, drain(c)...)
}

func drain(c *sim.Cluster) (steps []sim.Step) {
	for {
		if _, ok := c.Next(); !ok {
			return steps
		}
		steps = append(steps, clone(c.Advance(forever))...)
	}
}

// allAhead submits everything at the start.
func allAhead(c *sim.Cluster, s setup, _ *rand.Rand) []sim.Step {
	for _, q := range s.requests {
		if t, err := c.Submit(q); err == nil {
			if at, ok := s.cancels[q.ID]; ok {
				c.Cancel(t, at)
			}
		}
	}
	return drain(c)
}

// chopped submits some way ahead and advances by random slices, asking Next now and then.
func chopped(c *sim.Cluster, s setup, r *rand.Rand) (steps []sim.Step) {
	left := s.requests
	for {
		for len(left) > 0 && (left[0].Arrival <= c.Now() || r.IntN(3) == 0) {
			if t, err := c.Submit(left[0]); err == nil {
				if at, ok := s.cancels[left[0].ID]; ok {
					c.Cancel(t, at)
				}
			}
			left = left[1:]
		}
		to := c.Now() + time.Duration(r.ExpFloat64()*3e6)
		if len(left) > 0 {
			to = min(to, left[0].Arrival)
		}
		// What arrives now has all been submitted, so steps may start.
		next, ok := c.Next()
		if !ok && len(left) == 0 {
			return steps
		}
		if ok && len(left) == 0 && r.IntN(2) == 0 {
			to = next
		}
		steps = append(steps, clone(c.Advance(to))...)
	}
}

func randomSetup(r *rand.Rand) setup {
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	s := setup{
		replicas:  pick(1, 1, 1, 2, 3),
		block:     pick(1, 2, 4, 7, 16),
		slots:     pick(1, 2, 3, 8, 8, 40, 40),
		budget:    pick(1, 2, 5, 16, 64, 64, 512, 512, 512),
		watermark: []float64{0, 0, 0.01, 0.1, 0.3}[r.IntN(5)],
	}
	longest := pick(8, 40, 200)
	s.maxModelLen = longest + r.IntN(longest)
	s.blocks = ceilDiv(longest, s.block) * pick(1, 1, 2, 2, 3, 3, 5, 20)
	if r.IntN(4) == 0 {
		s.blocks = max(1, r.IntN(s.blocks+1)) // some requests never fit
	}
	s.cost = cost.Roofline{
		Parameters: 1e6, WeightBytes: 1e6, KVBytesPerToken: float64(pick(0, 100, 10000)),
		PeakFLOPS: 1e13, Bandwidth: 1e9, ComputeEfficiency: 1, MemoryEfficiency: 0.5 + r.Float64()/2,
		Overhead: time.Duration(pick(0, 0, 5, 100_000)),
	}.Model()
	if r.IntN(6) == 0 {
		s.cost = ties{} // every step as long as any other: many things at one instant
	}
	seed := r.Uint64()
	switch r.IntN(4) {
	case 0:
		s.router = func() sim.Router { return &sim.RoundRobin{} }
	case 1:
		s.router = func() sim.Router { return sim.LeastLoaded{} }
	case 2:
		s.router = func() sim.Router { return sim.ShortestQueue{} }
	case 3:
		s.router = func() sim.Router { return sim.PowerOfTwo{Stream: rng.New(seed, "router")} }
	}
	gap := []float64{0, 1e5, 1e6, 1e7}[r.IntN(4)]
	grid := time.Duration(pick(1, 1, 1_000_000))
	at := time.Duration(0)
	for id := range 1 + r.IntN(50) {
		at += time.Duration(r.ExpFloat64() * gap)
		q := workload.Request{ID: int64(id), Arrival: at / grid * grid, Prompt: 1 + r.IntN(longest), Output: 1 + r.IntN(pick(1, 5, longest))}
		if r.IntN(10) > 0 {
			q.Prompt = min(q.Prompt, longest-min(q.Output, longest-1))
		}
		s.requests = append(s.requests, q)
	}
	s.cancels = map[int64]time.Duration{}
	if r.IntN(3) == 0 {
		for _, q := range s.requests {
			if r.IntN(4) == 0 {
				s.cancels[q.ID] = q.Arrival + (time.Duration(r.ExpFloat64()*2e7)/grid+1)*grid
			}
		}
	}
	return s
}

type ties struct{}

func (ties) StepTime(cost.Shape) (time.Duration, cost.Bound) { return 1_000_000, cost.Overhead }

// The core skips over everything that does not change. The twin visits everyone, every time.
// Both must report the same steps to the nanosecond, whatever the configuration and however the
// caller slices time.
func TestClusterAgainstTwin(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 400
	}
	ways := map[string]slicing{"just in time": justInTime, "all ahead": allAhead, "chopped": chopped}
	var preempted, stalled, chunked, refused, cancelled int
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := randomSetup(r)
		want := runTwin(s)
		for name, way := range ways {
			c := s.cluster()
			got := way(c, s, r)
			compareSteps(t, fmt.Sprintf("seed %d, %s, %v", seed, name, s), got, want.steps)
			counts := c.Counts()
			if counts.Refused != len(want.refused) {
				t.Fatalf("seed %d, %s: refused %d, want %d", seed, name, counts.Refused, len(want.refused))
			}
			if counts.Cancelled != want.cancelled || counts.Queued+counts.Running != 0 ||
				counts.Arrived != counts.Completed+counts.Refused+counts.Cancelled {
				t.Fatalf("seed %d, %s: counts at the end %+v, want %d cancelled", seed, name, counts, want.cancelled)
			}
		}
		for _, step := range want.steps {
			preempted += len(step.Preempted)
			stalled += len(step.Gaps)
			if step.Blocked == policy.ByBudget {
				chunked++
			}
		}
		refused += len(want.refused)
		cancelled += want.cancelled
	}
	// A comparison in which nothing happened proves nothing.
	if min(preempted, stalled, chunked, refused, cancelled) < n/4 {
		t.Errorf("too quiet: %d preemptions, %d gaps, %d steps out of budget, %d refused, %d cancelled",
			preempted, stalled, chunked, refused, cancelled)
	}
	t.Logf("%d set-ups: %d preemptions, %d gaps, %d steps out of budget, %d refused, %d cancelled",
		n, preempted, stalled, chunked, refused, cancelled)
}

func equal(a, b *sim.Step) bool {
	return a.Replica == b.Replica && a.Index == b.Index && a.Start == b.Start && a.End == b.End &&
		a.Shape == b.Shape && a.Bound == b.Bound && a.Running == b.Running && a.Waiting == b.Waiting &&
		a.FreeBlocks == b.FreeBlocks && a.UsedBlocks == b.UsedBlocks && a.Blocked == b.Blocked &&
		a.Steady == b.Steady && slices.Equal(a.Gaps, b.Gaps) && slices.Equal(a.Firsts, b.Firsts) &&
		slices.Equal(a.Preempted, b.Preempted) && slices.Equal(a.Finished, b.Finished)
}

// Steps of several replicas that end at one instant may be reported in either order.
func compareSteps(t *testing.T, what string, got, want []sim.Step) {
	t.Helper()
	byReplica := func(a, b sim.Step) int {
		if a.Replica != b.Replica {
			return a.Replica - b.Replica
		}
		return int(a.Index - b.Index)
	}
	for i := 1; i < len(got); i++ {
		if got[i].End < got[i-1].End {
			t.Fatalf("%s: step ends at %v after one at %v", what, got[i].End, got[i-1].End)
		}
	}
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortStableFunc(got, byReplica)
	slices.SortStableFunc(want, byReplica)
	for i := range min(len(got), len(want)) {
		if !equal(&got[i], &want[i]) {
			t.Fatalf("%s:\nstep %d = %+v\n    want %+v", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d steps, want %d", what, len(got), len(want))
	}
}
