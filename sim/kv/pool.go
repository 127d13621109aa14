// Package kv lends out the blocks of a paged cache.
//
// It knows blocks and leases. It knows nothing of requests, of steps, or of time.
package kv

// A Pool counts the blocks of one cache. Used and free blocks always add up to the total: blocks
// come and go only through a Lease, or many leases at once through GrowEach.
type Pool struct {
	blockSize   int
	total, free int
}

// NewPool returns a pool of free blocks that hold blockSize tokens each; both are positive.
func NewPool(blocks, blockSize int) *Pool {
	return &Pool{blockSize: blockSize, total: blocks, free: blocks}
}

// A Lease is what one owner holds. The zero value holds nothing.
type Lease struct{ blocks int32 }

// Blocks is how many the owner holds.
func (l Lease) Blocks() int { return int(l.blocks) }

func (p *Pool) BlockSize() int { return p.blockSize } // tokens
func (p *Pool) Total() int     { return p.total }     // blocks
func (p *Pool) Free() int      { return p.free }      // blocks
func (p *Pool) Used() int      { return p.total - p.free }

// Need is the number of blocks that hold that many tokens.
func (p *Pool) Need(tokens int) int {
	return int((uint32(tokens) + uint32(p.blockSize) - 1) / uint32(p.blockSize))
}

// Lacks is how many blocks the lease must gain to hold that many tokens.
func (p *Pool) Lacks(l Lease, tokens int) int {
	return max(p.Need(tokens)-int(l.blocks), 0)
}

// Grow makes the lease hold that many tokens. When too few blocks are free it changes nothing
// and reports false.
func (p *Pool) Grow(l *Lease, tokens int) bool {
	n := p.Lacks(*l, tokens)
	if n > p.free {
		return false
	}
	p.free -= n
	l.blocks += int32(n)
	return true
}

// GrowEach gives one block to each of n leases at once, and leaves it to their owners to Settle
// them before they are next used. When too few are free it changes nothing and reports false.
func (p *Pool) GrowEach(n int) bool {
	if n > p.free {
		return false
	}
	p.free -= n
	return true
}

// Settle writes into a lease what GrowEach gave it: it now holds exactly that many tokens.
func (p *Pool) Settle(l *Lease, tokens int) { l.blocks = int32(p.Need(tokens)) }

// Release takes back all that the lease holds.
func (p *Pool) Release(l *Lease) {
	p.free += int(l.blocks)
	l.blocks = 0
}
