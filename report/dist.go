package report

import (
	"math/bits"
	"slices"
	"time"
)

// ExactRecords is how many records (a value with its weight) a Dist holds before it answers from its
// histogram alone.
const ExactRecords = 1_000_000

// A Dist is a distribution of durations, each with a weight that counts how often it was seen. Its quantiles
// are exact while it holds at most ExactRecords records, and within 0.1% beyond; its count, sum, mean, minimum
// and maximum are always exact. The zero Dist is empty and ready. Questions settle what was added before, so
// not even two of them may be asked at once. A negative duration or weight means that the caller's clock went
// back: it panics, when it is added or with the next question.
type Dist struct {
	// Adding only writes to the open chunk; fold counts what is new there, many records at a time.
	open   chunk
	at     int // records in the open chunk
	light  int // records the open chunk takes without weights: its size until it has weights, then 0
	folded int // of those, how many are counted below
	full   []chunk
	kept   int // records in full

	hist         histogram
	count        int64
	sumHi, sumLo uint64 // of weight times nanoseconds: 64 bits would end after 292 years of latency
	min, max     int64
	coarse       bool // records were dropped
}

// Add adds one sample.
func (d *Dist) Add(v time.Duration) {
	if d.at < d.light { // no more than this: it must stay small enough to be inlined
		d.open.values[d.at] = int64(v)
		d.at++
		return
	}
	d.AddN(v, 1)
}

// AddN adds n samples of v.
func (d *Dist) AddN(v time.Duration, n int) {
	if at := d.at; at < len(d.open.weights) && uint(n-1) < maxWeight {
		d.open.weights[at] = uint32(n)
		d.open.values[at] = int64(v)
		d.at++
		return
	}
	if n < 0 {
		panic(negative)
	}
	for ; n > maxWeight; n -= maxWeight {
		d.put(int64(v), maxWeight)
	}
	if n > 0 {
		d.put(int64(v), uint32(n))
	}
}

const negative = "report: a sample with a negative duration or weight"

func (d *Dist) put(v int64, w uint32) {
	if d.at == len(d.open.values) {
		d.turn()
	}
	if d.open.weights == nil && w != 1 {
		d.open.weigh(d.at)
		d.light = 0
	}
	d.open.values[d.at] = v
	if d.open.weights != nil {
		d.open.weights[d.at] = w
	}
	d.at++
}

// turn makes room for a record: it puts the open chunk aside, or empties it when records are kept no more.
func (d *Dist) turn() {
	d.fold()
	at := d.at
	d.at, d.folded = 0, 0
	if d.coarse {
		return
	}
	if at > 0 {
		d.full, d.kept = append(d.full, d.open), d.kept+at
	}
	if d.kept == ExactRecords {
		d.coarse, d.full, d.kept = true, nil, 0
		d.begin(coarseChunk)
		return
	}
	d.begin(min(max(2*at, firstChunk), maxChunk, ExactRecords-d.kept))
}

func (d *Dist) begin(size int) {
	d.open = chunk{values: make([]int64, size)}
	d.light = size
}

// fold counts the records that came since it was called last.
func (d *Dist) fold() {
	values := d.open.values[d.folded:d.at]
	if len(values) == 0 {
		return
	}
	lowest := slices.Min(values)
	if lowest < 0 {
		panic(negative)
	}
	if d.count == 0 {
		d.min = lowest
	}
	d.min, d.max = min(d.min, lowest), max(d.max, slices.Max(values))
	hi, lo, count := d.sumHi, d.sumLo, d.count
	var carry uint64
	if d.open.weights == nil {
		for _, v := range values {
			lo, carry = bits.Add64(lo, uint64(v), 0)
			hi += carry
			d.hist.add(uint64(v), 1)
		}
		count += int64(len(values))
	} else {
		weights := d.open.weights[d.folded:d.at]
		for i, v := range values {
			w := uint64(weights[i])
			over, part := bits.Mul64(uint64(v), w)
			lo, carry = bits.Add64(lo, part, 0)
			hi += over + carry
			count += int64(w)
			d.hist.add(uint64(v), w)
		}
	}
	d.sumHi, d.sumLo, d.count = hi, lo, count
	d.folded = d.at
}

// Count is the number of samples, weights included.
func (d *Dist) Count() int64 {
	d.fold()
	return d.count
}

// Sum is the exact sum of all samples in nanoseconds, as hi<<64 + lo.
func (d *Dist) Sum() (hi, lo uint64) {
	d.fold()
	return d.sumHi, d.sumLo
}

// Max is the largest sample, 0 when there is none.
func (d *Dist) Max() time.Duration {
	d.fold()
	return time.Duration(d.max)
}

// Min is the smallest sample, 0 when there is none.
func (d *Dist) Min() time.Duration {
	d.fold()
	return time.Duration(d.min)
}

// Mean is the mean in nanoseconds, 0 when there is no sample.
func (d *Dist) Mean() float64 {
	d.fold()
	if d.count == 0 {
		return 0
	}
	// A mean is no larger than the largest sample, so its whole part fits 64 bits.
	q, r := bits.Div64(d.sumHi, d.sumLo, uint64(d.count))
	return float64(q) + float64(r)/float64(d.count)
}

// Exact tells whether Quantiles answers from the samples themselves, and not from the histogram.
func (d *Dist) Exact() bool { return !d.coarse }

// A chunk stores records; without weights they all weigh 1. Storing chunks rather than one slice that doubles
// keeps live memory close to 8 bytes a sample, 12 with a weight.
type chunk struct {
	values  []int64
	weights []uint32
}

const (
	firstChunk  = 256 // records; each chunk is twice the one before, up to maxChunk
	maxChunk    = 1 << 16
	coarseChunk = 1 << 12
	maxWeight   = 1<<32 - 1
)

func (c *chunk) weight(i int) uint32 {
	if c.weights == nil {
		return 1
	}
	return c.weights[i]
}

func (c *chunk) append(v int64, w uint32) {
	c.values, c.weights = append(c.values, v), append(c.weights, w)
}

// upTo is the chunk of the first n records.
func (c *chunk) upTo(n int) chunk {
	first := chunk{values: c.values[:n]}
	if c.weights != nil {
		first.weights = c.weights[:n]
	}
	return first
}

// weigh gives the chunk weights, of 1 for the n records in it.
func (c *chunk) weigh(n int) {
	c.weights = make([]uint32, len(c.values))
	for i := range n {
		c.weights[i] = 1
	}
}
