package scenarios

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Configurations as Hugging Face has them, shortened to what tells models apart.
var configs = map[string]string{
	"llama-3.1-8b": `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false, "attention_bias": false,
		"torch_dtype": "bfloat16", "rope_scaling": {"factor": 8.0}}`,
	"qwen2.5-7b": `{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "max_window_layers": 28, "num_attention_heads": 28,
		"num_hidden_layers": 28, "num_key_value_heads": 4, "sliding_window": 131072, "use_sliding_window": false, "vocab_size": 152064}`,
	"qwen3-30b-a3b": `{"model_type": "qwen3_moe", "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144,
		"mlp_only_layers": [], "moe_intermediate_size": 768, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
		"num_hidden_layers": 48, "num_key_value_heads": 4, "sliding_window": null, "vocab_size": 151936}`,
	"mixtral-8x7b": `{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_experts_per_tok": 2,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "sliding_window": null, "vocab_size": 32000}`,
	"gemma-3-27b": `{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504,
		"num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262208},
		"vision_config": {"hidden_size": 1152}}`,
	"deepseek-v2-lite": `{"model_type": "deepseek_v2", "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
		"moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6,
		"num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400}`,
	"deepseek-v3": `{"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
		"moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8,
		"num_hidden_layers": 61, "num_key_value_heads": 128, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
		"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}}`,
	"gpt-oss-20b": `{"model_type": "gpt_oss", "attention_bias": true, "head_dim": 64, "hidden_size": 2880, "intermediate_size": 2880,
		"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention",
		"sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention",
		"sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
		"num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32, "sliding_window": 128, "vocab_size": 201088,
		"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]}}`,
	"kimi-k2.5": `{"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2", "first_k_dense_replace": 1, "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
		"moe_intermediate_size": 2048, "n_routed_experts": 384, "n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61,
		"num_key_value_heads": 64, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840,
		"quantization_config": {"quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
		"config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}}}`,
}

// A configuration says the same as the catalogue's entry of its model.
func TestConfigsAgreeWithTheCatalogue(t *testing.T) {
	for name, text := range configs {
		got, err := ReadConfig(writeNamed(t, "config.json", text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := catalogue(t).FindModel(name)
		if err != nil {
			t.Fatal(err)
		}
		g, w := *got.Architecture, *want.Architecture
		if w.Intermediate == 0 {
			g.Intermediate = 0 // of no layer
		}
		if g != w || got.WeightBytes() != want.WeightBytes() {
			t.Errorf("%s: the config is\n%+v, the catalogue's\n%+v", name, g, w)
		}
	}
}

func TestQuantisationConfigs(t *testing.T) {
	for text, want := range map[string]string{
		`{"quant_method": "fp8"}`:                             "fp8",
		`{"quant_method": "gptq", "bits": 4}`:                 "int4",
		`{"quant_method": "gptq", "bits": 8}`:                 "int8",
		`{"quant_method": "awq", "w_bit": 4}`:                 "int4",
		`{"quant_method": "modelopt", "quant_algo": "FP8"}`:   "fp8",
		`{"quant_method": "modelopt", "quant_algo": "NVFP4"}`: "nvfp4",
		`{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}`: "fp8",
		`{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float"}}}}`: "nvfp4",
		`{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}}`:   "int4",
	} {
		whole := strings.Replace(configs["llama-3.1-8b"], "{", `{"quantization_config": `+text+", ", 1)
		m, err := ReadConfig(writeNamed(t, "config.json", whole))
		if err != nil || m.Architecture.Weights.Dtype != want {
			t.Errorf("quantization_config %s: %+v, %v, want %s", text, m.Architecture, err, want)
		}
	}
}

func TestFaultsOfAConfig(t *testing.T) {
	swap := func(old, new string) string { return strings.Replace(configs["llama-3.1-8b"], old, new, 1) }
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{"must be JSON: EOF"}},
		{"[]", []string{"must be JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"}},
		{"{} {}", []string{"must be JSON: must be one object"}},
		{"{}", []string{"num_hidden_layers: is missing", "hidden_size: is missing", "num_attention_heads: is missing", "vocab_size: is missing", "intermediate_size: is missing"}},
		{swap(`"hidden_size"`, `"hiden_size"`), []string{"hidden_size: is missing, there is hiden_size"}},
		{swap("4096", "-4096"), []string{"hidden_size: must be a whole number up to 1000000, is -4096"}},
		{swap("14336", "1e99"), []string{"intermediate_size: must be a whole number up to 1000000, is 1e99"}},
		{swap(`_heads": 8`, `_heads": 5`), []string{"kv_heads must divide heads, 32, is 5"}},
		{swap(`_heads": 8`, `_heads": 0`), []string{"kv_heads must divide heads, 32, is 0"}},
		{swap(`"llama"`, `"gpt2"`), []string{"model_type: gpt2 is not modelled: layers must be attention and a gated MLP"}},
		{swap("{", `{"quantization_config": {"quant_method": "gtpq"}, `), []string{`quantization_config.quant_method: "gtpq" is not known, did you mean gptq?`}},
		{swap("{", `{"layer_types": ["linear_attention"], `), []string{`layer_types: must be a list of num_hidden_layers, 32, kinds, is ["linear_attention"]`}},
		{swap("{", `{"num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 2, `), []string{"decoder_sparse_step: must be 1, every layer has experts, is 2"}},
		{strings.Repeat(" ", 1<<20+1), []string{"must be at most 1 MiB, is longer"}},
	} {
		file := writeNamed(t, "config.json", c.text)
		_, err := ReadConfig(file)
		var got []string
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				got = append(got, strings.TrimPrefix(line, file+": "))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("ReadConfig(%.80q) = %q\nwant %q", c.text, got, c.want)
		}
	}
}

