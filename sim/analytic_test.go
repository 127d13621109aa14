package sim_test

import (
	"math"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/rng"
	"llmsim/workload"
)

// What queueing theory and arithmetic know without a simulator.

// flat is a step of one length, whatever it computes.
type flat time.Duration

func (f flat) StepTime(cost.Shape) (time.Duration, cost.Bound) {
	return time.Duration(f), cost.Overhead
}

// play runs a workload to its end.
func play(c *sim.Cluster, source workload.Source) (steps []sim.Step, arrived []workload.Request) {
	run := sim.NewRun(c, source)
	for {
		p, ok := run.Advance()
		if !ok {
			return steps, arrived
		}
		arrived = append(arrived, p.Arrived...)
		steps = append(steps, clone(p.Steps)...)
	}
}

func answers(steps []sim.Step) (all []sim.Finished) {
	for _, s := range steps {
		all = append(all, s.Finished...)
	}
	return all
}

func constant(prompt, output int) workload.PairSource {
	return workload.Independent(workload.Fixed(prompt), workload.Fixed(output))
}

func oneSlot(price cost.Model) setup {
	return setup{replicas: 1, blocks: 10, block: 16, slots: 1, budget: 100, maxModelLen: 160, cost: price,
		router: func() sim.Router { return nil }}
}

// One slot and requests of five steps each are a queue with one server, Poisson arrivals and a
// fixed service time D, whose mean wait Pollaczek and Khinchine give: rho D / (2 (1 - rho)), with
// rho the arrival rate times D. The sample of a finite run strays from it; the interval is that of
// the means of 50 batches, each long against the time over which waits depend on each other.
func TestOneSlotIsMD1(t *testing.T) {
	const step, output, n, batches = 2 * time.Millisecond, 5, 400_000, 50
	const service = output * step
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		stream := rng.New(11, workload.ForArrivals)
		source := workload.Open(workload.NewPoisson(rho/service.Seconds(), stream), constant(8, output), n)
		run := sim.NewRun(oneSlot(flat(step)).cluster(), source)
		var means [batches]float64
		count := 0
		for p, ok := run.Advance(); ok; p, ok = run.Advance() {
			for i := range p.Steps {
				for _, f := range p.Steps[i].Finished {
					means[count*batches/n] += (f.FirstSchedule - f.Arrival).Seconds() * batches / n
					count++
					if f.LastToken-f.FirstSchedule != service {
						t.Fatalf("service of request %d = %v, want %v", f.ID, f.LastToken-f.FirstSchedule, service)
					}
				}
			}
		}
		mean, square := 0.0, 0.0
		for _, m := range means {
			mean += m / batches
		}
		for _, m := range means {
			square += (m - mean) * (m - mean)
		}
		const z = 3.5 // Student's t, 49 degrees of freedom: 1 in 1000, on both sides
		interval := z * math.Sqrt(square/(batches-1)/batches)
		want := rho * service.Seconds() / (2 * (1 - rho))
		t.Logf("rho %g: mean wait %.5g s, Pollaczek-Khinchine %.5g s, %+.2f%%, interval %.2f%%",
			rho, mean, want, 100*(mean/want-1), 100*interval/want)
		if count != n || math.Abs(mean-want) > interval || math.Abs(mean/want-1) > 0.03 {
			t.Errorf("mean wait at rho %g = %g s over %d requests, want %g s within %g s and 3%%", rho, mean, count, want, interval)
		}
	}
}

// Little's law, as an identity of a whole run that starts and ends empty: the integral of the
// number in the system over time is the sum of everyone's time in it. The left side is counted by
// asking the cluster between events, the right side comes from what the requests report.
func TestLittlesLaw(t *testing.T) {
	s := oneSlot(linear{step: time.Millisecond, token: 10 * time.Microsecond})
	s.replicas, s.slots, s.blocks = 2, 3, 14
	s.router = func() sim.Router { return sim.LeastLoaded{} }
	lengths := workload.Independent(workload.NewUniform(1, 60, rng.New(2, workload.ForPrompts)),
		workload.NewUniform(1, 90, rng.New(2, workload.ForOutputs)))
	source := workload.Open(workload.NewPoisson(70, rng.New(2, workload.ForArrivals)), lengths, 2000)
	c := s.cluster()
	present := func() time.Duration {
		n := c.Counts()
		return time.Duration(n.Queued + n.Running)
	}
	var area, stays time.Duration
	finished, preempted := 0, 0
	see := func(steps []sim.Step) {
		for _, f := range answers(steps) {
			stays += f.LastToken - f.Arrival
			finished++
			preempted += f.Preemptions
		}
	}
	move := func(to time.Duration) {
		for c.Now() < to {
			// Between two events the number is constant; Next takes in what arrived now.
			at, ok := c.Next()
			if !ok || at > to {
				at = to
			}
			was, n := c.Now(), present()
			see(c.Advance(at))
			area += n * (c.Now() - was)
		}
	}
	for q, ok := source.Next(); ok; q, ok = source.Next() {
		move(q.Arrival)
		if _, err := c.Submit(q); err != nil {
			t.Fatal(err)
		}
	}
	for at, ok := c.Next(); ok; at, ok = c.Next() {
		move(at)
	}
	if finished != 2000 || preempted == 0 || area <= 2*c.Now() {
		t.Errorf("%d finished, %d preemptions, %.2f present on average: want 2000, and a busy run", finished, preempted, area.Seconds()/c.Now().Seconds())
	}
	if area != stays {
		t.Errorf("integral of the number present = %v, sum of stays = %v, want them equal", area, stays)
	}
}

