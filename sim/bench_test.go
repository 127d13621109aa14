package sim_test

import (
	"testing"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/rng"
	"llmsim/workload"
)

var article = cost.Roofline{
	Parameters: 6.74e9, WeightBytes: 13.48e9, KVBytesPerToken: 524288,
	PeakFLOPS: 989e12, Bandwidth: 3000e9, ComputeEfficiency: 1, MemoryEfficiency: 1,
}

func articleCluster(replicas, blocks, slots int) *sim.Cluster {
	return sim.New(sim.Config{
		Replicas: replicas,
		Policy: func() policy.Policy {
			return policy.NewClassic(kv.NewPool(blocks, 16), policy.Limits{MaxNumSeqs: slots, MaxNumBatchedTokens: 8192}, 0.01)
		},
		Cost: article.Model(), Router: &sim.RoundRobin{}, MaxModelLen: 32768, KVTokens: blocks * 16,
	})
}

func poisson(rate float64, prompt, output, n int) workload.Source {
	return workload.Open(workload.NewPoisson(rate, rng.New(42, "arrivals")),
		workload.Independent(workload.Fixed(prompt), workload.Fixed(output)), n)
}

// BenchmarkCore runs the core alone, without a recorder.
func BenchmarkCore(b *testing.B) {
	for _, c := range []struct {
		name           string
		rate           float64
		prompt, output int
		blocks, slots  int
	}{
		{"E7", 80, 512, 64, 7609, 64},
		{"long-decode", 20, 128, 1024, 100000, 256},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			run := sim.NewRun(articleCluster(1, c.blocks, c.slots), poisson(c.rate, c.prompt, c.output, b.N))
			b.ResetTimer()
			steps := 0
			for {
				p, ok := run.Advance()
				if !ok {
					break
				}
				steps += len(p.Steps)
			}
			perSecond := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond, "requests/s")
			b.ReportMetric(perSecond*float64(c.output)/1e6, "Mtokens/s")
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
