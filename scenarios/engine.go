package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmsim/workload"
)

// A policyFacts is what a scheduling policy follows and what of an engine it does not have.
type policyFacts struct {
	models []string // engine versions, the default first
	lacks  []lack
}

type lack struct {
	key string
	set func(Engine) bool
}

var policies = map[string]policyFacts{
	"classic": {models: []string{"article"}, lacks: []lack{
		{"enable_prefix_caching", func(e Engine) bool { return e.EnablePrefixCaching }},
		{"enable_chunked_prefill", func(e Engine) bool { return !e.EnableChunkedPrefill }},
		{"long_prefill_token_threshold", func(e Engine) bool { return e.LongPrefillTokenThreshold != 0 }},
		{"scheduling_policy", func(e Engine) bool { return e.SchedulingPolicy == "priority" }},
		{"async_scheduling", func(e Engine) bool { return e.AsyncScheduling }},
		{"scheduler_reserve_full_isl", func(e Engine) bool { return e.SchedulerReserveFullISL }},
	}},
	"vllm-v1": {models: []string{"vllm-0.28", "vllm-0.19", "vllm-classic-v1", "vllm-v0"}},
}

// A profile is what differs between the versions that vllm-v1 follows.
type profile struct {
	utilization float64 // gpu_memory_utilization by default
	largeTier   bool    // GPUs from 160 GiB have defaults of their own
	async       bool    // async_scheduling by default
	reserves    bool    // scheduler_reserve_full_isl exists
	// countsGraphs: CUDA graphs are taken off before KV blocks are counted, since v0.21.
	countsGraphs bool
	watermark    bool // so does watermark
	// unhashedFirst: freed blocks without a hash are taken first; else in the order in which they
	// were freed.
	unhashedFirst bool
	// nullBlockCounts: at its start, the null block is not counted among those for max_model_len.
	nullBlockCounts bool
	// staleDelivered: a request preempted with a token under way still gets it.
	staleDelivered bool
	// cursorFollows: taking a victim out in front of the request that needs room makes nobody
	// miss the step.
	cursorFollows bool
	// v0: the first scheduler, whole prompts before decodes, without a prefix cache.
	v0 bool
	// chunkedOffBreaks: without chunked prefill, nobody passes a prompt beyond the budget.
	chunkedOffBreaks bool
}

var profiles = map[string]profile{
	"vllm-0.28": {utilization: 0.92, largeTier: true, countsGraphs: true, async: true, reserves: true, watermark: true,
		nullBlockCounts: true, unhashedFirst: true, staleDelivered: true, cursorFollows: true, chunkedOffBreaks: true},
	"vllm-0.19":       {utilization: 0.9, async: true, reserves: true, chunkedOffBreaks: true},
	"vllm-classic-v1": {utilization: 0.9},
	"vllm-v0":         {utilization: 0.9, v0: true, chunkedOffBreaks: true},
}

// A chosen is what a vLLM server chooses of an engine's settings, because they were not given.
type chosen struct {
	utilization, length, tokens, seqs bool
	most                              int    // max_num_batched_tokens before lengths are looked at
	sequences                         int    // max_num_seqs, likewise
	fitted                            string // why max_model_len is not the model's
}

