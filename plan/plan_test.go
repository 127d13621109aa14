package plan

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"llmsim/scenarios"
)

func load(t testing.TB, name string, edits ...string) *scenarios.Scenario {
	t.Helper()
	var all []scenarios.Edit
	for _, text := range edits {
		e, err := scenarios.ParseEdit(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	s, err := scenarios.Load(name, all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t testing.TB, fixed bool, name string, edits ...string) *Answer {
	t.Helper()
	a, err := Ask(context.Background(), Question{Scenario: load(t, name, edits...), Fixed: fixed})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// One replica of the base model saturates at about 80 req/s: half as much it sustains, a little
// more it does not, and then two do.
func TestBaseModel(t *testing.T) {
	for _, c := range []struct {
		rate     string
		fixed    bool
		holds    bool
		replicas int
	}{
		{"40", false, true, 1},
		{"60", true, true, 1},
		{"70", false, true, 1},
		{"90", true, false, 1},
		{"90", false, true, 2},
		{"140", false, true, 2},
		{"200", false, true, 3},
	} {
		if testing.Short() && c.rate != "90" {
			continue
		}
		a := ask(t, c.fixed, "base", "workload.arrivals.rate="+c.rate)
		if a.Verdict.Holds != c.holds || a.Replicas != c.replicas || a.GPUs != c.replicas {
			t.Errorf("plan of %s req/s, fixed %v = holds %v with %d replicas, want %v with %d: %s",
				c.rate, c.fixed, a.Verdict.Holds, a.Replicas, c.holds, c.replicas, a.Verdict.Reason)
		}
		if a.Capacity.PerReplica < 77 || a.Capacity.PerReplica > 82 {
			t.Errorf("plan of %s req/s: capacity %v req/s of a replica, want about 80", c.rate, a.Capacity.PerReplica)
		}
		if !c.holds && !strings.Contains(a.Verdict.Reason, "overload") {
			t.Errorf("plan of %s req/s: %q does not say overload", c.rate, a.Verdict.Reason)
		}
	}
}

// A verdict must not come from a transient: however long the run is asked to be, it is the same,
// and doubling what was enough changes nothing.
func TestVerdictDoesNotDependOnRunLength(t *testing.T) {
	for _, c := range []struct {
		rate  string
		holds bool
	}{{"60", true}, {"70", true}, {"90", false}, {"100", false}} {
		lengths := []int{100, 1_000, 20_000, 40_000, 80_000}
		if testing.Short() {
			lengths = []int{1_000}
		}
		for _, requests := range lengths {
			a := ask(t, true, "base", "workload.arrivals.rate="+c.rate, "workload.requests="+strconv.Itoa(requests))
			if a.Verdict.Holds != c.holds {
				t.Errorf("plan of %s req/s from %d requests: holds %v, want %v: %s", c.rate, requests, a.Verdict.Holds, c.holds, a.Verdict.Reason)
			}
		}
	}
}

// What a replica can serve does not depend on what it is asked for.
func TestSaturationIsTheReplicasOwn(t *testing.T) {
	a := ask(t, true, "base", "workload.arrivals.rate=10")
	b := ask(t, true, "base", "workload.arrivals.rate=500")
	a.Capacity.Headroom, b.Capacity.Headroom = 0, 0 // which is of the rate
	if *a.Capacity != *b.Capacity {
		t.Errorf("capacity at 10 req/s = %+v, at 500 req/s %+v, want the same", *a.Capacity, *b.Capacity)
	}
}

// Two saturated systems whose throughput has a closed form.
func TestSaturationAgainstClosedForms(t *testing.T) {
	base := load(t, "base")
	weights := base.Model.WeightBytes() / base.Hardware.Bandwidth // seconds to read them
	token := float64(base.Model.KVBytesPerToken) / base.Hardware.Bandwidth

	// A single slot: each request takes its prefill (512 tokens of arithmetic hide 512 of KV) and
	// nine decodes, one after the other.
	service := 2 * base.Model.Parameters * 512 / base.Hardware.PeakFLOPS
	for context := 513; context <= 521; context++ {
		service += weights + float64(context)*token
	}
	// Many slots, one-token prompts: a step has 32 sequences whose contexts are uniform over 1
	// to 64, and every sequence takes 64 steps.
	step := weights + 32*32.5*token
	for _, c := range []struct {
		what      string
		want, tol float64
		edits     []string
	}{
		{"one slot", 1 / service, 0.002, []string{"engine.max_num_seqs=1", "workload.output_tokens=10"}},
		{"pure decode", 32 / (64 * step), 0.005, []string{"engine.max_num_seqs=32", "workload.prompt_tokens=1", "workload.output_tokens=64"}},
	} {
		sat, err := saturate(&pace{ctx: context.Background()}, *load(t, "base", c.edits...), saturatedRuns)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(sat.mean/c.want-1) > c.tol {
			t.Errorf("saturation of %s = %.4f req/s, want %.4f", c.what, sat.mean, c.want)
		}
	}
}

// With slots for a thousand sequences a run must be long enough to fill them. What then limits a
// small model is arithmetic: 2 FLOP for each parameter and token.
func TestSaturationWithManySlots(t *testing.T) {
	s := load(t, "base", "engine.policy=vllm-v1", "model={parameters_billions: 8.03, bytes_per_parameter: 2, kv_bytes_per_token: 131072}")
	sat, err := saturate(&pace{ctx: context.Background()}, *s, saturatedRuns)
	if err != nil {
		t.Fatal(err)
	}
	most := s.Hardware.PeakFLOPS / (2 * s.Model.Parameters * (512 + 63))
	if sat.mean > most || sat.mean < 0.98*most {
		t.Errorf("saturation = %.2f req/s, want just below the arithmetic's %.2f", sat.mean, most)
	}
}

// More replicas are looked for until the SLO holds, not only until the rate does.
func TestSLO(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	slo := "slo={ttft-p99: 40ms, itl-p99: 50ms}"
	one := ask(t, true, "base", "workload.arrivals.rate=70", slo)
	if one.Verdict.Holds || !strings.Contains(one.Verdict.Reason, "ttft-p99") {
		t.Errorf("one replica at 70 req/s: holds %v, %q, want the SLO missed", one.Verdict.Holds, one.Verdict.Reason)
	}
	many := ask(t, false, "base", "workload.arrivals.rate=70", slo)
	if !many.Verdict.Holds || many.Replicas != 2 {
		t.Errorf("plan of 70 req/s = %d replicas, holds %v, want 2", many.Replicas, many.Verdict.Holds)
	}
	for _, o := range many.SLO {
		if !o.Met || o.Value <= 0 || o.Value > o.Limit {
			t.Errorf("objective %+v, want met", o)
		}
	}
	never := ask(t, false, "base", "workload.arrivals.rate=1", "slo={e2e-p50: 1ms}")
	if never.Verdict.Holds || len(never.Trials) != 1 || !strings.Contains(never.Verdict.Reason, "no number of replicas helps") {
		t.Errorf("an SLO below what an idle replica needs: holds %v after %d trials, %q", never.Verdict.Holds, len(never.Trials), never.Verdict.Reason)
	}
}

// A trace is replayed whole; more replicas are tried until the queue drains before its end.
func TestTrace(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("arrival_s,input_tokens,output_tokens\n")
	for i := range 3000 {
		rows.WriteString(strconv.FormatFloat(float64(i)/120, 'f', 6, 64) + ",512,64\n")
	}
	file := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(file, []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := scenarios.Load("base", []scenarios.Edit{scenarios.TraceEdit(file)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Ask(context.Background(), Question{Scenario: s})
	if err != nil {
		t.Fatal(err)
	}
	if !a.Verdict.Holds || a.Replicas != 2 || a.Run.Requests.Completed != 3000 {
		t.Errorf("plan of 120 req/s in a trace = holds %v with %d replicas, %d completed, want 2 and 3000",
			a.Verdict.Holds, a.Replicas, a.Run.Requests.Completed)
	}
}

// Requests that are all refused are not served, however fast.
func TestAllRefused(t *testing.T) {
	a := ask(t, true, "base", "workload.arrivals.rate=1", "workload.prompt_tokens={uniform: [100, 40000]}", "engine.max_model_len=200")
	if a.Verdict.Holds && a.Run.Requests.Completed == 0 || !strings.Contains(a.Verdict.Reason, "refused") {
		t.Errorf("verdict %+v does not tell of the refused", a.Verdict)
	}
}

// The keys of the contract of plan's JSON.
func TestContract(t *testing.T) {
	text, err := json.Marshal(ask(t, false, "base", "workload.arrivals.rate=30"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"llmsim", "scenario.digest", "seed", "verdict.holds", "verdict.reason", "capacity.per_replica_rps", "capacity.ci_rps",
		"replicas", "gpus", "bottleneck.what", "bottleneck.blocked.slots", "bottleneck.bound.time.compute",
		"memory.weights_bytes", "memory.kv_blocks", "memory.reserve_bytes", "memory.free_bytes",
		"run.latency_ms.ttft.p99", "run.engine.models", "run.kv.blocks",
	} {
		var at any = got
		for _, key := range strings.Split(path, ".") {
			m, ok := at.(map[string]any)
			if !ok || m[key] == nil {
				t.Fatalf("JSON has no %s", path)
			}
			at = m[key]
		}
	}
}

// A replica serves what it serves however bursty its arrivals are; and a load far below that holds
// on one, whatever the seed.
func TestBurstyArrivals(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	for _, cv := range []string{"4", "20"} {
		for _, seed := range []string{"42", "1", "2"} {
			a := ask(t, false, "base", "workload.arrivals={process: gamma, rate: 20, cv: "+cv+"}", "seed="+seed)
			if !a.Verdict.Holds || a.Replicas != 1 || a.Capacity.PerReplica < 50 || a.Capacity.PerReplica > 85 {
				t.Errorf("plan of 20 req/s with CV %s, seed %s = %d replicas, capacity %v, want 1 and 50 to 85 req/s: %s",
					cv, seed, a.Replicas, a.Capacity.PerReplica, a.Verdict.Reason)
			}
		}
	}
}

// Traces without a rate: one request, many at one instant, none that fits.
func TestTracesWithoutARate(t *testing.T) {
	for _, c := range []struct {
		what, rows, says string
		holds            bool
	}{
		{"one row", "0,100,10\n", "keeps up", true},
		{"one instant", strings.Repeat("3,100,10\n", 2000), "keeps up", true},
		{"none fits", strings.Repeat("0,100000,10\n", 10), "completed none of 10 requests", false},
	} {
		file := filepath.Join(t.TempDir(), "trace.csv")
		if err := os.WriteFile(file, []byte("arrival_s,input_tokens,output_tokens\n"+c.rows), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := scenarios.Load("base", []scenarios.Edit{scenarios.TraceEdit(file)})
		if err != nil {
			t.Fatal(err)
		}
		a, err := Ask(context.Background(), Question{Scenario: s})
		if err != nil {
			t.Fatal(err)
		}
		if a.Verdict.Holds != c.holds || a.Replicas != 1 || len(a.Trials) != 1 || !strings.Contains(a.Verdict.Reason, c.says) {
			t.Errorf("plan of a trace with %s = holds %v with %d replicas after %d trials, %q, want %v with 1 at once: %s",
				c.what, a.Verdict.Holds, a.Replicas, len(a.Trials), a.Verdict.Reason, c.holds, c.says)
		}
	}
}

// An SLO on what no request has is missed, and not said to be over its bound.
func TestNothingToMeasure(t *testing.T) {
	a := ask(t, true, "base", "workload.output_tokens=1", "workload.arrivals.rate=20", "slo={itl-p99: 50ms}")
	want := "but misses the SLO: itl-p99 has nothing to measure"
	if a.Verdict.Holds || !strings.HasSuffix(a.Verdict.Reason, want) {
		t.Errorf("plan of single tokens under a bound on their gaps = holds %v, %q, want no and ... %q", a.Verdict.Holds, a.Verdict.Reason, want)
	}
}

// Goodput is missed from below, and in percent.
func TestGoodputMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	a := ask(t, true, "base", "workload.arrivals.rate=70", "slo={ttft: 20ms, goodput: 99%}")
	if want := regexp.MustCompile(`misses the SLO: goodput is [\d.]+%, below 99\.00%`); a.Verdict.Holds || !want.MatchString(a.Verdict.Reason) {
		t.Errorf("plan that misses its goodput = holds %v, %q, want no and %q", a.Verdict.Holds, a.Verdict.Reason, want)
	}
}

// A trace of two requests that come together: one replica keeps up and misses the SLO, which is
// said of its trial; the verdict of two speaks of several.
func TestTrialsThatMissTheSLO(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(file, []byte("arrival_s,input_tokens,output_tokens\n0,5000,2\n0,5000,2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := scenarios.Load("base", []scenarios.Edit{scenarios.TraceEdit(file), {Path: "slo", Value: "{ttft-p99: 100ms}"}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Ask(context.Background(), Question{Scenario: s})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := a.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n1: misses SLO ", "\n2: keeps up ", ", and meet ttft-p99"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("a plan's table lacks %q:\n%s", want, &table)
		}
	}
}

// What can't be simulated is said from one replica, not searched for.
func TestBeyondWhatIsSimulated(t *testing.T) {
	a := ask(t, false, "base", "workload.arrivals.rate=1e6")
	if a.Verdict.Holds || a.Replicas < 12_000 || a.Replicas > 15_000 || len(a.Trials) != 0 {
		t.Errorf("plan of a million req/s = holds %v with %d replicas after %d trials, want about 13,000, not held, at once", a.Verdict.Holds, a.Replicas, len(a.Trials))
	}
}

func TestAskStopsWhenToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Ask(ctx, Question{Scenario: load(t, "base")}); err != context.Canceled {
		t.Errorf("Ask with a context that has ended = %v, want %v", err, context.Canceled)
	}
}

// A replica's GPUs are those of all its stages and ranks, and memory is shown of the stage that
// binds.
func TestGPUsOfStagesAndRanks(t *testing.T) {
	for _, c := range []struct {
		sizes            [3]int // tensor, pipeline and data parallel
		replicas         int
		gpus, all, stage int
	}{
		{[3]int{1, 1, 1}, 2, 1, 2, 0},
		{[3]int{2, 2, 1}, 1, 4, 4, 2},
		{[3]int{2, 2, 2}, 3, 8, 24, 2},
	} {
		a := ask(t, true, "base", "engine.policy=vllm-v1", "model.name=llama-3.1-8b", "hardware.name=h100-sxm",
			"workload.arrivals={process: all-at-once}", "workload.requests=20", "cluster.replicas="+strconv.Itoa(c.replicas),
			"engine.tensor_parallel_size="+strconv.Itoa(c.sizes[0]), "engine.pipeline_parallel_size="+strconv.Itoa(c.sizes[1]),
			"engine.data_parallel_size="+strconv.Itoa(c.sizes[2]))
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			GPUs   int
			Memory struct {
				GPUs  int `json:"gpus_per_replica"`
				Stage int `json:"pipeline_stage"`
			}
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got.GPUs != c.all || got.Memory.GPUs != c.gpus || got.Memory.Stage != c.stage {
			t.Errorf("%v: %d GPUs, memory %+v, want %d, %d of a replica, stage %d", c.sizes, got.GPUs, got.Memory, c.all, c.gpus, c.stage)
		}
	}
}
