package sim_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/rng"
	"llmsim/workload"
)

// Relations between runs: what a change of the set-up must and must not change.

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
		until := forever
		for _, f := range append(answers(a), answers(b)...) {
			if changed[f.ID] {
				until = min(until, f.LastToken)
			}
		}
		for i := 0; i < len(a) && a[i].End < until; i++ {
			if i >= len(b) || !equal(&a[i], &b[i]) {
				t.Fatalf("seed %d, %v: before an answer differs at %v, step %+v\nbecomes %+v", seed, s, until, a[i], b[min(i, len(b)-1)])
			}
			compared++
		}
	}
	if compared < 10*setups {
		t.Errorf("too quiet: %d steps compared", compared)
	}
}

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
		for seed := range uint64(setups / 2) {
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
