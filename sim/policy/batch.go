package policy

import (
	"slices"

	"llmsim/sim/cost"
	"llmsim/sim/kv"
)

// A batch is the running sequences of a replica, held so that a step costs what changes in it.
//
// Sequences that decode are not visited: their number and contexts are sums, their last tokens
// stand in a calendar, and how many of them enter a new block in a step is counted by phase.
// Everyone else is partial, and visited in every step.
//
// Invariants between steps: running = partials + decodes; the lease of a decoding sequence
// stands for ceil(computed/block) blocks whatever it says.
type batch struct {
	slab
	pool     *kv.Pool
	running  list
	partials []Handle // in running order
	spare    []Handle

	step     int64 // number of the next step, or of the one under way
	phase    int   // step modulo the block size
	underway bool  // a step is decided and not yet applied
	decodes  int
	context  int64   // tokens computed so far by those that decode
	crossing []int32 // decodes that need a block in steps congruent to the index, modulo the block size
	finishes calendar

	limits Limits
	// victim picks whom to preempt among the running.
	victim func(*batch) Handle
	visit  uint32 // number of the present walk

	admissions int64
	// No decoding sequence was admitted after this one. (An upper bound, exact after a walk.)
	lastDecode int64
	// Steps decided and not ended, the older first; only one if the counts are settled when a step
	// ends, as they are unless decisions run ahead.
	flight   [2]settled
	inFlight int

	dropStale, cursorSlips bool // as VLLMV1Options has them
}

func newBatch(pool *kv.Pool, limits Limits) batch {
	return batch{
		pool:       pool,
		limits:     limits,
		victim:     lastAdmitted,
		running:    newList(),
		crossing:   make([]int32, pool.BlockSize()),
		finishes:   newCalendar(),
		lastDecode: -1,
	}
}

// admit appends a sequence to the running, with nothing computed.
func (b *batch) admit(h Handle) {
	s := &b.seqs[h]
	s.state, s.computed, s.scheduled = partial, 0, 0
	s.order = b.admissions
	b.admissions++
	b.running.pushBack(b.seqs, h)
	b.partials = append(b.partials, h)
}

// crossings is how many decodes need a block in the next step.
func (b *batch) crossings() int { return int(b.crossing[b.phase]) }

func (b *batch) nextStep() {
	b.step++
	if b.phase++; b.phase == len(b.crossing) {
		b.phase = 0
	}
}

// join makes a sequence decode from a step on; its counts are exact before that step.
func (b *batch) join(h Handle, step int64) {
	s := &b.seqs[h]
	s.state = decoding
	s.joined = step
	s.base = int64(s.computed) - step
	s.due = step + int64(s.output-s.generated) - 1
	b.decodes++
	b.context += int64(s.computed)
	b.crossing[b.crossingPhase(s)]++
	b.finishes.add(b.seqs, h)
	b.lastDecode = max(b.lastDecode, s.order)
}

// A sequence needs a block in every step before which it has computed a multiple of the block
// size: base + step = 0, modulo it.
func (b *batch) crossingPhase(s *sequence) int {
	size := int64(len(b.crossing))
	return int(((-s.base)%size + size) % size)
}

// part makes the counts of a decoding sequence explicit, as they are before a step, and no
// longer counts it among the decodes.
func (b *batch) part(h Handle, step int64) {
	s := &b.seqs[h]
	s.state = partial
	s.scheduled = 0
	s.computed = int32(s.base + step)
	s.generated = s.output - int32(s.due-step+1)
	b.pool.Settle(&s.lease, int(s.computed))
	b.decodes--
	b.context -= int64(s.computed)
	b.crossing[b.crossingPhase(s)]--
	b.finishes.remove(b.seqs, h)
}

// leave takes a running sequence that is not decoding out of the batch and frees its blocks, of
// which those are full that so many tokens fill. It may still stand in partials.
func (b *batch) leave(h Handle, tokens int, comesBack bool) {
	b.running.remove(b.seqs, h)
	full := b.pool.Full(tokens)
	b.pool.Register(&b.seqs[h].lease, full)
	b.pool.Release(&b.seqs[h].lease, full, comesBack)
}

// scheduledOne notes that a sequence that was decoding is computing its token, and holds the block
// of it.
func (b *batch) scheduledOne(s *sequence) {
	s.scheduled = 1
	b.pool.Settle(&s.lease, int(s.computed)+1)
}

// computed is how many tokens a running sequence has in the cache before the next step.
func (b *batch) computed(s *sequence) int {
	if s.state == decoding {
		return int(s.base + b.step)
	}
	return int(s.computed)
}

// decodeShape is the shape of the next step of all decodes and nobody else.
func (b *batch) decodeShape() cost.Shape {
	context := b.context + int64(b.decodes)
	return cost.Shape{
		Sequences: b.decodes, Tokens: b.decodes, Sampled: b.decodes, Context: context,
		Decodes: b.decodes, DecodeContext: context,
	}
}

