package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Pools add up to the fleet, and scripts find them under the keys of the whole.
func TestPoolsAddUp(t *testing.T) {
	leaves := flatten(t, simulated(t, "--scenario", "split", "--requests", "800", "--format", "json", "--explain"))
	if leaves["pools.0.name"] != "short" || leaves["pools.1.name"] != "long" || leaves["pools.1.hardware"] != "h100-sxm" {
		t.Errorf("pools %v and %v", leaves["pools.0.name"], leaves["pools.1.name"])
	}
	for path, of := range map[string]string{
		"requests.completed": "requests.completed", "throughput.completed_rps": "throughput.completed_rps",
		"throughput.input_tokens_per_s": "throughput.input_tokens_per_s", "throughput.output_tokens_per_s": "throughput.output_tokens_per_s",
		"steps.count": "steps.count", "latency_ms.itl.count": "latency_ms.itl.count", "latency_ms.ttft.count": "latency_ms.e2e.count",
		"preemptions.total": "preemptions.total", "prefix_cache.query_tokens": "prefix_cache.query_tokens",
	} {
		a, b := figureAt(t, leaves, "pools.0."+of), figureAt(t, leaves, "pools.1."+of)
		if all := figureAt(t, leaves, path); math.Abs(a+b-all) > 2e-6 || a == 0 && of != "preemptions.total" {
			t.Errorf("%s = %v, pools have %v and %v", path, all, a, b)
		}
	}
	for _, path := range []string{"pools.0.gpus", "pools.0.replicas", "pools.0.kv.blocks", "pools.0.kv.use_max", "pools.1.accepts.prompt_tokens.0", "explain.memory_roof"} {
		if figureAt(t, leaves, path) <= 0 {
			t.Errorf("%s = %v, want more", path, leaves[path])
		}
	}
	if _, has := flatten(t, simulated(t, "--requests", "10", "--format", "json"))["pools.0.name"]; has {
		t.Error("a fleet of equal replicas has pools")
	}
	text := simulated(t, "--scenario", "split", "--requests", "800")
	for _, want := range []string{"pool short: 4 replicas of llama-3.1-8b on l40s, prompts of up to 1,024 tokens;", "\npool   GPUs  requests"} {
		if !strings.Contains(text, want) {
			t.Errorf("simulate --scenario split = %s\nwant %q in it", text, want)
		}
	}
}

// A plan of pools says whether the fleet holds, whatever its pools; more of one may be what it takes.
func TestPlanOfPools(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	type plan struct {
		Verdict struct {
			Holds  bool
			Reason string
		}
		Replicas, GPUs int
		Capacity       *struct {
			Fleet float64 `json:"fleet_rps"`
		}
		Pools []struct {
			GPUs   int
			Memory struct {
				KVTokens int `json:"kv_tokens"`
			}
		}
	}
	ask := func(code int, args ...string) (p plan) {
		a := invoke(t.Context(), append([]string{"plan", "--scenario", "split", "--format", "json"}, args...)...)
		if err := json.Unmarshal([]byte(a.stdout), &p); err != nil || a.code != code {
			t.Fatalf("%v, want %d and JSON: %v", a, code, err)
		}
		if p.Capacity != nil && (p.Capacity.Fleet > 40) != p.Verdict.Holds || len(p.Pools) != 2 || p.Pools[0].Memory.KVTokens == p.Pools[1].Memory.KVTokens {
			t.Errorf("%v: %+v", a, p)
		}
		return p
	}
	if p := ask(exitYes); !p.Verdict.Holds || p.Replicas != 6 || p.GPUs != 6 || !strings.Contains(p.Verdict.Reason, "the pools short (4 replicas of llama-3.1-8b on l40s) and long (2 ") {
		t.Errorf("plan --scenario split = %+v", p)
	}
	if p := ask(exitNo, "--set", "cluster.split_prompt_tokens=4096"); !strings.HasPrefix(p.Verdict.Reason, "overload: with 40 req/s the queue of the pools") {
		t.Errorf("split at 4096: %+v", p)
	}
	if p := ask(exitYes, "--set", "cluster.split_prompt_tokens=4096", "--set", "cluster.pools.short.replicas=8", "--slo", "ttft-p99=10s"); p.Replicas != 10 || p.GPUs != 10 {
		t.Errorf("split at 4096, 8 short ones: %+v", p)
	}
	ask(exitYes, "--set", "workload.arrivals={process: closed, concurrency: 9}", "--requests", "300")
	inFolder(t, nil)
	refused(t, "--replicas 3: makes no sense beside cluster.pools", "plan", "--scenario", "split", "--replicas", "3")
	refused(t, "--tp 2, 3", "plan", "--scenario", "split", "--tp", "2, 3")
	refused(t, "must be a whole number", simulateToFiles("--scenario", "split", "--set", "cluster.split_prompt_tokens=1.5")...)
}

// A comparison of GPUs takes one replica for all, which pools are not.
func TestPoolsAreNotComparedOverGPUs(t *testing.T) {
	inFolder(t, map[string]string{"pools.yaml": "model: {name: llama-3.1-8b}\ncluster: {pools: [{name: a}, {name: b}]}\n"})
	for _, scenario := range []string{"pools.yaml", "split"} {
		refused(t, "--gpu any compares equal replicas", "plan", "--scenario", scenario, "--gpu", "any")
	}
}
