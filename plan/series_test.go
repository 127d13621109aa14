package plan

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// However long the run, the bins stay few and lose nobody.
func TestSeriesKeepsTotals(t *testing.T) {
	s := newSeries()
	r := rand.New(rand.NewPCG(1, 1))
	var at time.Duration
	var arrived, left int64
	for range 50_000 {
		at += time.Duration(r.ExpFloat64() * 1e9)
		s.at(at).arrived++
		arrived++
		if r.IntN(2) == 0 {
			s.at(at).left++
			left++
		}
	}
	var a, l int64
	for _, b := range s.bins {
		a += b.arrived
		l += b.left
	}
	if a != arrived || l != left || len(s.bins) > mostBins || len(s.bins) < mostBins/2 {
		t.Errorf("%d bins hold %d arrived and %d left, want at most %d with %d and %d", len(s.bins), a, l, mostBins, arrived, left)
	}
	if levels := s.levels(); levels[len(levels)-1] > float64(arrived-left) || levels[len(levels)-1] < 0.99*float64(arrived-left) {
		t.Errorf("backlog at the end %v, want about %d", levels[len(levels)-1], arrived-left)
	}
}

// MSER cuts what leads up to the steady part, and says so when there is none.
func TestMSER(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	noise := func(i int, level float64) float64 { return level + r.NormFloat64() }
	make := func(f func(i int) float64) []float64 {
		v := []float64{}
		for i := range 1000 {
			v = append(v, noise(i, f(i)))
		}
		return v
	}
	for _, c := range []struct {
		what      string
		values    []float64
		lo, hi    int
		converged bool
	}{
		{"a ramp over the first 200", make(func(i int) float64 { return float64(min(i, 200)) / 5 }), 160, 300, true},
		{"a decay with time constant 50", make(func(i int) float64 { return 100 * math.Exp(-float64(i)/50) }), 120, 320, true},
		{"growth without end", make(func(i int) float64 { return float64(i) }), 0, 1000, false},
	} {
		cut, converged := mser(c.values)
		if converged != c.converged || converged && (cut < c.lo || cut > c.hi) {
			t.Errorf("mser(%s) = %d, %v, want %d to %d, %v", c.what, cut, converged, c.lo, c.hi, c.converged)
		}
	}
}

// The growth of a random walk with a known drift lies within its stated error, and that of a
// stable queue is no growth.
func TestGrowth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	outside, claimed := 0, 0
	const runs, drifting = 400, 0.3
	for range runs {
		walk, stable := make([]float64, 1000), make([]float64, 1000)
		for i := 1; i < len(walk); i++ {
			walk[i] = walk[i-1] + drifting + r.NormFloat64()
			stable[i] = 0.9*stable[i-1] + r.NormFloat64()
		}
		if d := growth(walk, time.Second); math.Abs(d.perSecond-drifting) > 2.09*d.stderr {
			outside++
		}
		if d := growth(stable, time.Second); math.Abs(d.perSecond) > significance*d.stderr {
			claimed++
		}
	}
	// 2.09 is the 97.5% point of Student's distribution with 19 degrees of freedom.
	if share := float64(outside) / runs; share < 0.01 || share > 0.1 {
		t.Errorf("the 95%% interval misses a random walk's drift in %.1f%% of runs", 100*share)
	}
	if claimed > 0 {
		t.Errorf("%d of %d stable queues are said to grow", claimed, runs)
	}
}
