package kv

import "slices"

// A Prefix names the leading blocks of a lease that others may share: two share a block exactly
// when its key is the same.
type Prefix struct {
	keys []int32
	last int32   // the longest chain
	held []int32 // items of the blocks that its lease holds, from the first on
}

// Blocks is how many have a key.
func (x *Prefix) Blocks() int { return len(x.keys) }

// A link is one more piece of prompt behind those that a chain stands for. The first one stands
// behind minus the number of tokens of the pieces.
type link struct {
	before int32
	piece  uint64
}

// A chain stands for a sequence of pieces, as long as someone has use for it: a lease, a block
// that can be found, or a longer chain.
type chain struct {
	link
	refs  int32
	first int32 // of its keys: one for each block that can end in its last piece
	keys  int32
}

// Share names the blocks of a lease that holds nothing yet: pieces name the leading pieces, of
// pieceTokens each, of the tokens it will ever hold, of which the last may be cut short by their
// end. Blocks that lie wholly within them get keys, after all that stands before and within them.
func (p *Pool) Share(l *Lease, pieces []uint64, pieceTokens, tokens int) {
	if !p.caching || len(pieces) == 0 {
		return
	}
	blocks := p.Full(min(len(pieces)*pieceTokens, tokens))
	if blocks == 0 {
		return
	}
	x := p.newPrefix(blocks)
	at := -int32(pieceTokens)
	for i, piece := range pieces {
		from := p.Full(i * pieceTokens)
		to := min(p.Full((i+1)*pieceTokens), blocks)
		at = p.extend(link{at, piece}, pieceTokens)
		for b := from; b < to; b++ {
			x.keys = append(x.keys, p.chains[at].first+int32(b-from))
		}
		if to == blocks {
			break
		}
	}
	x.last = at
	p.chains[at].refs++
	l.prefix = x
}

// newPrefix returns an empty prefix with room for so many blocks, one that was given up if there is.
func (p *Pool) newPrefix(blocks int) *Prefix {
	if n := len(p.sparePrefixes); n > 0 {
		x := p.sparePrefixes[n-1]
		p.sparePrefixes = p.sparePrefixes[:n-1]
		x.keys, x.held = slices.Grow(x.keys[:0], blocks), slices.Grow(x.held[:0], blocks)
		return x
	}
	return &Prefix{keys: make([]int32, 0, blocks), held: make([]int32, 0, blocks)}
}

// drop gives up the names of a lease that holds nothing.
func (p *Pool) drop(l *Lease) {
	if l.prefix != nil {
		p.unref(l.prefix.last)
		p.sparePrefixes = append(p.sparePrefixes, l.prefix)
		l.prefix = nil
	}
}

// extend returns the chain that ends with a link.
func (p *Pool) extend(l link, pieceTokens int) int32 {
	if c, ok := p.known[l]; ok {
		return c
	}
	keys := int32((pieceTokens + p.blockSize - 1) / p.blockSize)
	new := chain{link: l, keys: keys, first: int32(len(p.oldest))}
	if spare := p.spareKeys[keys]; len(spare) > 0 {
		new.first = spare[len(spare)-1]
		p.spareKeys[keys] = spare[:len(spare)-1]
	} else {
		p.oldest = append(p.oldest, make([]int32, keys)...)
		p.youngest = append(p.youngest, make([]int32, keys)...)
		p.chainOf = append(p.chainOf, make([]int32, keys)...)
	}
	c := int32(len(p.chains))
	if n := len(p.spareChains); n > 0 {
		c = p.spareChains[n-1]
		p.spareChains = p.spareChains[:n-1]
		p.chains[c] = new
	} else {
		p.chains = append(p.chains, new)
	}
	p.known[l] = c
	for i := range keys {
		p.chainOf[new.first+i] = c
	}
	if l.before >= 0 {
		p.chains[l.before].refs++
	}
	return c
}

// unref gives up a use of a chain. Without any left it is forgotten, and so are those before it
// that were kept only for it.
func (p *Pool) unref(c int32) {
	for c >= 0 {
		x := &p.chains[c]
		if x.refs--; x.refs > 0 {
			return
		}
		delete(p.known, x.link)
		p.spareKeys[x.keys] = append(p.spareKeys[x.keys], x.first)
		p.spareChains = append(p.spareChains, c)
		c = x.before
	}
}

// A Hit is the longest prefix of a lease's blocks that the pool still has.
type Hit struct {
	Blocks int
	Idle   int // of them, held by nobody: finding them makes them used
}

