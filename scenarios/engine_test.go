package scenarios

import (
	"slices"
	"strings"
	"testing"
)

// What a scenario does not give of an engine that follows vLLM is what `vllm serve` of that
// version takes on that GPU, and is listed; what it gives holds.
func TestServerDefaults(t *testing.T) {
	gpu := func(name string, gib string) Edit {
		return Edit{Path: "hardware", Value: "{name: " + name + ", hbm_gib: " + gib + ", memory_bandwidth_gbps: 3000, peak_tflops: 900}"}
	}
	edit := func(path, value string) Edit { return Edit{Path: path, Value: value} }
	vllm := edit("engine.policy", "vllm-v1")
	type want struct {
		tokens, seqs  int
		utilization   float64
		async, prefix bool
		reserve       bool
	}
	for _, c := range []struct {
		what  string
		edits []Edit
		want  want
	}{
		{"80 GiB", []Edit{gpu("h100", "80")}, want{8192, 1024, 0.92, true, true, true}},
		{"80 GiB, A100", []Edit{gpu("A100-80gb", "80")}, want{2048, 256, 0.92, true, true, true}},
		{"48 GiB", []Edit{gpu("l40s", "48")}, want{2048, 256, 0.92, true, true, true}},
		{"180 GiB", []Edit{gpu("b200", "180")}, want{16384, 1024, 0.92, true, true, true}},
		{"180 GiB, 0.19", []Edit{gpu("b200", "180"), edit("engine.models", "vllm-0.19")}, want{8192, 1024, 0.9, true, true, true}},
		{"classic V1", []Edit{gpu("h100", "80"), edit("engine.models", "vllm-classic-v1")}, want{8192, 1024, 0.9, false, true, false}},
		{"V0", []Edit{gpu("h100", "80"), edit("engine.models", "vllm-v0")}, want{32768, 256, 0.9, false, false, false}},
		{"fewer sequences than tokens", []Edit{gpu("l40s", "48"), edit("engine.max_num_batched_tokens", "100")}, want{100, 100, 0.92, true, true, true}},
		{"short context", []Edit{gpu("h100", "80"), edit("engine.max_model_len", "600"), edit("engine.max_num_seqs", "4")},
			want{2400, 4, 0.92, true, true, true}},
		{"no chunks", []Edit{gpu("h100", "80"), edit("engine.enable_chunked_prefill", "false")}, want{32768, 1024, 0.92, true, true, true}},
		{"given", []Edit{gpu("h100", "80"), edit("engine.max_num_seqs", "7"), edit("engine.gpu_memory_utilization", "0.5"),
			edit("engine.async_scheduling", "false"), edit("engine.enable_prefix_caching", "false")}, want{8192, 7, 0.5, false, false, true}},
	} {
		s := load(t, "base", append(c.edits, vllm)...)
		e := s.Engine
		got := want{e.MaxNumBatchedTokens, e.MaxNumSeqs, e.GPUMemoryUtilization, e.AsyncScheduling, e.EnablePrefixCaching, e.SchedulerReserveFullISL}
		if got != c.want {
			t.Errorf("%s: engine = %+v, want %+v", c.what, got, c.want)
		}
		for _, d := range e.Defaults {
			key, _, _ := strings.Cut(d, " ")
			if slices.ContainsFunc(c.edits, func(e Edit) bool { return e.Path == "engine."+key }) {
				t.Errorf("%s: %q is listed as a default though it was given", c.what, d)
			}
		}
	}
	if s := load(t, "base"); len(s.Engine.Defaults) > 0 || s.Engine.MaxNumSeqs != 64 {
		t.Errorf("the article's engine has defaults of vLLM: %+v", s.Engine)
	}
}

// A file that names the policy takes vLLM's defaults, too, not the article's figures.
func TestDefaultsOfAFile(t *testing.T) {
	s := load(t, write(t, "engine: {policy: vllm-v1, max_num_seqs: 32}\n"))
	if s.Engine.MaxNumSeqs != 32 || s.Engine.MaxNumBatchedTokens != 8192 || s.Engine.Watermark != 0 || !s.Engine.EnablePrefixCaching {
		t.Errorf("engine = %+v", s.Engine)
	}
}

// A name that only the base scenario gives does not name other figures.
func TestNamesStandForTheirFigures(t *testing.T) {
	for _, c := range []struct {
		text, model, gpu string
	}{
		{"", "article-7b", "h100-80gb"},
		{"model: {parameters_billions: 8}", "", "h100-80gb"},
		{"hardware: {memory_bandwidth_gbps: 1000}", "article-7b", ""},
		{"model: {name: article-7b, parameters_billions: 8}", "article-7b", "h100-80gb"},
	} {
		if s := load(t, write(t, c.text)); s.Model.Name != c.model || s.Hardware.Name != c.gpu {
			t.Errorf("%q names %q on %q, want %q on %q", c.text, s.Model.Name, s.Hardware.Name, c.model, c.gpu)
		}
	}
}

func TestVLLMFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"engine: {policy: vllm-v1, num_gpu_blocks: 100}", "vLLM would not start: max_model_len 32768 needs 2048 KV blocks, there are 99 (set max_model_len to at most 1584)"},
		{"engine: {policy: vllm-v1, models: vllm-0.19, num_gpu_blocks: 2047}", "max_model_len 32768 needs 2048 KV blocks, there are 2047"},
		{"engine: {policy: vllm-v1, models: vllm-v0, watermark: 0.05}", "vllm-v0 always keeps 1% of the blocks free: watermark 0.05 can't be set"},
		{"engine: {policy: vllm-v1, max_num_batched_tokens: 8, max_num_seqs: 16}", "max_num_batched_tokens must be at least max_num_seqs, 16, is 8"},
		{"engine: {policy: vllm-v1, max_num_batched_tokens: 2048, enable_chunked_prefill: false}", "without chunked prefill max_num_batched_tokens must be at least max_model_len, 32768, is 2048"},
		{"engine: {policy: vllm-v1, models: vllm-0.19, watermark: 0.1}", "vllm-0.19 does not have watermark: 0.1"},
		{"engine: {policy: vllm-v1, models: vllm-classic-v1, scheduler_reserve_full_isl: true}", "vllm-classic-v1 does not have scheduler_reserve_full_isl: true"},
		{"engine: {policy: vllm-v1, models: vllm-classic-v1, enable_chunked_prefill: false}", "vllm-classic-v1 without chunked prefill is not modelled"},
		{"engine: {policy: vllm-v1, models: vllm-v0, enable_chunked_prefill: true}", "vllm-v0 with enable_chunked_prefill is not modelled"},
		{"engine: {policy: vllm-v1, models: article}", `"article" is not known`},
		{"engine: {policy: vllm-v2}", `"vllm-v2" is not known, did you mean vllm-v1?`},
	} {
		all := faults(t, c.text)
		if !slices.ContainsFunc(all, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("faults of %q = %q, want %q", c.text, all, c.want)
		}
	}
}
