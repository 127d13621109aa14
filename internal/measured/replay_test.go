// Package measured holds predictions to runs of real engines.
package measured

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"llmsim/internal/shared"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/workload"
)

// table reads a CSV by the names of its columns.
func table(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, row map[string]string, name string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(row[name], 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return x
}

// A real run of vLLM 0.19 on an RTX 4090, 300 requests whose cache is full most of the time,
// replayed under a roofline whose three constants were fitted to it: the scheduler, the cache and
// the preemptions have to be right for the running sequences and the cache to be in step with it
// second by second.
func TestRTX4090Replay(t *testing.T) {
	dir := shared.Data(t, "measured", "vllm-runs")
	path := filepath.Join(dir, "rtx4090-llama-3.1-8b.requests.csv")
	requests := table(t, path)
	seconds := table(t, filepath.Join(dir, "rtx4090-llama-3.1-8b.timeseries.csv"))

	var edits []scenarios.Edit
	for _, set := range []string{
		// Llama-3.1-8B in bf16: 8.03e9 parameters, of which a step reads and multiplies all but the
		// input embedding's 128,256 x 4,096; 32 layers of 8 KV heads of 128.
		"model={parameters_billions: 7.505, bytes_per_parameter: 2, kv_bytes_per_token: 131072}",
		"hardware={hbm_gib: 23.5, memory_bandwidth_gbps: 1008, peak_tflops: 165.2}",
		"engine.policy=vllm-v1", "engine.models=vllm-0.19", "engine.num_gpu_blocks=2588",
		"engine.max_num_seqs=256", "engine.max_num_batched_tokens=2048",
		"cost.step_overhead=500us", "cost.efficiency={compute: 0.796, memory: 0.832}",
	} {
		e, err := scenarios.ParseEdit(set)
		if err != nil {
			t.Fatal(err)
		}
		edits = append(edits, e)
	}
	s, err := scenarios.Load("base", edits)
	if err != nil {
		t.Fatal(err)
	}

	trace, err := workload.OpenTrace(path, workload.TraceOptions{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	source, err := trace.Source()
	if err != nil {
		t.Fatal(err)
	}
	var tpot, e2e, ttft, tpotBias, e2eBias, ttftBias float64
	n := 0
	var steps []sim.Step
	run := sim.NewRun(s.Cluster(), source)
	preemptions, queries, hits := 0, int64(0), int64(0)
	for {
		p, more := run.Advance()
		if !more {
			break
		}
		for i := range p.Steps {
			step := p.Steps[i]
			steps = append(steps, step)
			preemptions += len(step.Preempted)
			queries += step.CacheQueries
			hits += step.CacheHits
			for _, f := range step.Finished {
				row := requests[f.ID]
				relative := func(got time.Duration, want float64) float64 { return got.Seconds()*1e3/want - 1 }
				dt := relative((f.LastToken-f.FirstToken)/time.Duration(f.Output-1), number(t, row, "tpot_ms"))
				de := relative(f.LastToken-f.Arrival, number(t, row, "e2e_ms"))
				df := relative(f.FirstToken-f.Arrival, number(t, row, "ttft_ms"))
				tpot += math.Abs(dt)
				tpotBias += dt
				e2e += math.Abs(de)
				e2eBias += de
				ttft += math.Abs(df)
				ttftBias += df
				n++
			}
		}
	}
	if n != len(requests) {
		t.Fatalf("%d of %d requests finished", n, len(requests))
	}
	var running, waiting, kv float64
	at := 0
	for _, row := range seconds {
		instant := time.Duration(number(t, row, "t_s") * 1e9)
		for at+1 < len(steps) && steps[at].End <= instant {
			at++
		}
		step := &steps[at]
		if instant > step.End {
			step = &sim.Step{FreeBlocks: 1}
		}
		running += math.Abs(float64(step.Running) - number(t, row, "running"))
		waiting += math.Abs(float64(step.Waiting) - number(t, row, "waiting"))
		kv += math.Abs(100*float64(step.UsedBlocks)/float64(step.UsedBlocks+step.FreeBlocks) - number(t, row, "kv_cache_pct"))
	}
	count, of := float64(n), float64(len(seconds))
	t.Logf("TPOT MAPE %.2f%% bias %+.2f%%, E2E MAPE %.2f%% bias %+.2f%%, TTFT MAPE %.2f%% bias %+.2f%%; mean error of running %.2f, waiting %.2f, KV use %.2f points; %d preemptions, %.2f%% hits",
		100*tpot/count, 100*tpotBias/count, 100*e2e/count, 100*e2eBias/count, 100*ttft/count, 100*ttftBias/count,
		running/of, waiting/of, kv/of, preemptions, 100*float64(hits)/float64(queries))
	for _, c := range []struct {
		what        string
		got, atMost float64
	}{
		{"TPOT MAPE (%)", 100 * tpot / count, 3},
		{"E2E MAPE (%)", 100 * e2e / count, 2},
		{"mean error of running sequences", running / of, 1.5},
		{"mean error of KV use (points)", kv / of, 3},
	} {
		if c.got > c.atMost {
			t.Errorf("%s = %.2f, want at most %v", c.what, c.got, c.atMost)
		}
	}
}
