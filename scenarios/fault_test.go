package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each line of a file has one fault, and is told of with its place, its key and its value.
func TestFaultsNameThePlaceAndBothValues(t *testing.T) {
	const lengths = "a number of tokens or {uniform: [lo, hi]}, {normal: [mean, sd]}, {lognormal: [median, sigma]} or {empirical: file}"
	for _, c := range []struct{ text, want string }{
		// shape
		{"[1, 2]", "chat.yaml:1: must be a block of keys, is a list"},
		{"word", `chat.yaml:1: must be a block of keys, is "word"`},
		{"engine: 3", "chat.yaml:1: engine: must be a block of keys, is 3"},
		{"engine:", "chat.yaml:1: engine: must be a block of keys, is empty"},
		{"engine:\n  max_num_seqs:", "chat.yaml:2: engine.max_num_seqs: must be a number, is empty"},
		{"engine: {max_num_seqs: [1]}", "chat.yaml:1: engine.max_num_seqs: must be a number, is a list"},
		{"seed: 1\nseed: 2", "chat.yaml:2: seed: is given twice"},
		{`"\e[31mred": 1`, "chat.yaml:1: a key must be a plain word"},
		{strings.Repeat("k", 81) + ": 1", "chat.yaml:1: a key must be a plain word"},
		{"? [a]\n: 1", "chat.yaml:1: a key must be a plain word"},
		{"seed: 1\n---\nseed: 2", "chat.yaml:2: must be one document, is several"},
		{"a: [", "chat.yaml:1: must be YAML: did not find expected node content"},
		{"name: &n x\nengine: {policy: *n}", "chat.yaml:2: engine.policy: must be written out, is an alias"},
		{strings.Repeat("#", 1<<20+1), "chat.yaml: must be at most 1 MiB, is longer"},
		// unknown keys
		{"engin: {}", "chat.yaml:1: engin: unknown key, did you mean engine?"},
		{"engine: {max_num_seq: 3}", "chat.yaml:1: engine.max_num_seq: unknown key, did you mean max_num_seqs?"},
		{"workload: {rate: 3}", "chat.yaml:1: workload.rate: unknown key, did you mean workload.arrivals.rate?"},
		{"max_num_seqs: 3", "chat.yaml:1: max_num_seqs: unknown key, did you mean engine.max_num_seqs?"},
		{"cluster: {colour: red}", "chat.yaml:1: cluster.colour: unknown key, there is pools, replicas, router, split_prompt_tokens"},
		{"3: x", "chat.yaml:1: 3: unknown key, there is name, catalogue, model, hardware, engine, cost, cluster, workload, seed, slo"},
		// numbers
		{"workload:\n  arrivals: {rate: -1}", "chat.yaml:2: workload.arrivals.rate: must be positive, is -1"},
		{"workload: {arrivals: {rate: 0}}", "chat.yaml:1: workload.arrivals.rate: must be positive, is 0"},
		{"workload: {arrivals: {rate: .nan}}", "chat.yaml:1: workload.arrivals.rate: must be a number, is .nan"},
		{"workload: {arrivals: {rate: .inf}}", "chat.yaml:1: workload.arrivals.rate: must be at most 1000000, is .inf"},
		{"workload: {arrivals: {rate: -.inf}}", "chat.yaml:1: workload.arrivals.rate: must be positive, is -.inf"},
		{"workload: {arrivals: {rate: 1e-300}}", "chat.yaml:1: workload.arrivals.rate: must be at least 1e-06, is 1e-300"},
		{"workload: {arrivals: {rate: 2e6}}", "chat.yaml:1: workload.arrivals.rate: must be at most 1000000, is 2e6"},
		{`workload: {arrivals: {rate: "80"}}`, `chat.yaml:1: workload.arrivals.rate: must be a number, is "80"`},
		{"workload: {arrivals: {rate: true}}", "chat.yaml:1: workload.arrivals.rate: must be a number, is true"},
		{"workload: {arrivals: {rate: 0.001}, requests: 1e9}",
			"chat.yaml:1: workload.requests: 1000000000 requests at 0.001 per second must arrive within 1e+09 s, take 1.0e+12 s"},
		{"workload: {requests: 0}", "chat.yaml:1: workload.requests: must be positive, is 0"},
		{"workload: {requests: 1e10}", "chat.yaml:1: workload.requests: must be at most 1000000000, is 1e10"},
		{"engine: {block_size: 1.5}", "chat.yaml:1: engine.block_size: must be a whole number, is 1.5"},
		{"workload: {requests: 010}", "chat.yaml:1: workload.requests: must be a whole number, is 010"},
		{"workload: {requests: 08}", "chat.yaml:1: workload.requests: must be a whole number, is 08"},
		{"workload: {requests: 0o10}", "chat.yaml:1: workload.requests: must be a whole number, is 0o10"},
		{"workload: {requests: 0x10}", "chat.yaml:1: workload.requests: must be a whole number, is 0x10"},
		{"workload: {requests: 0b10}", "chat.yaml:1: workload.requests: must be a whole number, is 0b10"},
		{"workload: {requests: 1_000}", "chat.yaml:1: workload.requests: must be a whole number, is 1_000"},
		{"workload: {requests: -010}", "chat.yaml:1: workload.requests: must be a whole number, is -010"},
		{"workload: {requests: 010.0}", "chat.yaml:1: workload.requests: must be a whole number, is 010.0"},
		{"workload: {prompt_tokens: 0100}", "chat.yaml:1: workload.prompt_tokens: must be a whole number, is 0100"},
		{"workload: {prompt_tokens: {uniform: [010, 20]}}", "chat.yaml:1: workload.prompt_tokens.uniform.lo: must be a whole number, is 010"},
		{"workload: {arrivals: {rate: 010}}", "chat.yaml:1: workload.arrivals.rate: must be a decimal number, is 010"},
		{"workload: {arrivals: {rate: 1_0.5}}", "chat.yaml:1: workload.arrivals.rate: must be a decimal number, is 1_0.5"},
		{"seed: 010", "chat.yaml:1: seed: must be a whole number from 0 to 2^63-1, is 010"},
		{"seed: 0x1F", "chat.yaml:1: seed: must be a whole number from 0 to 2^63-1, is 0x1F"},
		{"engine: {num_gpu_blocks: -1}", "chat.yaml:1: engine.num_gpu_blocks: must not be negative, is -1"},
		{"engine: {num_gpu_blocks: 2000000000}", "chat.yaml:1: engine.num_gpu_blocks: must be at most 1000000000, is 2000000000"},
		{"engine: {gpu_memory_utilization: 1.1}", "chat.yaml:1: engine.gpu_memory_utilization: must be at most 1, is 1.1"},
		{"engine: {watermark: 1}", "chat.yaml:1: engine.watermark: must be at most 0.99, is 1"},
		{"cluster: {replicas: 5000}", "chat.yaml:1: cluster.replicas: must be at most 4096, is 5000"},
		{"cost: {efficiency: {compute: 0}}", "chat.yaml:1: cost.efficiency.compute: must be positive, is 0"},
		{"seed: -1", "chat.yaml:1: seed: must be a whole number from 0 to 2^63-1, is -1"},
		{"seed: 1.5", "chat.yaml:1: seed: must be a whole number from 0 to 2^63-1, is 1.5"},
		{"seed: 18446744073709551615", "chat.yaml:1: seed: must be a whole number from 0 to 2^63-1, is 18446744073709551615"},
		// durations, flags, words
		{"cost: {step_overhead: 3}", "chat.yaml:1: cost.step_overhead: must be a duration with its unit, such as 25ms, is 3"},
		{"cost: {step_overhead: 0}", "chat.yaml:1: cost.step_overhead: must be a duration with its unit, such as 25ms, is 0"},
		{`cost: {step_overhead: "3"}`, `chat.yaml:1: cost.step_overhead: must be a duration with its unit, such as 25ms, is "3"`},
		{"cost: {step_overhead: -1ms}", "chat.yaml:1: cost.step_overhead: must not be negative, is -1ms"},
		{"cost: {step_overhead: 2h}", "chat.yaml:1: cost.step_overhead: must be at most 1h0m0s, is 2h"},
		{"engine: {async_scheduling: yes}", `chat.yaml:1: engine.async_scheduling: must be true or false, is "yes"`},
		{"engine: {policy: clasic}", `chat.yaml:1: engine.policy: "clasic" is not known, did you mean classic?`},
		{"cost: {model: magic}", `chat.yaml:1: cost.model: "magic" is not known, there is roofline, operators`},
		{"cluster: {router: robin}", `chat.yaml:1: cluster.router: "robin" is not known, did you mean round-robin?`},
		{"name: 3", "chat.yaml:1: name: must be a name, is 3"},
		{`name: ""`, `chat.yaml:1: name: must be a name, is ""`},
		// catalogue
		{"model: {name: article-7}", `chat.yaml:1: model.name: "article-7" is not in the catalogue, did you mean article-7b?`},
		{"model: {name: gpt}", `chat.yaml:1: model.name: "gpt" is not in the catalogue, did you mean gpt-oss-20b or gpt-oss-120b?`},
		{"model: {name: gpt, kv_bytes_per_token: 5}", `chat.yaml:1: model.name: "gpt" is not in the catalogue, did you mean gpt-oss-20b or gpt-oss-120b?`},
		{"hardware: {name: H100}", `chat.yaml:1: hardware.name: "H100" is not in the catalogue, did you mean h100-80gb or h100-pcie or h100-sxm?`},
		// what does not go together
		{"workload: {arrivals: {cv: 2}}", "chat.yaml:1: workload.arrivals.cv: makes no sense with process poisson, which takes rate, grid"},
		{"workload: {arrivals: {process: closed, concurrency: 3, rate: 2}}",
			"chat.yaml:1: workload.arrivals.rate: makes no sense with process closed, which takes concurrency, think_time"},
		{"workload: {arrivals: {process: all-at-once, rate: 2}}", "chat.yaml:1: workload.arrivals.rate: makes no sense with process all-at-once"},
		{"workload: {arrivals: {process: gamma, cv: 2}}", "chat.yaml:1: workload.arrivals.rate: is missing"},
		{"workload: {arrivals: {process: closed}}", "chat.yaml:1: workload.arrivals.concurrency: is missing"},
		{"workload: {arrivals: {process: closed, concurrency: 2e6}}", "chat.yaml:1: workload.arrivals.concurrency: must be at most 1000000, is 2e6"},
		{"workload: {arrivals: {process: trace, file: trace.csv}, prompt_tokens: 3}",
			"chat.yaml:1: workload.prompt_tokens: makes no sense with process trace, which brings its own lengths"},
		{"workload: {arrivals: {process: trace, file: none.csv}}",
			"chat.yaml:1: workload.arrivals.file: must be a file, none.csv: no such file or directory"},
		{"workload: {arrivals: {process: trace, file: /}}", "chat.yaml:1: workload.arrivals.file: must be a file, / is none"},
		{"engine: {enable_prefix_caching: true}", "chat.yaml:1: engine.enable_prefix_caching: policy classic does not have enable_prefix_caching: true"},
		{"engine: {enable_chunked_prefill: false}", "chat.yaml:1: engine.enable_chunked_prefill: policy classic does not have enable_chunked_prefill: false"},
		{"engine: {long_prefill_token_threshold: 9}",
			"chat.yaml:1: engine.long_prefill_token_threshold: policy classic does not have long_prefill_token_threshold: 9"},
		{"engine: {scheduling_policy: priority}", `chat.yaml:1: engine.scheduling_policy: policy classic does not have scheduling_policy: "priority"`},
		{"engine: {async_scheduling: true}", "chat.yaml:1: engine.async_scheduling: policy classic does not have async_scheduling: true"},
		{"engine: {models: v1}", `chat.yaml:1: engine.models: "v1" is not known, there is article`},
		// lengths
		{"workload: {prompt_tokens: 0}", "chat.yaml:1: workload.prompt_tokens: must be positive, is 0"},
		{"workload: {prompt_tokens: 20000000}", "chat.yaml:1: workload.prompt_tokens: must be at most 10000000, is 20000000"},
		{"workload: {prompt_tokens: many}", `chat.yaml:1: workload.prompt_tokens: must be ` + lengths + `, is "many"`},
		{"workload: {prompt_tokens: {}}", "chat.yaml:1: workload.prompt_tokens: must be " + lengths + ", is empty"},
		{"workload: {prompt_tokens: [1, 2]}", "chat.yaml:1: workload.prompt_tokens: must be " + lengths + ", is a list"},
		{"workload: {prompt_tokens: {uniform: [1]}}", "chat.yaml:1: workload.prompt_tokens.uniform: must be [lo, hi]"},
		{"workload: {prompt_tokens: {uniform: [9, 3]}}", "chat.yaml:1: workload.prompt_tokens.uniform: must be [lo, hi] with lo <= hi, is [9, 3]"},
		{"workload: {prompt_tokens: {normal: [9, -3]}}", "chat.yaml:1: workload.prompt_tokens.normal.sd: must not be negative, is -3"},
		{"workload: {prompt_tokens: {lognormal: [9, 30]}}", "chat.yaml:1: workload.prompt_tokens.lognormal.sigma: must be at most 10, is 30"},
		{"workload: {prompt_tokens: {pareto: [9, 3]}}",
			"chat.yaml:1: workload.prompt_tokens.pareto: unknown key, there is uniform, normal, lognormal, empirical"},
		{"workload: {prompt_tokens: {uniform: [1, 2], normal: [1, 2]}}",
			"chat.yaml:1: workload.prompt_tokens.normal: must be one distribution, is uniform too"},
		// slo
		{"slo: {ttft-p99: 0ms}", "chat.yaml:1: slo.ttft-p99: must be positive, is 0ms"},
		{"slo: {ttft: 1s}", "chat.yaml:1: slo: bounds of each request (ttft, tpot, e2e) need goodput, the share of requests that keep them, such as goodput: 99%"},
		{"slo: {ttft-p100: 1s}", "chat.yaml:1: slo.ttft-p100: must be a metric (ttft, itl, tpot, e2e, queue) and p1 to p99.99, mean or max, such as ttft-p99; ttft, tpot, e2e of each request; or goodput"},
		{"slo: {ttft_p99: 1s}", "chat.yaml:1: slo.ttft_p99: is not known, did you mean ttft-p99?"},
		{"slo: {x_p99: 1s}", "chat.yaml:1: slo.x_p99: must be a metric (ttft, itl, tpot, e2e, queue) and p1 to p99.99, mean or max, such as ttft-p99; ttft, tpot, e2e of each request; or goodput"},
		// memory
		{"model: {parameters_billions: 70}", "chat.yaml:1: model.parameters_billions: model does not fit: weights of 130.39 GiB and " +
			"one KV block exceed the usable 72.00 GiB of a GPU by 58.39 GiB; tensor_parallel_size 2 is the smallest power of two that fits"},
		{"model: {parameters_billions: 900000}", "chat.yaml:1: model.parameters_billions: model does not fit: weights of 1676380.63 GiB and " +
			"one KV block exceed the usable 72.00 GiB of a GPU by 1676308.64 GiB; no tensor_parallel_size up to 1024 fits"},
		{"engine: {max_model_len: 500}", "chat.yaml:1: engine.max_model_len: prompt and output must fit max_model_len 500, have 576 tokens"},
		{"workload: {prompt_tokens: 32768}", "chat.yaml:1: workload.prompt_tokens: prompt and output must fit max_model_len 32768, have 32832 tokens"},
		{"engine: {num_gpu_blocks: 35}", "chat.yaml:1: engine.num_gpu_blocks: prompt and output must fit the KV cache of 35 blocks, 560 tokens, have 576"},
		{"workload:\n  prompt_tokens: {uniform: [32760, 32768]}", "chat.yaml:2: workload.prompt_tokens: prompt and output must fit max_model_len 32768, have 32824 tokens"},
	} {
		if got := faults(t, c.text); !slices.Equal(got, []string{c.want}) {
			t.Errorf("Load(%.100q) = %q\nwant %q", c.text, got, c.want)
		}
	}
}

