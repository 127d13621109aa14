package scenarios

import (
	"fmt"
	"math"
	"strings"
)

// Bounds on a model's shape: far above what exists, and such that no count overflows 64 bits.
const (
	mostLayers  = 10_000
	mostWidth   = 1_000_000 // hidden, intermediate, and the width of all heads
	mostHeads   = 10_000
	mostHeadDim = 65_536
	mostVocab   = 10_000_000
	mostExperts = 10_000
)

// catalogueModel reads an entry: three bare figures, or an architecture.
func (r *reading) catalogueModel(b *block) (m CatalogueModel) {
	defer b.close()
	if b.node == nil {
		return m
	}
	if b.has("source") {
		m.Source = b.word("source", "where the figures are from")
	}
	m.Aliases = r.aliases(b)
	if b.has("parameters_billions") {
		m.Parameters = math.Round(b.number("parameters_billions", positive(1e6)) * 1e9)
		m.BytesPerParam = b.number("bytes_per_parameter", positive(16))
		m.KVBytesPerToken = int64(b.whole("kv_bytes_per_token", positive(1e9)))
		return m
	}
	if b.has("max_model_len") {
		m.MaxModelLen = b.whole("max_model_len", positive(1e9))
	}
	if b.has("published") {
		m.Published = math.Round(b.number("published", positive(1e6)) * 1e9)
	}
	before := len(r.faults)
	a := r.architecture(b)
	if len(r.faults) == before {
		r.checkArchitecture(b, a)
	}
	if len(r.faults) == before {
		m.Model = a.model("")
	}
	return m
}

// mostAliases bounds the other names of one entry.
const mostAliases = 100

func (r *reading) aliases(b *block) (names []string) {
	n, at := b.get("aliases"), join(b.path, "aliases")
	switch {
	case n == nil || isAlias(n):
		return nil
	case n.scalar != nil || n.isMapping() || len(n.items) == 0 || len(n.items) > mostAliases:
		r.add(n, at, "must be a list of 1 to %d names", mostAliases)
		return nil
	}
	for i, item := range n.items {
		if at := fmt.Sprintf("%s[%d]", at, i); !r.isScalar(item, at, "a name") {
			continue
		} else if strings.TrimSpace(item.text()) == "" {
			r.add(item, at, "must be a name, is empty")
			continue
		}
		names = append(names, item.text())
	}
	return names
}

func (r *reading) architecture(b *block) *Architecture {
	optional := func(key string, most, otherwise int) int {
		if b.has(key) {
			return b.whole(key, nonNegative(float64(most)))
		}
		return otherwise
	}
	flag := func(key string) bool { return b.has(key) && b.flag(key) }
	choice := func(key string, options ...string) string {
		if b.has(key) {
			return b.choice(key, options...)
		}
		return ""
	}
	a := &Architecture{
		Layers:  b.whole("layers", positive(mostLayers)),
		Hidden:  b.whole("hidden", positive(mostWidth)),
		Heads:   b.whole("heads", positive(mostHeads)),
		KVHeads: b.whole("kv_heads", positive(mostHeads)),
		Vocab:   b.whole("vocab", positive(mostVocab)),

		TiedEmbeddings: flag("tied_embeddings"),
		AttentionBias:  choice("attention_bias", "qkv", "qkvo"),
		QKNorm:         choice("qk_norm", "head", "full"),
		NormsPerLayer:  optional("norms_per_layer", 100, 2),
		Sinks:          flag("sinks"),

		Experts:         optional("experts", mostExperts, 0),
		ExpertsPerToken: optional("experts_per_token", mostExperts, 0),
		MoEIntermediate: optional("moe_intermediate", mostWidth, 0),
		DenseLayers:     optional("dense_layers", mostLayers, 0),
		RouterBias:      flag("router_bias"),
		ExpertBias:      flag("expert_bias"),

		KVLoraRank: optional("kv_lora_rank", mostWidth, 0),
		QLoraRank:  optional("q_lora_rank", mostWidth, 0),
		QKNopeDim:  optional("qk_nope_head_dim", mostHeadDim, 0),
		QKRopeDim:  optional("qk_rope_head_dim", mostHeadDim, 0),
		VHeadDim:   optional("v_head_dim", mostHeadDim, 0),

		SlidingWindow: optional("sliding_window", mostVocab, 0),
		SlidingLayers: optional("sliding_layers", mostLayers, 0),
	}
	a.SharedIntermediate = optional("shared_experts", mostExperts, 0) * a.MoEIntermediate
	if a.Heads > 0 {
		a.HeadDim = a.Hidden / a.Heads
	}
	a.HeadDim = optional("head_dim", mostHeadDim, a.HeadDim)
	if a.Experts == 0 || a.DenseLayers > 0 {
		a.Intermediate = b.whole("intermediate", positive(mostWidth))
	} else {
		a.Intermediate = optional("intermediate", mostWidth, 0)
	}
	if a.Weights.Dtype = choice("weight_dtype", weightDtypes...); a.Weights.Dtype == "" {
		a.Weights.Dtype = "bf16"
	}
	a.Weights.Group = optional("group_size", mostWidth, 0)
	a.Weights.ExpertsOnly = choice("quantized", "layers", "experts") == "experts"
	return a
}

