package policy

import (
	"llmsim/sim/cost"
	"llmsim/sim/kv"
)

// Classic admits in strict order of arrival as long as a whole prompt fits and a share of the
// cache stays free, gives every running sequence one token or its next chunk in order of
// admission, and preempts the last admitted one when a block is lacking.
type Classic struct {
	inLine
	watermark int // blocks to be left free by an admission
}

// NewClassic returns the policy over a pool of its own, that does not cache. watermark is the
// share of the pool that an admission must leave free, unless nothing runs.
func NewClassic(pool *kv.Pool, limits Limits, watermark float64) *Classic {
	return &Classic{
		inLine:    newInLine(pool, limits),
		watermark: int(watermark * float64(pool.Total())),
	}
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
	d.start()
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
	_, starved := c.advance(d)
	for _, h := range d.Preempted {
		c.queue.pushFront(c.seqs, h)
	}
	switch {
	case len(d.Preempted) > 0:
		c.reason = ByKV
	case starved && c.reason == Unblocked:
		c.reason = ByBudget
	}
	return true
}

func (c *Classic) Quiet() (cost.Shape, bool) {
	if !c.steady() {
		return cost.Shape{}, false
	}
	if c.reason = c.blocked(); c.reason == Unblocked && c.queue.len > 0 {
		return cost.Shape{}, false
	}
	return c.decodeShape(), true
}
