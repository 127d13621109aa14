package vllmv1

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// A workload is a random configuration and requests with the iterations at which they arrive.
type workload struct {
	Config
	Rules
	requests []Request
	arrive   []int
	ties     bool // by priority, equals can undo each other's work for ever
}

// Sample gives requests of one pair equal outputs, so that outputs are hit too.
func (w workload) Sample(id string, k int) Token { return Token(int(id[1]-'0')/2*1000 + 500 + k) }

func randomWorkload(seed uint64) workload {
	r := rand.New(rand.NewPCG(seed, 3))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	coin := func() bool { return r.IntN(2) == 0 }
	w := workload{Config: Config{
		MaxNumSeqs: pick(1, 2, 4, 16), MaxNumBatchedTokens: pick(64, 70, 128, 500), MaxModelLen: 64,
		LongPrefillTokenThreshold: pick(0, 0, 5, 16), EnableChunkedPrefill: coin(), EnablePrefixCaching: coin(),
		Policy: FCFS, SchedulerReserveFullISL: coin(), Watermark: float64(pick(0, 0, 5, 10)) / 100,
		BlockSize: pick(4, 16), AsyncScheduling: coin(),
	}}
	if coin() {
		w.Policy = Priority
	}
	if w.EnableChunkedPrefill {
		w.MaxNumBatchedTokens = pick(3, 8, 33, 100)
	}
	// The cache holds the longest request, with the watermark to spare.
	longest := w.MaxModelLen / w.BlockSize
	w.NumGPUBlocks = 1 + longest + pick(2, 3, 8, 30)
	profiles := Profiles()
	w.Rules = profiles[r.IntN(len(profiles))].Rules
	w.ties = coin()
	for i := range 1 + r.IntN(10) {
		q := Request{ID: fmt.Sprintf("r%d", i), MaxTokens: pick(1, 2, 5, 20, 100), Priority: r.IntN(3), ArrivalTime: float64(i)}
		if w.ties {
			q.ArrivalTime = float64(r.IntN(3))
		}
		kin := r.IntN(3) * 1000
		for j := range 1 + r.IntN(w.MaxModelLen-1) {
			q.Prompt = append(q.Prompt, Token(kin+j))
		}
		if coin() {
			q.StopTokenIDs = []Token{w.Sample(q.ID, r.IntN(q.MaxTokens))}
		}
		w.requests = append(w.requests, q)
		w.arrive = append(w.arrive, r.IntN(1+r.IntN(30)))
	}
	return w
}

// emits is how many tokens a request must get.
func (w workload) emits(q Request) int {
	for k := range q.MaxTokens {
		token := w.Sample(q.ID, k)
		if len(q.StopTokenIDs) > 0 && token == q.StopTokenIDs[0] || len(q.Prompt)+k+1 >= w.MaxModelLen {
			return k + 1
		}
	}
	return q.MaxTokens
}

const (
	seeds     = 3000
	mostTurns = 3000 // many times what the longest workload takes that ends
)

// Whatever the rules, blocks are conserved, no limit is passed, every scheduled request computes,
// and all get exactly their tokens in bounded steps, after which all blocks are free.
func TestInvariants(t *testing.T) {
	preemptions, hits, livelocks := 0, 0, 0
	for seed := range uint64(seeds) {
		w := randomWorkload(seed)
		s, err := New(w.Config, w.Rules)
		if err != nil {
			t.Fatal(err)
		}
		e := NewEngine(s, w)
		emitted, want := map[string]int{}, map[string]int{}
		begun, ended := map[string]int{}, 0
		fail := func(turn int, format string, args ...any) {
			t.Fatalf("seed %d, turn %d, %+v: %s", seed, turn, w.Config, fmt.Sprintf(format, args...))
		}
		for turn := 0; turn < 30 || !e.Idle(); turn++ {
			if turn > mostTurns {
				if w.Policy == FCFS || !w.ties {
					fail(turn, "%d of %d ended", ended, len(w.requests))
				}
				livelocks++
				break
			}
			for i, q := range w.requests {
				if w.arrive[i] == turn {
					want[q.ID] = w.emits(q)
					if err := e.Add(q); err != nil {
						fail(turn, "%v", err)
					}
				}
			}
			it := e.Iterate()
			if err := s.check(); err != nil {
				fail(turn, "%v", err)
			}
			if d := it.Decision; d != nil {
				preemptions += len(d.Preempted)
				if d.Tokens() > w.MaxNumBatchedTokens || len(d.Running) > w.MaxNumSeqs {
					fail(turn, "%d tokens, %d running", d.Tokens(), len(d.Running))
				}
				for _, x := range d.Scheduled {
					if x.NumTokens < 1 || x.NumComputedTokens+x.NumTokens > w.MaxModelLen {
						fail(turn, "%s computes %d on %d", x.ID, x.NumTokens, x.NumComputedTokens)
					}
					if x.Origin == FromRunning == (begun[x.ID] == 0) && x.Origin != FromPreempted {
						fail(turn, "%s is %s, begun %d times before", x.ID, x.Origin, begun[x.ID])
					}
					if x.Origin != FromRunning {
						hits += x.NumComputedTokens
					}
					begun[x.ID]++
				}
			}
			if o := it.Outcome; o != nil {
				for _, x := range o.Outputs {
					if x.Token != w.Sample(x.ID, emitted[x.ID]) {
						fail(turn, "token %d of %s is %d", emitted[x.ID], x.ID, x.Token)
					}
					emitted[x.ID]++
				}
				ended += len(o.Finished)
			}
		}
		if !e.Idle() {
			continue
		}
		if !reflect.DeepEqual(emitted, want) || ended != len(w.requests) || s.Free() != s.Usable() {
			t.Fatalf("seed %d: emitted %v, %d ended, %d free; want %v, %d, %d", seed, emitted, ended, s.Free(), want, len(w.requests), s.Usable())
		}
	}
	if livelocks > seeds/100 {
		t.Errorf("%d of %d workloads do not end", livelocks, seeds)
	}
	if preemptions < seeds || hits < seeds {
		t.Errorf("only %d preemptions and %d tokens hit: the workloads test little", preemptions, hits)
	}
}

