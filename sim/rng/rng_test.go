package rng

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Pinned bits: another machine, compiler or version that draws differently changes every result.
func TestStreamIsPinned(t *testing.T) {
	s := New(42, "arrivals")
	got := []string{
		fmt.Sprintf("%#x", s.Uint64()), fmt.Sprintf("%x", s.Float64()), fmt.Sprint(s.IntN(1000)),
		fmt.Sprintf("%x", s.Exp()), fmt.Sprintf("%x", s.Norm()), fmt.Sprintf("%x", s.Norm()),
		fmt.Sprintf("%x", s.Gamma(0.25)), fmt.Sprintf("%x", s.Gamma(4)),
	}
	want := []string{
		"0x5440d8ecb2f375e2", "0x1.9dff84f58918cp-02", "478", "0x1.8f2a32163378bp+00", "0x1.1198e1950da27p+00",
		"-0x1.370d571ed9d32p-01", "0x1.20635d3714729p-01", "0x1.62ae8a1071928p+01",
	}
	if !slices.Equal(got, want) {
		t.Errorf("New(42, %q) draws %q, want %q", "arrivals", got, want)
	}
}

func TestPurposeAndSeedDecideTheStream(t *testing.T) {
	first := New(1, "a").Uint64()
	if again := New(1, "a").Uint64(); again != first {
		t.Errorf("New(1, a).Uint64() = %v, then %v", first, again)
	}
	for _, other := range []*Stream{New(2, "a"), New(1, "b"), New(1, "")} {
		if other.Uint64() == first {
			t.Errorf("another seed or purpose gives the same first draw %v", first)
		}
	}
}

// Independence over purposes: correlated streams would make long prompts arrive in bursts.
func TestPurposesAreUncorrelated(t *testing.T) {
	const n = 200_000
	a, b := New(7, "prompt tokens"), New(7, "output tokens")
	var sum float64
	for range n {
		sum += a.Norm() * b.Norm()
	}
	if r := sum / n; math.Abs(r) > 4/math.Sqrt(n) {
		t.Errorf("correlation of two purposes = %v, want 0 within %v", r, 4/math.Sqrt(n))
	}
}

func TestIntNIsUniform(t *testing.T) {
	const draws, n = 70_000, 7
	s := New(3, "die")
	var counts [n]int
	for range draws {
		counts[s.IntN(n)]++
	}
	for v, c := range counts {
		if math.Abs(float64(c)-draws/n) > 5*math.Sqrt(draws/n) {
			t.Errorf("IntN(%d) = %d in %d of %d draws, want about %d", n, v, c, draws, draws/n)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("IntN(0) returned, want a panic")
		}
	}()
	s.IntN(0)
}

func TestLogAndExpAgreeWithMath(t *testing.T) {
	const tolerance = 1e-15
	s := New(9, "arguments")
	for i := range 400_000 {
		x := math.Ldexp(0.5+s.Float64()/2, s.IntN(2000)-1000)
		if i%2 == 0 {
			x = 1 + (s.Float64()-0.5)/float64(1+s.IntN(1<<20))
		}
		if got, want := Log(x), math.Log(x); math.Abs(got-want) > tolerance*math.Abs(want) {
			t.Fatalf("Log(%v) = %v, want %v", x, got, want)
		}
		y := (s.Float64() - 0.5) * 1400
		if i%2 == 0 {
			y /= 1000
		}
		if got, want := Exp(y), math.Exp(y); math.Abs(got-want) > tolerance*want {
			t.Fatalf("Exp(%v) = %v, want %v", y, got, want)
		}
	}
	inf := math.Inf(1)
	for _, c := range []struct{ got, want float64 }{
		{Log(1), 0}, {Log(0), -inf}, {Log(inf), inf}, {Log(5e-324), -744.4400719213812},
		{Exp(0), 1}, {Exp(-inf), 0}, {Exp(inf), inf}, {Exp(-745), 5e-324},
	} {
		if c.got != c.want {
			t.Errorf("Log or Exp at an edge = %v, want %v", c.got, c.want)
		}
	}
	if !math.IsNaN(Log(-1)) || !math.IsNaN(Log(math.NaN())) || !math.IsNaN(Exp(math.NaN())) {
		t.Error("Log(-1), Log(NaN) and Exp(NaN) must be NaN")
	}
}

// Kolmogorov-Smirnov: the largest distance between the drawn and the true distribution.
func TestVariatesFollowTheirDistributions(t *testing.T) {
	const n = 100_000
	type cdf interface{ CDF(float64) float64 }
	for _, c := range []struct {
		name string
		draw func(*Stream) float64
		want cdf
	}{
		{"Float64", (*Stream).Float64, distuv.Uniform{Min: 0, Max: 1}},
		{"Exp", (*Stream).Exp, distuv.Exponential{Rate: 1}},
		{"Norm", (*Stream).Norm, distuv.UnitNormal},
		{"Gamma(0.05)", func(s *Stream) float64 { return s.Gamma(0.05) }, distuv.Gamma{Alpha: 0.05, Beta: 1}},
		{"Gamma(1)", func(s *Stream) float64 { return s.Gamma(1) }, distuv.Gamma{Alpha: 1, Beta: 1}},
		{"Gamma(16)", func(s *Stream) float64 { return s.Gamma(16) }, distuv.Gamma{Alpha: 16, Beta: 1}},
	} {
		s := New(11, c.name)
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = c.draw(s)
		}
		slices.Sort(xs)
		var distance float64
		for i, x := range xs {
			p := c.want.CDF(x)
			distance = max(distance, p-float64(i)/n, float64(i+1)/n-p)
		}
		if limit := 1.95 / math.Sqrt(n); distance > limit { // exceeded once in a thousand seeds
			t.Errorf("%s: distance from its distribution = %v, want at most %v", c.name, distance, limit)
		}
	}
}

func BenchmarkExp(b *testing.B) {
	s := New(1, "benchmark")
	for b.Loop() {
		s.Exp()
	}
}

func BenchmarkNorm(b *testing.B) {
	s := New(1, "benchmark")
	for b.Loop() {
		s.Norm()
	}
}

func ExampleNew() {
	a, again, other := New(42, "arrivals"), New(42, "arrivals"), New(42, "prompt tokens")
	first := a.Uint64()
	fmt.Println(first == again.Uint64(), first == other.Uint64())
	// Output: true false
}
