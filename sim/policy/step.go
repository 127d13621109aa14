package policy

import (
	"slices"

	"llmsim/sim/cost"
)

// wants is how many tokens a partial sequence would take in a step without a budget.
func (b *batch) wants(s *sequence) int {
	n := s.target() - int(s.computed)
	if most := b.limits.LongPrefillTokenThreshold; most > 0 {
		n = min(n, most)
	}
	return n
}

// advance gives the running sequences their tokens of the next step, in running order: one to
// each that decodes, and to the others as much of what they want as the budget leaves. It
// reports how much is left of the budget, and whether someone got less than it wanted.
func (b *batch) advance(d *Decision) (left int, starved bool) {
	if b.uncontended() {
		left, starved = b.glide(d)
	} else {
		left, starved = b.walk(d)
	}
	for _, h := range b.partials {
		if b.seqs[h].scheduled > 0 {
			b.compute(h, d)
		}
	}
	return left, starved
}

// uncontended reports whether the walk would give every decode its token and find a block for
// everyone who needs one, so that only the partials must be visited.
func (b *batch) uncontended() bool {
	left := b.limits.MaxNumBatchedTokens - b.decodes
	if left < 0 {
		return false
	}
	need := b.crossings()
	for _, h := range b.partials {
		s := &b.seqs[h]
		wants := b.wants(s)
		need += b.pool.Lacks(&s.lease, int(s.computed)+min(wants, max(left, 0)))
		if left >= 0 && wants > left && s.order < b.lastDecode {
			return false // a decode may stand behind the one whose chunk is cut
		}
		left -= wants
	}
	return need <= b.pool.Free()
}

// glide decides an uncontended step.
func (b *batch) glide(d *Decision) (left int, starved bool) {
	b.pool.GrowEach(b.crossings())
	left = b.limits.MaxNumBatchedTokens - b.decodes
	for _, h := range b.partials {
		s := &b.seqs[h]
		wants := b.wants(s)
		n := min(wants, left)
		starved = starved || n < wants
		if n == 0 {
			continue
		}
		b.pool.Grow(&s.lease, int(s.computed)+n)
		b.assign(h, n)
		left -= n
	}
	d.Shape = b.decodeShape()
	return left, starved
}

// walk decides a step by visiting every running sequence in order.
func (b *batch) walk(d *Decision) (left int, starved bool) {
	left = b.limits.MaxNumBatchedTokens
	b.lastDecode = -1
	b.visit++
	visited := b.spare[:0]
	stopped := false
	missed := 0 // sequences that are passed over
	for h := b.running.head; h != none; {
		s := &b.seqs[h]
		pass := missed > 0
		if pass {
			missed--
		}
		if s.state == leaving {
			h = s.next
			continue
		}
		if left == 0 || stopped || pass {
			starved = true
			if s.state == decoding {
				b.part(h, b.step)
				if b.inFlight > 0 {
					last := &b.flight[b.inFlight-1]
					last.stalled = append(last.stalled, h)
				} else {
					d.Stalled = append(d.Stalled, h)
				}
			}
			visited = append(visited, h)
			h = s.next
			continue
		}
		computed, wants := b.computed(s), 1
		if s.state == decoding {
			b.pool.Settle(&s.lease, computed)
		} else {
			wants = b.wants(s)
		}
		n := min(wants, left)
		starved = starved || n < wants
		next, slips, ok := b.grow(h, computed+n, d, &left)
		missed = slips
		if !ok {
			// It was preempted itself: nobody behind it gets anything.
			stopped = true
			h = next
			continue
		}
		left -= n
		s.visit = b.visit
		if s.state == decoding {
			b.lastDecode = s.order
		} else {
			b.assign(h, n)
			visited = append(visited, h)
		}
		h = next
	}
	b.spare = b.partials
	b.partials = visited[:0]
	for _, h := range visited {
		if b.seqs[h].state == partial {
			b.partials = append(b.partials, h)
		}
	}
	// Those that still decode all got their token.
	d.Shape = b.decodeShape()
	return left, starved
}

// grow finds blocks for a sequence by preempting others; not ok when that took the sequence
// itself. It returns who stands behind it, and how many of those miss the step.
func (b *batch) grow(h Handle, tokens int, d *Decision, left *int) (next Handle, slips int, ok bool) {
	for !b.pool.Grow(&b.seqs[h].lease, tokens) {
		v := b.victim(b)
		next = b.seqs[h].next
		given := b.preempt(v)
		*left += given
		d.Preempted = append(d.Preempted, v)
		if v == h {
			return next, 0, false
		}
		if b.cursorSlips && given == 0 && b.seqs[v].order < b.seqs[h].order {
			slips++
		}
	}
	return b.seqs[h].next, slips, true
}

// preempt takes a running sequence out with all it has computed. It returns how many tokens it
// had been given in the step that is being decided.
func (b *batch) preempt(v Handle) (given int) {
	s := &b.seqs[v]
	scheduled := s.visit == b.visit
	emits := b.emits(s)
	if s.state == decoding {
		b.part(v, b.step)
		if scheduled {
			b.scheduledOne(s)
		}
	}
	if scheduled {
		given = int(s.scheduled)
	} else {
		s.scheduled = 0
	}
	b.leave(v, b.known(s, emits), s.state != leaving || b.dropStale)
	if emits {
		b.interrupt(v, &b.flight[b.inFlight-1])
	}
	s.state, s.computed, s.scheduled, s.visit = waiting, 0, 0, 0
	return given
}

// interrupt settles what becomes of the token that a sequence has in flight when it is preempted.
func (b *batch) interrupt(h Handle, last *settled) {
	if !b.dropStale {
		last.preempted = append(last.preempted, h)
		return
	}
	if i := slices.Index(last.ended, h); i >= 0 {
		last.ended = slices.Delete(last.ended, i, i+1)
	}
	if i := slices.Index(last.firsts, h); i >= 0 {
		last.firsts = slices.Delete(last.firsts, i, i+1)
	} else if i := slices.Index(last.resumed, h); i >= 0 {
		last.resumed = slices.Delete(last.resumed, i, i+1)
	} else {
		last.steady--
	}
	b.seqs[h].generated--
}

// lastAdmitted is who came last into the batch.
func lastAdmitted(b *batch) Handle { return b.running.tail }

// start clears what the last step left in a decision.
func (d *Decision) start() {
	d.Shape = cost.Shape{}
	d.Started, d.Stalled, d.Preempted = d.Started[:0], d.Stalled[:0], d.Preempted[:0]
}

// steady reports whether the next step changes nothing among the running but contexts.
func (b *batch) steady() bool {
	return len(b.partials) == 0 && b.decodes > 0 &&
		b.decodes <= b.limits.MaxNumBatchedTokens &&
		b.crossings() <= b.pool.Free() &&
		b.finishes.empty(b.step)
}