// engine reads an engine for a model that was made for length tokens; 0: not known. Where the
// catalogue knows model and GPU, and no policy is asked for, it is vLLM's.
func (r *reading) engine(b *block, gpu Hardware, length int, known bool) (e Engine) {
	e.Policy = b.choice("policy", slices.Sorted(maps.Keys(policies))...)
	if n := b.get("policy"); known && n != nil && n.layer == 0 {
		e.Policy = "vllm-v1"
	}
	facts := policies[e.Policy]
	if len(facts.models) > 0 {
		e.Models = facts.models[0]
		if b.has("models") {
			e.Models = b.choice("models", facts.models...)
		}
	} else {
		b.get("models")
	}
	p, isVLLM := profiles[e.Models]

	// The base scenario's values are the article's: where a policy of vLLM is asked for, what is
	// not given is what a vLLM server would take.
	given := func(key string) bool {
		n := b.get(key)
		return n != nil && !(isVLLM && n.layer == 0)
	}
	e.BlockSize = b.whole("block_size", positive(65536))
	e.NumGPUBlocks = b.whole("num_gpu_blocks", nonNegative(mostBlocks))
	e.MaxModelLen = b.whole("max_model_len", positive(workload.MaxTokens))
	if length > 0 && !given("max_model_len") && isVLLM {
		e.MaxModelLen, r.chosen.length = min(length, workload.MaxTokens), true
	}
	e.LongPrefillTokenThreshold = b.whole("long_prefill_token_threshold", nonNegative(workload.MaxTokens))
	e.SchedulingPolicy = b.choice("scheduling_policy", "fcfs", "priority")
	e.TensorParallelSize = b.whole("tensor_parallel_size", positive(mostGPUs))
	e.PipelineParallelSize = b.whole("pipeline_parallel_size", positive(mostGPUs))
	e.DataParallelSize = b.whole("data_parallel_size", positive(mostGPUs))
	e.EnableExpertParallel = b.flag("enable_expert_parallel")
	if b.has("kv_cache_dtype") {
		if dtype := b.choice("kv_cache_dtype", "auto", "bf16", "fp8"); dtype == "fp8" {
			e.KVCacheDtype = dtype
		}
	}
	if e.EnableChunkedPrefill = !p.v0; given("enable_chunked_prefill") {
		e.EnableChunkedPrefill = b.flag("enable_chunked_prefill")
	}
	if e.GPUMemoryUtilization = p.utilization; given("gpu_memory_utilization") {
		e.GPUMemoryUtilization = b.number("gpu_memory_utilization", positive(1))
	} else {
		r.chosen.utilization = true
	}
	if given("watermark") {
		e.Watermark = b.number("watermark", between(0, 0.99))
	}
	if e.EnablePrefixCaching = !p.v0; given("enable_prefix_caching") {
		e.EnablePrefixCaching = b.flag("enable_prefix_caching")
	}
	if e.AsyncScheduling = p.async; given("async_scheduling") {
		e.AsyncScheduling = b.flag("async_scheduling")
	}
	if e.SchedulerReserveFullISL = p.reserves; b.has("scheduler_reserve_full_isl") {
		e.SchedulerReserveFullISL = b.flag("scheduler_reserve_full_isl")
	}
	tokens, seqs := serverDefaults(gpu, p)
	if p.v0 {
		tokens, seqs = 2048, 256
	}
	r.chosen.most, r.chosen.sequences = tokens, seqs
	if r.chosen.seqs = !given("max_num_seqs"); !r.chosen.seqs {
		e.MaxNumSeqs = b.whole("max_num_seqs", positive(1e6))
	}
	if r.chosen.tokens = !given("max_num_batched_tokens"); !r.chosen.tokens {
		e.MaxNumBatchedTokens = b.whole("max_num_batched_tokens", positive(1e8))
	}
	r.chosen.settle(&e)
	b.close()

	for _, l := range facts.lacks {
		if n := b.get(l.key); n != nil && n.scalar != nil && l.set(e) && !r.told(n) {
			r.addAmong([]string{"engine." + l.key, "engine.policy"}, "policy %s does not have %s: %s", e.Policy, l.key, show(n))
		}
	}
	if isVLLM {
		r.checkVLLM(b, e, p)
	}
	return e
}

// settle gives an engine the chosen sizes of its batches, which depend on its max_model_len, and
// lists all that was chosen.
func (c chosen) settle(e *Engine) {
	if c.seqs {
		e.MaxNumSeqs = c.sequences
	}
	if c.tokens {
		e.MaxNumBatchedTokens = c.most
		if !e.EnableChunkedPrefill {
			e.MaxNumBatchedTokens = max(e.MaxNumBatchedTokens, e.MaxModelLen)
		}
		e.MaxNumBatchedTokens = min(e.MaxNumBatchedTokens, max(e.MaxNumSeqs*e.MaxModelLen, 1))
	}
	if c.seqs {
		e.MaxNumSeqs = min(e.MaxNumSeqs, e.MaxNumBatchedTokens)
	}
	e.Defaults = nil
	list := func(is bool, key string, value any) {
		if is {
			e.Defaults = append(e.Defaults, fmt.Sprintf("%s %v", key, value))
		}
	}
	list(c.utilization, "gpu_memory_utilization", e.GPUMemoryUtilization)
	list(c.length, "max_model_len", fmt.Sprint(e.MaxModelLen, c.fitted))
	list(c.tokens, "max_num_batched_tokens", e.MaxNumBatchedTokens)
	list(c.seqs, "max_num_seqs", e.MaxNumSeqs)
}

