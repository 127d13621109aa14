package scenarios

// An Architecture is the shape of a decoder-only transformer: what its parameters, its KV cache
// and its activations are counted from. Names are those of Hugging Face configurations.
type Architecture struct {
	Layers       int
	Hidden       int
	Heads        int
	KVHeads      int
	HeadDim      int
	Intermediate int // of the MLP of a dense layer; three matrices, gated
	Vocab        int

	TiedEmbeddings bool   // the lm_head is the embedding
	AttentionBias  string // which projections have one: "", qkv or qkvo
	QKNorm         string // what is normed before attention: "", each head or the full projection
	NormsPerLayer  int
	Sinks          bool // every head has a learnt logit

	// A mixture of experts; no Experts: dense. The first DenseLayers have no experts.
	Experts            int
	ExpertsPerToken    int
	MoEIntermediate    int // of one expert
	SharedIntermediate int // of all shared experts together
	DenseLayers        int
	RouterBias         bool
	ExpertBias         bool

	// Latent attention; no KVLoraRank: there is none. No QLoraRank: queries are not compressed.
	KVLoraRank int
	QLoraRank  int
	QKNopeDim  int
	QKRopeDim  int
	VHeadDim   int

	// SlidingLayers attend to the last SlidingWindow tokens only.
	SlidingWindow int
	SlidingLayers int

	Weights WeightFormat
}

// A WeightFormat is how linear layers are stored. Embeddings, the lm_head, norms and routers keep
// 16 bits in every format.
type WeightFormat struct {
	Dtype       string
	ExpertsOnly bool // of a mixture, only the routed experts are in that format
	Group       int  // elements of int4 that share a scale of 16 bits; 0: 128
}

func (f WeightFormat) bits() float64 {
	if f.Dtype == "int4" && f.Group > 0 {
		return 4 + 16/float64(f.Group)
	}
	return weightBits[f.Dtype]
}

// bits per element of linear layers, with the scales that a group of them shares: 16 bits for 128
// of int4 (GPTQ, AWQ), 8 bits for 16 of nvfp4 and for 32 of mxfp4. Scales of fp8 and int8 are few.
var weightBits = map[string]float64{
	"bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4 + 16./128, "nvfp4": 4 + 8./16, "mxfp4": 4 + 8./32,
}

var weightDtypes = []string{"bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"}

// A parts is the parameters of a stretch of a model, by how they are stored and by who uses them.
type parts struct {
	embeddings int64 // and the lm_head
	plain      int64 // norms, biases and routers
	attention  int64 // linear layers of attention and of dense MLPs
	shared     int64 // linear layers of shared experts
	experts    int64 // linear layers of routed experts, of all layers together
	biases     int64 // of routed experts
}

func (p parts) sum() int64 {
	return p.embeddings + p.plain + p.attention + p.shared + p.experts + p.biases
}

// A stretch is the layers from first to before end, and of what stands before and behind all
// layers what is with them.
type stretch struct {
	first, end int
	embedding  bool
	head       bool // the last norm and the lm_head
}

func (s stretch) layers() int { return s.end - s.first }

func (a *Architecture) whole() stretch { return stretch{end: a.Layers, embedding: true, head: true} }

