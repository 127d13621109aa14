package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmsim/sim/cost"
)

// write puts a scenario into a folder of its own, beside a few files it may name.
func write(t testing.TB, text string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"chat.yaml":   text,
		"list.txt":    "10\n20\n",
		"trace.csv":   "arrival_s,input_tokens,output_tokens\n0,5,6\n1.5,7,8\n",
		"lengths.csv": "num_prefill_tokens,num_decode_tokens\n5,50\n7,70\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "chat.yaml")
}

// faults loads a scenario and returns its faults with the folder cut off.
func faults(t testing.TB, text string, edits ...Edit) []string {
	t.Helper()
	file := write(t, text)
	_, err := Load(file, edits)
	if err == nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(err.Error(), filepath.Dir(file)+"/", ""), "\n")
}

func TestBaseIsTheArticlesModel(t *testing.T) {
	s, err := Load("base", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Scenario{
		Name:     "base",
		Model:    Model{Name: "article-7b", Parameters: 6.74e9, BytesPerParam: 2, KVBytesPerToken: 524288},
		Hardware: Hardware{Name: "h100-80gb", HBMBytes: 80 << 30, Bandwidth: 3e12, PeakFLOPS: 989e12},
		Engine: Engine{
			Policy: "classic", Models: "article", BlockSize: 16, GPUMemoryUtilization: 0.9, Watermark: 0.01,
			MaxNumBatchedTokens: 8192, MaxNumSeqs: 64, MaxModelLen: 32768, EnableChunkedPrefill: true,
			SchedulingPolicy: "fcfs", TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1,
		},
		Cost:  Cost{Model: "roofline", Efficiency: Efficiency{1, 1}},
		Fleet: Fleet{Replicas: 1, Router: "round-robin"},
		Workload: Workload{
			Arrivals: Arrivals{Process: "poisson", Rate: 80},
			Prompt:   Tokens{Kind: "fixed", A: 512}, Output: Tokens{Kind: "fixed", A: 64}, Requests: 10000,
		},
		Seed: 42,
	}
	s.files, s.written = nil, nil
	if got, want := fmt.Sprintf("%+v", *s), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("Load(base) = %s\nwant %s", got, want)
	}
}

