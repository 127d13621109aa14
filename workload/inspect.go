package workload

import (
	"math"
	"time"
)

// An Inspection is what a trace is like, replayed with its options.
type Inspection struct {
	Path, Format, Digest string
	Account              Account
	HasArrivals          bool // false: only Requests, Prompt and Output are set below
	HasPrefix            bool
	Requests             int

	Duration   time.Duration // from the first arrival to the last
	Rate       float64       // requests per second, the inverse of the mean gap; 0 if all arrive at once
	Peak       int           // requests in the busiest second, seconds counted from the first arrival
	PeakRatio  float64       // Peak over Rate
	GapCV      float64       // standard deviation of the gaps between arrivals over their mean; 1 for a Poisson process
	Dispersion []Dispersion  // at 1, 10 and 60 s; only windows of which at least two are complete
	Distinct   int           // instants at which requests arrive
	Herd       int           // most requests at one instant
	Grid       Grid          // of the instants as the file writes them

	Prompt, Output LengthSummary

	// PrefixCeiling is the share of prompt tokens in leading blocks that an earlier
	// request had too: what an infinite, never cold cache would save. 0 without identity.
	PrefixCeiling float64

	Verdict []string // what follows for planning, in sentences
	Notes   []string // the trace's
}

// A Dispersion is the index of dispersion of counts: the variance of the number of
// arrivals in a window over its mean. 1 for a Poisson process, at any window.
type Dispersion struct {
	Window  time.Duration
	Windows int // complete ones, counted from the first arrival
	Index   float64
}

// A LengthSummary describes tokens per request. Percentiles interpolate linearly
// between order statistics, and are exact.
type LengthSummary struct {
	Mean, P50, P90, P95, P99 float64
	Max                      int
	Total                    int64
}

// Inspect replays a trace once, as its options say. It fails only where a replay does.
func Inspect(t *Trace) (Inspection, error) {
	in := Inspection{
		Path: t.Path, Format: t.Format, Digest: t.Digest, Account: t.Account, Notes: t.Notes,
		HasArrivals: t.HasArrivals, HasPrefix: t.HasPrefix, Grid: t.Grid,
	}
	p, err := t.replay()
	if err != nil {
		return in, err
	}
	defer p.Close()
	var prompts, outputs lengthCounts
	var gaps gapMeter
	chains := chainMeter{}
	windows := []*windowMeter{{size: time.Second}, {size: 10 * time.Second}, {size: time.Minute}}
	var first time.Duration
	for q, ok := p.Next(); ok; q, ok = p.Next() {
		prompts.add(q.Prompt)
		outputs.add(q.Output)
		if in.Requests == 0 {
			first = q.Arrival
		}
		gaps.see(q.Arrival)
		for _, w := range windows {
			w.see(q.Arrival - first)
		}
		chains.see(&q)
		in.Requests++
	}
	if err := p.Err(); err != nil {
		return in, err
	}
	in.Prompt, in.Output = prompts.summary(), outputs.summary()
	if t.HasArrivals {
		in.Duration = gaps.last - first
		if in.Duration > 0 {
			in.Rate = float64(in.Requests-1) / in.Duration.Seconds()
			in.GapCV = gaps.cv()
		}
		in.Distinct, in.Herd = gaps.distinct, gaps.most
		in.Peak = windows[0].most
		if in.Rate > 0 {
			in.PeakRatio = float64(in.Peak) / in.Rate
		}
		for _, w := range windows {
			if w.complete > 1 {
				in.Dispersion = append(in.Dispersion, Dispersion{w.size, int(w.complete), w.index()})
			}
		}
	}
	if t.HasPrefix && in.Prompt.Total > 0 {
		in.PrefixCeiling = float64(chains.hit) / float64(in.Prompt.Total)
	}
	in.Verdict = in.verdict(t, chains.full)
	return in, nil
}

// gapMeter follows the gaps between arrivals (Welford's running variance) and the
// requests that share an instant.
type gapMeter struct {
	last       time.Duration
	seen       int
	mean, m2   float64
	distinct   int
	herd, most int
}

func (g *gapMeter) see(at time.Duration) {
	if g.seen > 0 {
		gap := float64(at - g.last)
		d := gap - g.mean
		g.mean += d / float64(g.seen)
		g.m2 += float64(d * (gap - g.mean))
	}
	if g.seen == 0 || at != g.last {
		g.distinct++
		g.herd = 0
	}
	g.herd++
	g.most = max(g.most, g.herd)
	g.last = at
	g.seen++
}

func (g *gapMeter) cv() float64 { return math.Sqrt(g.m2/float64(g.seen-1)) / g.mean }

// windowMeter counts arrivals in windows of one size. The last window is complete only
// once an arrival lies beyond it.
type windowMeter struct {
	size        time.Duration
	at          int64 // the current window
	count, most int
	sum, square float64 // over complete windows, of the count and of its square
	complete    int64
}

func (w *windowMeter) see(since time.Duration) {
	if at := int64(since / w.size); at != w.at {
		w.sum += float64(w.count)
		w.square += float64(float64(w.count) * float64(w.count))
		w.at, w.count, w.complete = at, 0, at
	}
	w.count++
	w.most = max(w.most, w.count)
}

func (w *windowMeter) index() float64 {
	n := float64(w.complete)
	mean := w.sum / n
	return (w.square/n - float64(mean*mean)) / mean
}

// mostChains bounds the blocks remembered, at some 40 bytes each.
const mostChains = 1 << 24

// chainMeter remembers which chains of leading blocks it has seen.
type chainMeter struct {
	seen map[uint64]struct{}
	hit  int64 // tokens
	full bool  // no longer remembering: hit is a lower bound
}

// see folds a prompt's blocks, one by one, into a number that stands for the block and
// all before it: a block is a hit only behind the same predecessors.
func (c *chainMeter) see(q *Request) {
	if len(q.Prefix) == 0 {
		return
	}
	if c.seen == nil {
		c.seen = make(map[uint64]struct{})
	}
	chain, same := uint64(q.PrefixBlock), 0
	for i, id := range q.Prefix {
		chain = mix(chain ^ mix(id))
		if _, ok := c.seen[chain]; ok {
			if same == i {
				same++
			}
			continue
		}
		if len(c.seen) >= mostChains {
			c.full = true
			break
		}
		c.seen[chain] = struct{}{}
	}
	c.hit += min(int64(same)*int64(q.PrefixBlock), int64(q.Prompt))
}

// mix scatters a number over all 64 bits: xor-shifts and odd factors, each of which can be undone.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
