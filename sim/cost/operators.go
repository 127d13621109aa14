package cost

import (
	"math"
	"time"
)

// Operators prices a step as the sum of what one GPU of a replica computes in it: linear layers,
// attention, experts, what the GPUs tell each other, and overhead. Every term comes from the sums
// of a Shape.
//
// Times are in seconds, sizes in bytes, rates per second. All are those of one GPU, of which TP
// work on each layer together and Stages hold one part of the layers each, one after the other.
type Operators struct {
	Constants

	PeakFLOPS     float64 // of the linear layers' format
	ExpertFLOPS   float64 // of the experts' format
	PlainFLOPS    float64 // of 16 bits: attention, lm_head
	Bandwidth     float64 // of the HBM
	LinkBandwidth float64 // to the other GPUs, one way
	TP            int
	Stages        int
	PCIe          bool // the link is; else NVLink or the like

	Layers    int
	Hidden    int
	Linears   []Linear // of all layers, by shape
	Head      Linear   // the lm_head
	Attention []Attention
	Experts   Experts
	// ActivationBytes of a token are read or written between the linear layers, over all layers.
	ActivationBytes float64
	Captures        []int // sizes of CUDA graphs, ascending
	// NormReductions are all-reduces of a few bytes per layer: of a norm over the heads of all GPUs.
	NormReductions int
}

// A Linear is one or more equal matrices of K rows and N columns: 2*K*N FLOPs a token each.
type Linear struct {
	K, N    int
	Count   int     // in the whole model
	Element float64 // bytes of a weight
	Small   bool    // 8 bits or fewer are multiplied as such
	Split   int     // GPUs that each multiply a part of the rows with all of it; 0: one does all
}

// An Attention is the layers that attend in the same way.
type Attention struct {
	Layers     int
	Heads      int     // of queries
	Window     int     // tokens; 0: all
	ReadBytes  float64 // of KV per token and layer
	DecodeDims int     // per head and pair, queries with keys and weights with values: FLOPs are twice that
	Dims       int     // the same in a prefill
	// RowBytes of a token are queries, keys, values and results.
	RowBytes float64
	// Expand is the FLOPs that a token of context from before the step costs a prefill before it can
	// be attended to: latent attention's keys and values. Those of the step's own are a Linear's.
	Expand float64
	Small  bool // the cache has 8 bits
}

// Experts are the routed ones of a mixture; no Layers: there are none.
type Experts struct {
	Layers   int
	Count    int     // of a layer, over all GPUs
	PerToken int     // that a token is routed to
	Bytes    float64 // of one expert, over all GPUs
	FLOPs    float64 // of one expert and token, over all GPUs
	GPUs     int     // that share them
	Ranks    int     // data parallel, with as many tokens each
	Small    bool    // 8 bits or fewer are multiplied as such
	Unpacked bool    // 4 bits are turned into 16 to be multiplied
	RowBytes float64 // of a token and expert, read or written on one GPU
}

// A Term is a part of a step's time.
type Term uint8

const (
	LinearCompute Term = iota
	LinearReads
	ExpertCompute
	ExpertReads
	HeadTerm
	PrefillAttention
	DecodeAttention
	MixedBatch
	Activations
	AllReduce
	Launches
	LayerOverhead
	SequenceOverhead
	StepOverhead
	Terms = 14
)

var termNames = [Terms]string{
	"linear layers, compute", "linear layers, weight reads", "experts, compute", "experts, weight reads", "lm_head",
	"prefill attention", "decode attention", "mixed batch", "activations", "all-reduce", "kernel launches",
	"per layer", "per sequence", "per step",
}

func (t Term) String() string { return termNames[t] }

// bounds is what each term counts as.
var termBounds = [Terms]Bound{
	Compute, Weights, Compute, Weights, Weights, Compute, KVReads, KVReads, Overhead, Overhead, Overhead, Overhead, Overhead, Overhead,
}

// A Breakdown is a step's time by terms, in seconds, and what the step moves and computes on the
// busiest GPU: bytes of weights and KV, and FLOPs over PeakFLOPS, in seconds at the peak.
type Breakdown struct {
	Time         [Terms]float64
	MemoryTime   float64
	ComputeTime  float64
	WeightBytes  float64
	ContextBytes float64
	FLOPs        float64
}

// Total is the step's time in seconds.
func (b *Breakdown) Total() (t float64) {
	for _, x := range b.Time {
		t += x
	}
	return t
}

// An Explainer tells what a step's time is made of.
type Explainer interface {
	Model
	Explain(Shape) Breakdown
}