// What a file does not give is the base scenario's.
func TestAFileIsLaidOverTheBase(t *testing.T) {
	for _, c := range []struct {
		text  string
		edits []Edit
		check func(*Scenario) bool
	}{
		{"", nil, func(s *Scenario) bool { return s.Name == "chat" && s.Engine.MaxNumSeqs == 64 }},
		{"# only words", nil, func(s *Scenario) bool { return s.Workload.Requests == 10000 }},
		{"name: x\nengine: {max_num_seqs: 8}", nil, func(s *Scenario) bool {
			return s.Name == "x" && s.Engine.MaxNumSeqs == 8 && s.Engine.BlockSize == 16
		}},
		// poisson stays poisson, and keeps the rate; another process starts afresh
		{"workload: {arrivals: {process: poisson}}", nil, func(s *Scenario) bool { return s.Workload.Arrivals.Rate == 80 }},
		{"workload: {arrivals: {rate: 5, grid: 25ms}}", nil, func(s *Scenario) bool {
			return s.Workload.Arrivals == Arrivals{Process: "poisson", Rate: 5, Grid: 25 * time.Millisecond}
		}},
		{"workload: {arrivals: {process: closed, concurrency: 7}}", nil, func(s *Scenario) bool {
			return s.Workload.Arrivals == Arrivals{Process: "closed", Concurrency: 7} && s.Workload.Requests == 10000
		}},
		// figures replace the name's
		{"model: {parameters_billions: 13}", nil, func(s *Scenario) bool {
			return s.Model == Model{Parameters: 13e9, BytesPerParam: 2, KVBytesPerToken: 524288}
		}},
		{"hardware: {name: mine, hbm_gib: 96, memory_bandwidth_gbps: 4e3, peak_tflops: 990.5}", nil, func(s *Scenario) bool {
			return s.Hardware == Hardware{Name: "mine", HBMBytes: 96 << 30, Bandwidth: 4e12, PeakFLOPS: 990.5e12}
		}},
		{"slo: {e2e-p99.9: 2s, tpot-mean: 30ms, queue-max: 1m}", nil, func(s *Scenario) bool {
			return slices.Equal(s.SLO, []Objective{
				{Name: "e2e-p99.9", Metric: "e2e", P: 99.9, Limit: 2 * time.Second}, {Name: "queue-max", Metric: "queue", P: 100, Limit: time.Minute},
				{Name: "tpot-mean", Metric: "tpot", Limit: 30 * time.Millisecond},
			})
		}},
		// a trace brings its own lengths and number
		{"workload: {arrivals: {process: trace, file: trace.csv, spread: uniform, speedup: 2}}", nil, func(s *Scenario) bool {
			a := s.Workload.Arrivals
			return a.Speedup == 2 && a.Spread == "uniform" && filepath.IsAbs(a.Trace.Path) && s.Workload.Requests == 0
		}},
		{"workload: {arrivals: {process: trace, file: trace.csv}, requests: 3}", nil, func(s *Scenario) bool {
			return s.Workload.Requests == 3 && s.Workload.Arrivals.Speedup == 1
		}},
		// edits, in any order
		{"workload: {prompt_tokens: 9}", []Edit{
			{Path: "workload.arrivals.concurrency", Value: "3"}, {Path: "workload.arrivals.process", Value: "closed"},
			{Path: "engine.watermark", Value: "0.5"}, {Path: "engine.watermark", Value: "0"},
			{Path: "slo.ttft-p99", Value: "1s"}, {Path: "workload.output_tokens.uniform", Value: "[1, 2]"},
		}, func(s *Scenario) bool {
			return s.Workload.Arrivals == Arrivals{Process: "closed", Concurrency: 3} && s.Engine.Watermark == 0 &&
				len(s.SLO) == 1 && s.SLO[0].Limit == time.Second && s.Workload.Prompt.A == 9 &&
				s.Workload.Output == Tokens{Kind: "uniform", A: 1, B: 2}
		}},
		{"slo: {itl-p99: 50ms}", []Edit{{Path: "slo.ttft-max", Value: "1s"}}, func(s *Scenario) bool { return len(s.SLO) == 2 }},
		{"slo: {itl-p99: 50ms}", []Edit{{Path: "slo", Value: "{ttft-max: 1s}"}}, func(s *Scenario) bool {
			return len(s.SLO) == 1 && s.SLO[0].Name == "ttft-max"
		}},
		// a key holds against its whole block, whichever comes first
		{"", []Edit{{Path: "engine.block_size", Value: "32"}, {Path: "engine", Value: "{block_size: 64, max_num_seqs: 8}"}},
			func(s *Scenario) bool { return s.Engine.BlockSize == 32 && s.Engine.MaxNumSeqs == 8 }},
		{"", []Edit{{Path: "engine", Value: "{block_size: 64, max_num_seqs: 8}"}, {Path: "engine.block_size", Value: "32"}},
			func(s *Scenario) bool { return s.Engine.BlockSize == 32 && s.Engine.MaxNumSeqs == 8 }},
		// numbers
		{"engine: {max_num_seqs: 1e2, block_size: +32.0}\nworkload: {requests: 1.5e4, arrivals: {rate: .5}}\nseed: 0", nil,
			func(s *Scenario) bool {
				return s.Engine.MaxNumSeqs == 100 && s.Engine.BlockSize == 32 && s.Workload.Requests == 15000 &&
					s.Workload.Arrivals.Rate == 0.5 && s.Seed == 0
			}},
		{"workload: {prompt_tokens: 9}", []Edit{{Path: "workload.requests", Value: "5"}, TraceEdit("testdata/one.csv")},
			func(s *Scenario) bool {
				return s.Workload.Arrivals.Trace.Path == "testdata/one.csv" && s.Workload.Requests == 5 && s.Workload.Prompt.Kind == ""
			}},
	} {
		s, err := Load(write(t, c.text), c.edits)
		if err != nil {
			t.Errorf("Load(%q, %v): %v", c.text, c.edits, err)
		} else if !c.check(s) {
			t.Errorf("Load(%q, %v) = %+v", c.text, c.edits, *s)
		}
	}
}

