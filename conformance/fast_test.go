package conformance

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"llmsim/internal/shared"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/vllmv1"
)

// The policy that simulations run, which holds sums instead of sequences and counts instead of
// block ids, is held to the same recordings as the plain scheduler: how much each step computes,
// whom it admits, preempts and finishes, in which order, and what is free afterwards.
func TestSimulatedPolicyOnRecordedDecisions(t *testing.T) {
	cases, steps := 0, 0
	for _, name := range []string{"sync.jsonl.gz", "async.jsonl.gz"} {
		path := shared.Golden(t, "vllm-v1", name)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := NewReader(path, f)
		if err != nil {
			t.Fatal(err)
		}
		for {
			k, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			cases++
			n, problem := replayFast(k)
			steps += n
			if problem != "" {
				t.Errorf("%s: %s", k.Name, problem)
			}
		}
	}
	if cases != 400 || steps != 15161+8835 {
		t.Errorf("replayed %d cases, %d steps, want 400 and 23996", cases, steps)
	}
}

// pieces names a prompt's full blocks by what stands in them.
func pieces(known map[string]uint64, prompt []vllmv1.Token, size int) (all []uint64) {
	for ; len(prompt) >= size; prompt = prompt[size:] {
		text := fmt.Sprint(prompt[:size])
		if _, ok := known[text]; !ok {
			known[text] = uint64(len(known))
		}
		all = append(all, known[text])
	}
	return all
}

func replayFast(k *Case) (steps int, problem string) {
	c := k.Config
	pool := kv.NewPool(c.NumGPUBlocks-1, c.BlockSize)
	if c.EnablePrefixCaching {
		pool = kv.NewCachingPool(c.NumGPUBlocks-1, c.BlockSize, true)
	}
	p := policy.NewVLLMV1(pool, policy.Limits{
		MaxNumSeqs: c.MaxNumSeqs, MaxNumBatchedTokens: c.MaxNumBatchedTokens, LongPrefillTokenThreshold: c.LongPrefillTokenThreshold,
	}, policy.VLLMV1Options{
		NumGPUBlocks: c.NumGPUBlocks, Watermark: c.Watermark, EnableChunkedPrefill: c.EnableChunkedPrefill,
		SchedulerReserveFullISL: c.SchedulerReserveFullISL, Priority: c.Policy == vllmv1.Priority, AsyncScheduling: c.AsyncScheduling,
	})
	requests := map[string]Request{}
	arrivals := []float64{}
	for _, q := range k.Requests {
		requests[q.ID] = q
		arrivals = append(arrivals, q.ArrivalTime)
	}
	slices.Sort(arrivals)
	byName := slices.Sorted(maps.Keys(requests)) // vLLM compares ids as strings
	known := map[string]uint64{}
	ids := map[policy.Handle]string{}
	names := func(hs []policy.Handle) []string {
		all := []string{}
		for _, h := range hs {
			all = append(all, ids[h])
		}
		return all
	}
	var d policy.Decision
	var o policy.Outcome
	var flight []bool // the policy, too, has a step of it
	for i, e := range k.Events {
		differ := func(what string, got, want any) (int, string) {
			return steps, fmt.Sprintf("event %d, step %d: %s = %v, want %v", i, steps, what, got, want)
		}
		switch e.Kind {
		case Add:
			q := requests[e.ID]
			// What the model's length cuts off is never emitted.
			output := min(q.MaxTokens, c.MaxModelLen-len(q.Prompt))
			h := p.Add(policy.Request{
				Prompt: len(q.Prompt), Output: max(output, 1), Priority: q.Priority,
				Arrived: int64(slices.Index(arrivals, q.ArrivalTime)), ID: int64(slices.Index(byName, e.ID)),
				Prefix: pieces(known, q.Prompt, c.BlockSize), PrefixTokens: c.BlockSize,
			})
			ids[h] = e.ID
		case Schedule:
			steps++
			tokens, context := 0, int64(0)
			started := []string{}
			for _, s := range e.Sched {
				tokens += s.N
				context += int64(s.Computed + s.N)
				if s.Origin == "new" {
					started = append(started, s.ID)
				}
			}
			ok := p.Schedule(&d)
			flight = append(flight, ok)
			if !ok {
				d.Shape = cost.Shape{}
			}
			load := p.Load()
			switch {
			case d.Shape.Tokens != tokens || d.Shape.Sequences != len(e.Sched) || d.Shape.Context != context:
				return differ("shape", d.Shape, e.Sched)
			case !slices.Equal(names(d.Started), started):
				return differ("started", names(d.Started), started)
			case strings.Join(names(d.Preempted), " ") != strings.Join(e.Preempted, " "):
				return differ("preempted", names(d.Preempted), e.Preempted)
			case load.Running != len(e.Running) || load.Waiting != len(e.Waiting)+len(e.Skipped) || load.Free != e.Free:
				return differ("load", load, []int{len(e.Running), len(e.Waiting) + len(e.Skipped), e.Free})
			}
		case Update:
			ok := flight[0]
			flight = flight[1:]
			o = policy.Outcome{}
			if ok {
				p.Commit(&o)
			}
			finished := []string{}
			for _, f := range e.Finished {
				finished = append(finished, f.ID)
			}
			switch {
			case o.Steady+len(o.Firsts)+len(o.Resumed) != len(e.Outputs):
				return differ("outputs", o, e.Outputs)
			case !slices.Equal(names(o.Finished), finished):
				return differ("finished", names(o.Finished), finished)
			case p.Load().Free != e.Free || p.Load().Running != len(e.Running):
				return differ("load", p.Load(), e)
			}
		}
	}
	return steps, ""
}