// An edit gets the checks of a file, and its fault bears the name of the flag that made it.
func TestFaultsOfEditsNameTheEdit(t *testing.T) {
	for _, c := range []struct {
		edit Edit
		want string
	}{
		{Edit{Path: "workload.arrivals.rate", Value: "-1"}, "--set workload.arrivals.rate=-1: must be positive, is -1"},
		{Edit{Path: "workload.arrivals.rate", Value: "x", Label: "--rate x"}, `--rate x: must be a number, is "x"`},
		{Edit{Path: "workload.rate", Value: "1"}, "--set workload.rate=1: unknown key, did you mean workload.arrivals.rate?"},
		{Edit{Path: "workload.arrivals.process", Value: "closed"}, "--set workload.arrivals.process=closed: workload.arrivals.concurrency: is missing"},
		{Edit{Path: "engine", Value: "{block_size: 0}"}, "--set engine={block_size: 0}: engine.block_size: must be positive, is 0"},
		{Edit{Path: "engine.block_size", Value: ""}, "--set engine.block_size=: must be a number, is empty"},
		{Edit{Path: "engine.block_size", Value: "["}, "--set engine.block_size=[: must be YAML: did not find expected node content"},
		{Edit{Path: "workload.prompt_tokens", Value: "{lognormal:[700,1]}"}, "--set workload.prompt_tokens={lognormal:[700,1]}: must be YAML: did not find expected ',' or '}' (a colon within braces needs a space after it)"},
		{Edit{Path: "seed.x", Value: "1"}, "--set seed.x=1: seed: must be a whole number, is a block of keys"},
		{TraceEdit("none.csv"), "--trace none.csv: must be a file, none.csv: no such file or directory"},
	} {
		if got := faults(t, "", c.edit); !slices.Equal(got, []string{c.want}) {
			t.Errorf("Load with %+v = %q, want %q", c.edit, got, c.want)
		}
	}
	got := faults(t, "", Edit{Path: "engine", Value: "3"}, Edit{Path: "engine.block_size", Value: "3"})
	if want := "--set engine.block_size=3: engine is set to a value by --set engine=3 already"; !slices.Contains(got, want) {
		t.Errorf("Load with two edits = %q, want %q among them", got, want)
	}
}

