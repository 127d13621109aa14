package scenarios

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func catalogue(t *testing.T) Catalogue {
	t.Helper()
	c, err := OpenCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Counting parameters from the shape gives the published counts: of 42 models to the last one, of
// those published rounded within 3%.
func TestParametersArePublished(t *testing.T) {
	exact := 0
	for _, m := range catalogue(t).Models {
		if m.Architecture == nil {
			continue
		}
		got := float64(m.Architecture.Parameters())
		tolerance := 0.03 * m.Published
		if math.Mod(m.Published, 1e7) != 0 {
			tolerance = 0
			exact++
		}
		if math.Abs(got-m.Published) > tolerance {
			t.Errorf("%s has %.0f parameters, want %.0f", m.Name, got, m.Published)
		}
	}
	if exact < 42 {
		t.Errorf("%d models have an exact published count, want 42 at least", exact)
	}
	for _, c := range []struct {
		name           string
		want, lastUnit float64 // billions, to the last digit published
	}{
		{"gpt-oss-20b", 20.91, 0.01}, {"gpt-oss-120b", 116.83, 0.01}, {"deepseek-v3", 671, 1},
	} {
		m, err := catalogue(t).FindModel(c.name)
		if err != nil || math.Abs(m.Parameters/1e9-c.want) > c.lastUnit/2 {
			t.Errorf("%s has %.3fe9 parameters (%v), want %v", c.name, m.Parameters/1e9, err, c.want)
		}
	}
}

func TestKVBytesPerTokenArePublished(t *testing.T) {
	for name, want := range map[string]int64{
		"llama-2-7b": 524288, "llama-3.1-8b": 131072, "llama-3.1-70b": 327680, "qwen2.5-7b": 57344, "qwen3-30b-a3b": 98304,
		"deepseek-v3": 70272,                            // 70.272 KB, arXiv 2505.09343 table 1
		"qwen2.5-72b": 327680, "llama-3.1-405b": 516096, // the same table
	} {
		if m, err := catalogue(t).FindModel(name); err != nil || m.KVBytesPerToken != want {
			t.Errorf("%s: KV bytes per token %d (%v), want %d", name, m.KVBytesPerToken, err, want)
		}
	}
}

// The weights of quantised checkpoints, as their files are listed, in GB of 1e9 bytes.
func TestWeightBytesOfQuantisedModels(t *testing.T) {
	for name, want := range map[string]float64{"gpt-oss-20b": 13.8, "gpt-oss-120b": 65.2, "deepseek-v3": 673, "kimi-k2.5": 594} {
		m, err := catalogue(t).FindModel(name)
		if got := m.WeightBytes() / 1e9; err != nil || math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: weights of %.1f GB (%v), want %v", name, got, err, want)
		}
	}
}

func TestEveryFigureHasASource(t *testing.T) {
	c := catalogue(t)
	if len(c.Models) < 30 || len(c.GPUs) < 15 {
		t.Errorf("the catalogue has %d models and %d GPUs, want 30 and 15", len(c.Models), len(c.GPUs))
	}
	for _, m := range c.Models {
		if m.Source == "" || m.Architecture != nil && m.MaxModelLen == 0 {
			t.Errorf("%s: source %q, max_model_len %d, want both", m.Name, m.Source, m.MaxModelLen)
		}
	}
	for _, g := range c.GPUs {
		needs := []string{"hbm", "specifications"}
		if g.Spec != nil {
			needs = append(needs, "price")
		}
		for _, key := range needs {
			if g.Sources[key] == "" {
				t.Errorf("%s: sources.%s is missing", g.Name, key)
			}
		}
	}
}

func writeNamed(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A user's file adds to the catalogue, and takes the place of what has the same name.
func TestUsersCatalogue(t *testing.T) {
	file := writeNamed(t, "mine.yaml", `
models:
  tiny: {layers: 2, hidden: 64, heads: 4, kv_heads: 2, intermediate: 128, vocab: 1000}
gpus:
  h100-sxm: {hbm_gib: 10, memory_bandwidth_gbps: 100, peak_tflops: {bf16: 10}}
  old: {hbm_gib: 4, memory_bandwidth_gbps: 50, peak_tflops: 2}
`)
	s := on(t, "catalogue="+file, "model.name=tiny", "hardware.name=h100-sxm")
	if s.Model.Parameters != 2*1000*64+2*(64*64*2+64*32*2+3*64*128+2*64)+64 || s.Hardware.HBMBytes != 10<<30 {
		t.Errorf("model %+v on %+v, want the user's", s.Model, s.Hardware)
	}
	if s := on(t, "catalogue="+file, "hardware.name=rtx-4090"); s.Hardware.HBMBytes != 25250627584 {
		t.Errorf("rtx-4090 beside a user's file has %.0f bytes, want the catalogue's", s.Hardware.HBMBytes)
	}
	if on(t, "hardware.name=h100-sxm").Hardware.HBMBytes == 10<<30 {
		t.Error("a user's file changed the catalogue of others")
	}
}

func TestFaultsOfACatalogue(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{"mine.yaml:1: must have models or gpus, or both"}},
		{"model: {}", []string{"mine.yaml:1: must have models or gpus, or both", "mine.yaml:1: model: unknown key, did you mean models?"}},
		{"models: {a: 3}", []string{"mine.yaml:1: models.a: must be a block of keys, is 3"}},
		{"models: {a: {layers: 2, hiden: 64, heads: 3, kv_heads: 2, intermediate: 128, vocab: 10}}", []string{
			"mine.yaml:1: models.a.hidden: is missing", "mine.yaml:1: models.a.hiden: unknown key, did you mean hidden?"}},
		{"models: {a: {layers: 2, hidden: 64, heads: 3, kv_heads: 2, intermediate: 128, vocab: 10}}", []string{
			"mine.yaml:1: models.a.kv_heads: must divide heads, 3, is 2"}},
		{"models: {a: {layers: 2, hidden: 64, heads: 4, kv_heads: 4, vocab: 10, experts: 8, experts_per_token: 9}}", []string{
			"mine.yaml:1: models.a.moe_intermediate: is missing beside experts, 8", "mine.yaml:1: models.a.experts_per_token: must be from 1 to experts, 8, is 9"}},
		{"models: {a: {layers: 2, hidden: 64, heads: 4, kv_heads: 4, intermediate: 9, vocab: 10, weight_dtype: fp9}}", []string{
			`mine.yaml:1: models.a.weight_dtype: "fp9" is not known, did you mean fp8 or fp16?`}},
		{"gpus:\n  g: {hbm_gib: 8, hbm_bytes: 8e9, memory_bandwidth_gbps: 1, peak_tflops: {fp8: 2}}", []string{
			"mine.yaml:2: gpus.g.hbm_gib: must be hbm_bytes or hbm_gib, is both", "mine.yaml:2: gpus.g.peak_tflops: must have bf16 or fp16, has fp8"}},
	} {
		_, err := OpenCatalogue(writeNamed(t, "mine.yaml", c.text))
		var got []string
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				got = append(got, line[strings.Index(line, "mine.yaml"):])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("OpenCatalogue(%q) = %q\nwant %q", c.text, got, c.want)
		}
	}
}

