// Package measured holds predictions to runs of real engines.
package measured

import (
	"encoding/csv"
	"fmt"
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

// A deviation gathers what is simulated less what was measured.
type deviation struct{ sum, abs, worst, n float64 }

func (d *deviation) add(x float64) {
	d.sum += x
	d.abs += math.Abs(x)
	d.worst = max(d.worst, math.Abs(x))
	d.n++
}

// mae is the mean absolute deviation.
func (d deviation) mae() float64 { return d.abs / d.n }

func (d deviation) String() string {
	return fmt.Sprintf("off by %.2f on average, %+.2f with its sign, %.1f at worst", d.mae(), d.sum/d.n, d.worst)
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
	var tpot, e2e, ttft deviation // percent
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
				percent := func(got time.Duration, want float64) float64 { return 100 * (got.Seconds()*1e3/want - 1) }
				tpot.add(percent((f.LastToken-f.FirstToken)/time.Duration(f.Output-1), number(t, row, "tpot_ms")))
				e2e.add(percent(f.LastToken-f.Arrival, number(t, row, "e2e_ms")))
				ttft.add(percent(f.FirstToken-f.Arrival, number(t, row, "ttft_ms")))
				n++
			}
		}
	}
	if n != len(requests) {
		t.Fatalf("%d of %d requests finished", n, len(requests))
	}
	var running, waiting, kv deviation
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
		running.add(float64(step.Running) - number(t, row, "running"))
		waiting.add(float64(step.Waiting) - number(t, row, "waiting"))
		kv.add(100*float64(step.UsedBlocks)/float64(step.UsedBlocks+step.FreeBlocks) - number(t, row, "kv_cache_pct"))
	}
	t.Logf("TPOT (%%) %v\nE2E (%%) %v\nTTFT (%%) %v\nrunning %v\nwaiting %v\nKV use (points) %v\n%d steps, %d preemptions, %.2f%% hits",
		tpot, e2e, ttft, running, waiting, kv, len(steps), preemptions, 100*float64(hits)/float64(queries))
	for _, c := range []struct {
		what        string
		got, atMost float64
	}{
		{"TPOT MAPE (%)", tpot.mae(), 3},
		{"E2E MAPE (%)", e2e.mae(), 2},
		{"mean error of running sequences", running.mae(), 1.5},
		{"mean error of KV use (points)", kv.mae(), 3},
	} {
		if c.got > c.atMost {
			t.Errorf("%s = %.2f, want at most %v", c.what, c.got, c.atMost)
		}
	}
}