// A single slot that is never empty serves one request in the sum of its steps' times: prefill of
// the prompt, then one decode per further token at a context that grows by one.
func TestCapacityOfOneSlot(t *testing.T) {
	const prompt, output, n = 100, 30, 50
	base := sevenBillion()
	price := base.Cost
	want, _ := price.StepTime(cost.Shape{Sequences: 1, Tokens: prompt, Sampled: 1, Context: prompt})
	for i := range output - 1 {
		step, _ := price.StepTime(cost.Shape{Sequences: 1, Tokens: 1, Sampled: 1, Context: int64(prompt + i + 1)})
		want += step
	}
	s := oneSlot(price)
	steps, _ := play(s.cluster(), workload.Open(workload.NewAllAtOnce(), constant(prompt, output), n))
	if got := steps[len(steps)-1].End; got != n*want {
		t.Errorf("%d requests of %d/%d on one slot take %v, want %d times %v", n, prompt, output, got, n, want)
	}
}

// With all slots decoding, a step emits as many tokens as there are slots: nothing is lost between
// two steps, and the throughput is slots / step time.
func TestThroughputAtFullSlots(t *testing.T) {
	const slots, output, step = 40, 300, 7 * time.Millisecond
	s := oneSlot(flat(step))
	s.slots, s.blocks, s.maxModelLen, s.budget = slots, 10_000, 1000, slots
	steps, _ := play(s.cluster(), workload.Open(workload.NewAllAtOnce(), constant(1, output), 3*slots))
	emitted := 0
	for i, p := range steps {
		emitted += p.Shape.Sampled
		if p.Start != time.Duration(i)*step || p.Shape.Sampled != slots {
			t.Fatalf("step %d starts at %v with %d tokens, want %v with %d", i, p.Start, p.Shape.Sampled, time.Duration(i)*step, slots)
		}
	}
	end := steps[len(steps)-1].End
	if got, want := float64(emitted)/end.Seconds(), slots/step.Seconds(); math.Abs(got/want-1) > 1e-12 || emitted != 3*slots*output {
		t.Errorf("throughput = %d tokens in %v, %g/s, want %g/s", emitted, end, got, want)
	}
}

// The article's first experiment in closed form: 64 streams that all start and end together, 128
// tokens in and 200 out, against one stream. With W the bytes of weights, k those of a token in
// the cache, B the bandwidth and P the price of a token's arithmetic, one round of n streams takes
//
//	max(n*128*P, (W + n*128*k)/B)  +  sum over i = 1..199 of (W + n*(128+i)*k)/B
//
// and every round is like the first, because all streams end in one step: that is the article's
// phase-lock. Then the throughput of 64 is 38 times that of one.
func TestExperiment1(t *testing.T) {
	const prompt, output, rounds = 128, 200, 10
	round := func(n float64) float64 {
		const W, k, B, P = 13.48e9, 524288, 3e12, 2 * 6.74e9 / 989e12
		total := max(n*prompt*P, (W+n*prompt*k)/B)
		for i := 1.0; i < output; i++ {
			total += (W + n*(prompt+i)*k) / B
		}
		return total
	}
	measure := func(streams int) (seconds, step float64) {
		steps, _ := play(sim.New(sevenBillion()), workload.Closed(streams, 0, constant(prompt, output), streams*rounds))
		var decoding time.Duration
		decodes := 0
		for i, s := range steps {
			if i > 0 && s.Start != steps[i-1].End {
				t.Errorf("step %d starts at %v, want the end of the one before, %v", i, s.Start, steps[i-1].End)
			}
			if s.Shape.PrefillTokens() == 0 {
				decoding += s.End - s.Start
				decodes++
			}
		}
		return steps[len(steps)-1].End.Seconds() / rounds, decoding.Seconds() / float64(decodes)
	}
	one, stepOf1 := measure(1)
	all, stepOf64 := measure(64)
	for _, c := range []struct {
		what      string
		got, want float64
		within    float64 // of 1
	}{
		{"a round of one stream", one, round(1), 1e-6}, // every step is rounded to nanoseconds
		{"a round of 64 streams", all, round(64), 1e-6},
		{"throughput of 64 over that of one", 64 * one / all, 38, 0.02},
		{"step of 64 over that of one", stepOf64 / stepOf1, 1.56, 0.01},
	} {
		if math.Abs(c.got/c.want-1) > c.within {
			t.Errorf("%s = %v, want %v within %g", c.what, c.got, c.want, c.within)
		}
	}
	t.Logf("64 streams: %.2f times the throughput at %.3f times the step", 64*one/all, stepOf64/stepOf1)
}
