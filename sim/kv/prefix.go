package kv

// A Prefix names the leading blocks of a prompt that others may share: two prompts share a block
// exactly when its key is the same.
type Prefix struct {
	keys []int32
	held []int32 // items of the blocks that its lease holds, from the first on
}

// Blocks is how many have a key.
func (x *Prefix) Blocks() int { return len(x.keys) }

// A link is one more piece of prompt behind those that a chain stands for.
type link struct {
	before int32
	piece  uint64
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
	// A piece has keys for every block that can end in it.
	stride := int32((pieceTokens + p.blockSize - 1) / p.blockSize)
	x := &Prefix{keys: make([]int32, 0, blocks)}
	chain := int32(-1)
	for i, piece := range pieces {
		from := p.Full(i * pieceTokens)
		to := min(p.Full((i+1)*pieceTokens), blocks)
		next, known := p.chains[link{chain, piece}]
		if !known {
			next = int32(len(p.chains))
			p.chains[link{chain, piece}] = next
			p.oldest = append(p.oldest, make([]int32, stride)...)
		}
		chain = next
		for b := from; b < to; b++ {
			x.keys = append(x.keys, chain*stride+int32(b-from))
		}
		if to == blocks {
			break
		}
	}
	l.prefix = x
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
		x.held = append(x.held, i)
		at := &p.oldest[key]
		for *at != end {
			at = &p.items[*at].sibling
		}
		*at = i
	}
}

// unkey makes a block unfindable.
func (p *Pool) unkey(i int32) {
	at := &p.oldest[p.items[i].key]
	for *at != i {
		at = &p.items[*at].sibling
	}
	*at = p.items[i].sibling
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