// An abort at any moment leaves nothing behind and holds nobody up.
func TestAborts(t *testing.T) {
	for seed := range uint64(seeds / 3) {
		w := randomWorkload(seed)
		s, err := New(w.Config, w.Rules)
		if err != nil {
			t.Fatal(err)
		}
		e := NewEngine(s, w)
		r := rand.New(rand.NewPCG(seed, 4))
		for _, q := range w.requests {
			if err := e.Add(q); err != nil {
				t.Fatal(err)
			}
		}
		for turn := 0; !e.Idle(); turn++ {
			if turn > mostTurns {
				t.Fatalf("seed %d: no end", seed) // aborts break any livelock
			}
			e.Iterate()
			if r.IntN(4) == 0 {
				q := w.requests[r.IntN(len(w.requests))]
				_, there := e.Look(q.ID)
				if got := e.Abort(q.ID); got != there {
					t.Fatalf("seed %d: Abort(%s) = %t, want %t", seed, q.ID, got, there)
				}
				if there && r.IntN(2) == 0 {
					// The id may come again at once; what the first has in flight is not its own.
					q.MaxTokens = 1
					if err := e.Add(q); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.check(); err != nil {
				t.Fatalf("seed %d, turn %d: %v", seed, turn, err)
			}
		}
		if s.Free() != s.Usable() {
			t.Fatalf("seed %d: %d of %d free", seed, s.Free(), s.Usable())
		}
	}
}

// Decisions do not know when an output will stop: with and without stop tokens they are the same
// until the first stop.
func TestDecisionsDoNotForesee(t *testing.T) {
	differ := 0
	for seed := range uint64(seeds / 3) {
		w := randomWorkload(seed)
		record := func(stops bool) (decisions []string) {
			s, err := New(w.Config, w.Rules)
			if err != nil {
				t.Fatal(err)
			}
			e := NewEngine(s, w)
			for _, q := range w.requests {
				if !stops {
					q.StopTokenIDs = nil
				}
				if err := e.Add(q); err != nil {
					t.Fatal(err)
				}
			}
			for turn := 0; turn < 300 && !e.Idle(); turn++ {
				it := e.Iterate()
				if d := it.Decision; d != nil {
					line := fmt.Sprint(d.Preempted, d.Running, d.Waiting, d.Skipped, d.Free, d.Blocks)
					for _, x := range d.Scheduled {
						line += fmt.Sprint(x.ID, x.NumTokens, x.NumComputedTokens, x.Origin)
					}
					decisions = append(decisions, line)
				}
				if it.Outcome != nil {
					for _, f := range it.Outcome.Finished {
						if f.Reason == Stop {
							return decisions
						}
					}
				}
			}
			return decisions
		}
		with, without := record(true), record(false)
		if len(with) < len(without) {
			differ++
			without = without[:len(with)]
		}
		if !reflect.DeepEqual(with, without) {
			t.Fatalf("seed %d: decisions differ before the first stop", seed)
		}
	}
	if differ < seeds/12 {
		t.Errorf("only %d workloads stop early", differ)
	}
}

// All faults of a configuration are told at once, by vLLM's names and with values.
func TestConfigFaults(t *testing.T) {
	_, err := New(Config{MaxNumBatchedTokens: -1, MaxModelLen: 1, BlockSize: 1, NumGPUBlocks: MaxBlocks + 1, Watermark: 1, Policy: "lifo"}, Rules{})
	for _, want := range []string{
		"max_num_seqs: must be at least 1, is 0", "max_num_batched_tokens: must be at least 1, is -1",
		"num_gpu_blocks: must be at most 1048576, is 1048577", "watermark: must be at least 0 and below 1, is 1",
		`policy: must be fcfs or priority, is "lifo"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to say %s", err, want)
		}
	}
}

// A request that has no meaning is refused, and names what is wrong.
func TestRequestFaults(t *testing.T) {
	s, err := New(Config{MaxNumSeqs: 1, MaxNumBatchedTokens: 8, MaxModelLen: 8, Policy: FCFS, NumGPUBlocks: 4, BlockSize: 4}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	fine := Request{ID: "a", Prompt: make([]Token, 8), MaxTokens: 1}
	if err := s.Add(fine); err != nil {
		t.Errorf("Add(%+v) = %v", fine, err)
	}
	for want, q := range map[string]Request{
		"added twice":              fine,
		"prompt: must have at lea": {ID: "b", MaxTokens: 1},
		"max_model_len = 8 tokens": {ID: "b", Prompt: make([]Token, 9), MaxTokens: 1},
		"max_tokens: must be at":   {ID: "b", Prompt: make([]Token, 1)},
	} {
		if err := s.Add(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Add(%+v) = %v, want it to say %s", q, err, want)
		}
	}
	if _, err := FindProfile("vllm-9"); err == nil || !strings.Contains(err.Error(), "vllm-0.28, vllm-0.19, vllm-classic-v1") {
		t.Errorf("FindProfile = %v, want it to list the profiles", err)
	}
}