// Model prepares the prices.
func (o Operators) Model() Explainer {
	o.Constants = o.Constants.bounded()
	o.TP, o.Stages = max(o.TP, 1), max(o.Stages, 1)
	m := &operators{Operators: o}
	if n := len(o.Captures); n > 0 {
		m.padded = make([]int, o.Captures[n-1]+1)
		at := 0
		for i := range m.padded {
			for o.Captures[at] < i {
				at++
			}
			m.padded[i] = o.Captures[at]
		}
	}
	c := o.Constants
	memory := float64(o.Bandwidth * c.GEMMMemoryEfficiency)
	prepare := func(l Linear, peak, efficiency float64) gemm {
		elements, part := float64(float64(l.K)*float64(l.N)), 1/float64(max(l.Split, 1))
		return gemm{
			count:   float64(l.Count),
			flops:   float64(float64(2*elements)*float64(l.Count)) * part,
			bytes:   float64(elements*l.Element) * float64(l.Count),
			compute: float64(2*elements*part) / float64(peak*efficiency),
			reads:   float64(elements*l.Element) / memory,
			rows:    float64(2*float64(l.K+l.N)*part) / memory,
			peak:    peak,
		}
	}
	for _, l := range o.Linears {
		peak := o.PlainFLOPS
		if l.Small {
			peak = o.PeakFLOPS
		}
		m.gemms = append(m.gemms, prepare(l, peak, c.gemmCompute(l.Small)))
	}
	m.head = prepare(o.Head, o.PlainFLOPS, c.gemmCompute(false))
	return m
}

// A gemm is a Linear's prices: seconds per matrix.
type gemm struct {
	count, flops, bytes  float64
	compute, reads, rows float64
	peak                 float64
}

type operators struct {
	Operators
	gemms  []gemm
	head   gemm
	padded []int
}

func (o *operators) StepTime(s Shape) (time.Duration, Bound) {
	var b Breakdown
	o.price(s, &b)
	var by [Bounds]float64
	total := 0.0
	for t, x := range b.Time {
		by[termBounds[t]] += x
		total += x
	}
	bound := Compute
	for i := range by {
		if by[i] > by[bound] {
			bound = Bound(i)
		}
	}
	ns := float64(total * 1e9)
	if !(ns < float64(Longest)) {
		return Longest, bound
	}
	return max(time.Duration(ns+0.5), 1), bound
}

func (o *operators) Explain(s Shape) (b Breakdown) {
	o.price(s, &b)
	return b
}

// smooth is the longer of two times, and more than that where they are near each other: of equal
// ones 1 + sqrt(softness) of either. At 0 they overlap fully, at 1 they add up.
func smooth(a, b, softness float64) float64 {
	d := a - b
	return float64((a + b + math.Sqrt(float64(d*d)+float64(float64(4*softness)*float64(a*b)))) / 2)
}

func (o *operators) price(s Shape, b *Breakdown) {
	if s.Tokens <= 0 {
		b.Time[StepOverhead] = float64(o.Constants.StepOverhead * 1e-6)
		return
	}
	c := &o.Constants
	tokens := s.Tokens
	if tokens < len(o.padded) {
		tokens = o.padded[tokens]
	}
	rows := float64(tokens)
	layers := float64(o.Layers)

	for i := range o.gemms {
		compute, reads := o.gemms[i].price(rows, c, b)
		b.Time[LinearCompute] += compute
		b.Time[LinearReads] += reads
	}
	if s.Sampled > 0 {
		compute, reads := o.head.price(float64(s.Sampled), c, b)
		b.Time[HeadTerm] = compute + reads
	}
	o.attend(s, b)
	if o.Experts.Layers > 0 {
		o.route(rows, b)
	}
	b.Time[Activations] = float64(o.ActivationBytes*rows) / float64(o.Bandwidth*c.GEMMMemoryEfficiency)
	o.talk(rows, b)
	b.Time[LayerOverhead] = float64(layers*c.LayerOverhead) * 1e-6
	b.Time[SequenceOverhead] = float64(float64(s.Sequences)*c.SequenceOverhead) * 1e-6
	b.Time[StepOverhead] = float64(c.StepOverhead * 1e-6)
	b.MemoryTime += (b.WeightBytes + b.ContextBytes) / o.Bandwidth
}

// price adds up the matrices of one shape over rows, and returns what of their time is arithmetic
// and what is reading.
func (g *gemm) price(rows float64, c *Constants, b *Breakdown) (compute, reads float64) {
	if g.count == 0 {
		return 0, 0
	}
	arithmetic := float64(g.compute * rows)
	memory := g.reads + float64(g.rows*rows)
	t := float64(smooth(arithmetic, memory, c.RoofSoftness) * g.count)
	b.Time[Launches] += float64(float64(c.GEMMLaunch*1e-6) * g.count)
	b.WeightBytes += g.bytes
	b.FLOPs += float64(g.flops * rows)
	b.ComputeTime += float64(g.flops*rows) / g.peak
	if arithmetic > memory {
		return t, 0
	}
	return 0, t
}