// One run tells everything that is wrong, in the order of the lines, then of the edits.
func TestAllFaultsAtOnce(t *testing.T) {
	text, err := os.ReadFile("testdata/faulty.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`chat.yaml:2: model.name: "article-7" is not in the catalogue, did you mean article-7b?`,
		`chat.yaml:4: engine.max_num_seq: unknown key, did you mean max_num_seqs?`,
		`chat.yaml:5: engine.watermark: must not be negative, is -0.5`,
		`chat.yaml:8: workload.arrivals.rate: must be positive, is -1`,
		`chat.yaml:8: workload.arrivals.cv: is missing`,
		`chat.yaml:9: workload.output_tokens.uniform: must be [lo, hi] with lo <= hi, is [9, 3]`,
		`chat.yaml:10: slo.ttft-p99: must be a duration with its unit, such as 25ms, is 500`,
		`chat.yaml:12: seed: is given twice`,
		`--seed x: must be a whole number from 0 to 2^63-1, is "x"`,
	}
	if got := faults(t, string(text), Edit{Path: "seed", Value: "x", Label: "--seed x"}); !slices.Equal(got, want) {
		t.Errorf("Load(faulty.yaml) =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a block is, is one fault; what its other keys say is looked at all the same.
func TestFaultsBesideAnUnknownNameAreTold(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"workload:\n  arrivals:\n    process: poison\n    rate: -1\n    think_time: 3\n    concurrency: 0\n    file: none.csv\n    colour: red", []string{
			`chat.yaml:3: workload.arrivals.process: "poison" is not known, did you mean poisson?`,
			"chat.yaml:4: workload.arrivals.rate: must be positive, is -1",
			"chat.yaml:5: workload.arrivals.think_time: must be a duration with its unit, such as 25ms, is 3",
			"chat.yaml:6: workload.arrivals.concurrency: must be positive, is 0",
			"chat.yaml:7: workload.arrivals.file: must be a file, none.csv: no such file or directory",
			"chat.yaml:8: workload.arrivals.colour: unknown key, there is process, rate, cv, grid, concurrency, think_time, file, spread, speedup",
		}},
		{"model:\n  name: gpt\n  parameters_billions: -1", []string{
			`chat.yaml:2: model.name: "gpt" is not in the catalogue, did you mean gpt-oss-20b or gpt-oss-120b?`,
			"chat.yaml:3: model.parameters_billions: must be positive, is -1",
		}},
		{"engine: {block_size: 0, async_scheduling: true, enable_prefix_caching: 3}", []string{
			"chat.yaml:1: engine.block_size: must be positive, is 0",
			"chat.yaml:1: engine.enable_prefix_caching: must be true or false, is 3",
			"chat.yaml:1: engine.async_scheduling: policy classic does not have async_scheduling: true",
		}},
		{"hardware:\n  name: 3\n  hbm_gib: 0", []string{
			"chat.yaml:2: hardware.name: must be a name, is 3",
			"chat.yaml:3: hardware.hbm_gib: must be positive, is 0",
		}},
	} {
		if got := faults(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("Load(%q) =\n%s\nwant\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestMissingScenarioNamesNearOnes(t *testing.T) {
	known := " (embedded scenarios: " + strings.Join(Names(), ", ") + ")"
	folder := t.TempDir()
	for _, c := range []struct{ name, want string }{
		{"e7-bunch", "e7-bunch: no such scenario or file, did you mean e7-bunched?" + known},
		{"production", "production: no such scenario or file" + known},
		{"e7-bunched.yml", "e7-bunched.yml: no such file, did you mean e7-bunched?" + known},
		{folder, folder + ": must be a file, is a folder"},
		{filepath.Join(folder, "nothing.yaml"), filepath.Join(folder, "nothing.yaml") + ": no such file" + known},
	} {
		if _, err := Load(c.name, nil); fmt.Sprint(err) != c.want {
			t.Errorf("Load(%q) = %v, want %v", c.name, err, c.want)
		}
	}
}

// A megabyte of unknown keys, or of brackets, is refused in no time.
func TestHostileFilesAreRefusedQuickly(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 1<<19), strings.Repeat("{a: ", 1<<18), strings.Repeat("- ", 1<<19),
	} {
		if got := faults(t, text); len(got) == 0 {
			t.Errorf("Load(%q...) succeeded", text[:9])
		}
	}
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	if got := faults(t, b.String()); len(got) != 50_000 {
		t.Errorf("Load of 50000 unknown keys = %d faults", len(got))
	}
}
