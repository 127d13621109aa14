package scenarios_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
)

// set is an edit of a scenario.
func set(path string, value any) scenarios.Edit {
	return scenarios.Edit{Path: path, Value: fmt.Sprint(value)}
}

// measure runs a scenario to its end and shows every step to look, which may be nil.
func measure(t *testing.T, look func(*sim.Step), name string, edits ...scenarios.Edit) report.Summary {
	t.Helper()
	s, err := scenarios.Load(name, edits)
	if err != nil {
		t.Fatalf("Load(%s, %v): %v", name, edits, err)
	}
	source, _, err := s.Source()
	if err != nil {
		t.Fatalf("%s %v: Source(): %v", name, edits, err)
	}
	var recorder report.Recorder
	for run := sim.NewRun(s.Cluster(), source); ; {
		p, more := run.Advance()
		if !more {
			break
		}
		recorder.Take(p)
		if look != nil {
			for i := range p.Steps {
				look(&p.Steps[i])
			}
		}
	}
	return recorder.Summary(report.Identity{})
}

// bySeed runs a scenario under seeds from 1 on and returns what each run served, in requests per
// second.
func bySeed(t *testing.T, seeds int, name string, edits ...scenarios.Edit) sample {
	t.Helper()
	served := make(sample, seeds)
	var all sync.WaitGroup
	for worker := range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := worker; i < seeds; i += runtime.GOMAXPROCS(0) {
				served[i] = measure(t, nil, name, append(slices.Clone(edits), set("seed", i+1))...).Throughput.Completed
			}
		})
	}
	all.Wait()
	return served
}

// sample is independent draws of one figure.
type sample []float64

func (s sample) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

func (s sample) deviation() float64 {
	mean, sum := s.mean(), 0.0
	for _, x := range s {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(s)-1))
}

// middle is the range of the sample without so large a share at each end.
func (s sample) middle(cut float64) (lo, hi float64) {
	sorted := slices.Sorted(slices.Values(s))
	n := int(cut * float64(len(s)))
	return sorted[n], sorted[len(s)-1-n]
}

func (s sample) String() string {
	return fmt.Sprintf("%.2f, sd %.2f, %.2f to %.2f (%d)", s.mean(), s.deviation(), slices.Min(s), slices.Max(s), len(s))
}

// agree tests that two samples have one mean, at the 95% level.
func agree(t *testing.T, what string, got, want sample) {
	t.Helper()
	far := 1.96 * math.Hypot(got.deviation()/math.Sqrt(float64(len(got))), want.deviation()/math.Sqrt(float64(len(want))))
	if math.Abs(got.mean()-want.mean()) > far {
		t.Errorf("%s: simulated %v, estimated %v, want means within %.2f", what, got, want, far)
	}
}

// about tests a figure against the expected one, within half a percent.
func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 0.005*want) {
		t.Errorf("%s = %.4f, want %.4f within 0.5%%", what, got, want)
	}
}

func within(t *testing.T, what string, got, lo, hi float64) {
	t.Helper()
	if !(lo <= got && got <= hi) {
		t.Errorf("%s = %.4f, want %v to %v", what, got, lo, hi)
	}
}

// 64 streams share the reading of the weights, and so do 38 times the work of one.
func TestE1Batching(t *testing.T) {
	many, one := measure(t, nil, "e1"), measure(t, nil, "e1-single")
	about(t, "e1 over e1-single: output tokens per second", many.Throughput.Output/one.Throughput.Output, 38.34)
	about(t, "e1 over e1-single: TPOT p50", many.Latency.TPOT.P50/one.Latency.TPOT.P50, 1.554)
	about(t, "e1 over e1-single: ITL p50", many.Latency.ITL.P50/one.Latency.ITL.P50, 1.554)
	about(t, "e1: TTFT p50, ms", many.Latency.TTFT.P50, 111.66)
}

