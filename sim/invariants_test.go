package sim_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// What must hold of every run, whatever its configuration, without knowing what the run should be.
// The step-by-step twin says that, and covers states, slices of time and look-ahead exactly; the
// transcripts in policy hold every block against its owner after every operation.

const setups = 400

// known returns a random set-up priced by a roofline whose figures are given too, and its requests
// but for those that never fit.
func known(seed uint64) (setup, cost.Roofline) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := randomSetup(r)
	prices := cost.Roofline{
		Parameters: 1e6 * (1 + r.Float64()), WeightBytes: 2e6, KVBytesPerToken: 1e4 * r.Float64(),
		PeakFLOPS: 1e13 * (0.2 + r.Float64()), Bandwidth: 1e9 * (0.5 + r.Float64()),
		ComputeEfficiency: 0.3 + 0.7*r.Float64(), MemoryEfficiency: 0.3 + 0.7*r.Float64(),
	}
	s.cost = prices.Model()
	s.requests = slices.DeleteFunc(s.requests, func(q workload.Request) bool {
		return q.Prompt+q.Output > min(s.maxModelLen, s.blocks*s.block)
	})
	return s, prices
}

// at is a run under observation.
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
		bound := make([]int, 1)
		for _, q := range s.requests {
			s.blocks = max(s.blocks, ceilDiv(q.Prompt+q.Output, s.block))
			bound[0] += q.Prompt + 2*q.Output
		}
		o, steps := observe(t, seed, s)
		if n := o.cluster.Counts(); n.Completed != len(s.requests) || len(steps) > bound[0] {
			o.failf("%+v after %d steps, want %d completed within %d", n, len(steps), len(s.requests), bound[0])
		}
	}
}

// Runs of one set-up are equal, also side by side; nothing is shared between clusters.
func TestRunsAreEqual(t *testing.T) {
	const copies = 4
	for seed := range uint64(setups / 4) {
		s := randomSetup(rand.New(rand.NewPCG(seed, 9)))
		results := make(chan []sim.Step, copies)
		for range copies {
			go func() { results <- justInTime(s.cluster(), s, nil) }()
		}
		want := <-results
		for range copies - 1 {
			if got := <-results; !slices.EqualFunc(got, want, func(a, b sim.Step) bool { return equal(&a, &b) }) {
				t.Fatalf("seed %d, %v: runs differ", seed, s)
			}
		}
	}
}

// How long an answer will be is not known before it ends: until the first request ends whose
// answer differs, two runs are the same, step by step and replica by replica.
func TestOutputIsNotForeseen(t *testing.T) {
	compared := 0
	for seed := range uint64(setups) {
		s, _ := known(seed)
		s.cancels = nil
		other, r := s, rand.New(rand.NewPCG(seed, 10))
		other.requests = slices.Clone(s.requests)
		changed := map[int64]bool{}
		for i := range other.requests {
			q := &other.requests[i]
			room := min(s.maxModelLen, s.blocks*s.block) - q.Prompt
			if output := 1 + r.IntN(room); r.IntN(3) == 0 && output != q.Output {
				q.Output, changed[q.ID] = output, true
			}
		}
		a, b := justInTime(s.cluster(), s, nil), justInTime(other.cluster(), other, nil)
		known := forever
		for _, f := range append(answers(a), answers(b)...) {
			if changed[f.ID] {
				known = min(known, f.LastToken)
			}
		}
		for i := 0; i < len(a) && a[i].End < known; i++ {
			if i >= len(b) || !sameDecision(&a[i], &b[i]) {
				t.Fatalf("seed %d, %v: before an answer differs at %v, step %+v\nbecomes %+v", seed, s, known, a[i], b[min(i, len(b)-1)])
			}
			compared++
		}
	}
	if compared < 10*setups {
		t.Errorf("too quiet: %d steps compared", compared)
	}
}

// sameDecision leaves out how long the answers of those that finished were meant to be, which is
// the same anyway, and includes the rest.
func sameDecision(a, b *sim.Step) bool { return equal(a, b) }

