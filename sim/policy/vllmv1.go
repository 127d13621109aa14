package policy

import (
	"slices"

	"llmsim/sim/cost"
	"llmsim/sim/kv"
)

// VLLMV1 decides as vLLM V1's scheduler does: the running sequences go first, in running order,
// and what they leave of the budget admits waiting ones, in strict order, unless someone was
// preempted in the step. A prompt is computed less what the prefix cache has of it.
type VLLMV1 struct {
	batch
	options   VLLMV1Options
	watermark int // blocks
	queue     queue
	ranked    *byPriority // the queue, if it is by priority
	reason    Blocked
	// stuck: the head was refused for want of blocks, and nothing has happened that could help it.
	stuck   bool
	names   []names // by handle
	queries int64
	hits    int64
}

// names are the pieces of a prompt until its sequence is first looked up: those who wait for long
// are many, and their blocks more.
type names struct {
	pieces       []uint64
	size, tokens int
}

// VLLMV1Options are settings under vLLM's names.
type VLLMV1Options struct {
	NumGPUBlocks            int     // of the cache, the null block included
	Watermark               float64 // share of them that an admission leaves free while others run
	EnableChunkedPrefill    bool
	SchedulerReserveFullISL bool // admit only what fits as a whole, though it is not reserved
	Priority                bool // scheduling_policy: priority, else fcfs
	AsyncScheduling         bool // decide a step before the one under way has ended

	// Older versions. DropStale: a sequence preempted with a token under way loses it, and samples
	// it again. CursorSlips: a victim taken out in front of the sequence that needs room, to which
	// the step had given nothing, makes the one behind that sequence miss the step.
	DropStale   bool
	CursorSlips bool
}

// NewVLLMV1 returns the policy over a pool of its own, of one block less than num_gpu_blocks: the
// null block is never lent.
func NewVLLMV1(pool *kv.Pool, limits Limits, options VLLMV1Options) *VLLMV1 {
	v := &VLLMV1{
		batch:     newBatch(pool, limits),
		options:   options,
		watermark: int(options.Watermark * float64(options.NumGPUBlocks)),
	}
	v.dropStale, v.cursorSlips = options.DropStale, options.CursorSlips
	if options.Priority {
		v.ranked = new(byPriority)
		v.victim, v.queue = v.ranked.leastUrgent, v.ranked
	} else {
		v.queue = &fifo{slab: &v.slab, list: newList()}
	}
	return v
}

func (v *VLLMV1) Add(r Request) Handle {
	h := v.take()
	v.seqs[h] = sequence{
		prompt: int32(r.Prompt), output: int32(r.Output), state: waiting,
	}
	if v.ranked != nil {
		v.ranked.enter(h, r)
	}
	if len(r.Prefix) > 0 && v.pool.Caching() {
		for int(h) >= len(v.names) {
			v.names = append(v.names, names{})
		}
		n := names{pieces: r.Prefix, size: r.PrefixTokens, tokens: r.Prompt}
		if (len(r.Prefix)-1)*r.PrefixTokens >= r.Prompt {
			n.tokens += r.Output
		}
		v.names[h] = n
	}
	head := v.queue.head()
	v.queue.add(h)
	if v.queue.head() != head {
		v.stuck = false
	}
	return h
}

func (v *VLLMV1) Abort(h Handle) {
	v.stuck = false
	for i := range v.inFlight {
		v.recall(&v.flight[i], h)
	}
	if s := &v.seqs[h]; s.state == waiting {
		v.queue.remove(h)
		v.pool.Release(&s.lease, 0, false)
		if int(h) < len(v.names) {
			v.names[h] = names{}
		}
		v.give(h)
		return
	}
	v.abort(h)
}

func (v *VLLMV1) Schedule(d *Decision) bool {
	d.start()
	v.reason = Unblocked
	left, starved := v.limits.MaxNumBatchedTokens, false
	if v.running.len > 0 {
		if len(v.partials) > 0 {
			v.stuck = false // what they register may be found
		}
		left, starved = v.advance(d)
	}
	for _, h := range d.Preempted {
		v.queue.putBack(h)
		v.stuck = false
	}
	if len(d.Preempted) > 0 {
		v.reason = ByKV
	} else {
		v.admitWaiting(d, left)
	}
	if starved && v.reason == Unblocked {
		v.reason = ByBudget
	}
	if !v.options.AsyncScheduling {
		v.underway = v.running.len > 0
		return v.underway
	}
	if d.Shape.Tokens == 0 && (v.inFlight > 0 || v.running.len == 0) {
		return false
	}
	v.settle(&v.flight[v.inFlight])
	v.inFlight++
	return true
}