// Streams that start together with answers of one length end together for ever: their prompts
// share one long step. Without that, a prompt waits for no other, and its first token takes a step.
func TestE1TimeToFirstTokenIsPhaseLock(t *testing.T) {
	prompts := map[int]int{} // steps by the prompts they compute
	measure(t, func(s *sim.Step) { prompts[s.Shape.PrefillTokens()/128]++ }, "e1")
	if prompts[64] != 100 || len(prompts) != 2 {
		t.Errorf("e1: steps by number of prompts = %v, want 100 with 64 and the others with none", prompts)
	}

	unequal := measure(t, nil, "e1-uniform")
	about(t, "e1-uniform: TTFT p50, ms", unequal.Latency.TTFT.P50, 7.115)
	about(t, "e1-uniform: TTFT p50 over the mean step", unequal.Latency.TTFT.P50/unequal.Steps.MeanMS, 1)
	about(t, "e1-uniform: longest TTFT, of the common start, ms", unequal.Latency.TTFT.Max, 111.66)
	if p50 := unequal.Latency.Queue.P50; p50 != 0 {
		t.Errorf("e1-uniform: queue p50 = %v ms, want 0: a stream sends when a step ends, as the next one starts", p50)
	}

	// Those that come at random wait for the end of a step first.
	open := measure(t, nil, "e1-open")
	about(t, "e1-open: TTFT p50, ms", open.Latency.TTFT.P50, 9.926)
	about(t, "e1-open: TTFT p90, ms", open.Latency.TTFT.P90, 13.20)
	within(t, "e1-open: wait for a step, share of the mean step", open.Latency.Queue.P50/open.Steps.MeanMS, 0.48, 0.58)
	within(t, "e1-open: time with all slots taken", open.Blocked.Slots, 0, 0.1)

	// A pause takes the streams of the loop off the ends of steps: what a step of 7.1 ms leaves of
	// it is waited for.
	pause := measure(t, nil, "e1-uniform", set("workload.arrivals.think_time", "3ms"))
	about(t, "e1-uniform with a pause of 3 ms: TTFT p50, ms", pause.Latency.TTFT.P50, 11.2)
}

// A step of 16 streams reads their contexts, and costs what those add to the weights.
func TestE2Context(t *testing.T) {
	long, short := measure(t, nil, "e2-long"), measure(t, nil, "e2")
	about(t, "e2-long over e2: ITL p50", long.Latency.ITL.P50/short.Latency.ITL.P50, 2.81)
}

// A smaller budget cuts a long prompt into more steps: others wait less for each, and for no more
// in all.
func TestE3ChunkedPrefill(t *testing.T) {
	whole, chunks := measure(t, nil, "e3"), measure(t, nil, "e3-budget-2048")
	about(t, "e3: longest stall, ms", whole.Latency.ITL.Max, 111.66)
	about(t, "e3-budget-2048: longest stall, ms", chunks.Latency.ITL.Max, 27.91)
	about(t, "e3: end, s", whole.VirtualS, 3.67)
	about(t, "e3-budget-2048: end, s", chunks.VirtualS, 3.64)
	if a, b := whole.Steps, chunks.Steps; math.Round(a.MeanTokens*float64(a.Count)) != math.Round(b.MeanTokens*float64(b.Count)) {
		t.Errorf("e3 and e3-budget-2048 compute %+v and %+v, want the same number of tokens", a, b)
	}
}

// The KV cache admits what it holds, whatever the slots; the rest is queueing.
func TestE4Admission(t *testing.T) {
	s := measure(t, nil, "e4")
	if s.Running.Max != 9 {
		t.Errorf("e4: at most %d run, want 9", s.Running.Max)
	}
	about(t, "e4: TTFT p50, s", s.Latency.TTFT.P50/1e3, 4.397)
	within(t, "e4: queueing, share of TTFT p50", s.Latency.Queue.P50/s.Latency.TTFT.P50, 0.97, 0.98)
}

// The watermark saves preemptions and costs nothing; a few streams pay for all the others.
func TestE5Preemption(t *testing.T) {
	s, without := measure(t, nil, "e5"), measure(t, nil, "e5-no-watermark")
	if a, b := s.Preemptions.Total, without.Preemptions.Total; a != 139 || b != 153 {
		t.Errorf("preemptions of e5 and e5-no-watermark = %d, %d, want 139, 153", a, b)
	}
	about(t, "e5: ITL p50, ms", s.Latency.ITL.P50, 7.91)
	about(t, "e5: longest freeze, s", s.Preemptions.LongestFreeze/1e3, 51.8)
	about(t, "e5: end, s", s.VirtualS, 69.49)
	about(t, "e5-no-watermark: end, s", without.VirtualS, 69.84)
}

// What follows estimates a saturated replica without simulating it. Every request there has one
// prompt and one output length, so that a slot which is never idle computes a prompt every period
// steps. A pattern counts the slots that do at each step of a period.
const (
	period = 64  // output tokens
	prompt = 512 // tokens
)

type pattern [period]int

// stepTime is the roofline of the base model, in seconds.
func stepTime(tokens, context float64) float64 {
	const parameters, weights, kv, flops, bandwidth = 6.74e9, 13.48e9, 524288, 989e12, 3e12
	return max(2*parameters*tokens/flops, (weights+kv*context)/bandwidth)
}

