package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
)

// plainV0 is the scheduler of vLLM V0 without chunked prefill, written the plain way.
type plainV0 struct {
	blocks, block, slots, budget int
	free                         int
	waiting, running             []*v0Sequence
}

type v0Sequence struct {
	id, prompt, output, generated int
	blocks                        int
	seen                          bool
}

func (s *v0Sequence) tokens() int { return s.prompt + s.generated }

type v0Step struct {
	shape                       cost.Shape
	started, preempted          []int
	batch                       []*v0Sequence
	running, waiting, freeAfter int
}

func (p *plainV0) schedule() (s v0Step) {
	need := func(tokens int) int { return (tokens + p.block - 1) / p.block }
	left := p.budget
	for len(p.waiting) > 0 {
		q := p.waiting[0]
		if p.free-need(q.tokens()) < p.blocks/100 || len(p.running) >= p.slots || q.tokens() > left {
			break
		}
		left -= q.tokens()
		q.blocks = need(q.tokens())
		p.free -= q.blocks
		p.waiting = p.waiting[1:]
		p.running = append(p.running, q)
		s.batch = append(s.batch, q)
		if !q.seen {
			q.seen = true
			s.started = append(s.started, q.id)
		}
		n := q.tokens()
		s.shape.Sequences++
		s.shape.Sampled++
		s.shape.Tokens += n
		s.shape.Context += int64(n)
		s.shape.PrefillPairs += int64(n) * int64(n+1) / 2
	}
	if len(s.batch) == 0 {
		for i := 0; i < len(p.running) && left > 0; i++ {
			q := p.running[i]
			for p.free == 0 && i < len(p.running) {
				victim := p.running[len(p.running)-1]
				p.running = p.running[:len(p.running)-1]
				p.free += victim.blocks
				victim.blocks = 0
				p.waiting = append([]*v0Sequence{victim}, p.waiting...)
				s.preempted = append(s.preempted, victim.id)
			}
			if i >= len(p.running) {
				break
			}
			if n := need(q.tokens()) - q.blocks; n > 0 {
				q.blocks += n
				p.free -= n
			}
			left--
			s.batch = append(s.batch, q)
			s.shape.Sequences++
			s.shape.Sampled++
			s.shape.Tokens++
			s.shape.Context += int64(q.tokens())
			s.shape.Decodes++
			s.shape.DecodeContext += int64(q.tokens())
		}
	}
	s.running, s.waiting, s.freeAfter = len(p.running), len(p.waiting), p.free
	return s
}

func (p *plainV0) update(s v0Step) (finished []int) {
	for _, q := range s.batch {
		q.generated++
		if q.generated == q.output {
			p.free += q.blocks
			p.running = slices.DeleteFunc(p.running, func(x *v0Sequence) bool { return x == q })
			finished = append(finished, q.id)
		}
	}
	return finished
}

// Whole prompts first, and no decode in a step that has any: the fast policy decides as the
// plain one, step by step, whether it looks at sequences or not.
func TestVLLMV0AgainstPlainScheduler(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 300
	}
	preempted, coasted := 0, 0
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 4))
		pick := func(of ...int) int { return of[r.IntN(len(of))] }
		longest := pick(8, 30, 100)
		plain := &plainV0{block: pick(1, 2, 4, 16), slots: pick(1, 2, 4, 40), budget: 2*longest + r.IntN(longest)}
		plain.blocks = (2*longest/plain.block + 3) * pick(1, 1, 2, 3, 30)
		plain.free = plain.blocks
		fast := policy.NewVLLMV0(kv.NewPool(plain.blocks, plain.block), policy.Limits{MaxNumSeqs: plain.slots, MaxNumBatchedTokens: plain.budget})
		ids := map[policy.Handle]int{}
		names := func(hs []policy.Handle) (all []int) {
			for _, h := range hs {
				all = append(all, ids[h])
			}
			return all
		}
		var d policy.Decision
		var o policy.Outcome
		left := 1 + r.IntN(30)
		for step, id := 0, 0; ; step++ {
			if step > 100_000 {
				t.Fatalf("seed %d: no end", seed)
			}
			for left > 0 && r.IntN(4) == 0 {
				q := &v0Sequence{id: id, prompt: 1 + r.IntN(longest), output: 1 + r.IntN(pick(1, longest))}
				plain.waiting = append(plain.waiting, q)
				ids[fast.Add(policy.Request{Prompt: q.prompt, Output: q.output})] = id
				id++
				left--
			}
			if left == 0 && len(plain.waiting)+len(plain.running) == 0 {
				break
			}
			quiet, isQuiet := fast.Quiet()
			want := plain.schedule()
			ok := fast.Schedule(&d)
			load := fast.Load()
			what := fmt.Sprintf("seed %d, step %d: plain %+v, fast %+v %+v", seed, step, want, d, load)
			if ok != (len(want.batch) > 0) && len(plain.running) > 0 {
				t.Fatalf("%s\nhas a step: %v", what, ok)
			}
			if d.Shape != want.shape || !slices.Equal(names(d.Started), want.started) || !slices.Equal(names(d.Preempted), want.preempted) ||
				load.Running != want.running || load.Waiting != want.waiting || load.Free != want.freeAfter {
				t.Fatal(what)
			}
			if isQuiet {
				coasted++
				if quiet != d.Shape || len(d.Started)+len(d.Preempted)+len(d.Stalled) > 0 {
					t.Fatalf("%s\nwas foretold to be quiet", what)
				}
			}
			preempted += len(want.preempted)
			finished := plain.update(want)
			if !ok {
				continue
			}
			fast.Commit(&o)
			if got := o.Steady + len(o.Firsts) + len(o.Resumed); got != len(want.batch) || !slices.Equal(names(o.Finished), finished) {
				t.Fatalf("%s\nemits %d, finished %v, want %d, %v", what, got, names(o.Finished), len(want.batch), finished)
			}
			if fast.Load().Free != plain.free {
				t.Fatalf("%s\nfree %d, want %d", what, fast.Load().Free, plain.free)
			}
		}
	}
	if min(preempted, coasted) < n {
		t.Errorf("too quiet: %d preemptions, %d quiet steps", preempted, coasted)
	}
}
