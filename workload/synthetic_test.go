package workload

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"llmsim/sim/rng"
)

func take(s Source, n int) []Request {
	var rs []Request
	for range n {
		r, ok := s.Next()
		if !ok {
			break
		}
		rs = append(rs, r)
	}
	return rs
}

func gaps(a Arrivals, n int) []float64 {
	xs := make([]float64, n)
	var last time.Duration
	for i := range xs {
		at := a.Next()
		xs[i], last = (at - last).Seconds(), at
	}
	return xs
}

// Poisson gaps are exponential (CV 1); gamma gaps have the asked CV; both keep the rate.
func TestGapsFollowTheirDistribution(t *testing.T) {
	const n, rate = 100_000, 80.0
	for _, c := range []struct {
		name string
		from func(*rng.Stream) Arrivals
		cv   float64
	}{
		{"NewPoisson(80)", func(s *rng.Stream) Arrivals { return NewPoisson(rate, s) }, 1},
		{"NewGamma(80, 0.25)", func(s *rng.Stream) Arrivals { return NewGamma(rate, 0.25, s) }, 0.25},
		{"NewGamma(80, 1)", func(s *rng.Stream) Arrivals { return NewGamma(rate, 1, s) }, 1},
		{"NewGamma(80, 3)", func(s *rng.Stream) Arrivals { return NewGamma(rate, 3, s) }, 3},
	} {
		xs := gaps(c.from(rng.New(5, ForArrivals)), n)
		mean, sd := stat.MeanStdDev(xs, nil)
		if math.Abs(mean*rate-1) > 4*c.cv/math.Sqrt(n) || math.Abs(sd/mean/c.cv-1) > 0.05 {
			t.Errorf("%s: mean gap %v s, CV %v, want %v and %v", c.name, mean, sd/mean, 1/rate, c.cv)
		}
		shape := 1 / (c.cv * c.cv)
		d := distance(xs, distuv.Gamma{Alpha: shape, Beta: shape * rate}.CDF, 1e-9)
		if limit := 1.95 / math.Sqrt(n); d > limit {
			t.Errorf("%s: distance from its distribution = %v, want at most %v", c.name, d, limit)
		}
	}
}

// distance is Kolmogorov-Smirnov's, between samples rounded to a step and a distribution function.
func distance(xs []float64, cdf func(float64) float64, step float64) (d float64) {
	slices.Sort(xs)
	n := float64(len(xs))
	for i := 0; i < len(xs); {
		j := i
		for j < len(xs) && xs[j] == xs[i] {
			j++
		}
		d = max(d, math.Abs(float64(j)/n-cdf(xs[i]+step/2)), math.Abs(float64(i)/n-cdf(xs[i]-step/2)))
		i = j
	}
	return d
}

// Gaps of a tenth of a nanosecond add up all the same: what rounding leaves is carried over.
func TestShortGapsDoNotGetLost(t *testing.T) {
	var p pace
	for range 1_000_000 {
		p.wait(1e-10)
	}
	if got, want := p.now, 100*time.Microsecond; got < want-1 || got > want {
		t.Errorf("a million gaps of 0.1 ns = %v, want %v", got, want)
	}
	p.now = math.MaxInt64 - 10
	for range 3 {
		if got := p.wait(1e300); got != math.MaxInt64 {
			t.Errorf("wait(1e300 s) = %d, want the end of time %d", got, int64(math.MaxInt64))
		}
	}
}

// vLLM's benchmark sends its first request after an interval too.
func TestConstantInstantsComeFromTheIndex(t *testing.T) {
	a := NewConstant(3)
	for i := 1; i <= 300_000; i++ {
		if got, want := a.Next(), time.Duration(math.Round(float64(i)*1e9/3)); got != want {
			t.Fatalf("NewConstant(3): arrival %d at %v, want %v", i, got, want)
		}
	}
}

// A server that takes up work every 25 ms sees arrivals later, never earlier, and all of them.
func TestOnGridDelaysToTheNextMultiple(t *testing.T) {
	const grid = 25 * time.Millisecond
	plain, bunched := NewPoisson(80, rng.New(1, "x")), OnGrid(NewPoisson(80, rng.New(1, "x")), grid)
	for range 10_000 {
		at, got := plain.Next(), bunched.Next()
		if got%grid != 0 || got < at || got-at >= grid {
			t.Fatalf("OnGrid(%v) of %v = %v", grid, at, got)
		}
	}
	if got := OnGrid(NewConstant(40), grid).Next(); got != grid {
		t.Errorf("OnGrid(%v) of %v = %v, want it unmoved", grid, grid, got)
	}
}