// step is the time of a pattern's step at which the slots of one phase compute their prompts.
func (p *pattern) step(at int) float64 {
	tokens, context := 0, 0
	for phase, slots := range p {
		age := (at - phase + period) % period
		if age == 0 {
			tokens += slots * prompt
		} else {
			tokens += slots
		}
		context += slots * (prompt + age)
	}
	return stepTime(float64(tokens), float64(context))
}

func (p *pattern) slots() (n int) {
	for _, slots := range p {
		n += slots
	}
	return n
}

// rate is the throughput as long as no slot is ever idle: one request per slot and period.
func (p *pattern) rate() float64 {
	time := 0.0
	for at := range p {
		time += p.step(at)
	}
	return float64(p.slots()) / time
}

// fill is the pattern in which arrivals, in seconds, leave the slots once a backlog of more than
// twice their number stands. Its time goes in steps, since those who arrive during a long step
// compute their prompts together.
func fill(arrival func() float64, slots int) (p pattern) {
	now, waiting, busy := 0.0, 0, 0
	next := arrival()
	for at := 0; waiting <= 2*slots; at = (at + 1) % period {
		busy -= p[at] // those answered by the last step
		if p[at] = 0; busy == 0 {
			now = max(now, next)
		}
		for ; next <= now; next = arrival() {
			waiting++
		}
		p[at] = min(waiting, slots-busy)
		waiting -= p[at]
		busy += p[at]
		now += p.step(at)
	}
	return p
}

// fills is what the patterns serve that Poisson arrivals fill, taken up at multiples of grid
// seconds unless that is 0.
func fills(draws, slots int, rate, grid float64) sample {
	chance := rand.New(rand.NewPCG(1, uint64(slots)))
	s := make(sample, draws)
	for i := range s {
		at := 0.0
		p := fill(func() float64 {
			at += chance.ExpFloat64() / rate
			if grid > 0 {
				return math.Ceil(at/grid) * grid
			}
			return at
		}, slots)
		s[i] = p.rate()
	}
	return s
}

// scattered is the throughput of full slots whose phases are independent, as outputs drawn from lo
// to hi make them in the long run:
//
//	sum over k of P(k of the slots compute their prompt) * step time
//
// where k is binomial with probability 1/E[L], and the others are at an age whose mean is that of a
// renewal process in its stationary state, (E[L^2]/E[L] - 1) / 2.
func scattered(slots, lo, hi int) float64 {
	first, second := 0.0, 0.0
	for l := lo; l <= hi; l++ {
		first += float64(l) / float64(hi-lo+1)
		second += float64(l*l) / float64(hi-lo+1)
	}
	p, n := 1/first, float64(slots)
	age := (second/first - 1) / 2 / (1 - p)
	step, chance := 0.0, math.Pow(1-p, n)
	for i := range slots + 1 {
		k := float64(i)
		step += chance * stepTime(k*prompt+n-k, n*prompt+(n-k)*age)
		chance *= (n - k) / (k + 1) * p / (1 - p)
	}
	return n / first / step
}

// A stretch is successive steps with requests waiting.
type stretch struct {
	prompts []int // computed whole, per step
	times   []time.Duration
}

// pattern is the second period of a stretch: in the first, slots may still fill.
func (s *stretch) pattern() pattern { return pattern(s.prompts[period : 2*period]) }

// A watch keeps a run's longest stretch.
type watch struct{ now, before stretch }

func (w *watch) see(s *sim.Step) {
	if s.Waiting == 0 {
		if len(w.now.times) > len(w.before.times) {
			w.now, w.before = w.before, w.now
		}
		w.now.prompts, w.now.times = w.now.prompts[:0], w.now.times[:0]
		return
	}
	w.now.prompts = append(w.now.prompts, s.Shape.PrefillTokens()/prompt)
	w.now.times = append(w.now.times, s.End-s.Start)
}

func (w *watch) longest() *stretch {
	if len(w.now.times) > len(w.before.times) {
		return &w.now
	}
	return &w.before
}

