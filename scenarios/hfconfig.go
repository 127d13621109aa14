package scenarios

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ReadConfig reads the model of a Hugging Face config.json. Keys that it does not need may be
// there; those it needs must be, and what it can't model is an error. The error is Faults.
func ReadConfig(file string) (Model, error) {
	c := &config{file: file}
	text, err := readFile(file)
	if err == nil && len(text) > maxFile {
		err = errors.New("must be at most 1 MiB, is longer")
	}
	if err != nil {
		return Model{}, Faults{{file, "", reason(err).Error()}}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var top map[string]any
	if err := d.Decode(&top); err != nil || top == nil || d.More() {
		if err == nil {
			err = errors.New("must be one object")
		}
		return Model{}, Faults{{file, "", "must be JSON: " + err.Error()}}
	}
	c.levels = []map[string]any{top}
	// Models that see or hear keep their language model in an object of its own; what that does
	// not say, the whole says.
	for _, key := range []string{"text_config", "language_config", "llm_config"} {
		if inner, ok := top[key].(map[string]any); ok {
			c.levels = []map[string]any{inner, top}
			c.prefix = key + "."
			break
		}
	}
	a := c.architecture()
	length := c.whole(mostLength, 0, "max_position_embeddings")
	if len(c.faults) == 0 {
		for _, p := range a.problems() {
			c.fault("", "%s %s", p.key, p.message)
		}
	}
	if len(c.faults) > 0 {
		return Model{}, c.faults
	}
	m := a.model("")
	m.MaxModelLen = length
	return m, nil
}

// mostLength bounds the tokens that a model was made for.
const mostLength = 1_000_000_000

// A config is a config.json that is being read.
type config struct {
	file   string
	prefix string           // of the paths of keys
	levels []map[string]any // the language model's object, then the whole
	faults Faults
}

func (c *config) fault(key, format string, args ...any) {
	name, _, _ := strings.Cut(key, ".")
	if _, inner := c.levels[0][name]; key != "" && (inner || c.levels[len(c.levels)-1][name] == nil) {
		key = c.prefix + key
	}
	c.faults = append(c.faults, Fault{c.file, key, fmt.Sprintf(format, args...)})
}

// find returns the first of several keys that has a value, null being none.
func (c *config) find(keys ...string) (string, any) {
	for _, level := range c.levels {
		for _, key := range keys {
			if v := level[key]; v != nil {
				return key, v
			}
		}
	}
	return keys[0], nil
}

func (c *config) has(keys ...string) bool {
	_, v := c.find(keys...)
	return v != nil
}

// whole reads a number under one of several names; otherwise is its value if there is none, and
// below 0 that it is needed.
func (c *config) whole(most, otherwise int, keys ...string) int {
	key, v := c.find(keys...)
	if v == nil {
		if otherwise < 0 {
			c.missing(key)
			return 0
		}
		return otherwise
	}
	number, _ := v.(json.Number)
	n, err := number.Int64()
	if err != nil || n < 0 || n > int64(most) || n == 0 && otherwise < 0 {
		c.fault(key, "must be a whole number up to %d, is %s", most, compact(v))
		return 0
	}
	return int(n)
}

func (c *config) missing(key string) {
	if names := near(key, slices.Sorted(maps.Keys(c.levels[0]))); len(names) > 0 {
		c.fault(key, "is missing, there is %s", strings.Join(names, ", "))
		return
	}
	c.fault(key, "is missing")
}

func (c *config) flag(otherwise bool, keys ...string) bool {
	key, v := c.find(keys...)
	if v == nil {
		return otherwise
	}
	b, ok := v.(bool)
	if !ok {
		c.fault(key, "must be true or false, is %s", compact(v))
	}
	return b
}

func (c *config) text(key string) string {
	_, v := c.find(key)
	s, _ := v.(string)
	return s
}

func compact(v any) string {
	text, _ := json.Marshal(v)
	return shorten(string(text))
}

// unlike are families whose layers are not those of an Architecture: MLPs of two matrices, or state
// in place of attention.
var unlike = []string{"gpt2", "opt", "phi", "falcon", "gpt_neox", "gptj", "gpt_bigcode", "starcoder2", "bloom", "mpt", "mamba", "mamba2",
	"jamba", "bamba", "falcon_mamba", "granitemoehybrid", "qwen3_next", "nemotron", "nemotron_h", "t5", "whisper", "bert", "rwkv", "minimax"}

func (c *config) architecture() *Architecture {
	family := c.text("model_type")
	if slices.Contains(unlike, family) {
		c.fault("model_type", "%s is not modelled: layers must be attention and a gated MLP", family)
	}
	in := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(family, n) })
	}
	a := &Architecture{
		Layers: c.whole(mostLayers, -1, "num_hidden_layers", "n_layers"),
		Hidden: c.whole(mostWidth, -1, "hidden_size"),
		Heads:  c.whole(mostHeads, -1, "num_attention_heads"),
		Vocab:  c.whole(mostVocab, -1, "vocab_size"),

		TiedEmbeddings: c.flag(in("gemma"), "tie_word_embeddings"),
		NormsPerLayer:  2,
		Sinks:          in("gpt_oss"),

		Experts:     c.whole(mostExperts, 0, "num_local_experts", "num_experts", "n_routed_experts"),
		DenseLayers: c.whole(mostLayers, 0, "first_k_dense_replace"),
		RouterBias:  in("gpt_oss", "deepseek_v3", "kimi", "minimax_m2"),
		ExpertBias:  in("gpt_oss"),

		KVLoraRank: c.whole(mostWidth, 0, "kv_lora_rank"),
	}
	a.KVHeads = c.whole(mostHeads, a.Heads, "num_key_value_heads")
	if a.Heads > 0 {
		a.HeadDim = a.Hidden / a.Heads
	}
	a.HeadDim = c.whole(mostHeadDim, a.HeadDim, "head_dim")
	switch {
	case c.flag(false, "attention_bias"):
		a.AttentionBias = "qkvo"
	case in("qwen2"):
		a.AttentionBias = "qkv"
	}
	switch {
	case in("qwen3", "gemma3"):
		a.QKNorm = "head"
	case in("minimax_m2", "olmo2"):
		a.QKNorm = "full"
	}
	if in("gemma2", "gemma3") {
		a.NormsPerLayer = 4
	}
	if a.KVLoraRank > 0 {
		a.QLoraRank = c.whole(mostWidth, 0, "q_lora_rank")
		a.QKNopeDim = c.whole(mostHeadDim, -1, "qk_nope_head_dim")
		a.QKRopeDim = c.whole(mostHeadDim, -1, "qk_rope_head_dim")
		a.VHeadDim = c.whole(mostHeadDim, -1, "v_head_dim")
	}
	c.experts(a)
	c.sliding(a)
	a.Weights = c.weights(a)
	return a
}