// checkArchitecture sees that the parts of a shape go together.
func (r *reading) checkArchitecture(b *block, a *Architecture) {
	for _, problem := range a.problems() {
		at := b.node
		if n := b.get(problem.key); n != nil {
			at = n
		}
		r.add(at, join(b.path, problem.key), "%s", problem.message)
	}
}

func (r *reading) catalogueGPU(b *block) (g CatalogueGPU) {
	defer b.close()
	if b.node == nil {
		return g
	}
	if b.has("hbm_bytes") {
		g.HBMBytes = b.number("hbm_bytes", positive(1e14))
		if b.has("hbm_gib") {
			r.add(b.get("hbm_gib"), join(b.path, "hbm_gib"), "must be hbm_bytes or hbm_gib, is both")
		}
	} else {
		g.HBMBytes = b.number("hbm_gib", positive(1e5)) * (1 << 30)
	}
	g.Bandwidth = b.number("memory_bandwidth_gbps", positive(1e7)) * 1e9
	if peaks := b.get("peak_tflops"); peaks.isMapping() {
		g.Spec = r.spec(b, r.block(peaks, join(b.path, "peak_tflops")))
		g.PeakFLOPS = g.Spec.peak("bf16")
	} else {
		g.PeakFLOPS = b.number("peak_tflops", positive(1e7)) * 1e12
	}
	g.Aliases = r.aliases(b)
	if b.has("price_per_hour") {
		g.Price = b.number("price_per_hour", positive(1e6))
	}
	if b.has("sources") {
		sources := b.block("sources")
		g.Sources = map[string]string{}
		for _, key := range []string{"hbm", "specifications", "price"} {
			if sources.has(key) {
				g.Sources[key] = sources.word(key, "where the figures are from")
			}
		}
		sources.close()
	}
	return g
}

func (r *reading) spec(b, peaks *block) *Spec {
	s := &Spec{Peaks: map[string]float64{}}
	for _, dtype := range []string{"bf16", "fp16", "fp8", "fp4", "int8"} {
		if peaks.has(dtype) {
			s.Peaks[dtype] = peaks.number(dtype, positive(1e7)) * 1e12
		}
	}
	if !peaks.has("bf16") && !peaks.has("fp16") {
		r.add(peaks.node, peaks.path, "must have bf16 or fp16, has %s", strings.Join(peaks.keys, ", "))
	}
	peaks.close()
	if b.has("nvlink_gbps") {
		s.NVLink = b.number("nvlink_gbps", positive(1e6)) * 1e9
	}
	if b.has("pcie_gbps") {
		s.PCIe = b.number("pcie_gbps", positive(1e6)) * 1e9
	}
	return s
}
