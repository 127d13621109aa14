// Package bench holds the benchmarks of docs/performance.md: whole runs with all distributions.
package bench

import (
	"runtime"
	"strconv"
	"testing"

	"llmsim/plan"
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
)

func load(b *testing.B, name string, requests int, edits ...scenarios.Edit) *scenarios.Scenario {
	b.Helper()
	s, err := scenarios.Load(name, append(edits, scenarios.Edit{Path: "workload.requests", Value: strconv.Itoa(requests)}))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func edit(path, value string) scenarios.Edit { return scenarios.Edit{Path: path, Value: value} }

// simulate runs a scenario to its end with every distribution, as the verb does.
func simulate(b *testing.B, s *scenarios.Scenario) (report.Summary, *report.Recorder) {
	source, notes, err := s.Source()
	if err != nil {
		b.Fatal(err)
	}
	id, err := plan.Identify(s, notes)
	if err != nil {
		b.Fatal(err)
	}
	recorder := new(report.Recorder)
	run := sim.NewRun(s.Cluster(), source)
	for {
		p, more := run.Advance()
		if !more {
			break
		}
		recorder.Take(p)
	}
	return recorder.Summary(id), recorder
}

// The two rows of throughput: simulated requests and output tokens per second of one core.
func BenchmarkSimulate(b *testing.B) {
	for _, c := range []struct {
		name     string
		requests int
		output   int
		edits    []scenarios.Edit
	}{
		{"E7-80rps-1M-requests", 1_000_000, 64, []scenarios.Edit{edit("workload.arrivals.rate", "80")}},
		{"128in-1024out-256slots-20rps", 50_000, 1024, []scenarios.Edit{
			edit("workload.arrivals.rate", "20"), edit("workload.prompt_tokens", "128"), edit("workload.output_tokens", "1024"),
			edit("engine.max_num_seqs", "256"), edit("engine.num_gpu_blocks", "100000"),
		}},
		{"E7-80rps-1M-requests-vllm-v1", 1_000_000, 64, []scenarios.Edit{
			edit("workload.arrivals.rate", "80"), edit("engine.policy", "vllm-v1"),
		}},
		{"E7-80rps-1M-requests-vllm-v1-operators-dense", 1_000_000, 64, []scenarios.Edit{
			edit("workload.arrivals.rate", "80"), edit("engine.policy", "vllm-v1"),
			edit("model.name", "llama-3.1-8b"), edit("hardware.name", "h200-sxm"),
		}},
		{"E7-80rps-1M-requests-vllm-v1-operators-mixture", 1_000_000, 64, []scenarios.Edit{
			edit("workload.arrivals.rate", "80"), edit("engine.policy", "vllm-v1"),
			edit("model.name", "qwen3-30b-a3b"), edit("hardware.name", "h200-sxm"), edit("engine.tensor_parallel_size", "2"),
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			s := load(b, "base", c.requests, c.edits...)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				simulate(b, s)
			}
			requests := float64(c.requests*b.N) / b.Elapsed().Seconds()
			b.ReportMetric(requests, "requests/s")
			b.ReportMetric(requests*float64(c.output), "tokens/s")
		})
	}
}

// Live memory of a run that has ended, its distributions with it.
func BenchmarkMemory(b *testing.B) {
	for _, requests := range []int{1_000_000, 4_000_000} {
		b.Run(strconv.Itoa(requests), func(b *testing.B) {
			s := load(b, "base", requests, edit("workload.arrivals.rate", "60"))
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				_, recorder := simulate(b, s)
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(recorder)
				live := float64(after.HeapAlloc) - float64(before.HeapAlloc)
				b.ReportMetric(live/float64(requests), "bytes/request")
				b.ReportMetric(live/1e6, "live-MB")
			}
		})
	}
}