func (c *config) experts(a *Architecture) {
	if a.Experts <= 1 {
		a.Experts, a.DenseLayers, a.RouterBias, a.ExpertBias = 0, 0, false, false
		a.Intermediate = c.whole(mostWidth, -1, "intermediate_size")
		return
	}
	a.ExpertsPerToken = c.whole(mostExperts, -1, "num_experts_per_tok", "experts_per_token", "num_experts_per_token")
	a.Intermediate = c.whole(mostWidth, 0, "intermediate_size")
	// Families all of whose MLPs are experts say the experts' size by intermediate_size.
	a.MoEIntermediate = c.whole(mostWidth, a.Intermediate, "moe_intermediate_size")
	if a.MoEIntermediate == 0 {
		c.missing("moe_intermediate_size")
	}
	if c.has("shared_expert_intermediate_size") {
		a.SharedIntermediate = c.whole(mostWidth, 0, "shared_expert_intermediate_size")
	} else {
		a.SharedIntermediate = c.whole(mostExperts, 0, "n_shared_experts", "num_shared_experts") * a.MoEIntermediate
	}
	if key, v := c.find("mlp_only_layers"); v != nil {
		dense, ok := v.([]any)
		if !ok || len(dense) > a.Layers {
			c.fault(key, "must be a list of layers, is %s", compact(v))
		}
		a.DenseLayers += len(dense)
	}
	for _, key := range []string{"decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"} {
		if _, v := c.find(key); v != nil && compact(v) != "1" {
			c.fault(key, "must be 1, every layer has experts, is %s", compact(v))
		}
	}
}

func (c *config) sliding(a *Architecture) {
	kinds, v := c.find("layer_types")
	if v != nil {
		list, ok := v.([]any)
		if !ok || len(list) != a.Layers {
			c.fault(kinds, "must be a list of num_hidden_layers, %d, kinds, is %s", a.Layers, compact(v))
			return
		}
		for _, kind := range list {
			switch kind {
			case "sliding_attention":
				a.SlidingLayers++
			case "full_attention":
			default:
				c.fault(kinds, "must be full_attention or sliding_attention, is %s", compact(kind))
				return
			}
		}
	}
	window := c.whole(mostVocab, 0, "sliding_window")
	switch {
	case window == 0 || !c.flag(true, "use_sliding_window"):
		a.SlidingLayers = 0
		return
	case c.has("layer_types"):
	case c.has("sliding_window_pattern"):
		if every := c.whole(mostLayers, 0, "sliding_window_pattern"); every > 0 {
			a.SlidingLayers = a.Layers - a.Layers/every
		}
	case strings.HasPrefix(c.text("model_type"), "gemma2"):
		a.SlidingLayers = (a.Layers + 1) / 2
	case strings.HasPrefix(c.text("model_type"), "gemma3"):
		a.SlidingLayers = a.Layers - a.Layers/6
	default:
		a.SlidingLayers = a.Layers - min(c.whole(mostLayers, 0, "max_window_layers"), a.Layers)
	}
	if a.SlidingLayers > 0 {
		a.SlidingWindow = window
	}
}
