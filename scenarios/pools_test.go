package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"llmsim/sim"
	"llmsim/workload"
)

const twoPools = `engine: {policy: vllm-v1, max_num_seqs: 32}
model: {name: llama-3.1-8b}
cluster:
  pools:
    - {name: short, hardware: {name: l40s}, replicas: 3, accepts: {prompt_tokens: [0, 2000]}}
    - {name: long, hardware: {name: h100-sxm}, tp: 2, engine: {kv_cache_dtype: fp8}, accepts: {prompt_tokens: [1000]}}
`

// A pool is what its block says over what the scenario says.
func TestAPoolIsLaidOverTheScenario(t *testing.T) {
	s := load(t, write(t, twoPools))
	short, long := s.Fleet.Pools[0], s.Fleet.Pools[1]
	if short.Name != "short" || short.Replicas != 3 || short.PromptTokens != (sim.Range{Hi: 2000}) || short.Hardware.Name != "l40s" ||
		short.Model.Name != "llama-3.1-8b" || short.Engine.MaxNumSeqs != 32 || short.Engine.MaxNumBatchedTokens != 2048 {
		t.Errorf("pool short = %+v", short)
	}
	if long.Replicas != 1 || long.PromptTokens != (sim.Range{Lo: 1000}) || long.Hardware.Name != "h100-sxm" || long.Weight != 1 ||
		long.Engine.TensorParallelSize != 2 || long.Engine.KVCacheDtype != "fp8" || long.Engine.MaxNumBatchedTokens != 8192 ||
		long.Model.KVBytesPerToken*2 != short.Model.KVBytesPerToken {
		t.Errorf("pool long = %+v", long)
	}
	if s.GPUs() != 5 || s.Fleet.Replicas != 4 || !slices.Equal(s.PoolOf(), []int{0, 0, 0, 1}) || !s.Mixed() {
		t.Errorf("%d GPUs, %d replicas, PoolOf() = %v", s.GPUs(), s.Fleet.Replicas, s.PoolOf())
	}
	// Each is the scenario that it would be alone.
	alone := load(t, write(t, "engine: {policy: vllm-v1, max_num_seqs: 32, tensor_parallel_size: 2, kv_cache_dtype: fp8}\nmodel: {name: llama-3.1-8b}\nhardware: {name: h100-sxm}"))
	of := s.Pools()[1]
	blocks, m := of.KVBlocks()
	if n, memory := alone.KVBlocks(); n != blocks || m != memory || !reflect.DeepEqual(of.Engine, alone.Engine) || !reflect.DeepEqual(of.Cost, alone.Cost) {
		t.Errorf("pool long has %d blocks, %+v, %+v; alone %d, %+v, %+v", blocks, m, of.Engine, n, memory, alone.Engine)
	}
	if all := alone.Pools(); len(all) != 1 || all[0] != alone || alone.Mixed() || alone.PoolOf() != nil || alone.GPUs() != 2 {
		t.Errorf("Pools() without pools = %v", all)
	}
}