// Match looks the blocks of a lease that holds nothing up, at most limit of them. It changes
// nothing.
func (p *Pool) Match(l *Lease, limit int) Hit {
	var h Hit
	if !p.caching {
		return h
	}
	if x := l.prefix; x != nil {
		for h.Blocks < min(len(x.keys), limit) {
			i := p.oldest[x.keys[h.Blocks]]
			if i == end {
				return h
			}
			if p.items[i].holders == 0 {
				h.Idle++
			}
			h.Blocks++
		}
	}
	for h.Blocks < limit {
		n := p.inRun(l, h.Blocks)
		if n == 0 {
			return h
		}
		n = min(n, limit-h.Blocks)
		h.Blocks += n
		h.Idle += n
	}
	return h
}

// inRun is how many of the owner's blocks from one on are in its oldest run that has that one.
func (p *Pool) inRun(l *Lease, block int) int {
	i := p.runOf(l, block)
	if i == end {
		return 0
	}
	return int(p.items[i].low+p.items[i].count) - block
}

func (p *Pool) runOf(l *Lease, block int) int32 {
	for i := l.runs; i != end; i = p.items[i].sibling {
		if it := &p.items[i]; int(it.low) <= block && block < int(it.low+it.count) {
			return i
		}
	}
	return end
}

// Claim makes the lease hold the blocks of its Hit, which is as Match has just returned it.
func (p *Pool) Claim(l *Lease, h Hit) {
	block := 0
	if x := l.prefix; x != nil {
		for ; block < min(len(x.keys), h.Blocks); block++ {
			i := p.oldest[x.keys[block]]
			it := &p.items[i]
			if it.holders == 0 {
				p.unlink(i)
				p.free--
			}
			it.holders++
			x.held = append(x.held, i)
		}
	}
	for block < h.Blocks {
		i := p.runOf(l, block)
		n := min(int(p.items[i].low+p.items[i].count), h.Blocks) - block
		p.cut(l, i, block, n)
		block += n
	}
	l.blocks = int32(h.Blocks)
	p.tidy(l)
}

// cut takes n blocks from one on out of a run. What stands before them in the owner's order is
// behind them in the list.
func (p *Pool) cut(l *Lease, i int32, block, n int) {
	it := &p.items[i]
	before := block - int(it.low)
	after := int(it.count) - before - n
	p.free -= n
	switch {
	case before == 0 && after == 0:
		it.count = 0
		p.unlink(i)
	case before == 0:
		it.low, it.count = int32(block+n), int32(after)
	default:
		it.count = int32(before)
		if after > 0 {
			next := p.newItem(item{kind: run, low: int32(block + n), count: int32(after), sibling: p.items[i].sibling})
			p.insert(next, p.items[i].prev)
			p.items[i].sibling = next
		}
	}
}

// tidy drops the empty runs of a lease.
func (p *Pool) tidy(l *Lease) {
	at := &l.runs
	for *at != end {
		i := *at
		if it := &p.items[i]; it.count == 0 {
			*at = it.sibling
			p.dropItem(i)
		} else {
			at = &it.sibling
		}
	}
}

// Register makes the blocks with a key among the first full ones of a lease findable.
func (p *Pool) Register(l *Lease, full int) {
	x := l.prefix
	if x == nil {
		return
	}
	for b := len(x.held); b < min(len(x.keys), full); b++ {
		key := x.keys[b]
		i := p.newItem(item{kind: keyed, count: 1, key: key, holders: 1})
		p.chains[p.chainOf[key]].refs++
		x.held = append(x.held, i)
		if elder := p.youngest[key]; elder != end {
			p.items[elder].sibling, p.items[i].elder = i, elder
		} else {
			p.oldest[key] = i
		}
		p.youngest[key] = i
	}
}

// unkey makes a block unfindable.
func (p *Pool) unkey(i int32) {
	it := &p.items[i]
	if it.elder != end {
		p.items[it.elder].sibling = it.sibling
	} else {
		p.oldest[it.key] = it.sibling
	}
	if it.sibling != end {
		p.items[it.sibling].elder = it.elder
	} else {
		p.youngest[it.key] = it.elder
	}
	p.unref(p.chainOf[it.key])
}

// putKeyed releases the blocks with a key of a lease, the last first.
func (p *Pool) putKeyed(x *Prefix) {
	for b := len(x.held) - 1; b >= 0; b-- {
		i := x.held[b]
		it := &p.items[i]
		if it.holders--; it.holders == 0 {
			p.free++
			p.insert(i, p.items[end].prev)
		}
	}
	x.held = x.held[:0]
}
