package experiment

import (
	"math"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A model differs in one field, however the change is written.
func TestASecondFieldIsRefused(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"[engine.max_num_seqs=1, engine.watermark=0.02]",
			"small.yaml:5: models.one-slot.set: must differ from base in one field, differs in 2: engine.watermark from 0.01 to 0.02; engine.max_num_seqs from 64 to 1"},
		{"'engine={max_num_seqs: 1, block_size: 32}'", "differs in 2: engine.block_size from 16 to 32; engine.max_num_seqs from 64 to 1"},
		{"[workload.prompt_tokens=50, workload.requests=30]", "differs in 2: workload.prompt_tokens from 100 to 50; workload.requests from 20 to 30"},
		{"engine.max_num_seqs=64", "must differ from base in one field, is the same"},
		{"'workload={prompt_tokens: 50}'", "must be of a key of workload, is of the whole block"},
		{"seed=7", "seed can't be what a model differs in"},
		{"engine.max_num_seqs", `must be PATH=VALUE, is "engine.max_num_seqs"`},
		{"engine.max_num_seq=3", "small.yaml:5: models.one-slot.set: engine.max_num_seq=3: unknown key, did you mean max_num_seqs?"},
	} {
		_, err := Load(write(t, "small.yaml", strings.Replace(small, "engine.max_num_seqs=1", c.set, 1)))
		refused(t, "set: "+c.set, err, c.want)
		if strings.Contains(err.Error(), "is no model above") {
			t.Errorf("set: %s is told twice:\n%v", c.set, err)
		}
	}
	for _, set := range []string{
		"'workload.arrivals={process: poisson, rate: 3}'", "'workload.prompt_tokens={uniform: [10, 20]}'", "model.name=llama-3.1-8b",
		"engine.policy=vllm-v1", "hardware.memory_bandwidth_gbps=1000", "[engine.max_num_seqs=1, engine.watermark=0.01]",
	} {
		if _, err := Load(write(t, "small.yaml", strings.Replace(small, "engine.max_num_seqs=1", set, 1))); err != nil {
			t.Errorf("set: %s: %v, want one field", set, err)
		}
	}
}

// All that is wrong with a file is told at once, with lines.
func TestFaultsAreToldAtOnce(t *testing.T) {
	text := strings.NewReplacer("relative: 1%}}\n  gain", "relatve: 1%}}\n  gain", "question:", "qestion:", "effect:", "efect:").Replace(small)
	_, err := Load(write(t, "small.yaml", text))
	refused(t, "a file of three faults", err, "small.yaml:1: qestion: unknown key, did you mean question?", "small.yaml:1: question: is missing",
		"small.yaml:7: metrics.rate.tolerance: relatve: unknown key, did you mean relative?", "small.yaml:10: explanations[0].efect: unknown key, did you mean effect?")

	text = strings.NewReplacer("over: one-slot", "over: one-slt", "rate: {value: throughput.completed_rps", "rate: {value: throughput.completed",
		"model: one-slot}", "model: one-slot, control: base}", "workload:", "runs: 0\nworkload:").Replace(small)
	_, err = Load(write(t, "small.yaml", text))
	refused(t, "a file of four faults", err, "runs: must be from 1 to 1000, is 0", `metrics.gain.over: "one-slt" is no model above, did you mean one-slot?`,
		`metrics.rate.value: "throughput.completed" is no figure of a summary, did you mean throughput.completed_rps?`, "control and confirmed go together")
}

func TestFilesAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "small.yaml: must be a block of keys, is empty"},
		{"- 1", "small.yaml:1: must be a block of keys, is a list"},
		{small + small, "small.yaml:11: question: is given twice"},
		{small + "---\n" + small, "must be one document, is several"},
		{"a: [", "must be YAML"},
		{strings.Replace(small, "scenario: base", "scenario: bas", 1), "bas: no such scenario or file"},
		{strings.Replace(small, "requests: 20", "requests: -1", 1), "must be positive, is -1"},
		{strings.Replace(small, "scenario: base", "scenario: &x base", 1) + "x: *x", "x: unknown key"},
		{strings.Replace(small, "relative: 1%", "absolute: 3ms", 1), "absolute: must be a number, is a time"},
		{strings.Replace(small, "relative: 1%", "relative: 101%", 1), `relative: must be a share from 0 to 100%, such as 5% or 0.05, is "101%"`},
		{strings.Replace(small, "effect: latency_ms.queue.p50", "effect: latency_ms.queue.p50, over_runs: sd", 1), "explanations.over_runs: sd needs runs of 2 or more, has 1"},
		{strings.Replace(small, "rate: {value", "rate: {over_runs: max, value", 1), `metrics.rate.over_runs: must be mean or sd, is "max"`},
		{strings.Replace(small, "one-slot: {set", "base: {set", 1), "models.base: must be a name of its own"},
	} {
		_, err := Load(write(t, "small.yaml", c.text))
		refused(t, c.text, err, c.want)
	}
	_, err := Load("e9")
	refused(t, "e9", err, "e9: no such experiment, did you mean e1?")
	_, err = Load("nowhere/x.yaml")
	refused(t, "nowhere/x.yaml", err, "nowhere/x.yaml: no such file or directory")
}

func TestTolerances(t *testing.T) {
	for _, c := range []struct {
		text      string
		want, got float64
		holds     bool
		shown     string
	}{
		{"{relative: 5%}", 100, 105, true, "5%"}, {"{relative: 5%}", 100, 105.1, false, "5%"}, {"{relative: 0.05}", -100, -95, true, "5%"},
		{"{absolute: 3}", 0, -3, true, "3"}, {"{absolute: 3ms}", 0, 3.1, false, "3"}, {"{absolute: 2s}", 0, 1999, true, "2000"},
		{"{relative: 1%, absolute: 3}", 100, 103, true, "1% or 3"}, {"{relative: 10%, absolute: 3}", 100, 110, true, "10% or 3"},
		{"{absolute: 0}", 9, 9, true, "exact"}, {"{absolute: 0}", 9, 9.000001, false, "exact"},
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(c.text), &n); err != nil {
			t.Fatal(err)
		}
		var tolerance Tolerance
		if err := tolerance.ReadYAML(n.Content[0]); err != nil {
			t.Fatal(err)
		}
		if got := tolerance.Holds(c.want, c.got); got != c.holds || tolerance.String() != c.shown {
			t.Errorf("%s: Holds(%v, %v) = %v, String() = %s, want %v, %s", c.text, c.want, c.got, got, tolerance, c.holds, c.shown)
		}
	}
}

func TestOverRuns(t *testing.T) {
	o := outcome{figures: map[string]map[string][]float64{"m": {"k": {1, 2, 3, 6}, "rare": {4}}}}
	for _, c := range []struct {
		key, what string
		want      float64
	}{{"k", Mean, 3}, {"k", Deviation, math.Sqrt(14. / 3)}, {"rare", Mean, 1}, {"rare", Deviation, 2}} {
		if got := o.of("m", c.key, c.what, 4); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s of %s over 4 runs = %v, want %v", c.what, c.key, got, c.want)
		}
	}
}
