package scenarios

import (
	"llmsim/sim/cost"
)

// operators is the model's work on one of the replica's GPUs, step by step.
func (s *Scenario) operators() cost.Operators {
	a, e, spec := s.Model.Architecture, s.Engine, s.Hardware.Spec
	tp := e.TensorParallelSize
	plain := max(spec.Peaks["bf16"], spec.Peaks["fp16"])
	small := spec.multiplies(a.Weights.Dtype)
	o := cost.Operators{
		Constants: s.Cost.Constants,
		PeakFLOPS: s.Hardware.PeakFLOPS, ExpertFLOPS: s.Hardware.PeakFLOPS, PlainFLOPS: plain,
		Bandwidth: s.Hardware.Bandwidth,
		TP:        tp, Stages: e.PipelineParallelSize,
		LinkBandwidth: spec.NVLink,
		Layers:        a.Layers, Hidden: a.Hidden,
		Captures: captureSizes(e.MaxNumSeqs),
	}
	if !small {
		o.PlainFLOPS = s.Hardware.PeakFLOPS // 16 bits are what is served, at the given peak
	}
	if a.QKNorm == "full" {
		o.NormReductions = 1
	}
	if o.LinkBandwidth == 0 {
		o.LinkBandwidth, o.PCIe = spec.PCIe, true
	}
	dense := a.Weights.bits() / 8
	if a.Weights.ExpertsOnly {
		dense, small, o.PeakFLOPS = 2, false, o.PlainFLOPS
	}
	add := func(k, n, count int) {
		if k > 0 && n > 0 && count > 0 {
			o.Linears = append(o.Linears, cost.Linear{K: k, N: n, Count: count, Element: dense, Small: small})
		}
	}
	share := func(n int) int { return (n + tp - 1) / tp }
	sparse := 0
	if a.Experts > 0 {
		sparse = a.Layers - a.DenseLayers
	}
	attention := cost.Attention{Layers: a.Layers, Heads: share(a.Heads), Small: e.KVCacheDtype == "fp8"}
	element := 2.0
	if attention.Small {
		element = 1
	}
	row := 0 // values of a token between linear layers
	if a.KVLoraRank > 0 {
		latent, head := a.KVLoraRank+a.QKRopeDim, a.QKNopeDim+a.QKRopeDim
		if a.QLoraRank > 0 {
			add(a.Hidden, a.QLoraRank+latent, a.Layers)
			add(a.QLoraRank, share(a.Heads*head), a.Layers)
		} else {
			add(a.Hidden, share(a.Heads*head), a.Layers)
			add(a.Hidden, latent, a.Layers)
		}
		add(a.KVLoraRank, share(a.Heads*(a.QKNopeDim+a.VHeadDim)), a.Layers)
		add(share(a.Heads*a.VHeadDim), a.Hidden, a.Layers)
		attention.ReadBytes = float64(element * float64(latent))
		// A decode attends to the latent itself, a prefill to keys and values made of it.
		attention.DecodeDims = latent + a.KVLoraRank
		attention.Dims = head + a.VHeadDim
		attention.RowBytes = 2 * float64(share(2*a.Heads*head)+share(2*a.Heads*a.VHeadDim))
		attention.Expand = 2 * float64(a.KVLoraRank) * float64(share(a.Heads*(a.QKNopeDim+a.VHeadDim)))
		row = share(a.Heads * head)
	} else {
		q, kv := share(a.Heads)*a.HeadDim, max(a.KVHeads/tp, 1)*a.HeadDim
		add(a.Hidden, q+2*kv, a.Layers)
		add(q, a.Hidden, a.Layers)
		attention.ReadBytes = 2 * element * float64(kv)
		attention.DecodeDims = 2 * a.HeadDim
		attention.Dims = 2 * a.HeadDim
		attention.RowBytes = 2 * float64(2*q+2*kv)
		row = q + 2*kv
	}
	if a.SlidingLayers > 0 {
		sliding := attention
		sliding.Layers, sliding.Window = a.SlidingLayers, a.SlidingWindow
		attention.Layers -= a.SlidingLayers
		o.Attention = append(o.Attention, sliding)
	}
	if attention.Layers > 0 {
		o.Attention = append(o.Attention, attention)
	}
	mlp := func(width, layers, split int) {
		inner, first := share(width), len(o.Linears)
		if split > 1 {
			inner = width
		}
		add(a.Hidden, 2*inner, layers)
		add(inner, a.Hidden, layers)
		for i := range o.Linears[first:] {
			o.Linears[first+i].Split = split
		}
		// The activation reads gate and up and writes their product.
		o.ActivationBytes += float64(float64(2*3*share(width)) * float64(layers))
	}
	mlp(a.Intermediate, a.Layers-sparse, 1)
	if e.sharedWhole() {
		mlp(a.SharedIntermediate, sparse, tp)
	} else {
		mlp(a.SharedIntermediate, sparse, 1)
	}
	// Norms read and write the hidden states, the rotary embedding queries and keys.
	o.ActivationBytes += float64(float64(2*(2*a.NormsPerLayer*a.Hidden+2*row)) * float64(a.Layers))
	if sparse > 0 {
		o.Linears = append(o.Linears, cost.Linear{K: a.Hidden, N: a.Experts, Count: sparse, Element: 2})
		group, _ := e.expertGroup()
		matrices := float64(float64(3*a.Hidden) * float64(a.MoEIntermediate))
		o.Experts = cost.Experts{
			Layers: sparse, Count: a.Experts, PerToken: a.ExpertsPerToken,
			Bytes: float64(matrices * a.Weights.bits() / 8),
			FLOPs: 2 * matrices,
			GPUs:  group, Ranks: e.DataParallelSize,
			Small:    spec.multiplies(a.Weights.Dtype),
			Unpacked: a.Weights.bits() < 8 && !spec.multiplies(a.Weights.Dtype),
			RowBytes: 2 * float64(2*a.Hidden+4*a.MoEIntermediate),
		}
	}
	o.Head = cost.Linear{K: a.Hidden, N: share(a.Vocab), Count: 1, Element: 2}
	return o
}

// multiplies says whether the GPU multiplies weights of a dtype as they are, with 8 bits or fewer.
func (s *Spec) multiplies(dtype string) bool {
	key := map[string]string{"fp8": "fp8", "int8": "int8", "nvfp4": "fp4"}[dtype]
	return s.Peaks[key] > 0
}

// captureSizes are the batches that vLLM captures CUDA graphs of: 1, 2, 4, every eighth to 256 and
// every sixteenth to 512, up to twice max_num_seqs.
func captureSizes(seqs int) (sizes []int) {
	most := min(2*seqs, 512)
	for size := 1; size <= most; {
		sizes = append(sizes, size)
		switch {
		case size < 8:
			size *= 2
		case size < 256:
			size += 8
		default:
			size += 16
		}
	}
	return sizes
}
