package vllmv1

// A cache lends blocks to requests and finds what it still holds of their prefixes.
type cache struct {
	*pool
	keys *keys // nil without prefix caching

	blockSize   int
	maxModelLen int
	watermark   int // blocks
	reserve     bool
}

func newCache(c Config, rules Rules) *cache {
	m := &cache{
		pool:        newPool(c.NumGPUBlocks, rules.UnhashedFirst),
		blockSize:   c.BlockSize,
		maxModelLen: c.MaxModelLen,
		reserve:     rules.ReserveGate && c.SchedulerReserveFullISL,
	}
	if rules.Watermark {
		m.watermark = int(c.Watermark * float64(c.NumGPUBlocks))
	}
	if c.EnablePrefixCaching {
		m.keys = newKeys(c.BlockSize)
	}
	return m
}

// learn takes note of tokens that a request has gained.
func (m *cache) learn(r *request) {
	if m.keys != nil {
		m.keys.extend(r)
	}
}

// lookup returns the blocks that hold the longest cached prefix, in the order of its tokens. The
// last token is never among them: without computing at least one, none could be sampled. Looking
// changes nothing.
func (m *cache) lookup(r *request) (hits []int) {
	most := (len(r.tokens) - 1) / m.blockSize
	for _, k := range r.keys[:min(most, len(r.keys))] {
		id, ok := m.find(k)
		if !ok {
			break
		}
		hits = append(hits, id)
	}
	return hits
}

// need is how many free blocks disappear when a request is to hold so many tokens: new ones, and
// hits that nobody else uses and that so far count as free.
func (m *cache) need(r *request, hits []int, tokens int) int {
	n := max(m.span(tokens)-len(r.blocks)-len(hits), 0)
	for _, id := range hits {
		if m.blocks[id].ref == 0 {
			n++
		}
	}
	return n
}

// span is the number of blocks that hold so many tokens.
func (m *cache) span(tokens int) int {
	n := tokens / m.blockSize
	if tokens%m.blockSize > 0 {
		n++
	}
	return n
}

// grow gives a running request the blocks for n more tokens; false changes nothing.
func (m *cache) grow(r *request, n int) bool { return m.allocate(r, nil, n, 0) }

// admit gives a waiting request its hits and the blocks for n tokens after them; false changes nothing.
//
// The whole known sequence must fit, but only what n needs is taken: whoever comes next may take
// the rest, and a request admitted in part may yet be preempted.
func (m *cache) admit(r *request, hits []int, n int, others bool) bool {
	watermark := 0
	if others {
		watermark = m.watermark
	}
	if m.reserve && m.need(r, hits, min(len(r.tokens), m.maxModelLen))+watermark > m.free {
		return false
	}
	return m.allocate(r, hits, n, watermark)
}

func (m *cache) allocate(r *request, hits []int, n, watermark int) bool {
	after := r.computed + len(hits)*m.blockSize + n
	target := min(after, m.maxModelLen)
	if m.need(r, hits, target)+watermark > m.free {
		return false
	}
	// All hits are claimed before any block is lent, or a block might be evicted that is hit.
	for _, id := range hits {
		m.share(id)
		r.blocks = append(r.blocks, id)
	}
	r.registered = max(r.registered, len(hits))
	for len(r.blocks) < m.span(target) {
		r.blocks = append(r.blocks, m.take())
	}
	m.register(r, min(after, len(r.tokens)))
	return true
}

// register lets the full blocks of a request's first tokens be found, though the step that
// computes them has yet to run: whoever hits them runs in that step or later.
func (m *cache) register(r *request, tokens int) {
	full := min(tokens/m.blockSize, len(r.keys), len(r.blocks))
	for ; r.registered < full; r.registered++ {
		m.pool.register(r.blocks[r.registered], r.keys[r.registered])
	}
}

// release takes back all that a request holds.
func (m *cache) release(r *request) {
	m.pool.release(r.blocks)
	r.blocks, r.registered = nil, 0
}
