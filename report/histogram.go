package report

import "math/bits"

const (
	subBits = 10
	subs    = 1 << subBits // buckets of equal width in each octave
	octaves = 64 - subBits // enough for every value below 1<<63
)

// A histogram counts values in buckets no wider than 1/1024 of the values in them: octave 0 holds [0, 1024)
// exactly, octave k holds [1024, 2048) << (k-1). An octave takes memory when its first value comes.
type histogram [octaves]*[subs]uint64

// slot finds the bucket of a value: its octave and its place in it. It has no branch: values below 2048 are
// their own bucket's number, and every further octave drops one bit more.
func slot(v uint64) (octave, sub uint64) {
	drop := uint64(bits.Len64(v|subs)-subBits-1) & 63
	number := drop<<subBits + v>>drop
	return number >> subBits, number & (subs - 1)
}

func (h *histogram) add(v, n uint64) {
	k, sub := slot(v)
	o := h[k]
	if o == nil {
		o = new([subs]uint64)
		h[k] = o
	}
	o[sub] += n
}

// A bucket is a range [low, low + 1<<width) of values and how many samples fell into it.
type bucket struct {
	octave int
	sub    int
	low    int64
	width  int   // as a power of two
	before int64 // samples in lower buckets
	count  int64
}

// find returns the buckets that hold the given ranks, which must ascend and be below the number of samples;
// a bucket that holds several ranks is named once. With every bucket comes the number of ranks in it.
func (h *histogram) find(ranks []int64) (found []bucket, holds []int) {
	var before int64
	for k, o := range h {
		if o == nil {
			continue
		}
		for sub, n := range o {
			if n == 0 {
				continue
			}
			held := 0
			for held < len(ranks) && ranks[held] < before+int64(n) {
				held++
			}
			if held > 0 {
				b := bucket{octave: k, sub: sub, low: int64(sub), before: before, count: int64(n)}
				if k > 0 {
					b.width = k - 1
					b.low = int64(subs+sub) << b.width
				}
				found, holds = append(found, b), append(holds, held)
				if ranks = ranks[held:]; len(ranks) == 0 {
					return found, holds
				}
			}
			before += int64(n)
		}
	}
	return found, holds
}

// at estimates the sample at a rank inside the bucket, as if its samples were spread evenly.
func (b bucket) at(rank int64) float64 {
	if b.width == 0 {
		return float64(b.low)
	}
	place := (float64(rank-b.before) + 0.5) / float64(b.count)
	return float64(b.low) + float64(place*float64(int64(1)<<b.width))
}
