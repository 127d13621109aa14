package policy

import (
	"llmsim/sim/cost"
	"llmsim/sim/kv"
)

// VLLMV0 decides as vLLM's first scheduler does without chunked prefill: whole prompts go first,
// as many as fit, and a step that has any computes nothing else; otherwise every running sequence
// decodes one token. It preempts as soon as no block is free, whether one is needed or not.
type VLLMV0 struct {
	inLine
	watermark int // blocks to be left free by an admission
}

// V0Watermark is the share of the blocks that an admission must leave free.
const V0Watermark = 0.01

// NewVLLMV0 returns the policy over a pool of its own, that does not cache.
func NewVLLMV0(pool *kv.Pool, limits Limits) *VLLMV0 {
	return &VLLMV0{
		inLine:    newInLine(pool, limits),
		watermark: int(V0Watermark * float64(pool.Total())),
	}
}

// blocked tells why the head of the queue can't be admitted to a step that has so many tokens
// left; Unblocked when it can, or when there is none.
func (v *VLLMV0) blocked(left int) Blocked {
	if v.queue.len == 0 {
		return Unblocked
	}
	tokens := v.seqs[v.queue.head].target()
	switch {
	case v.pool.Free()-v.pool.Need(tokens) < v.watermark:
		return ByKV
	case v.running.len >= v.limits.MaxNumSeqs:
		return BySlots
	case tokens > left:
		return ByBudget
	}
	return Unblocked
}

func (v *VLLMV0) Schedule(d *Decision) bool {
	d.start()
	left := v.limits.MaxNumBatchedTokens
	before := v.running.len
	for v.reason = v.blocked(left); v.reason == Unblocked && v.queue.len > 0; v.reason = v.blocked(left) {
		h := v.queue.head
		tokens := v.seqs[h].target()
		v.queue.remove(v.seqs, h)
		v.admit(h)
		v.pool.Grow(&v.seqs[h].lease, tokens)
		v.assign(h, tokens)
		left -= tokens
	}
	if v.running.len == 0 {
		return false
	}
	v.underway = true
	switch {
	case v.running.len > before:
		v.prefill(d)
	case v.decodesAll():
		v.pool.GrowEach(v.crossings())
		d.Shape = v.decodeShape()
	default:
		v.decode(d)
	}
	return true
}

// prefill computes the admitted prompts; whoever decodes waits.
func (v *VLLMV0) prefill(d *Decision) {
	if v.decodes > 0 {
		partials := v.spare[:0]
		for h := v.running.head; h != none; h = v.seqs[h].next {
			if v.seqs[h].state == decoding {
				v.part(h, v.step)
				d.Stalled = append(d.Stalled, h)
			}
			partials = append(partials, h)
		}
		v.spare, v.partials = v.partials, partials
	}
	for _, h := range v.partials {
		if v.seqs[h].scheduled > 0 {
			v.compute(h, d)
		}
	}
}

// decodesAll reports whether every running sequence gets its token without being looked at: none
// has to catch up, and there is a free block for whoever comes last.
func (v *VLLMV0) decodesAll() bool {
	return len(v.partials) == 0 && v.decodes <= v.limits.MaxNumBatchedTokens &&
		(v.crossings() < v.pool.Free())
}

// decode gives one token to each running sequence in order, each as long as a block is free.
func (v *VLLMV0) decode(d *Decision) {
	left := v.limits.MaxNumBatchedTokens
	v.visit++ // nobody was given anything yet
	partials := v.spare[:0]
	for h := v.running.head; h != none; {
		s := &v.seqs[h]
		if left == 0 {
			if s.state == decoding {
				v.part(h, v.step)
				d.Stalled = append(d.Stalled, h)
			}
			partials = append(partials, h)
			h = s.next
			continue
		}
		if v.pool.Free() == 0 {
			victim := v.running.tail
			v.preempt(victim)
			d.Preempted = append(d.Preempted, victim)
			if victim == h {
				break
			}
			continue
		}
		computed := v.computed(s)
		if s.state == decoding {
			v.pool.Settle(&s.lease, computed)
		} else {
			s.scheduled = 1
			partials = append(partials, h)
		}
		v.pool.Grow(&s.lease, computed+1)
		left--
		h = s.next
	}
	v.spare, v.partials = v.partials, partials
	d.Shape = v.decodeShape()
	for _, h := range v.partials {
		if v.seqs[h].scheduled > 0 {
			v.compute(h, d)
		}
	}
	for _, h := range d.Preempted {
		v.queue.pushFront(v.seqs, h)
	}
	if len(d.Preempted) > 0 {
		v.reason = ByKV
	}
}

func (v *VLLMV0) Quiet() (cost.Shape, bool) {
	if !v.steady() || !v.decodesAll() {
		return cost.Shape{}, false
	}
	if v.reason = v.blocked(v.limits.MaxNumBatchedTokens); v.reason == Unblocked && v.queue.len > 0 {
		return cost.Shape{}, false
	}
	return v.decodeShape(), true
}
