package scenarios

// What a vLLM worker sets aside before it counts blocks, in bytes of one GPU. Every constant is a
// measured or a counted one; none is fitted to logged block counts, though these were known.
const (
	mib = 1 << 20

	// What kernels, cuBLAS and PyTorch's context take beside tensors: 0.16 GiB, logged on an H100,
	// https://github.com/vllm-project/vllm/pull/12126.
	contextBytes = 0.16 * 1024 * mib

	// Buffers of NCCL for two GPUs, and for more, as measured in nccl_mem of
	// github.com/ai-dynamo/aiconfigurator@ee962fc, systems/l40s.yaml.
	ncclTwo  = 342 * mib
	ncclMore = 392 * mib

	// A captured CUDA graph, per layer: 35 graphs of 16 layers took 0.21 GiB,
	// https://github.com/vllm-project/vllm/pull/11349.
	graphLayerBytes = 0.21 * 1024 * mib / (35 * 16)

	// Per row and word of the vocabulary when a batch is sampled with top-k and top-p: logits of 16
	// and 32 bits (6), sorted values and their indices (12), probabilities and their sums (8), two
	// masks (2), and the logits put back in order (4).
	samplerBytes = 32
)

// A reserve is what of a GPU's memory vLLM finds taken when it has run the largest batch once.
type reserve struct {
	activations, context, graphs float64
}

func (r reserve) bytes() float64 { return r.activations + r.context + r.graphs }

// profile is the reserve of a GPU of an engine, which has a stretch of the layers. The peak of
// activations is the larger one of a layer of the largest batch and, behind the last layer, of
// sampling from it; both hold the batch's hidden states.
func (a *Architecture) profile(e Engine, of stretch) reserve {
	r := reserve{context: contextBytes}
	talking := e.TensorParallelSize * e.PipelineParallelSize
	if a.Experts > 0 {
		talking *= e.DataParallelSize
	}
	switch {
	case talking == 2:
		r.context += ncclTwo
	case talking > 2:
		r.context += ncclMore
	}
	hidden := float64(float64(2*a.Hidden) * float64(e.MaxNumBatchedTokens))
	layer := hidden + float64(a.layerBytes(e)*float64(e.MaxNumBatchedTokens))
	sampling := 0.0
	if of.head {
		rows := float64(min(e.MaxNumSeqs, e.MaxNumBatchedTokens))
		sampling = float64(float64(samplerBytes*a.Vocab) * rows)
	}
	r.activations = hidden + max(layer, sampling)
	if profiles[e.Models].countsGraphs {
		r.graphs = float64(graphLayerBytes * float64(of.layers()*len(captureSizes(e.MaxNumSeqs))))
	}
	return r
}

// layerBytes is what one token needs within a layer on one of an engine's GPUs: 16-bit values of
// the wider one of attention (queries, keys, values, result) and MLP (gate, up, their product).
func (a *Architecture) layerBytes(e Engine) float64 {
	share := func(n int) float64 { return float64(n) / float64(e.TensorParallelSize) }
	attention := share(2*a.Heads*a.HeadDim + 2*a.KVHeads*a.HeadDim)
	if a.KVLoraRank > 0 {
		// Prefill attends with keys and values of every head, decompressed.
		attention = share(2*a.Heads*(a.QKNopeDim+a.QKRopeDim) + 2*a.Heads*a.VHeadDim)
	}
	mlp := share(3 * a.Intermediate)
	if a.Experts > 0 {
		// Each expert's result is as wide as the hidden state, and lies where gate and up did.
		inner := share(a.MoEIntermediate)
		if _, whole := e.expertGroup(); whole {
			inner = float64(a.MoEIntermediate)
		}
		each := max(2*inner, float64(a.Hidden)) + inner
		mlp = max(float64(float64(a.ExpertsPerToken)*each)+share(3*a.SharedIntermediate), share(3*a.Intermediate))
	}
	return 2 * max(attention, mlp)
}