// recall takes a sequence that is aborted out of a step in flight.
func (v *VLLMV1) recall(o *settled, h Handle) {
	s := &v.seqs[h]
	drop := func(list *[]Handle) bool {
		i := slices.Index(*list, h)
		if i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
		return i >= 0
	}
	begins := drop(&o.firsts) || drop(&o.resumed)
	ends := drop(&o.ended)
	interrupted := drop(&o.preempted) || drop(&o.stalled)
	if !begins && (s.state == decoding || ends || interrupted) && s.joined <= o.step {
		o.steady--
	}
}

// admitWaiting fills what the running left of the budget.
func (v *VLLMV1) admitWaiting(d *Decision, left int) {
	for v.queue.size() > 0 {
		switch {
		case left == 0:
			v.reason = ByBudget
		case v.running.len >= v.limits.MaxNumSeqs:
			v.reason = BySlots
		case v.stuck:
			v.reason = ByKV
		}
		if v.reason != Unblocked {
			return
		}
		h := v.queue.head()
		n := v.admitHead(h, left)
		if n == 0 {
			return
		}
		v.compute(h, d)
		left -= n
	}
}

// admitHead lets the head of the queue run, if it may, and returns how many tokens of it are
// computed.
func (v *VLLMV1) admitHead(h Handle, left int) int {
	s := &v.seqs[h]
	if int(h) < len(v.names) && v.names[h].pieces != nil {
		n := &v.names[h]
		v.pool.Share(&s.lease, n.pieces, n.size, n.tokens)
		*n = names{}
	}
	tokens := s.target()
	// At least one token is computed, to have something to sample from.
	hit := v.pool.Match(&s.lease, v.pool.Full(tokens-1))
	found := hit.Blocks * v.pool.BlockSize()
	n := tokens - found
	if most := v.limits.LongPrefillTokenThreshold; most > 0 {
		n = min(n, most)
	}
	if n > left {
		if !v.options.EnableChunkedPrefill {
			v.reason = ByBudget
			return 0
		}
		n = left
	}
	keep := 0
	if v.running.len > 0 {
		keep = v.watermark
	}
	fits := func(tokens int) bool {
		return max(v.pool.Need(tokens)-hit.Blocks, 0)+hit.Idle+keep <= v.pool.Free()
	}
	if v.options.SchedulerReserveFullISL && !fits(tokens) || !fits(found+n) {
		v.reason, v.stuck = ByKV, true
		return 0
	}
	v.queue.remove(h)
	v.admit(h)
	if v.pool.Caching() {
		v.pool.Claim(&s.lease, hit)
		if !s.started {
			v.queries += int64(tokens)
			v.hits += int64(found)
		}
	}
	s.computed = int32(found)
	v.pool.Grow(&s.lease, found+n)
	v.assign(h, n)
	return n
}

func (v *VLLMV1) Commit(o *Outcome) {
	if !v.options.AsyncScheduling {
		v.settle(&v.flight[0])
		v.inFlight = 1
	}
	first := &v.flight[0]
	for _, h := range first.ended {
		if v.seqs[h].state == waiting {
			v.queue.remove(h) // it was preempted while its last token was under way
		}
	}
	v.emit(first, o)
	v.inFlight--
	v.flight[0], v.flight[1] = v.flight[1], v.flight[0]
	if len(o.Finished) > 0 {
		v.stuck = false
	}
}

func (v *VLLMV1) Quiet() (cost.Shape, bool) {
	if !v.steady() || v.options.AsyncScheduling && (v.inFlight != 1 || !v.flight[0].plain()) {
		return cost.Shape{}, false
	}
	v.reason = Unblocked
	if v.queue.size() > 0 {
		switch {
		case v.decodes == v.limits.MaxNumBatchedTokens:
			v.reason = ByBudget
		case v.running.len >= v.limits.MaxNumSeqs:
			v.reason = BySlots
		case v.stuck:
			v.reason = ByKV
		default:
			return cost.Shape{}, false
		}
	}
	return v.decodeShape(), true
}

func (v *VLLMV1) Coast() int {
	steady := v.decodes
	if v.options.AsyncScheduling {
		steady, v.flight[0].steady = v.flight[0].steady, v.decodes
		v.flight[0].step = v.step
	}
	v.coast()
	return steady
}

func (v *VLLMV1) Load() Load {
	return Load{
		Running: v.running.len, Waiting: v.queue.size(),
		Free: v.pool.Free(), Used: v.pool.Used(),
		Blocked:      v.reason,
		CacheQueries: v.queries, CacheHits: v.hits,
	}
}