// assign gives a partial sequence n tokens of the step, for which it has the blocks.
func (b *batch) assign(h Handle, n int) {
	s := &b.seqs[h]
	s.scheduled = int32(n)
	b.pool.Register(&s.lease, b.pool.Full(int(s.computed)+n))
}

// compute puts the tokens assigned to a partial sequence into the shape of the step.
func (b *batch) compute(h Handle, d *Decision) {
	s := &b.seqs[h]
	n := int(s.scheduled)
	if !s.started {
		s.started = true
		d.Started = append(d.Started, h)
	}
	past := int(s.computed)
	after := int64(past + n)
	d.Shape.Sequences++
	d.Shape.Tokens += n
	d.Shape.Context += after
	if past+n == s.target() {
		d.Shape.Sampled++
	}
	if n == 1 && past > 0 && past+1 == s.target() {
		d.Shape.Decodes++
		d.Shape.DecodeContext += after
		return
	}
	d.Shape.PrefillPairs += int64(n)*int64(past) + int64(n)*int64(n+1)/2
}

// coast applies a step in which every running sequence decodes and none finishes.
func (b *batch) coast() {
	b.pool.GrowEach(b.crossings())
	b.context += int64(b.decodes)
	b.nextStep()
}

// settled is a step that was decided, with what it emits when it ends.
type settled struct {
	step    int64
	steady  int
	firsts  []Handle
	resumed []Handle
	ended   []Handle
	// Those that emit in the step and that the decision after it interrupted.
	preempted, stalled []Handle
}

// plain reports whether a step emits a token of every decode and nothing else.
func (o *settled) plain() bool {
	return len(o.firsts)+len(o.resumed)+len(o.ended)+len(o.preempted)+len(o.stalled) == 0
}

// settle moves the counts past a step: decodes and scheduled partials have computed their
// tokens, whoever has all it needs emits one, and whoever emits its last is leaving.
func (b *batch) settle(o *settled) {
	o.step, o.steady = b.step, b.decodes
	o.firsts, o.resumed, o.ended = o.firsts[:0], o.resumed[:0], o.ended[:0]
	o.preempted, o.stalled = o.preempted[:0], o.stalled[:0]
	b.context += int64(b.decodes)
	step := b.step
	b.nextStep()
	b.underway = false

	if !b.finishes.empty(step) {
		o.ended = b.finishes.due(b.seqs, step, o.ended)
		for _, h := range o.ended {
			b.part(h, b.step)
			b.seqs[h].state = leaving
		}
	}
	kept := b.partials[:0]
	for _, h := range b.partials {
		s := &b.seqs[h]
		s.computed += s.scheduled
		emits := s.scheduled > 0 && int(s.computed) == s.target()
		s.scheduled = 0
		if !emits {
			kept = append(kept, h)
			continue
		}
		if s.generated == 0 {
			o.firsts = append(o.firsts, h)
		} else {
			o.resumed = append(o.resumed, h)
		}
		s.generated++
		if s.generated == s.output {
			s.state, s.joined = leaving, b.step
			o.ended = append(o.ended, h)
		} else {
			b.join(h, b.step)
		}
	}
	b.partials = kept
	if len(o.ended) > 1 {
		slices.SortFunc(o.ended, func(x, y Handle) int { return int(b.seqs[x].order - b.seqs[y].order) })
	}
}

// emit reports a settled step and lets those leave that end with it.
func (b *batch) emit(o *settled, to *Outcome) {
	*to = Outcome{
		Steady: o.steady, Firsts: o.firsts, Resumed: o.resumed, Finished: o.ended,
		Preempted: o.preempted, Stalled: o.stalled,
	}
	for _, h := range o.ended {
		if b.seqs[h].state == leaving {
			b.leave(h, int(b.seqs[h].computed), false)
		}
		b.give(h)
	}
}

// abort takes a running sequence out, in a step or between two.
func (b *batch) abort(h Handle) {
	s := &b.seqs[h]
	emits := b.emits(s)
	if s.state == decoding {
		b.part(h, b.step)
		if b.underway {
			b.scheduledOne(s)
		}
	} else if i := slices.Index(b.partials, h); i >= 0 {
		b.partials = slices.Delete(b.partials, i, i+1)
	}
	b.leave(h, b.known(s, emits), false)
	b.give(h)
}

// emits reports whether a running sequence has a token in flight.
func (b *batch) emits(s *sequence) bool {
	return b.inFlight > 0 && (s.state == decoding || s.state == leaving)
}

// known is how many tokens of a running sequence that is no longer decoding are both known, and
// computed or being so: only blocks of such tokens are found again. It is looked at when tokens
// are scheduled; of one in flight nothing is known.
func (b *batch) known(s *sequence, emits bool) int {
	switch {
	case !emits:
		return int(s.computed + s.scheduled)
	case s.scheduled == 0 && s.joined < b.step:
		return int(s.computed) - 1
	}
	return int(s.computed)
}