// parts counts a stretch's parameters. A tied embedding is there twice when its two ends lie in
// different stretches.
func (a *Architecture) parts(of stretch) (p parts) {
	i := func(n int) int64 { return int64(n) }
	layers, hidden := i(of.layers()), i(a.Hidden)
	if of.embedding {
		p.embeddings = i(a.Vocab) * hidden
	}
	if of.head && !(a.TiedEmbeddings && of.embedding) {
		p.embeddings += i(a.Vocab) * hidden
	}
	p.plain = layers * i(a.NormsPerLayer) * hidden
	if of.head {
		p.plain += hidden
	}
	q, kv := i(a.Heads)*i(a.HeadDim), i(a.KVHeads)*i(a.HeadDim)
	if a.KVLoraRank > 0 {
		q = i(a.Heads) * i(a.QKNopeDim+a.QKRopeDim)
		linear := hidden*i(a.KVLoraRank+a.QKRopeDim) + i(a.KVLoraRank)*i(a.Heads)*i(a.QKNopeDim+a.VHeadDim) +
			i(a.Heads)*i(a.VHeadDim)*hidden
		if a.QLoraRank > 0 {
			linear += hidden*i(a.QLoraRank) + i(a.QLoraRank)*q
		} else {
			linear += hidden * q
		}
		p.attention += layers * linear
		p.plain += layers * i(a.KVLoraRank+a.QLoraRank)
	} else {
		p.attention += layers * (2*hidden*q + 2*hidden*kv)
	}
	switch a.AttentionBias {
	case "qkv":
		p.plain += layers * (q + 2*kv)
	case "qkvo":
		p.plain += layers * (q + 2*kv + hidden)
	}
	switch a.QKNorm {
	case "head":
		p.plain += layers * 2 * i(a.HeadDim)
	case "full":
		p.plain += layers * (q + kv)
	}
	if a.Sinks {
		p.plain += layers * i(a.Heads)
	}
	sparse := int64(0)
	if a.Experts > 0 {
		sparse = i(max(of.end-max(of.first, a.DenseLayers), 0))
	}
	p.attention += (layers - sparse) * 3 * hidden * i(a.Intermediate)
	p.shared = sparse * 3 * hidden * i(a.SharedIntermediate)
	p.plain += sparse * hidden * i(a.Experts)
	if a.RouterBias {
		p.plain += sparse * i(a.Experts)
	}
	p.experts = sparse * i(a.Experts) * 3 * hidden * i(a.MoEIntermediate)
	if a.ExpertBias {
		p.biases = sparse * i(a.Experts) * (2*i(a.MoEIntermediate) + hidden)
	}
	return p
}

// Parameters is how many the model has, embeddings and all experts included.
func (a *Architecture) Parameters() int64 {
	return a.parts(a.whole()).sum()
}

// ActiveParameters are those that one token passes through: of the experts, those it is routed to.
func (a *Architecture) ActiveParameters() int64 {
	p := a.parts(a.whole())
	if a.Experts > 0 {
		p.experts = p.experts / int64(a.Experts) * int64(a.ExpertsPerToken)
	}
	return p.sum()
}

// WeightBytes is the size of the weights over all GPUs.
func (a *Architecture) WeightBytes() float64 {
	b := a.bytes(a.whole())
	return b.common + b.shared + b.experts
}

// A weight is the size of a stretch's weights in bytes, by how GPUs share them.
type weight struct {
	common  float64 // all but experts
	shared  float64 // experts that every token passes
	experts float64 // those that tokens are routed to
}

func (a *Architecture) bytes(of stretch) weight {
	p := a.parts(of)
	bits := a.Weights.bits()
	linear := bits
	if a.Weights.ExpertsOnly {
		linear = 16
	}
	size := func(elements int64, bits float64) float64 { return float64(bits / 8 * float64(elements)) }
	return weight{
		common:  size(p.embeddings+p.plain, 16) + size(p.attention, linear),
		shared:  size(p.shared, linear),
		experts: size(p.experts, bits) + size(p.biases, 16),
	}
}

// KVBytesPerToken is what one token takes of the KV cache over all layers and GPUs: a key and a
// value of every KV head, or of latent attention the latent and the rotary key that all heads share.
func (a *Architecture) KVBytesPerToken(element int) int64 {
	if a.KVLoraRank > 0 {
		return int64(a.Layers) * int64(a.KVLoraRank+a.QKRopeDim) * int64(element)
	}
	return int64(a.Layers) * 2 * int64(a.KVHeads) * int64(a.HeadDim) * int64(element)
}

// kvShare is the part of KVBytesPerToken that each of tp GPUs holds: a latent is the same for all
// heads, so every GPU holds it whole, and with more GPUs than KV heads every head is held several times.
func (a *Architecture) kvShare(tp int) float64 {
	if a.KVLoraRank > 0 {
		return 1
	}
	return 1 / float64(min(tp, a.KVHeads))
}

// splits says whether tp GPUs can share the model: each takes the same number of heads.
func (a *Architecture) splits(tp int) bool {
	return a.Heads%tp == 0 && (a.KVLoraRank > 0 || a.KVHeads%tp == 0 || tp%a.KVHeads == 0)
}