func TestLengthsFollowTheirDistribution(t *testing.T) {
	const n = 50_000
	for _, c := range []struct {
		name string
		from func(*rng.Stream) Lengths
		cdf  func(float64) float64
	}{
		{"NewNormal(5000, 900)", func(s *rng.Stream) Lengths { return NewNormal(5000, 900, s) },
			distuv.Normal{Mu: 5000, Sigma: 900}.CDF},
		{"NewLogNormal(800, 1.2)", func(s *rng.Stream) Lengths { return NewLogNormal(800, 1.2, s) },
			distuv.LogNormal{Mu: math.Log(800), Sigma: 1.2}.CDF},
		{"NewUniform(100, 300)", func(s *rng.Stream) Lengths { return NewUniform(100, 300, s) },
			distuv.Uniform{Min: 99.5, Max: 300.5}.CDF},
		{"NewCDF", func(s *rng.Stream) Lengths {
			return NewCDF([]CDFPoint{{10, 0}, {20, 0.25}, {40, 0.25}, {140, 1}, {150, 1}}, s)
		}, func(x float64) float64 {
			return min(max(x-10.5, 0)/10*0.25, 0.25) + min(max(x-40.5, 0)/100*0.75, 0.75)
		}},
	} {
		lengths := c.from(rng.New(8, ForPrompts))
		lo, hi := lengths.Range()
		xs := make([]float64, n)
		for i := range xs {
			v := lengths.Next()
			if v < lo || v > hi {
				t.Fatalf("%s: Next() = %d, want within Range() = %d, %d", c.name, v, lo, hi)
			}
			xs[i] = float64(v)
		}
		if d, limit := distance(xs, c.cdf, 1), 1.95/math.Sqrt(n); d > limit {
			t.Errorf("%s: distance from its distribution = %v, want at most %v", c.name, d, limit)
		}
	}
}

// No draw is shorter than one token or longer than the cap, whatever the parameters.
func TestLengthsAreClamped(t *testing.T) {
	s := rng.New(1, "x")
	for range 1000 {
		for _, l := range []Lengths{NewNormal(0, 1e12, s), NewLogNormal(1, 300, s)} {
			if v := l.Next(); v < 1 || v > MaxTokens {
				t.Fatalf("Next() = %d, want within 1 and %d", v, MaxTokens)
			}
		}
	}
	if lo, hi := NewEmpirical([]int32{5, 3, 9}, s).Range(); lo != 3 || hi != 9 {
		t.Errorf("Range() = %d, %d, want 3, 9", lo, hi)
	}
	if lo, hi := Fixed(7).Range(); lo != 7 || hi != 7 || Fixed(7).Next() != 7 {
		t.Errorf("Fixed(7): Range() = %d, %d, want 7, 7", lo, hi)
	}
}

// Long prompts with long answers: drawing the columns apart would lose what ties them.
func TestPairsStayTogether(t *testing.T) {
	seen := map[int]bool{}
	p := NewPairs([]int32{1, 2, 3}, []int32{10, 20, 30}, rng.New(1, ForPairs))
	for range 100 {
		prompt, output := p.NextPair()
		if output != 10*prompt {
			t.Fatalf("NextPair() = %d, %d, want a row of the list", prompt, output)
		}
		seen[prompt] = true
	}
	if len(seen) != 3 {
		t.Errorf("NextPair() gave rows %v, want all three", seen)
	}
}

func chat(seed uint64, prompts func(*rng.Stream) Lengths) Source {
	return Open(NewPoisson(80, rng.New(seed, ForArrivals)),
		Independent(prompts(rng.New(seed, ForPrompts)), NewUniform(1, 900, rng.New(seed, ForOutputs))), 1000)
}

func longer(s *rng.Stream) Lengths { return NewLogNormal(900, 1, s) }
func short(s *rng.Stream) Lengths  { return NewUniform(1, 9, s) }