// At 60 requests per second 16 slots are too few and 32 are at the edge, while 64 are never short.
func TestE6Slots(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	for _, c := range []struct {
		slots                    string
		served, ttft, itl, queue float64
	}{
		{"16", 38.51, 45689, 6.023, 45682},
		{"32", 58.22, 1254.4, 7.535, 1240.2},
		{"64", 60.45, 14.75, 7.829, 4.179},
	} {
		s := measure(t, nil, "e6-"+c.slots)
		about(t, "e6-"+c.slots+": served per second", s.Throughput.Completed, c.served)
		about(t, "e6-"+c.slots+": TTFT p50, ms", s.Latency.TTFT.P50, c.ttft)
		about(t, "e6-"+c.slots+": ITL p50, ms", s.Latency.ITL.P50, c.itl)
		about(t, "e6-"+c.slots+": queue p50, ms", s.Latency.Queue.P50, c.queue)
	}
	on16, on32, on64 := bySeed(t, 20, "e6-16"), bySeed(t, 20, "e6-32"), bySeed(t, 20, "e6-64")
	filled := fills(1000, 16, 60, 0)
	t.Logf("served: 16 slots %v, estimated %v; 32 slots %v; 64 slots %v", on16, filled, on32, on64)
	agree(t, "e6-16: served per second", on16, filled)
	fromArrivals(t, 20, 16, "e6-16")

	// 32 slots carry the load only as long as their phases are scattered: once frozen, most fall short.
	about(t, "32 slots with independent phases: served per second", scattered(32, period, period), 60.63)
	within(t, "e6-32: mean served per second", on32.mean(), 58, 59.5)
	within(t, "e6-64: mean served per second", on64.mean(), 59.5, 60.5)
}

// Once all slots are taken each computes its next prompt exactly a period after the last, so that
// the steps of one period repeat until the backlog is gone, and say what the run serves.
func TestE7SaturationFreezesThePattern(t *testing.T) {
	for seed := range 5 {
		var w watch
		s := measure(t, w.see, "e7", set("workload.arrivals.rate", 90), set("seed", seed))
		full := w.longest()
		if len(full.times) < 9000 {
			t.Fatalf("e7 at 90 with seed %d: requests wait for %d steps on end, want 9000 and more", seed, len(full.times))
		}
		frozen := full.pattern()
		for i := range full.prompts[period:] {
			if got, want := full.prompts[period+i], frozen[i%period]; got != want {
				t.Fatalf("e7 at 90 with seed %d: saturated step %d computes %d prompts, want %d as all those whole periods away",
					seed, period+i, got, want)
			}
		}
		var took time.Duration
		for _, step := range full.times[2*period : 3*period] {
			took += step
		}
		if got, want := 64/took.Seconds(), frozen.rate(); math.Abs(got-want) > 1e-5*want {
			t.Errorf("e7 at 90 with seed %d: a period serves %.6f per second, want %.6f by the formula", seed, got, want)
		}
		about(t, fmt.Sprintf("e7 at 90 with seed %d: served per second", seed), s.Throughput.Completed, frozen.rate())
	}
	even := pattern{}
	for i := range even {
		even[i] = 1
	}
	within(t, "one prompt in every step: served per second", even.rate(), 94, 95)
	within(t, "all prompts in one step: served per second", (&pattern{0: 64}).rate(), 57, 58)
}

// fromArrivals tests that every run of several seeds freezes in the pattern that its own arrivals
// fill by the formula, and returns what those patterns serve.
func fromArrivals(t *testing.T, seeds, slots int, name string, edits ...scenarios.Edit) sample {
	t.Helper()
	var rates sample
	for seed := range seeds {
		all := append(slices.Clone(edits), set("seed", seed+1), set("workload.requests", 3000))
		var w watch
		measure(t, w.see, name, all...)
		s, err := scenarios.Load(name, all)
		if err != nil {
			t.Fatal(err)
		}
		source, _, err := s.Source()
		if err != nil {
			t.Fatal(err)
		}
		want := fill(func() float64 {
			r, ok := source.Next()
			if !ok {
				t.Fatalf("%s with seed %d: the slots never fill", name, seed+1)
			}
			return r.Arrival.Seconds()
		}, slots)
		// A pattern has no first step: where it is cut does not matter to what it serves.
		if got := w.longest().pattern(); math.Abs(got.rate()-want.rate()) > 1e-9*want.rate() {
			t.Errorf("%s with seed %d freezes in %v, serving %v, want %v, serving %v", name, seed+1, got, got.rate(), want, want.rate())
		}
		rates = append(rates, want.rate())
	}
	return rates
}