// A run's arrivals, written to a file and read back, give the same steps. In a closed loop that
// needs ties at one instant to be settled alike whether a request was foreseen or came of an answer.
func TestReplay(t *testing.T) {
	for seed := range uint64(60) {
		s, _ := known(seed)
		r := rand.New(rand.NewPCG(seed, 11))
		s.replicas, s.router = 2, func() sim.Router { return sim.LeastLoaded{} }
		if seed%3 == 0 {
			s.cost = ties{} // both replicas' steps always end together
		}
		longest := min(s.maxModelLen, s.blocks*s.block)
		if longest < 3 {
			continue
		}
		lengths := workload.Independent(
			workload.NewUniform(1, longest-longest/3, rng.New(seed, workload.ForPrompts)),
			workload.NewUniform(1, longest/3, rng.New(seed, workload.ForOutputs)))
		think := time.Duration(r.IntN(3)) * 500 * time.Microsecond
		want, arrived := play(s.cluster(), workload.Closed(1+r.IntN(12), think, lengths, 60))

		file := filepath.Join(t.TempDir(), "arrivals.csv")
		w, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		given := requests(arrived)
		if _, err := workload.WriteTrace(w, &given); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		trace, err := workload.OpenTrace(file, workload.TraceOptions{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		source, err := trace.Source()
		if err != nil {
			t.Fatal(err)
		}
		got, _ := play(s.cluster(), source)
		if len(arrived) != 60 || !slices.EqualFunc(got, want, func(a, b sim.Step) bool { return equal(&a, &b) }) {
			t.Errorf("seed %d, %v: the replay of %d arrivals has other steps", seed, s, len(arrived))
		}
	}
}

type requests []workload.Request

func (r *requests) Next() (workload.Request, bool) {
	if len(*r) == 0 {
		return workload.Request{}, false
	}
	q := (*r)[0]
	*r = (*r)[1:]
	return q, true
}

// More of anything should not make the same requests wait longer. It sometimes does: another
// admission changes whom a step serves. Such anomalies are told; a rule is broken when there are
// many, or large ones.
func TestMoreIsNotWorse(t *testing.T) {
	const epsilon = 0.01 // of the mean latency
	kinds := []struct {
		name string
		more func(*setup, *cost.Roofline)
	}{
		{"blocks", func(s *setup, _ *cost.Roofline) { s.blocks *= 2 }},
		{"bandwidth", func(_ *setup, r *cost.Roofline) { r.Bandwidth *= 1.5 }},
		{"FLOPs", func(_ *setup, r *cost.Roofline) { r.PeakFLOPS *= 1.5 }},
		{"replicas", func(s *setup, _ *cost.Roofline) { s.replicas++ }},
	}
	for _, kind := range kinds {
		anomalies, runs, worst, worstSeed, sum := 0, 0, 0.0, uint64(0), 0.0
		for seed := range uint64(setups) {
			s, prices := known(seed)
			s.cancels = nil
			if len(s.requests) == 0 {
				continue
			}
			was := meanLatency(s)
			kind.more(&s, &prices)
			s.cost = prices.Model()
			change := meanLatency(s)/was - 1
			runs++
			sum += change
			if change > epsilon {
				anomalies++
			}
			if change > worst {
				worst, worstSeed = change, seed
			}
		}
		t.Logf("more %s: mean latency %+.1f%% on average of %d set-ups; worse by over %g%% in %d, at most by %.1f%% (seed %d)",
			kind.name, 100*sum/float64(runs), runs, 100*epsilon, anomalies, 100*worst, worstSeed)
		if sum >= 0 || anomalies*10 > runs || worst > 0.5 {
			t.Errorf("more %s: mean latency %+.1f%%, worse in %d of %d set-ups, at most by %.1f%%",
				kind.name, 100*sum/float64(runs), anomalies, runs, 100*worst)
		}
	}
}

func meanLatency(s setup) float64 {
	all := answers(justInTime(s.cluster(), s, nil))
	slices.SortFunc(all, func(a, b sim.Finished) int { return cmp.Compare(a.ID, b.ID) })
	sum := 0.0
	for _, f := range all {
		sum += (f.LastToken - f.Arrival).Seconds()
	}
	return sum / float64(len(all))
}
