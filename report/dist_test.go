package report

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
)

// plain is a Dist that any reader can check: every sample written out.
type plain struct{ samples []float64 }

func (p *plain) AddN(v time.Duration, n int) {
	for range n {
		p.samples = append(p.samples, float64(v))
	}
}

func (p *plain) Quantile(q float64) float64 {
	slices.Sort(p.samples)
	h := float64(q * float64(len(p.samples)-1))
	low := int(h)
	if low+1 >= len(p.samples) {
		return p.samples[len(p.samples)-1]
	}
	a, b, t := p.samples[low], p.samples[low+1], h-float64(low)
	if t >= 0.5 {
		return b - float64((b-a)*(1-t))
	}
	return a + float64((b-a)*t)
}

var probes = []float64{0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1}

// Values from numpy.percentile of these samples with its default method.
func TestQuantilesAsNumpy(t *testing.T) {
	for _, c := range []struct {
		samples []time.Duration
		p, want float64
	}{
		{[]time.Duration{7}, 0.99, 7},
		{[]time.Duration{10, 20}, 0.5, 15},
		{[]time.Duration{10, 20}, 0.25, 12.5},
		{[]time.Duration{4, 1, 3, 2}, 0.5, 2.5},
		{[]time.Duration{4, 1, 3, 2}, 0.75, 3.25},
		{[]time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9, 9.1},
		{[]time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.95, 9.55},
		{[]time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.99, 9.91},
		{[]time.Duration{100, 100, 100, 1000}, 0.5, 100},
		{[]time.Duration{100, 100, 100, 1000}, 0.9, 730},
	} {
		var d Dist
		for _, v := range c.samples {
			d.Add(v)
		}
		if got := d.Quantiles(c.p)[0]; math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("Dist(%d).Quantiles(%v) = %v, want %v", c.samples, c.p, got, c.want)
		}
	}
}

// A weight of n is n samples: quantiles interpolate on the expanded ranks.
func TestWeightsAreRepeats(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		var d Dist
		var p plain
		sum := new(big.Int)
		scale := int64(1) << rng.IntN(40)
		records := 1 + rng.IntN(4000)
		distinct := 1 + rng.Int64N(int64(1+rng.IntN(3000)))
		unit := round%3 == 0
		for range records {
			v := time.Duration(rng.Int64N(distinct) * scale / 7)
			n := 1
			if !unit {
				n = rng.IntN(20)
			}
			d.AddN(v, n)
			p.AddN(v, n)
			sum.Add(sum, big.NewInt(int64(v)*int64(n)))
		}
		if d.Count() != int64(len(p.samples)) || !d.Exact() {
			t.Fatalf("Count() = %d, want %d", d.Count(), len(p.samples))
		}
		if len(p.samples) == 0 {
			continue
		}
		for i, got := range d.Quantiles(probes...) {
			if want := p.Quantile(probes[i]); got != want {
				t.Fatalf("round %d: Quantiles(%v) = %v, want %v", round, probes[i], got, want)
			}
		}
		hi, lo := d.Sum()
		got := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
		if got.Add(got, new(big.Int).SetUint64(lo)); got.Cmp(sum) != 0 {
			t.Fatalf("Sum() = %v, want %v", got, sum)
		}
		if want := stat.Mean(p.samples, nil); math.Abs(d.Mean()-want) > 1e-9*want {
			t.Fatalf("Mean() = %v, want %v", d.Mean(), want)
		}
		if got, want := float64(d.Max()), slices.Max(p.samples); got != want {
			t.Fatalf("Max() = %v, want %v", got, want)
		}
		if got, want := float64(d.Min()), slices.Min(p.samples); got != want {
			t.Fatalf("Min() = %v, want %v", got, want)
		}
	}
}

// Many records that crowd into one bucket are told apart as exactly as few.
func TestCrowdedBucket(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func(*rand.Rand) time.Duration
	}{
		{"one value", func(*rand.Rand) time.Duration { return 20 * time.Millisecond }},
		{"a minute and a little", func(r *rand.Rand) time.Duration {
			return time.Minute + time.Duration(r.Int64N(int64(20*time.Millisecond)))
		}},
		{"two far values", func(r *rand.Rand) time.Duration { return time.Duration(1 + r.Int64N(2)<<60) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			var d Dist
			var p plain
			for range 50_000 {
				v, n := c.draw(rng), 1+rng.IntN(3)
				d.AddN(v, n)
				p.AddN(v, n)
			}
			for i, got := range d.Quantiles(probes...) {
				if want := p.Quantile(probes[i]); got != want {
					t.Errorf("Quantiles(%v) = %v, want %v", probes[i], got, want)
				}
			}
		})
	}
}

// Beyond ExactRecords quantiles stay within 0.1% of the exact ones, and the Dist says so.
func TestBeyondExactRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("a million and a half samples")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var d Dist
	var p plain
	for i := range ExactRecords + ExactRecords/2 {
		v := time.Duration(rng.ExpFloat64() * 1e8)
		d.Add(v)
		p.AddN(v, 1)
		if want := i < ExactRecords; d.Exact() != want {
			t.Fatalf("after %d records Exact() = %v, want %v", i+1, d.Exact(), want)
		}
	}
	for i, got := range d.Quantiles(probes...) {
		if want := p.Quantile(probes[i]); math.Abs(got-want) > want/1000 {
			t.Errorf("Quantiles(%v) = %v, want %v within 0.1%%", probes[i], got, want)
		}
	}
	if d.full != nil {
		t.Error("an inexact Dist still holds records")
	}
}