// So a saturated run draws its throughput once, when its slots fill. What any one run serves, the
// reference's 80.97 too, is one draw.
func TestE7ServesWhatItsPatternAllows(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	served := bySeed(t, 60, "e7", set("workload.arrivals.rate", 90), set("workload.requests", 20000))
	filled := fills(2000, 64, 90, 0)
	t.Logf("simulated %v, estimated %v", served, filled)
	agree(t, "e7 at 90: served per second", served, filled)
	lo, hi := served.middle(0.025)
	within(t, "the reference's draw against the seeds' central 95%", 80.97, lo, hi)
	lo, hi = filled.middle(0.025)
	within(t, "the reference's draw against the estimate's central 95%", 80.97, lo, hi)
	within(t, "e7 at 90: standard deviation over seeds", served.deviation(), 1.8, 2.6)

	patterns := fromArrivals(t, 60, 64, "e7", set("workload.arrivals.rate", 90))
	t.Logf("patterns %v", patterns)
	about(t, "e7 at 90: mean served over mean of the patterns", served.mean()/patterns.mean(), 1)

	// Those who arrive during a long step make the next one long: phases are not independent, and a
	// run serves less than if they were.
	about(t, "independent phases: served per second", scattered(64, period, period), 80.69)
	if most := served.mean() + 3*served.deviation()/math.Sqrt(60); most > scattered(64, period, period) {
		t.Errorf("e7 at 90: served per second = %v, want clearly less than %.2f", served, scattered(64, period, period))
	}
}

// A run at a rate that most patterns carry is safe until a burst fills the slots in one that does
// not carry it; then the queue grows for good.
func TestE7CollapsesBelowItsMeanCapacity(t *testing.T) {
	load := []scenarios.Edit{set("workload.arrivals.rate", 75)}
	if s := measure(t, nil, "e7", append(load, set("workload.requests", 200_000))...); s.Queue.Max > 500 {
		t.Errorf("e7 at 75, 200,000 requests: longest queue = %d, want below 500", s.Queue.Max)
	}
	var w watch
	s := measure(t, w.see, "e7", append(load, set("workload.requests", 400_000))...)
	if s.Queue.Max < 1000 {
		t.Errorf("e7 at 75, 400,000 requests: longest queue = %d, want above 1000", s.Queue.Max)
	}
	caught := w.longest()
	frozen := caught.pattern()
	t.Logf("trapped at %.3f for %d steps", frozen.rate(), len(caught.times))
	within(t, "the pattern that e7 at 75 is caught in: served per second", frozen.rate(), 60, 75)
}

// Answers of unequal length move every slot's phase on, so that a run sees many patterns and
// serves their average, whatever its seed; and no burst is for good.
func TestE7UnequalOutputsThaw(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	unequal := set("workload.output_tokens", "{uniform: [32, 96]}")
	served := bySeed(t, 30, "e7", unequal, set("workload.arrivals.rate", 90), set("workload.requests", 20000))
	t.Logf("simulated %v, estimated %.2f", served, scattered(64, 32, 96))
	about(t, "e7 at 90 with 32-96 output tokens: served per second", served.mean(), scattered(64, 32, 96))
	within(t, "e7 at 90 with 32-96 output tokens: standard deviation over seeds", served.deviation(), 0, 0.25)
	for _, rate := range []int{75, 76} {
		s := measure(t, nil, "e7", unequal, set("workload.arrivals.rate", rate), set("workload.requests", 400_000))
		if s.Queue.Max > 150 {
			t.Errorf("e7 at %d with 32-96 output tokens: longest queue = %d, want below 150", rate, s.Queue.Max)
		}
	}
}

// Arrivals that come in bunches compute their prompts together, and so fill the slots in patterns
// that serve less. They cost nothing where patterns do not last.
func TestE7bBunchedArrivalsFillWorsePatterns(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	rate, unequal := set("workload.arrivals.rate", 90), set("workload.output_tokens", "{uniform: [32, 96]}")
	about(t, "e7-bunched at 90, seed 42: served per second", measure(t, nil, "e7-bunched", rate).Throughput.Completed, 72.5)
	bunched := bySeed(t, 60, "e7-bunched", rate)
	patterns := fromArrivals(t, 60, 64, "e7-bunched", rate)
	filled := fills(2000, 64, 90, 0.025)
	t.Logf("simulated %v, patterns %v, estimated %v", bunched, patterns, filled)
	about(t, "e7-bunched at 90: mean served over mean of the patterns", bunched.mean()/patterns.mean(), 1)
	within(t, "e7-bunched at 90: mean of the patterns over that of other arrivals'", patterns.mean()/filled.mean(), 0.99, 1.01)
	within(t, "patterns: share lost by bunching", 1-filled.mean()/fills(2000, 64, 90, 0).mean(), 0.09, 0.105)

	apart, together := bySeed(t, 20, "e7", rate, unequal), bySeed(t, 20, "e7-bunched", rate, unequal)
	t.Logf("with 32-96 output tokens: %v, bunched %v", apart, together)
	about(t, "with 32-96 output tokens at 90: bunched arrivals over others", together.mean()/apart.mean(), 1)
}