// Names are taken from the scenario's folder in a file, from the working folder in an edit.
func TestFileNamesAreRelativeToWhereTheyAreWritten(t *testing.T) {
	file := write(t, "workload: {prompt_tokens: {empirical: list.txt}}")
	s, err := Load(file, []Edit{{Path: "workload.output_tokens", Value: "{empirical: testdata/list.txt}"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Workload.Prompt.File.Path, filepath.Join(filepath.Dir(file), "list.txt"); got != want {
		t.Errorf("path in a file = %q, want %q", got, want)
	}
	if got := s.Workload.Output.File.Path; got != "testdata/list.txt" {
		t.Errorf("path in an edit = %q, want it unchanged", got)
	}
}

func TestParseEdit(t *testing.T) {
	if e, err := ParseEdit("a.b=c=d"); err != nil || e != (Edit{Path: "a.b", Value: "c=d"}) {
		t.Errorf("ParseEdit(a.b=c=d) = %+v, %v", e, err)
	}
	for _, text := range []string{"a.b", "=3", ""} {
		if e, err := ParseEdit(text); err == nil {
			t.Errorf("ParseEdit(%q) = %+v, want an error", text, e)
		}
	}
}

func ExampleLoad() {
	s, err := Load("e4", []Edit{{Path: "workload.arrivals.concurrency", Value: "32"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	blocks, _ := s.KVBlocks()
	fmt.Println(s.Name, s.Workload.Arrivals.Concurrency, blocks)

	_, err = Load("e4", []Edit{{Path: "workload.arrivals.rate", Value: "-1", Label: "--rate -1"}, {Path: "engine.max_num_seq", Value: "8"}})
	fmt.Println(err)
	// Output:
	// e4 32 1250
	// --rate -1: makes no sense with process closed, which takes concurrency, think_time
	// --set engine.max_num_seq=8: unknown key, did you mean max_num_seqs?
}

func FuzzScenario(f *testing.F) {
	for _, name := range Names() {
		text, _ := embedded.ReadFile(name + ".yaml")
		f.Add(string(text), "engine.max_num_seqs", "8")
	}
	f.Add("a: &x [1]\nb: *x\n", "slo", "{ttft-p99: 1s}")
	f.Add("workload: {prompt_tokens: {uniform: [1, 2]}}", "workload.arrivals", "{process: closed, concurrency: 3}")
	const known = "model: {name: qwen3-30b-a3b}\nhardware: {name: h100-sxm}\nengine: {policy: vllm-v1, tensor_parallel_size: 2}\n"
	f.Add(known+"cost: {preset: in-process, parameters: {kv_efficiency: 0.5}}", "cost.parameters.step_overhead", "1e6")
	f.Add(known, "cost.parameter_file", "costs.yaml")
	f.Add(twoPools, "cluster.pools.long.replicas", "3")
	f.Add(twoPools, "cluster.pools", "[{name: a, tp: 2}, {name: b, accepts: {prompt_tokens: [1, 0]}}]")
	f.Add("cluster: {split_prompt_tokens: [9], pools: [{name: a}, {name: b, cost: {step_overhead: 1ms}}]}", "cluster.pools.1", "{weight: 2}")
	f.Fuzz(func(t *testing.T, text, path, value string) {
		from := &origin{layer: 1, where: "fuzz.yaml", place: place{"testdata", false}}
		s, err := read([]byte(text), from, "fuzz", []Edit{{Path: path, Value: value}})
		if err != nil {
			if all, ok := err.(Faults); !ok || len(all) == 0 {
				t.Fatalf("error %v, want Faults", err)
			}
			return
		}
		for _, p := range s.Pools() {
			if blocks, m := p.KVBlocks(); blocks < 1 || m.KVBytes <= 0 {
				t.Fatalf("KVBlocks() = %d, %+v of a scenario that loaded", blocks, m)
			}
		}
		if took, _ := s.StepCost().StepTime(cost.Shape{Sequences: 1, Tokens: 1, Sampled: 1, Context: 1}); took < 1 || took > 2*longestStep {
			t.Fatalf("a step of one token takes %v in a scenario that loaded", took)
		}
		if _, err := s.Digest(); err != nil && s.Workload.Arrivals.Process != "trace" &&
			s.Workload.Prompt.Kind != "empirical" && s.Workload.Output.Kind != "empirical" {
			t.Fatalf("Digest(): %v", err)
		}
	})
}
