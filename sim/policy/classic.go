package policy

import (
	"llmsim/sim/cost"
	"llmsim/sim/kv"
)

// Limits bound every step of a policy, under vLLM's names.
type Limits struct {
	MaxNumSeqs          int // sequences that run
	MaxNumBatchedTokens int // tokens computed in a step
}

// Classic admits in strict order of arrival as long as a whole prompt fits and a share of the
// cache stays free, gives every running sequence one token or its next chunk in order of
// admission, and preempts the last admitted one when a block is lacking.
type Classic struct {
	batch
	limits    Limits
	watermark int // blocks to be left free by an admission
	queue     list
	reason    Blocked // what the last step had to refuse
}

// NewClassic returns the policy over a pool of its own. watermark is the share of the pool that
// an admission must leave free, unless nothing runs.
func NewClassic(pool *kv.Pool, limits Limits, watermark float64) *Classic {
	return &Classic{
		batch:     newBatch(pool),
		limits:    limits,
		watermark: int(watermark * float64(pool.Total())),
		queue:     newList(),
	}
}

func (c *Classic) Add(prompt, output int) Handle {
	h := c.take()
	c.seqs[h] = sequence{prompt: int32(prompt), output: int32(output), state: waiting}
	c.queue.pushBack(c.seqs, h)
	return h
}

func (c *Classic) Abort(h Handle) {
	if c.seqs[h].state == waiting {
		c.queue.remove(c.seqs, h)
		c.give(h)
		return
	}
	c.abort(h)
}

// blocked tells why the head of the queue can't be admitted; Unblocked when it can, or when
// there is none.
func (c *Classic) blocked() Blocked {
	if c.queue.len == 0 {
		return Unblocked
	}
	if c.running.len >= c.limits.MaxNumSeqs {
		return BySlots
	}
	keep := c.watermark
	if c.running.len == 0 {
		keep = 0
	}
	if c.pool.Free()-c.pool.Need(c.seqs[c.queue.head].target()) < keep {
		return ByKV
	}
	return Unblocked
}

func (c *Classic) Schedule(d *Decision) bool {
	d.Started, d.Stalled, d.Preempted = d.Started[:0], d.Stalled[:0], d.Preempted[:0]
	for c.reason = c.blocked(); c.reason == Unblocked && c.queue.len > 0; c.reason = c.blocked() {
		h := c.queue.head
		c.queue.remove(c.seqs, h)
		c.admit(h)
		c.pool.Grow(&c.seqs[h].lease, c.seqs[h].target())
	}
	if c.running.len == 0 {
		return false
	}
	c.underway = true
	starved := false
	if c.uncontended() {
		starved = c.glide(d)
	} else {
		starved = c.walk(d)
	}
	switch {
	case len(d.Preempted) > 0:
		c.reason = ByKV
	case starved && c.reason == Unblocked:
		c.reason = ByBudget
	}
	return true
}

// uncontended reports whether the walk would give every decode its token and find a block for
// everyone who needs one, so that only the partials must be visited.
func (c *Classic) uncontended() bool {
	left := c.limits.MaxNumBatchedTokens - c.decodes
	if left < 0 {
		return false
	}
	need := c.crossings()
	for _, h := range c.partials {
		s := &c.seqs[h]
		lacks := s.target() - int(s.computed)
		need += c.pool.Lacks(&s.lease, int(s.computed)+min(lacks, max(left, 0)))
		if left >= 0 && lacks > left && s.order < c.lastDecode {
			return false // a decode may stand behind the one whose chunk is cut
		}
		left -= lacks
	}
	return need <= c.pool.Free()
}

// glide decides an uncontended step. It reports whether someone got fewer tokens than it lacks.
func (c *Classic) glide(d *Decision) (starved bool) {
	c.pool.GrowEach(c.crossings())
	d.Shape = c.decodeShape()
	left := c.limits.MaxNumBatchedTokens - c.decodes
	for _, h := range c.partials {
		s := &c.seqs[h]
		lacks := s.target() - int(s.computed)
		n := min(lacks, left)
		if n < lacks {
			starved = true
		}
		if n == 0 {
			continue
		}
		c.pool.Grow(&s.lease, int(s.computed)+n)
		c.compute(h, n, d)
		left -= n
	}
	return starved
}

// walk decides a step by visiting every running sequence in order. It reports whether someone
// got fewer tokens than it lacks.
func (c *Classic) walk(d *Decision) (starved bool) {
	left := c.limits.MaxNumBatchedTokens
	c.lastDecode = -1
	visited := c.spare[:0]
	d.Shape = cost.Shape{}
	for h := c.running.head; h != none; h = c.seqs[h].next {
		s := &c.seqs[h]
		if left == 0 {
			starved = true
			if s.state == decoding {
				c.part(h, c.step)
				d.Stalled = append(d.Stalled, h)
			}
			visited = append(visited, h)
			continue
		}
		computed := c.computed(s)
		lacks := 1
		if s.state == partial {
			lacks = s.target() - computed
		}
		n := min(lacks, left)
		if n < lacks {
			starved = true
		}
		if s.state == decoding {
			c.pool.Settle(&s.lease, computed)
		}
		if !c.grow(h, computed+n, d) {
			break // it was the last of the running itself
		}
		left -= n
		if s.state == decoding {
			c.lastDecode = s.order
			continue
		}
		visited = append(visited, h)
		c.compute(h, n, d)
	}
	c.spare, c.partials = c.partials, visited
	// Those that still decode all got their token.
	s := c.decodeShape()
	d.Shape.Sequences += s.Sequences
	d.Shape.Tokens += s.Tokens
	d.Shape.Sampled += s.Sampled
	d.Shape.Context += s.Context
	d.Shape.Decodes += s.Decodes
	d.Shape.DecodeContext += s.DecodeContext
	return starved
}

// grow finds blocks for a sequence, preempting from the end of the running; false when that
// took the sequence itself.
func (c *Classic) grow(h Handle, tokens int, d *Decision) bool {
	for !c.pool.Grow(&c.seqs[h].lease, tokens) {
		victim := c.running.tail
		c.preempt(victim)
		d.Preempted = append(d.Preempted, victim)
		if victim == h {
			return false
		}
	}
	return true
}

// preempt sends a running sequence to the front of the queue, with nothing computed.
func (c *Classic) preempt(h Handle) {
	s := &c.seqs[h]
	if s.state == decoding {
		c.part(h, c.step)
	}
	c.leave(h)
	s.state, s.computed = waiting, 0
	c.queue.pushFront(c.seqs, h)
}

func (c *Classic) Commit(o *Outcome) { c.commit(o) }

func (c *Classic) Quiet() (cost.Shape, bool) {
	quiet := len(c.partials) == 0 && c.decodes > 0 &&
		c.decodes <= c.limits.MaxNumBatchedTokens &&
		c.crossings() <= c.pool.Free() &&
		c.finishes.empty(c.step) &&
		(c.queue.len == 0 || c.blocked() != Unblocked)
	if !quiet {
		return cost.Shape{}, false
	}
	c.reason = c.blocked()
	return c.decodeShape(), true
}

func (c *Classic) Coast() { c.coast() }

func (c *Classic) Load() Load {
	return Load{
		Running: c.running.len, Waiting: c.queue.len,
		Free: c.pool.Free(), Used: c.pool.Used(),
		Blocked: c.reason,
	}
}
