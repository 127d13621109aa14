package kv

// An item of the free list is one of three kinds: blocks that nobody can find again, a run of
// one owner's blocks, or a block with a key. Blocks with a key have an item while they are held,
// too.
type item struct {
	next, prev int32
	kind       kind
	count      int32 // blocks; those of a run are low to low+count-1 of its owner, the last in front
	low        int32
	sibling    int32 // the owner's next younger run, or the next younger block of the same key
	elder      int32 // the next older block of the same key
	key        int32
	holders    int32
}

type kind uint8

const (
	anonymous kind = iota
	run
	keyed
)

const end = 0 // the item that stands before the first and behind the last

func (p *Pool) newItem(it item) int32 {
	if n := len(p.spare); n > 0 {
		i := p.spare[n-1]
		p.spare = p.spare[:n-1]
		p.items[i] = it
		return i
	}
	p.items = append(p.items, it)
	return int32(len(p.items) - 1)
}

func (p *Pool) dropItem(i int32) { p.spare = append(p.spare, i) }

// insert links an item behind another.
func (p *Pool) insert(i, behind int32) {
	next := p.items[behind].next
	p.items[i].prev, p.items[i].next = behind, next
	p.items[behind].next = i
	p.items[next].prev = i
}

func (p *Pool) unlink(i int32) {
	prev, next := p.items[i].prev, p.items[i].next
	p.items[prev].next = next
	p.items[next].prev = prev
}

// putFront frees n blocks that are to be taken first.
func (p *Pool) putFront(n int) {
	if n == 0 {
		return
	}
	p.free += n
	if first := p.items[end].next; first != end && p.items[first].kind == anonymous {
		p.items[first].count += int32(n)
		return
	}
	p.insert(p.newItem(item{kind: anonymous, count: int32(n)}), end)
}

// putBack frees n blocks that nobody will find again, to be taken last.
func (p *Pool) putBack(n int) {
	if n == 0 {
		return
	}
	p.free += n
	last := p.items[end].prev
	if last != end && p.items[last].kind == anonymous {
		p.items[last].count += int32(n)
		return
	}
	p.insert(p.newItem(item{kind: anonymous, count: int32(n)}), last)
}

// putRun frees n blocks of an owner from its block low on.
func (p *Pool) putRun(l *Lease, low, n int) {
	p.free += n
	i := p.newItem(item{kind: run, low: int32(low), count: int32(n)})
	p.insert(i, p.items[end].prev)
	at := &l.runs
	for *at != end {
		at = &p.items[*at].sibling
	}
	*at = i
}

// take removes n free blocks from the front; what they held can't be found again.
func (p *Pool) take(n int) {
	p.free -= n
	for n > 0 {
		i := p.items[end].next
		it := &p.items[i]
		switch {
		case int(it.count) > n:
			it.count -= int32(n)
			return
		case it.kind == run:
			n -= int(it.count)
			it.count = 0
			p.unlink(i) // its owner drops it
		case it.kind == keyed:
			n--
			p.unlink(i)
			p.unkey(i)
			p.dropItem(i)
		default:
			n -= int(it.count)
			p.unlink(i)
			p.dropItem(i)
		}
	}
}

// forget makes the runs of a lease blocks that nobody finds again.
func (p *Pool) forget(l *Lease) {
	for i := l.runs; i != end; {
		it := &p.items[i]
		next := it.sibling
		if it.count == 0 {
			p.dropItem(i)
		} else {
			it.kind, it.sibling = anonymous, 0
		}
		i = next
	}
	l.runs = end
}