// Common random numbers: what is compared differs only where the question does.
func TestOtherPromptsShiftNeitherArrivalsNorOutputs(t *testing.T) {
	a, b := take(chat(4, longer), 2000), take(chat(4, short), 2000)
	if len(a) != 1000 || len(b) != 1000 {
		t.Fatalf("Open(..., 1000) gave %d and %d requests", len(a), len(b))
	}
	for i := range a {
		if a[i].ID != int64(i) || a[i].Arrival != b[i].Arrival || a[i].Output != b[i].Output {
			t.Fatalf("request %d: %+v and %+v, want other prompts only", i, a[i], b[i])
		}
	}
	if other := take(chat(5, longer), 1)[0]; other.Arrival == a[0].Arrival {
		t.Errorf("another seed gives the same first arrival %v", other.Arrival)
	}
}

// Pinned: a change here changes every synthetic result.
func TestSyntheticWorkloadIsPinned(t *testing.T) {
	var got string
	for _, r := range take(chat(42, longer), 3) {
		got += fmt.Sprintf("%d %d %d %d\n", r.ID, r.Arrival, r.Prompt, r.Output)
	}
	const want = "0 13891869 174 86\n1 25211999 1182 269\n2 34425559 392 23\n"
	if got != want {
		t.Errorf("first requests = %q, want %q", got, want)
	}
}

func TestOpenWithoutEnd(t *testing.T) {
	s := Open(NewAllAtOnce(), Independent(Fixed(1), Fixed(1)), 0)
	if got := len(take(s, 12_345)); got != 12_345 {
		t.Errorf("Open(..., 0) gave %d requests, want no end", got)
	}
}

// However answers come back, as many requests are out as there are streams, until the last were
// sent; each is sent when a stream has thought.
func TestClosedKeepsItsConcurrency(t *testing.T) {
	const streams, n, think = 8, 1000, 3 * time.Millisecond
	s := Closed(streams, think, Independent(Fixed(1), Fixed(1)), n)
	order := rng.New(6, "answers")
	var out []Request
	var now time.Duration
	var issued int
	for {
		for _, r := range take(s, n+1) {
			if r.ID != int64(issued) {
				t.Fatalf("request %d has ID %d", issued, r.ID)
			}
			if want := now + think; issued >= streams && r.Arrival != want {
				t.Fatalf("request %d arrives at %v, want %v", issued, r.Arrival, want)
			}
			out = append(out, r)
			issued++
		}
		if want := min(streams, n-issued+len(out)); len(out) != want {
			t.Fatalf("after %d requests %d are outstanding, want %d", issued, len(out), want)
		}
		if len(out) == 0 {
			break
		}
		now += time.Duration(order.IntN(1000))
		i := order.IntN(len(out))
		s.Done(out[i].ID, now)
		out = slices.Delete(out, i, i+1)
		if issued == n && len(out) < streams {
			continue
		}
	}
	if issued != n {
		t.Errorf("Closed(..., %d) sent %d requests", n, issued)
	}
}

func TestClosedRefusesAnAnswerToNothing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Done without a request outstanding returned, want a panic")
		}
	}()
	Closed(1, 0, Independent(Fixed(1), Fixed(1)), 1).Done(0, 0)
}

func BenchmarkOpenPoisson(b *testing.B) {
	s := Open(NewPoisson(80, rng.New(1, ForArrivals)), Independent(Fixed(512), Fixed(64)), 0)
	b.ReportAllocs()
	for b.Loop() {
		s.Next()
	}
}

func ExampleOpen() {
	s := Open(NewConstant(4), Independent(Fixed(512), Fixed(64)), 2)
	for r, ok := s.Next(); ok; r, ok = s.Next() {
		fmt.Println(r.ID, r.Arrival, r.Prompt, r.Output)
	}
	// Output:
	// 0 250ms 512 64
	// 1 500ms 512 64
}

func ExampleClosed() {
	s := Closed(1, time.Second, Independent(Fixed(512), Fixed(64)), 2)
	first, _ := s.Next()
	_, early := s.Next()
	s.Done(first.ID, 3*time.Second)
	second, _ := s.Next()
	fmt.Println(first.Arrival, early, second.Arrival)
	// Output: 0s false 4s
}