// A scenario names its config.json from its own folder; the model is then called by that file's.
func TestScenarioOfAConfig(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mine")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.json": configs["llama-3.1-8b"], "chat.yaml": "model: {config: config.json}\nhardware: {name: rtx-4090}\nengine: {policy: classic}",
		"bad.yaml": "model: {config: config.json, bytes_per_parameter: 1}",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(filepath.Join(folder, "chat.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	same := on(t, "model.name=llama-3.1-8b", "hardware.name=rtx-4090", "engine.policy=classic")
	a, errA := s.Digest()
	b, errB := same.Digest()
	if s.Model.Name != "mine" || a != b || errA != nil || errB != nil {
		t.Errorf("a config's scenario has model %q and digest %s, want mine and the catalogue's %s", s.Model.Name, a, b)
	}
	if _, err := Load(filepath.Join(folder, "bad.yaml"), nil); err == nil || !strings.Contains(err.Error(), "bytes_per_parameter: makes no sense beside config") {
		t.Errorf("a figure beside a config: %v, want a fault", err)
	}
}

// Whatever a config.json says, it is refused or makes a model that scenarios can use.
func FuzzReadConfig(f *testing.F) {
	for _, text := range configs {
		f.Add(text)
	}
	f.Add(`{"num_hidden_layers": 1, "hidden_size": 1, "num_attention_heads": 1, "vocab_size": 1, "intermediate_size": 1}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadConfig(writeNamed(t, "config.json", text))
		if err != nil {
			return
		}
		if !(m.Parameters > 0) || !(m.WeightBytes() > 0) || m.KVBytesPerToken <= 0 {
			t.Errorf("ReadConfig(%q) = %+v, want a model of some size", text, m)
		}
		for _, tp := range []int{1, 2, 3, 64} {
			if m.Architecture.splits(tp) && !(m.Architecture.profile(Engine{MaxNumBatchedTokens: 1, MaxNumSeqs: 1, TensorParallelSize: tp, PipelineParallelSize: 1, DataParallelSize: 1},
				m.Architecture.whole()).bytes() > 0) {
				t.Errorf("ReadConfig(%q) on %d GPUs needs no memory", text, tp)
			}
		}
	})
}