// Weights and KV are stored each in its own format; a format that the GPU multiplies brings its peak.
func TestStorageIsChosen(t *testing.T) {
	const model, gpu = "model.name=llama-3.1-8b", "hardware.name=h100-sxm"
	plain := on(t, model, gpu)
	kv := on(t, model, gpu, "engine.kv_cache_dtype=fp8")
	weights := on(t, model, gpu, "model.weight_dtype=fp8")
	if kv.Model.KVBytesPerToken != 65536 || kv.Model.WeightBytes() != plain.Model.WeightBytes() {
		t.Errorf("fp8 KV: %d bytes per token, weights %.0f, want 65536, %.0f", kv.Model.KVBytesPerToken, kv.Model.WeightBytes(), plain.Model.WeightBytes())
	}
	// Embeddings and lm_head, 128256 * 4096 each, and norms keep 16 bits.
	want := plain.Model.WeightBytes() - (8030261248 - 2*128256*4096 - 65*4096)
	if got := weights.Model.WeightBytes(); math.Abs(got-want) > 1 || weights.Model.KVBytesPerToken != 131072 {
		t.Errorf("fp8 weights: %.0f bytes, KV %d, want %.0f, 131072", got, weights.Model.KVBytesPerToken, want)
	}
	if weights.Hardware.PeakFLOPS != 1978.9e12 || plain.Hardware.PeakFLOPS != 989.4e12 {
		t.Errorf("peaks %g and %g, want those of fp8 and bf16", weights.Hardware.PeakFLOPS, plain.Hardware.PeakFLOPS)
	}
	if on(t, model, gpu, "engine.kv_cache_dtype=auto").Engine.KVCacheDtype != "" {
		t.Error("kv_cache_dtype auto is not the model's 16 bits")
	}
	for _, bad := range []string{"engine.kv_cache_dtype=fp8", "model.weight_dtype=fp8"} {
		if _, err := Load("base", edit(t, bad)); err == nil || !strings.Contains(err.Error(), "needs a model of known architecture") {
			t.Errorf("%s on bare figures: %v, want a fault", bad, err)
		}
	}
}

// Whatever a catalogue's file says, it is refused or its entries have some size.
func FuzzCatalogue(f *testing.F) {
	f.Add("models: {a: {layers: 2, hidden: 64, heads: 4, kv_heads: 2, intermediate: 128, vocab: 1000, weight_dtype: int4, group_size: 32}}")
	f.Add("models: {a: {layers: 2, hidden: 64, heads: 4, kv_heads: 4, intermediate: 9, vocab: 10, kv_lora_rank: 8, qk_nope_head_dim: 4, qk_rope_head_dim: 4, v_head_dim: 4, experts: 8, experts_per_token: 2, moe_intermediate: 9, dense_layers: 1}}")
	f.Add("gpus: {g: {hbm_gib: 8, memory_bandwidth_gbps: 1, peak_tflops: {bf16: 2, fp8: 4}, nvlink_gbps: 3, sources: {hbm: x}}}")
	f.Fuzz(func(t *testing.T, text string) {
		var c Catalogue
		if faults := c.add([]byte(text), "mine.yaml"); len(faults) > 0 {
			return
		}
		for _, m := range c.Models {
			if !(m.Parameters > 0) || !(m.WeightBytes() > 0) || m.KVBytesPerToken <= 0 {
				t.Errorf("%q has %+v, want a model of some size", text, m)
			}
		}
		for _, g := range c.GPUs {
			if !(g.HBMBytes > 0) || !(g.Bandwidth > 0) || !(g.PeakFLOPS > 0) {
				t.Errorf("%q has %+v, want a GPU of some size", text, g)
			}
		}
	})
}
