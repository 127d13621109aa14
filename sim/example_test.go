package sim_test

import (
	"fmt"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/rng"
	"llmsim/workload"
)

// An H100 that serves a model of 7 billion parameters.
func sevenBillion() sim.Config {
	const blocks, blockSize = 7609, 16
	return sim.Config{
		Replicas: 1,
		Policy: func() policy.Policy {
			limits := policy.Limits{MaxNumSeqs: 64, MaxNumBatchedTokens: 8192}
			return policy.NewClassic(kv.NewPool(blocks, blockSize), limits, 0.01)
		},
		Cost: cost.Roofline{
			Parameters: 6.74e9, WeightBytes: 13.48e9, KVBytesPerToken: 524288,
			PeakFLOPS: 989e12, Bandwidth: 3e12, ComputeEfficiency: 1, MemoryEfficiency: 1,
		}.Model(),
		Router:      &sim.RoundRobin{},
		MaxModelLen: 32768,
		KVTokens:    blocks * blockSize,
	}
}

// A caller with a clock of its own submits requests as they come, and moves the cluster along.
func ExampleCluster() {
	c := sim.New(sevenBillion())
	slow, _ := c.Submit(workload.Request{ID: 0, Prompt: 4096, Output: 500})
	c.Submit(workload.Request{ID: 1, Arrival: 20 * time.Millisecond, Prompt: 512, Output: 2})
	c.Cancel(slow, 100*time.Millisecond)
	for {
		if _, ok := c.Next(); !ok {
			break
		}
		for _, step := range c.Advance(time.Hour) {
			if len(step.Firsts) > 0 {
				fmt.Printf("%v: %d tokens in %v, bound by %v; first token of %v\n",
					step.Start, step.Shape.Tokens, step.End-step.Start, step.Bound, step.Firsts)
			}
		}
	}
	fmt.Printf("%+v\n", c.Counts())
	// Output:
	// 0s: 4096 tokens in 55.82819ms, bound by compute; first token of [0]
	// 55.82819ms: 513 tokens in 6.992154ms, bound by compute; first token of [1]
	// {Arrived:2 Completed:1 Refused:0 Cancelled:1 Queued:0 Running:0}
}

// A request that can never be served is refused at once.
func ExampleCluster_Submit() {
	c := sim.New(sevenBillion())
	_, err := c.Submit(workload.Request{ID: 7, Prompt: 30000, Output: 4000})
	fmt.Println(err)
	// Output:
	// request 7: 30000 prompt and 4000 output tokens do not fit max_model_len of 32768 tokens
}

// A run feeds a workload through, and answers back to one that waits for them: here each of two
// clients sends its next request when it has its answer.
func ExampleRun() {
	source := workload.Closed(2, 0, workload.Independent(workload.Fixed(128), workload.Fixed(200)), 6)
	run := sim.NewRun(sim.New(sevenBillion()), source)
	for {
		p, ok := run.Advance()
		if !ok {
			break
		}
		for _, step := range p.Steps {
			for _, f := range step.Finished {
				fmt.Printf("request %d: arrived %v, answered in %v\n", f.ID,
					f.Arrival.Round(time.Millisecond), (f.LastToken - f.Arrival).Round(time.Millisecond))
			}
		}
	}
	// Output:
	// request 0: arrived 0s, answered in 915ms
	// request 1: arrived 0s, answered in 915ms
	// request 2: arrived 915ms, answered in 915ms
	// request 3: arrived 915ms, answered in 915ms
	// request 4: arrived 1.829s, answered in 915ms
	// request 5: arrived 1.829s, answered in 915ms
}

// Three replicas: the first has one long prompt, the second two short ones, the third two.
func ExampleRouter() {
	loads := []sim.Load{{Requests: 1, Tokens: 4000}, {Requests: 2, Tokens: 600}, {Requests: 2, Tokens: 500}}
	one := sim.Arrival{Prompt: 100}
	turns := &sim.RoundRobin{}
	fmt.Println("in turn", turns.Route(one, loads), turns.Route(one, loads), turns.Route(one, loads), turns.Route(one, loads))
	fmt.Println("fewest requests", sim.LeastLoaded{}.Route(one, loads))
	fmt.Println("fewest prompt tokens", sim.ShortestQueue{}.Route(one, loads))

	// Of two replicas the power of two choices always sees both.
	two := sim.PowerOfTwo{Stream: rng.New(1, "router")}
	taken := make([]int, 2)
	for range 1000 {
		taken[two.Route(one, []sim.Load{{Requests: 5}, {Requests: 4}})]++
	}
	fmt.Println("the better of two", taken)
	// Output:
	// in turn 0 1 2 0
	// fewest requests 0
	// fewest prompt tokens 2
	// the better of two [0 1000]
}