// Edits reach a pool by its name or its number, also one that another edit gives; thresholds move
// the bounds of two pools at once.
func TestEditsOfPools(t *testing.T) {
	for _, c := range []struct {
		edits []Edit
		check func(*Scenario) bool
	}{
		{[]Edit{{Path: "cluster.pools.long.replicas", Value: "7"}}, func(s *Scenario) bool { return s.Fleet.Pools[1].Replicas == 7 && s.Fleet.Pools[0].Replicas == 3 }},
		{[]Edit{{Path: "cluster.pools.0.replicas", Value: "7"}}, func(s *Scenario) bool { return s.Fleet.Pools[0].Replicas == 7 }},
		{[]Edit{{Path: "cluster.pools.long", Value: "{replicas: 2, engine: {max_num_seqs: 9}}"}}, func(s *Scenario) bool {
			p := s.Fleet.Pools[1]
			return p.Replicas == 2 && p.Engine.MaxNumSeqs == 9 && p.Engine.KVCacheDtype == "fp8" && p.Engine.TensorParallelSize == 2
		}},
		{[]Edit{{Path: "cluster.pools", Value: "{long: {replicas: 2}}"}}, func(s *Scenario) bool { return s.Fleet.Pools[1].Replicas == 2 }},
		{[]Edit{{Path: "cluster.pools.long.replicas", Value: "2"}, {Path: "cluster.pools.long.tp", Value: "1"}}, func(s *Scenario) bool {
			return s.Fleet.Pools[1].Replicas == 2 && s.Fleet.Pools[1].Engine.TensorParallelSize == 1
		}},
		{[]Edit{{Path: "cluster.pools.long.hardware.name", Value: "h200"}}, func(s *Scenario) bool { return strings.HasPrefix(s.Fleet.Pools[1].Hardware.Name, "h200") }},
		{[]Edit{{Path: "engine.max_num_seqs", Value: "5"}}, func(s *Scenario) bool {
			return s.Fleet.Pools[0].Engine.MaxNumSeqs == 5 && s.Fleet.Pools[1].Engine.MaxNumSeqs == 5
		}},
		{[]Edit{{Path: "cluster.pools.b.accepts.prompt_tokens", Value: "[5, 0]"},
			{Path: "cluster.pools", Value: "[{name: a, hardware: {name: h100-sxm}}, {name: b, hardware: {name: h100-sxm}, weight: 2.5}]"}},
			func(s *Scenario) bool {
				return len(s.Fleet.Pools) == 2 && s.Fleet.Pools[1].PromptTokens == sim.Range{Lo: 5} && s.Fleet.Pools[1].Weight == 2.5
			}},
	} {
		if s := load(t, write(t, twoPools), c.edits...); !c.check(s) {
			t.Errorf("Load with %+v has %+v", c.edits, s.Fleet)
		}
	}
	three := "[{name: a}, {name: b}, {name: c}]"
	s := load(t, write(t, ""), Edit{Path: "cluster.pools", Value: three}, Edit{Path: "cluster.split_prompt_tokens", Value: "[100, 5000]"})
	if p := s.Fleet.Pools; p[0].PromptTokens != (sim.Range{Hi: 100}) || p[1].PromptTokens != (sim.Range{Lo: 101, Hi: 5000}) || p[2].PromptTokens != (sim.Range{Lo: 5001}) {
		t.Errorf("split at 100 and 5000: %+v", p)
	}
}

