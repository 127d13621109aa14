package vllmv1

// A pool is all blocks of the cache and the order in which the free ones are lent again.
//
// Invariants: a block is in the free list exactly when ref is 0, except block 0, the null block,
// which is never lent and serves as the anchor of the list. A block has a key exactly when the
// cache finds it under that key, so a free block may still be hit until it is lent again.
type pool struct {
	blocks        []block
	free          int
	unhashedFirst bool
	cached        map[key]twins
}

type block struct {
	ref          int
	key          key // 0 for none
	prev, next   int // in the free list
	older, newer int // twins: blocks of the same key by age; 0 for none
}

// Twins are the blocks of one key: two requests may compute the same prefix at once, and neither
// gives its copy up.
type twins struct{ oldest, newest int }

func newPool(blocks int, unhashedFirst bool) *pool {
	p := &pool{blocks: make([]block, blocks), unhashedFirst: unhashedFirst, cached: map[key]twins{}}
	for id := 1; id < blocks; id++ {
		p.link(id, p.blocks[0].prev)
	}
	return p
}

// usable is the number of blocks that can be lent.
func (p *pool) usable() int { return len(p.blocks) - 1 }

// link puts a block into the free list behind another; behind 0 is the front.
func (p *pool) link(id, after int) {
	before := p.blocks[after].next
	p.blocks[id].prev, p.blocks[id].next = after, before
	p.blocks[after].next, p.blocks[before].prev = id, id
	p.free++
}

func (p *pool) unlink(id int) {
	b := &p.blocks[id]
	p.blocks[b.prev].next, p.blocks[b.next].prev = b.next, b.prev
	b.prev, b.next = 0, 0
	p.free--
}

// take lends the first free block, of which there must be one. What it held is evicted.
func (p *pool) take() int {
	id := p.blocks[0].next
	p.unlink(id)
	p.evict(id)
	p.blocks[id].ref = 1
	return id
}

// share lends a cached block to one more.
func (p *pool) share(id int) {
	if p.blocks[id].ref == 0 {
		p.unlink(id)
	}
	p.blocks[id].ref++
}

// release takes back a table, its tail first: so a prefix outlives what follows it. Of the blocks
// that nobody else uses those with a key go to the end of the free list; those without are of no
// use to anyone and come first again, unless the rules say that they queue as well.
func (p *pool) release(table []int) {
	front := 0
	for i := len(table) - 1; i >= 0; i-- {
		id := table[i]
		p.blocks[id].ref--
		switch {
		case p.blocks[id].ref > 0:
		case p.blocks[id].key == 0 && p.unhashedFirst:
			p.link(id, front)
			front = id
		default:
			p.link(id, p.blocks[0].prev)
		}
	}
}

// find returns the oldest block of a key.
func (p *pool) find(k key) (int, bool) {
	t, ok := p.cached[k]
	return t.oldest, ok
}

// register lets a block be found. A block that has a key keeps it.
func (p *pool) register(id int, k key) {
	b := &p.blocks[id]
	if b.key != 0 {
		return
	}
	b.key = k
	t, ok := p.cached[k]
	if !ok {
		p.cached[k] = twins{id, id}
		return
	}
	b.older = t.newest
	p.blocks[t.newest].newer = id
	t.newest = id
	p.cached[k] = t
}

func (p *pool) evict(id int) {
	b := &p.blocks[id]
	if b.key == 0 {
		return
	}
	t := p.cached[b.key]
	if t.oldest == id {
		t.oldest = b.newer
	} else {
		p.blocks[b.older].newer = b.newer
	}
	if t.newest == id {
		t.newest = b.older
	} else {
		p.blocks[b.newer].older = b.older
	}
	if t.oldest == 0 {
		delete(p.cached, b.key)
	} else {
		p.cached[b.key] = t
	}
	b.key, b.older, b.newer = 0, 0, 0
}
