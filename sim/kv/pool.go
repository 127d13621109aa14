// Package kv lends out the blocks of a paged cache and remembers prefixes.
//
// It knows blocks and leases. It knows nothing of requests' contents, of steps, or of time.
package kv

// A Pool counts the blocks of one cache. Used and free blocks always add up to the total: blocks
// come and go only through a Lease, or many leases at once through GrowEach.
//
// Free blocks stand in a list, from whose front they are taken. A pool that caches keeps the
// full blocks of a released lease at the end of that list, where they can be found again until
// they are taken for something else.
type Pool struct {
	blockSize   int
	total, free int
	caching     bool
	emptyLast   bool   // blocks that are not full go to the end of the list, too
	items       []item // of the free list, and held blocks that have a key; the first is the list's end
	spare       []int32
	chains      []chain
	spareChains []int32
	known       map[link]int32
	oldest      []int32 // by key: the block that got it first, of those that are left; else 0
	youngest    []int32 // and the one that got it last
	chainOf     []int32 // by key: the chain that it belongs to

	sparePrefixes []*Prefix
	spareKeys     map[int32][]int32 // by their number: ranges of keys that are free again
}

// NewPool returns a pool of free blocks that hold blockSize tokens each; both are positive.
func NewPool(blocks, blockSize int) *Pool {
	p := &Pool{blockSize: blockSize, total: blocks, items: make([]item, 1, 16)}
	p.putFront(blocks)
	return p
}

// NewCachingPool returns a pool that remembers prefixes. With unhashedFirst, released blocks that
// are not full, of which nothing can be found again, are the first to be taken; otherwise they
// wait their turn like the others.
func NewCachingPool(blocks, blockSize int, unhashedFirst bool) *Pool {
	p := NewPool(blocks, blockSize)
	p.caching, p.emptyLast = true, !unhashedFirst
	p.known, p.spareKeys = map[link]int32{}, map[int32][]int32{}
	return p
}

// A Lease is what one owner holds. The zero value holds nothing.
type Lease struct {
	blocks int32
	runs   int32   // released blocks that the owner may find again, oldest first
	prefix *Prefix // nil: it shares none of its blocks
}

// Blocks is how many the owner holds.
func (l *Lease) Blocks() int { return int(l.blocks) }

func (p *Pool) BlockSize() int { return p.blockSize } // tokens
func (p *Pool) Total() int     { return p.total }     // blocks
func (p *Pool) Free() int      { return p.free }      // blocks
func (p *Pool) Used() int      { return p.total - p.free }
func (p *Pool) Caching() bool  { return p.caching }

// Need is the number of blocks that hold that many tokens.
func (p *Pool) Need(tokens int) int {
	return int((uint32(tokens) + uint32(p.blockSize) - 1) / uint32(p.blockSize))
}

// Full is the number of blocks that so many tokens fill.
func (p *Pool) Full(tokens int) int { return int(uint32(tokens) / uint32(p.blockSize)) }

// Lacks is how many blocks the lease must gain to hold that many tokens.
func (p *Pool) Lacks(l *Lease, tokens int) int {
	return max(p.Need(tokens)-int(l.blocks), 0)
}

// Grow makes the lease hold that many tokens. When too few blocks are free it changes nothing
// and reports false.
func (p *Pool) Grow(l *Lease, tokens int) bool {
	n := p.Lacks(l, tokens)
	if n > p.free {
		return false
	}
	p.take(n)
	l.blocks += int32(n)
	return true
}

// GrowEach gives one block to each of n leases at once, and leaves it to their owners to Settle
// them before they are next used. When too few are free it changes nothing and reports false.
func (p *Pool) GrowEach(n int) bool {
	if n > p.free {
		return false
	}
	p.take(n)
	return true
}

// Settle writes into a lease what GrowEach gave it: it now holds exactly that many tokens.
func (p *Pool) Settle(l *Lease, tokens int) { l.blocks = int32(p.Need(tokens)) }

// Release takes back all that the lease holds, of which the first full blocks are full. The
// others go to the front of the free list, the full ones of a caching pool to its end, last
// block first, so that what is found again is the longest prefix left. An owner that will come
// back for them says so; of others only blocks with a key are found again.
func (p *Pool) Release(l *Lease, full int, comesBack bool) {
	if !p.caching {
		p.putFront(int(l.blocks))
		l.blocks = 0
		return
	}
	full = min(full, int(l.blocks))
	if empty := int(l.blocks) - full; p.emptyLast {
		p.putBack(empty)
	} else {
		p.putFront(empty)
	}
	keyed := 0
	if l.prefix != nil {
		keyed = len(l.prefix.held)
	}
	if own := full - keyed; own > 0 {
		if comesBack {
			p.putRun(l, keyed, own)
		} else {
			p.putBack(own)
		}
	}
	if keyed > 0 {
		p.putKeyed(l.prefix)
	}
	l.blocks = 0
	if !comesBack {
		p.forget(l)
		p.drop(l)
	}
}
