package workload

import "time"

// Purposes of the streams a synthetic workload draws from: one each, so that another distribution
// of prompts, say, changes neither arrivals nor outputs.
const (
	ForArrivals = "arrivals"
	ForPrompts  = "prompt tokens"
	ForOutputs  = "output tokens"
	ForPairs    = "prompt and output tokens" // drawn together
)

type open struct {
	arrivals Arrivals
	lengths  PairSource
	issued   int64
	n        int64 // 0: no end
}

// Open is a workload of n requests that arrive whatever becomes of those before; without end if n
// is not positive.
func Open(arrivals Arrivals, lengths PairSource, n int) Source {
	return &open{arrivals: arrivals, lengths: lengths, n: int64(max(n, 0))}
}

func (o *open) Next() (Request, bool) {
	if o.n > 0 && o.issued == o.n {
		return Request{}, false
	}
	r := Request{ID: o.issued, Arrival: o.arrivals.Next()}
	r.Prompt, r.Output = o.lengths.NextPair()
	o.issued++
	return r, true
}

type closed struct {
	think   time.Duration
	lengths PairSource
	issued  int64
	n       int64 // 0: no end

	// ready is a ring of the instants at which idle streams send; they never decrease, since those
	// of Done do not and all think for the same time.
	ready       []time.Duration
	head, count int
}

// Closed is a workload of streams, concurrency of them, that each send a request at the start and
// the next one a time think after the answer to their last, until n were sent; without end if n is
// not positive. Streams ready at the same instant send in the order of their Done calls, of which
// there must be exactly one per request.
func Closed(concurrency int, think time.Duration, lengths PairSource, n int) Feedback {
	return &closed{
		think: think, lengths: lengths, n: int64(max(n, 0)),
		ready: make([]time.Duration, concurrency), count: concurrency,
	}
}

func (c *closed) Next() (Request, bool) {
	if c.count == 0 || c.n > 0 && c.issued == c.n {
		return Request{}, false
	}
	r := Request{ID: c.issued, Arrival: c.ready[c.head]}
	r.Prompt, r.Output = c.lengths.NextPair()
	if c.head++; c.head == len(c.ready) {
		c.head = 0
	}
	c.count--
	c.issued++
	return r, true
}

func (c *closed) Done(_ int64, at time.Duration) {
	if c.count == len(c.ready) {
		panic("workload: Done without a request outstanding")
	}
	tail := c.head + c.count
	if tail >= len(c.ready) {
		tail -= len(c.ready)
	}
	c.ready[tail] = at + c.think
	c.count++
}