// attend prices all layers' attention over the decodes and the prefills.
func (o *operators) attend(s Shape, b *Breakdown) {
	c := &o.Constants
	prefill := float64(s.PrefillTokens())
	for i := range o.Attention {
		a := &o.Attention[i]
		layers := float64(a.Layers)
		decodeContext, pairs := float64(s.DecodeContext), float64(s.PrefillPairs)
		prefillContext := float64(s.Context - s.DecodeContext)
		if a.Window > 0 {
			// Of sequences shorter and longer than the window this is too much, by what the short
			// ones leave of theirs.
			window := float64(a.Window)
			decodeContext = min(decodeContext, float64(float64(s.Decodes)*window))
			pairs = min(pairs, float64(prefill*window))
			prefillContext = min(prefillContext, prefill+float64(float64(s.Sequences-s.Decodes)*window))
		}
		bandwidth := float64(o.Bandwidth * c.kv(a.Small))
		b.Time[Launches] += float64(layers * c.AttentionLaunch * 1e-6)
		perPair := float64(2 * float64(a.Heads) * float64(a.DecodeDims))
		flops := 0.0
		if s.Decodes > 0 {
			reads := float64(decodeContext*a.ReadBytes) / bandwidth
			compute := float64(decodeContext*perPair) / float64(o.PlainFLOPS*c.AttentionComputeEfficiency)
			t := smooth(reads, compute, c.RoofSoftness) + float64(float64(c.AttentionRow*1e-9)*float64(float64(s.Decodes)*float64(a.Heads)))
			b.Time[DecodeAttention] += float64(t * layers)
			if prefill > 0 {
				b.Time[MixedBatch] += float64(float64(t*(c.MixedAttentionFactor-1)) * layers)
			}
			flops += float64(decodeContext * perPair)
		}
		if prefill > 0 {
			perPair = float64(2 * float64(a.Heads) * float64(a.Dims))
			past := max(prefillContext-prefill, 0)
			work := float64(perPair*pairs) + float64(float64(perPair*c.AttentionTile)*prefill) + float64(a.Expand*past)
			compute := work / float64(o.PlainFLOPS*c.AttentionComputeEfficiency)
			reads := float64(prefillContext*a.ReadBytes) / bandwidth
			t := smooth(compute, reads, c.RoofSoftness) + float64(a.RowBytes*prefill)/o.Bandwidth
			b.Time[PrefillAttention] += float64(t * layers)
			flops += float64(perPair*pairs) + float64(a.Expand*past)
		}
		b.ContextBytes += float64(float64((decodeContext+prefillContext)*a.ReadBytes) * layers)
		b.FLOPs += float64(flops * layers)
		b.ComputeTime += float64(flops*layers) / o.PlainFLOPS
	}
}

// route prices the routed experts: those that at least one token of the batch goes to are read.
// Routing is taken to be even.
func (o *operators) route(rows float64, b *Breakdown) {
	c, e := &o.Constants, &o.Experts
	all := float64(rows * float64(max(e.Ranks, 1)))
	share := 1 / float64(max(e.GPUs, 1))
	experts, each := float64(e.Count), float64(e.PerToken)
	touched := float64(experts * (1 - power(1-each/experts, int(all))))
	layers := float64(e.Layers)
	bytes := float64(float64(touched*e.Bytes) * share)
	flops := float64(float64(all*each) * float64(e.FLOPs*share))
	peak := o.ExpertFLOPS
	// Kernels pad each expert's rows to whole tiles.
	padded := float64(all*each) + float64(touched*c.ExpertTile)
	compute := float64(padded*float64(e.FLOPs*share)) / float64(peak*c.expertCompute(e))
	memory := (bytes + float64(float64(all*each)*float64(e.RowBytes*share))) / float64(o.Bandwidth*c.expertMemory(e.Small))
	t := float64(smooth(compute, memory, c.RoofSoftness) * layers)
	if compute > memory {
		b.Time[ExpertCompute] += t
	} else {
		b.Time[ExpertReads] += t
	}
	b.Time[Launches] += float64(layers * c.ExpertLaunch * 1e-6)
	b.WeightBytes += float64(bytes * layers)
	b.FLOPs += float64(flops * layers)
	b.ComputeTime += float64(flops*layers) / peak
}

// talk prices two all-reduces a layer of the batch's hidden states, and one of the embedding's.
// Stages hand the hidden states on.
func (o *operators) talk(rows float64, b *Breakdown) {
	c := &o.Constants
	bytes := float64(float64(2*o.Hidden) * rows)
	if o.TP > 1 && o.LinkBandwidth > 0 {
		tp := float64(o.TP)
		latency, efficiency := c.AllReduceLatency, c.LinkEfficiency
		if o.PCIe {
			latency, efficiency = c.PCIeLatency, c.PCIeEfficiency
		}
		// Each GPU sends and gets all but its own part, twice: to reduce, and to gather.
		each := float64(latency*1e-6) + float64(bytes*float64(2*(tp-1)/tp))/float64(o.LinkBandwidth*efficiency)
		b.Time[AllReduce] += float64(each*float64(2*o.Layers+1)) + float64(float64(latency*1e-6)*float64(o.Layers*o.NormReductions))
	}
	if o.Stages > 1 && o.LinkBandwidth > 0 {
		efficiency := c.LinkEfficiency
		if o.PCIe {
			efficiency = c.PCIeEfficiency
		}
		each := float64(c.PCIeLatency*1e-6) + bytes/float64(o.LinkBandwidth*efficiency)
		b.Time[AllReduce] += float64(each * float64(o.Stages-1))
	}
}

// power is x to the n, by multiplications alone: the same on every machine.
func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y = float64(y * x)
		}
		x = float64(x * x)
	}
	return y
}