// What is wrong with a pool is told with its place; what is wrong for all pools once.
func TestFaultsOfPools(t *testing.T) {
	pools := func(second string) string {
		return "cluster:\n  pools:\n    - {name: a}\n    - " + second
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"cluster: {pools: 3}", []string{"chat.yaml:1: cluster.pools: must be a list of pools, is 3"}},
		{"cluster: {pools: []}", []string{"chat.yaml:1: cluster.pools: must be 1 to 64 pools, are 0"}},
		{"cluster: {pools: [" + strings.Repeat("{name: a},", 65) + "]}", []string{"chat.yaml:1: cluster.pools: must be 1 to 64 pools, are 65"}},
		{"cluster: {pools: [{name: a}], replicas: 2}",
			[]string{"chat.yaml:1: cluster.replicas: makes no sense beside cluster.pools, of which each has its own: cluster.pools.NAME.replicas"}},
		{pools("{name: a}"), []string{`chat.yaml:4: cluster.pools[1].name: must be another than that of pool 0, is "a"`}},
		{pools("{}"), []string{"chat.yaml:4: cluster.pools[1].name: is missing"}},
		{pools("{name: a.b}"), []string{`chat.yaml:4: cluster.pools[1].name: must be a word of at most 40 letters without dots, commas or spaces, is "a.b"`}},
		{pools("7"), []string{"chat.yaml:4: cluster.pools[1]: must be a block of keys, is 7"}},
		{pools("{name: b, replicas: 0}"), []string{"chat.yaml:4: cluster.pools[1].replicas: must be positive, is 0"}},
		{pools("{name: b, replicas: 4096}"), []string{"chat.yaml:2: cluster.pools: must have at most 4096 replicas, data-parallel ranks counted, have 4097"}},
		{pools("{name: b, weight: 0}"), []string{"chat.yaml:4: cluster.pools[1].weight: must be at least 0.001, is 0"}},
		{pools("{name: b, colour: red}"), []string{"chat.yaml:4: cluster.pools[1].colour: unknown key, there is name, replicas, weight, accepts, model, hardware, engine, cost, tp"}},
		{pools("{name: b, model: {name: gpt}}"), []string{`chat.yaml:4: cluster.pools[1].model.name: "gpt" is not in the catalogue, did you mean gpt-oss-20b or gpt-oss-120b?`}},
		{pools("{name: b, hardware: l40s}"), []string{`chat.yaml:4: cluster.pools[1].hardware: must be a block of keys, is "l40s"`}},
		{pools("{name: b, engine: {max_num_seq: 3}}"), []string{"chat.yaml:4: cluster.pools[1].engine.max_num_seq: unknown key, did you mean max_num_seqs?"}},
		{pools("{name: b, tp: 2, engine: {tensor_parallel_size: 2}}"),
			[]string{"chat.yaml:4: cluster.pools[1].tp: is 2 and engine.tensor_parallel_size 2, which says the same"}},
		{pools("{name: b, tp: 0}"), []string{"chat.yaml:4: cluster.pools[1].tp: must be positive, is 0"}},
		{pools("{name: b, accepts: {prompt_tokens: 3}}"), []string{"chat.yaml:4: cluster.pools[1].accepts.prompt_tokens: must be [lo, hi] or [lo], is 3"}},
		{pools("{name: b, accepts: {prompt_tokens: [9, 3]}}"),
			[]string{"chat.yaml:4: cluster.pools[1].accepts.prompt_tokens: must be [lo, hi] with lo <= hi, is [9, 3]"}},
		{pools("{name: b, accepts: {prompt_tokens: [-1, 3]}}"), []string{"chat.yaml:4: cluster.pools[1].accepts.prompt_tokens.lo: must not be negative, is -1"}},
		{pools("{name: b, accepts: {}}"), []string{"chat.yaml:4: cluster.pools[1].accepts.prompt_tokens: is missing"}},
		{pools("{name: b, model: {parameters_billions: 70}}"), []string{"chat.yaml:4: cluster.pools[1].model.parameters_billions: model does not fit: weights of 130.39 GiB and " +
			"one KV block exceed the usable 72.00 GiB of a GPU by 58.39 GiB; tensor_parallel_size 2 is the smallest power of two that fits"}},
		{pools("{name: b, engine: {async_scheduling: true}}"),
			[]string{"chat.yaml:4: cluster.pools[1].engine.async_scheduling: policy classic does not have async_scheduling: true"}},
		{"cluster: {split_prompt_tokens: 3}", []string{"chat.yaml:1: cluster.split_prompt_tokens: needs cluster.pools, there are none"}},
		{pools("{name: b}\n  split_prompt_tokens: [1, 2]"), []string{"chat.yaml:5: cluster.split_prompt_tokens: must be 1, one between each two pools, are 2"}},
		{pools("{name: b}\n    - {name: c}\n  split_prompt_tokens: [7, 7]"), []string{"chat.yaml:6: cluster.split_prompt_tokens: must be ascending, is 7 after 7"}},
		{pools("{name: b, accepts: {prompt_tokens: [7]}}\n  split_prompt_tokens: 7"),
			[]string{"chat.yaml:4: cluster.pools[1].accepts: makes no sense beside cluster.split_prompt_tokens, which says it"}},
		{pools("{name: b}\n  split_prompt_tokens: {a: 1}"), []string{"chat.yaml:5: cluster.split_prompt_tokens: must be ascending numbers of tokens, is a block of keys"}},
		// for all pools
		{"engine: {watermark: -1}\n" + pools("{name: b}"), []string{"chat.yaml:1: engine.watermark: must not be negative, is -1"}},
		{"engine: {max_num_seq: 9}\n" + pools("{name: b}"), []string{"chat.yaml:1: engine.max_num_seq: unknown key, did you mean max_num_seqs?"}},
		{"model: {name: gpt}\ncluster: {pools: [{name: a, model: {name: article-7b}}]}", []string{`chat.yaml:1: model.name: "gpt" is not in the catalogue, did you mean gpt-oss-20b or gpt-oss-120b?`}},
		{"engine: {num_gpu_blocks: 35}\n" + pools("{name: b}"), []string{"chat.yaml:3: cluster.pools: prompt and output must fit a pool that accepts them: " +
			"the longest request that one holds has 560 tokens, the shortest of the workload 576"}},
		{"cluster: {pools: [{name: a, accepts: {prompt_tokens: [0, 511]}}]}", []string{"chat.yaml:1: cluster.pools: prompt and output must fit a pool that accepts them: " +
			"the longest request that one holds has 32768 tokens, the shortest of the workload 576"}},
	} {
		if got := faults(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("Load(%q) =\n%s\nwant\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	for _, c := range []struct {
		edit Edit
		want string
	}{
		{Edit{Path: "cluster.pools.lnog.replicas", Value: "3"}, "--set cluster.pools.lnog.replicas=3: cluster.pools.lnog: there is no such pool, did you mean long?"},
		{Edit{Path: "cluster.pools.long.replicas", Value: "x"}, `--set cluster.pools.long.replicas=x: cluster.pools[1].replicas: must be a number, is "x"`},
		{Edit{Path: "cluster.pools.long.tp", Value: "3"}, "--set cluster.pools.long.tp=3: cluster.pools[1].tp: tensor_parallel_size must split 32 heads and 8 KV heads evenly, is 3"},
		{Edit{Path: "hardware.name", Value: "h200", Label: "--gpu h200"},
			"--gpu h200: changes nothing: every pool has its own, such as cluster.pools.short.hardware.name"},
		{Edit{Path: "cluster.replicas", Value: "3", Label: "--replicas 3"},
			"--replicas 3: makes no sense beside cluster.pools, of which each has its own: cluster.pools.NAME.replicas"},
	} {
		if got := faults(t, twoPools, c.edit); !slices.Equal(got, []string{c.want}) {
			t.Errorf("Load with %+v = %q, want %q", c.edit, got, c.want)
		}
	}
}

// A digest is of what pools do, not of their names, nor of what none of them takes over.
func TestDigestOfPools(t *testing.T) {
	first := digest(t, load(t, write(t, twoPools)))
	for _, same := range []string{
		strings.ReplaceAll(strings.ReplaceAll(twoPools, "short", "s"), "long", "l"),
		twoPools + "hardware: {name: h200-sxm}\n",
		strings.Replace(twoPools, "tp: 2, engine: {", "engine: {tensor_parallel_size: 2, ", 1),
		strings.Replace(twoPools, "[0, 2000]", "[0, 2000]}, model: {name: llama-3.1-8b", 1),
	} {
		if got := digest(t, load(t, write(t, same))); got != first {
			t.Errorf("Digest() of %q = %v, want %v", same, got, first)
		}
	}
	for _, other := range []string{
		strings.Replace(twoPools, "2000", "2001", 1), strings.Replace(twoPools, "replicas: 3", "replicas: 4", 1),
		strings.Replace(twoPools, "tp: 2", "tp: 1", 1), strings.Replace(twoPools, "replicas: 3", "replicas: 3, weight: 2", 1),
	} {
		if got := digest(t, load(t, write(t, other))); got == first {
			t.Errorf("Digest() of %q is that of %q", other, twoPools)
		}
	}
	split := digest(t, load(t, "split"))
	ranges := strings.NewReplacer("split_prompt_tokens: 1024", "", "name: short", "name: short, accepts: {prompt_tokens: [0, 1024]}",
		"name: long", "name: long, accepts: {prompt_tokens: [1025]}")
	text, _ := embedded.ReadFile("split.yaml")
	if got := digest(t, load(t, write(t, ranges.Replace(string(text))))); got != split {
		t.Errorf("Digest() of split with ranges = %v, with a threshold %v, want one", got, split)
	}
}

// A fleet split by length is its pools, each with its part of the trace, to the nanosecond.
func TestSplitFleetIsItsPoolsAlone(t *testing.T) {
	for _, engine := range []string{"policy: vllm-v1", "policy: vllm-v1, models: vllm-0.19, data_parallel_size: 2", "policy: classic, num_gpu_blocks: 300"} {
		for _, router := range []string{"round-robin", "least-loaded", "join-shortest-queue", "prefix-affinity"} {
			base := load(t, write(t, "workload: {arrivals: {rate: 120}, prompt_tokens: {lognormal: [400, 0.9]}, output_tokens: {uniform: [1, 120]}, requests: 1500, prefix: {groups: 3, tokens: 200}}"))
			source, _, err := base.Source()
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			var all, short, long []workload.Request
			for r, ok := source.Next(); ok; r, ok = source.Next() {
				if all = append(all, r); r.Prompt <= 500 {
					short = append(short, r)
				} else {
					long = append(long, r)
				}
			}
			run := func(name, text string, requests []workload.Request) []sim.Finished {
				file, err := os.Create(filepath.Join(folder, name+".csv"))
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				if _, err := workload.WriteTrace(file, &given{requests}); err != nil {
					t.Fatal(err)
				}
				text += fmt.Sprintf("\nengine: {%s}\nworkload: {arrivals: {process: trace, file: %s.csv}}\n", engine, name)
				if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				o := play(t, load(t, filepath.Join(folder, name+".yaml")))
				if len(o.finished)+o.refused != len(requests) {
					t.Fatalf("%s: %d of %d finished, %d refused", name, len(o.finished), len(requests), o.refused)
				}
				slices.SortFunc(o.finished, func(a, b sim.Finished) int { return int(a.ID - b.ID) })
				return o.finished
			}
			mixed := run("all", "cluster: {router: "+router+", split_prompt_tokens: 500, pools: [{name: s, replicas: 2}, {name: l, replicas: 2, hardware: {name: h200-sxm}}]}", all)
			first := run("short", "cluster: {replicas: 2, router: "+router+"}", short)
			second := run("long", "hardware: {name: h200-sxm}\ncluster: {replicas: 2, router: "+router+"}", long)
			ranks := 0
			for _, f := range first {
				ranks = max(ranks, f.Replica+1)
			}
			for _, f := range mixed {
				var want sim.Finished
				if f.Prompt <= 500 {
					want, first = first[0], first[1:]
				} else {
					want, second = second[0], second[1:]
					want.Replica += ranks
				}
				if want.ID = f.ID; f != want {
					t.Fatalf("%s, %s: %+v, alone %+v", engine, router, f, want)
				}
			}
			if len(first)+len(second) > 0 {
				t.Errorf("%s, %s: %d requests finished only alone", engine, router, len(first)+len(second))
			}
		}
	}
}

// Who goes where its prefix is finds more of it, unless every replica has room for all of them: four
// system prompts are everywhere soon.
func TestPrefixAffinityHitsMore(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	for _, c := range []struct {
		name  string
		edits []Edit
		more  float64 // of the hits of round-robin, at least
	}{
		{"prefix", []Edit{{Path: "workload.prefix.groups", Value: "400"}, {Path: "workload.requests", Value: "3000"}}, 2},
		{"prefix", nil, 0.99},
		{"sessions", []Edit{{Path: "workload.requests", Value: "2000"}}, 2},
		{"sessions", []Edit{{Path: "workload.requests", Value: "2000"}, {Path: "workload.prefix", Value: "{groups: 3, tokens: 100}"}}, 1.8},
	} {
		hits := map[string]int64{}
		for _, router := range []string{"round-robin", "prefix-affinity"} {
			s := load(t, c.name, append(c.edits, Edit{Path: "cluster", Value: "{replicas: 4, router: " + router + "}"})...)
			hits[router] = play(t, s).hits
		}
		if a, r := hits["prefix-affinity"], hits["round-robin"]; float64(a) < c.more*float64(r) {
			t.Errorf("%s %+v: %d hits by prefix affinity, %d in turn, want %v times as many", c.name, c.edits, a, r, c.more)
		}
	}
}

// Conversations go on as long as some pool holds them.
func TestSessionsOverPools(t *testing.T) {
	s := load(t, "sessions", Edit{Path: "workload.requests", Value: "1500"}, Edit{Path: "cluster", Value: "{router: prefix-affinity, split_prompt_tokens: 1000, " +
		"pools: [{name: s, engine: {block_size: 32, max_model_len: 3000}}, {name: l, engine: {block_size: 48, max_model_len: 9000}}]}"})
	if s.longest() != 9000 || s.finestBlock() != 16 {
		t.Errorf("longest() = %d, finestBlock() = %d, want 9000 and 16", s.longest(), s.finestBlock())
	}
	o := play(t, s)
	longest := 0
	for _, f := range o.finished {
		longest = max(longest, f.Prompt)
		if want := 0; f.Prompt > 1000 {
			want = 1
			if f.Replica != want {
				t.Fatalf("%+v is not of pool %d", f, want)
			}
		}
	}
	if len(o.finished) != 1500 || longest < 1000 || o.hits == 0 {
		t.Errorf("%d finished, the longest prompt %d, %d hits", len(o.finished), longest, o.hits)
	}
}

func TestNotesOfPools(t *testing.T) {
	s := load(t, write(t, "cluster: {pools: [{name: a, accepts: {prompt_tokens: [100, 600]}}, {name: b, tp: 2, accepts: {prompt_tokens: [801, 900]}}]}"))
	want := []string{
		"pool b: tensor parallelism over 2 GPUs is ideal: communication between them is free",
		"no pool accepts prompts of 1 to 99 tokens: they are refused",
		"no pool accepts prompts of 601 to 800 tokens: they are refused",
		"no pool accepts prompts of more than 900 tokens: they are refused",
	}
	if got := s.notes(); !slices.Equal(got, want) {
		t.Errorf("notes() = %q\nwant %q", got, want)
	}
}
