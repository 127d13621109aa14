package scenarios

import (
	"fmt"
	"slices"
)

// model is the architecture as what scenarios are built from; its KV cache holds 16 bits an element.
func (a *Architecture) model(name string) Model {
	p := float64(a.Parameters())
	return Model{
		Name: name, Architecture: a,
		Parameters: p, BytesPerParam: a.WeightBytes() / p, KVBytesPerToken: a.KVBytesPerToken(2),
	}
}

// stored returns the model with weights of another format and KV of another size per element.
func (m Model) stored(weights string, element int) Model {
	a := *m.Architecture
	if weights != "" {
		if weights != a.Weights.Dtype {
			a.Weights = WeightFormat{Dtype: weights}
		}
	}
	other := a.model(m.Name)
	other.MaxModelLen = m.MaxModelLen
	other.KVBytesPerToken = a.KVBytesPerToken(element)
	return other
}

// A shapeProblem is a part of an architecture that does not go with another.
type shapeProblem struct{ key, message string }

func (a *Architecture) problems() (all []shapeProblem) {
	add := func(key, format string, args ...any) {
		all = append(all, shapeProblem{key, fmt.Sprintf(format, args...)})
	}
	if a.HeadDim == 0 {
		add("head_dim", "must be given where hidden, %d, is less than heads, %d", a.Hidden, a.Heads)
	}
	if a.KVHeads == 0 || a.Heads%a.KVHeads != 0 {
		add("kv_heads", "must divide heads, %d, is %d", a.Heads, a.KVHeads)
	}
	if width := a.Heads * max(a.HeadDim, a.QKNopeDim+a.QKRopeDim, a.VHeadDim); width > mostWidth {
		add("heads", "must with their size make at most %d, make %d", mostWidth, width)
	}
	if a.Experts > 0 {
		if a.MoEIntermediate == 0 {
			add("moe_intermediate", "is missing beside experts, %d", a.Experts)
		}
		if a.ExpertsPerToken == 0 || a.ExpertsPerToken > a.Experts {
			add("experts_per_token", "must be from 1 to experts, %d, is %d", a.Experts, a.ExpertsPerToken)
		}
		if a.DenseLayers > a.Layers {
			add("dense_layers", "must be at most layers, %d, is %d", a.Layers, a.DenseLayers)
		}
	} else if a.ExpertsPerToken > 0 || a.MoEIntermediate > 0 || a.DenseLayers > 0 {
		add("experts", "is missing beside experts_per_token, moe_intermediate or dense_layers")
	}
	if (a.Experts == 0 || a.DenseLayers > 0) && a.Intermediate == 0 {
		add("intermediate", "is missing")
	}
	latent := []int{a.QKNopeDim, a.QKRopeDim, a.VHeadDim}
	if a.KVLoraRank > 0 && slices.Contains(latent, 0) {
		add("kv_lora_rank", "needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim, are %d, %d and %d", latent[0], latent[1], latent[2])
	}
	if a.KVLoraRank == 0 && max(a.QLoraRank, a.QKNopeDim, a.QKRopeDim, a.VHeadDim) > 0 {
		add("kv_lora_rank", "is missing beside q_lora_rank, qk_nope_head_dim, qk_rope_head_dim or v_head_dim")
	}
	if a.SlidingLayers > a.Layers {
		add("sliding_layers", "must be at most layers, %d, is %d", a.Layers, a.SlidingLayers)
	}
	if (a.SlidingWindow > 0) != (a.SlidingLayers > 0) {
		add("sliding_window", "must be given with sliding_layers, they are %d and %d", a.SlidingWindow, a.SlidingLayers)
	}
	if a.Weights.Group > 0 && a.Weights.Dtype != "int4" {
		add("group_size", "makes no sense with weight_dtype %s, only with int4", a.Weights.Dtype)
	}
	if a.Weights.ExpertsOnly && a.Experts == 0 {
		add("quantized", "makes no sense as experts in a model without")
	}
	// In floating point, since whole numbers may overflow here.
	widest := float64(max(a.Intermediate, a.SharedIntermediate)) + float64(float64(a.Experts)*float64(a.MoEIntermediate))
	if float64(a.Layers)*3*float64(a.Hidden)*widest > 1e15 {
		add("layers", "must make at most 1e15 parameters, make more")
	}
	return all
}