// Every value falls into a bucket that contains it and is no wider than a thousandth of it.
func TestBuckets(t *testing.T) {
	for _, v := range []uint64{0, 1, 1023, 1024, 1025, 2047, 2048, 4095, 4096, 1e9, 123456789012345, 1<<62 + 12345, 1<<63 - 1} {
		var h histogram
		h.add(v, 3)
		found, holds := h.find([]int64{2})
		if len(found) != 1 || holds[0] != 1 {
			t.Fatalf("find after add(%d) = %v, %v, want one bucket", v, found, holds)
		}
		b := found[0]
		if w := uint64(1) << b.width; v < uint64(b.low) || v-uint64(b.low) >= w || (w > 1 && w*1000 > v) {
			t.Errorf("add(%d) went to %+v", v, b)
		}
	}
}

// Samples that all weigh 1 take 8 bytes; the first other weight costs only its own chunk the weights.
func TestWeightsAreStoredWhenNeeded(t *testing.T) {
	var d Dist
	for i := range 3 * maxChunk {
		d.Add(time.Duration(i))
	}
	d.AddN(5, 2)
	for i, c := range d.full {
		if c.weights != nil {
			t.Errorf("chunk %d has weights, want none", i)
		}
	}
	if d.open.weights == nil {
		t.Error("the open chunk has no weights")
	}
	var big Dist
	big.AddN(7, 3*maxWeight)
	if got := big.Quantiles(0.5)[0]; got != 7 || big.Count() != 3*maxWeight || big.at != 3 {
		t.Errorf("a weight of three times 32 bits: median %v of %d in %d records", got, big.Count(), big.at)
	}
}

func TestAddNDoesNotAllocate(t *testing.T) {
	var d Dist
	for i := range 2 * maxChunk {
		d.AddN(time.Duration(i), 1+i%3)
	}
	room := len(d.open.values) - d.at
	if room < 2000 {
		t.Fatalf("the last chunk has room for %d records, want 2000", room)
	}
	if n := testing.AllocsPerRun(1000, func() { d.AddN(1234, 7) }); n != 0 {
		t.Errorf("AddN allocates %v times, want 0", n)
	}
}

func TestNegativeSamplePanics(t *testing.T) {
	for _, c := range []struct {
		v time.Duration
		n int
	}{{-1, 1}, {1, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("AddN(%d, %d) did not panic", c.v, c.n)
				}
			}()
			var d Dist
			d.AddN(c.v, c.n)
			d.Count()
		}()
	}
}

func FuzzDist(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6}, uint8(10), 0.5)
	f.Add([]byte{9, 9, 0, 1, 255, 255}, uint8(40), 0.99)
	f.Fuzz(func(t *testing.T, data []byte, shift uint8, q float64) {
		if !(q >= 0 && q <= 1) || len(data) > 1<<12 {
			t.Skip()
		}
		var d Dist
		var p plain
		for i := 0; i+1 < len(data); i += 2 {
			v, n := time.Duration(data[i])<<(shift%52)+time.Duration(i), int(data[i+1])%9
			d.AddN(v, n)
			p.AddN(v, n)
		}
		if d.Count() == 0 {
			return
		}
		if got, want := d.Quantiles(q)[0], p.Quantile(q); got != want {
			t.Errorf("Quantiles(%v) = %v, want %v", q, got, want)
		}
	})
}

func ExampleDist() {
	var itl Dist
	itl.AddN(20*time.Millisecond, 98) // 98 sequences waited one step of 20 ms
	itl.AddN(35*time.Millisecond, 2)
	q := itl.Quantiles(0.50, 0.99)
	fmt.Println(itl.Count(), time.Duration(itl.Mean()), time.Duration(q[0]), time.Duration(q[1]))
	// Output: 100 20.3ms 20ms 35ms
}

func BenchmarkDistAdd(b *testing.B) {
	for _, weight := range []int{1, 61} {
		b.Run(fmt.Sprintf("weight=%d", weight), func(b *testing.B) {
			values := make([]time.Duration, 1<<14)
			rng := rand.New(rand.NewPCG(7, 8))
			for i := range values {
				values[i] = time.Duration(rng.ExpFloat64() * 5e7)
			}
			b.ReportAllocs()
			var d Dist
			for b.Loop() { // one iteration is a full Dist, emptied into its counts
				d = Dist{}
				if weight == 1 {
					for i := range ExactRecords {
						d.Add(values[i&(len(values)-1)])
					}
				} else {
					for i := range ExactRecords {
						d.AddN(values[i&(len(values)-1)], weight)
					}
				}
				d.fold()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ExactRecords, "ns/sample")
			var held int
			for _, c := range append(d.full, d.open) {
				held += 8*cap(c.values) + 4*cap(c.weights)
			}
			b.ReportMetric(float64(held)/ExactRecords, "bytes/sample")
		})
	}
}

func BenchmarkDistQuantiles(b *testing.B) {
	for _, c := range []struct {
		name string
		draw func(*rand.Rand) time.Duration
	}{
		{"spread", func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * 5e7) }},
		{"one value", func(r *rand.Rand) time.Duration { return 20 * time.Millisecond }},
		{"crowded", func(r *rand.Rand) time.Duration {
			return time.Minute + time.Duration(r.Int64N(int64(20*time.Millisecond)))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var d Dist
			rng := rand.New(rand.NewPCG(9, 10))
			for range ExactRecords {
				d.AddN(c.draw(rng), 3)
			}
			b.ReportAllocs()
			for b.Loop() {
				d.Quantiles(0.5, 0.9, 0.95, 0.99)
			}
		})
	}
}