// serverDefaults is what `vllm serve` takes for max_num_batched_tokens and max_num_seqs on a GPU.
func serverDefaults(gpu Hardware, p profile) (tokens, seqs int) {
	const gib = 1 << 30
	switch {
	case p.largeTier && gpu.HBMBytes >= 160*gib:
		return 16384, 1024
	case gpu.HBMBytes >= 70*gib && !strings.Contains(strings.ToLower(gpu.Name), "a100"):
		return 8192, 1024
	}
	return 2048, 256
}

// checkVLLM sees to what vLLM refuses to start with, and to what a version does not have.
func (r *reading) checkVLLM(b *block, e Engine, p profile) {
	among := func(keys ...string) (paths []string) {
		for _, key := range keys {
			paths = append(paths, "engine."+key)
		}
		return paths
	}
	if e.MaxNumBatchedTokens > 0 && e.MaxNumBatchedTokens < e.MaxNumSeqs {
		r.addAmong(among("max_num_batched_tokens", "max_num_seqs"), "max_num_batched_tokens must be at least max_num_seqs, %d, is %d",
			e.MaxNumSeqs, e.MaxNumBatchedTokens)
	}
	if !e.EnableChunkedPrefill && e.MaxNumBatchedTokens > 0 && e.MaxNumBatchedTokens < e.MaxModelLen {
		r.addAmong(among("max_num_batched_tokens", "enable_chunked_prefill", "max_model_len"),
			"without chunked prefill max_num_batched_tokens must be at least max_model_len, %d, is %d", e.MaxModelLen, e.MaxNumBatchedTokens)
	}
	if e.NumGPUBlocks == 1 {
		r.addAmong(among("num_gpu_blocks"), "num_gpu_blocks must be at least 2, is 1: the null block is never lent")
	}
	if e.Models == "vllm-classic-v1" && e.AsyncScheduling && e.PipelineParallelSize > 1 {
		r.addAmong(among("async_scheduling", "pipeline_parallel_size", "models"),
			"vLLM would not start: %s has async_scheduling only with pipeline_parallel_size 1, is %d", e.Models, e.PipelineParallelSize)
	}
	if p.v0 && e.Watermark != 0 {
		r.addAmong(among("watermark", "models"), "%s always keeps 1%% of the blocks free: watermark %v can't be set", e.Models, e.Watermark)
	} else if !p.watermark && e.Watermark != 0 {
		r.addAmong(among("watermark", "models"), "%s does not have watermark: %v", e.Models, e.Watermark)
	}
	if !p.reserves && e.SchedulerReserveFullISL {
		r.addAmong(among("scheduler_reserve_full_isl", "models"), "%s does not have scheduler_reserve_full_isl: true", e.Models)
	}
	if p.v0 {
		for _, f := range []struct {
			key string
			set bool
		}{
			{"enable_prefix_caching", e.EnablePrefixCaching}, {"enable_chunked_prefill", e.EnableChunkedPrefill},
			{"long_prefill_token_threshold", e.LongPrefillTokenThreshold != 0}, {"async_scheduling", e.AsyncScheduling},
		} {
			if f.set {
				r.addAmong(among(f.key, "models"), "%s with %s is not modelled", e.Models, f.key)
			}
		}
		if e.SchedulingPolicy == "priority" {
			r.addAmong(among("scheduling_policy", "models"), "%s does not have scheduling_policy: priority", e.Models)
		}
	}
	if !p.chunkedOffBreaks && !e.EnableChunkedPrefill {
		r.addAmong(among("enable_chunked_prefill", "models"), "%s without chunked prefill is not modelled", e.Models)
	}
}
