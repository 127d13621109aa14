package bench

import (
	"strconv"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// A step with 256 decodes against one with 4, when nothing changes in either: the ratio is of one
// process and one run, the two measured in turn.
func BenchmarkStep(b *testing.B) {
	model := cost.Roofline{
		Parameters: 6.74e9, WeightBytes: 13.48e9, KVBytesPerToken: 524288,
		PeakFLOPS: 989e12, Bandwidth: 3000e9, ComputeEfficiency: 1, MemoryEfficiency: 1,
	}.Model()
	const steps = 4 << 10
	measure := func(decodes int) time.Duration {
		c := sim.New(sim.Config{
			Replicas: 1,
			Policy: func() policy.Policy {
				return policy.NewClassic(kv.NewPool(1<<20, 16), policy.Limits{MaxNumSeqs: decodes, MaxNumBatchedTokens: 8192}, 0)
			},
			Cost: model, Router: &sim.RoundRobin{}, MaxModelLen: 1 << 30, KVTokens: 1 << 30,
		})
		for i := range decodes {
			c.Submit(workload.Request{ID: int64(i), Prompt: 16 + i%16, Output: 1 << 24})
		}
		end := time.Duration(1 << 62)
		for n := 0; n < steps; {
			n += len(c.Advance(end))
		}
		start := time.Now()
		for n := 0; n < steps; {
			n += len(c.Advance(end))
		}
		return time.Since(start)
	}
	var few, many time.Duration
	measure(4) // the first run pays for memory
	for b.Loop() {
		few += measure(4)
		many += measure(256)
	}
	b.ReportMetric(float64(few.Nanoseconds())/float64(b.N*steps), "ns/step-of-4")
	b.ReportMetric(float64(many.Nanoseconds())/float64(b.N*steps), "ns/step-of-256")
	b.ReportMetric(float64(many)/float64(few), "ratio")
}

// What a cached prefix costs: the same request comes again and again, with a prompt of as many
// blocks, all of which the cache has.
func BenchmarkPrefix(b *testing.B) {
	for _, blocks := range []int{16, 256, 4096} {
		b.Run(strconv.Itoa(blocks)+"-blocks", func(b *testing.B) {
			p := policy.NewVLLMV1(kv.NewCachingPool(1<<16, 16, true),
				policy.Limits{MaxNumSeqs: 1, MaxNumBatchedTokens: 1 << 20},
				policy.VLLMV1Options{NumGPUBlocks: 1<<16 + 1, EnableChunkedPrefill: true, SchedulerReserveFullISL: true})
			pieces := make([]uint64, blocks)
			for i := range pieces {
				pieces[i] = uint64(i)
			}
			var d policy.Decision
			var o policy.Outcome
			b.ReportAllocs()
			for b.Loop() {
				p.Add(policy.Request{Prompt: blocks*16 + 1, Output: 1, Prefix: pieces, PrefixTokens: 16})
				p.Schedule(&d)
				p.Commit(&o)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*blocks), "ns/block")
		})
	}
}
