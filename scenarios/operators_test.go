package scenarios

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
)

// A sequence of a step computes new tokens behind past ones: of one token it is a decode.
type sequence struct{ past, new int }

// A batch is a step's sequences, of which sampled emit a token.
type batch struct {
	sequences []sequence
	sampled   int
}

func (b batch) shape() cost.Shape {
	s := cost.Shape{Sequences: len(b.sequences), Sampled: b.sampled}
	for _, q := range b.sequences {
		s.Tokens += q.new
		s.Context += int64(q.past + q.new)
		if q.new == 1 {
			s.Decodes++
			s.DecodeContext += int64(q.past + 1)
		} else {
			s.PrefillPairs += int64(q.new)*int64(q.past) + int64(q.new)*int64(q.new+1)/2
		}
	}
	return s
}

// A need is what one GPU cannot do a step without: bytes out of its memory, and seconds of
// arithmetic at the peak. It is counted layer by layer.
type need struct{ bytes, seconds float64 }

func plainPeak(s *Scenario) float64 {
	return max(s.Hardware.Spec.Peaks["bf16"], s.Hardware.Spec.Peaks["fp16"])
}

// matrices needs all that is multiplied with weights.
func (n *need) matrices(s *Scenario, tokens, sampled int) {
	a, e, spec := s.Model.Architecture, s.Engine, s.Hardware.Spec
	tp, dp := float64(e.TensorParallelSize), float64(e.DataParallelSize)
	stored := map[string]float64{"bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5, "nvfp4": 0.5, "mxfp4": 0.5}[a.Weights.Dtype]
	peak := plainPeak(s)
	if native := spec.Peaks[map[string]string{"fp8": "fp8", "int8": "int8", "nvfp4": "fp4"}[a.Weights.Dtype]]; native > 0 {
		peak = native
	}
	width, densePeak := stored, peak
	if a.Weights.ExpertsOnly {
		width, densePeak = 2, plainPeak(s)
	}
	linear := func(elements float64) {
		n.bytes += elements * width
		n.seconds += 2 * elements * float64(tokens) / densePeak
	}
	hidden, heads := float64(a.Hidden), float64(a.Heads)
	for layer := range a.Layers {
		if a.KVLoraRank > 0 {
			rank, nope, rope, v := float64(a.KVLoraRank), float64(a.QKNopeDim), float64(a.QKRopeDim), float64(a.VHeadDim)
			linear(hidden * (rank + rope)) // every GPU for itself, as the next one
			if a.QLoraRank > 0 {
				linear(hidden * float64(a.QLoraRank))
				linear(float64(a.QLoraRank) * heads * (nope + rope) / tp)
			} else {
				linear(hidden * heads * (nope + rope) / tp)
			}
			linear(rank * heads * (nope + v) / tp)
			linear(heads * v * hidden / tp)
		} else {
			linear(hidden * float64(a.HeadDim) * (2*heads/tp + 2*max(float64(a.KVHeads)/tp, 1)))
		}
		if a.Experts == 0 || layer < a.DenseLayers {
			linear(3 * hidden * float64(a.Intermediate) / tp)
			continue
		}
		router := hidden * float64(a.Experts)
		n.bytes += router * 2
		n.seconds += 2 * router * float64(tokens) / plainPeak(s)
		shared := 3 * hidden * float64(a.SharedIntermediate)
		linear(shared / tp)
		if e.EnableExpertParallel && tp > 1 && dp > 1 {
			n.bytes += shared * (1 - 1/tp) * width // whole on every GPU
		}
		one := 3 * hidden * float64(a.MoEIntermediate) / (tp * dp)
		all, chosen, experts := float64(tokens)*dp, float64(a.ExpertsPerToken), float64(a.Experts)
		n.bytes += one * stored * experts * (1 - math.Pow(1-chosen/experts, all))
		n.seconds += 2 * one * chosen * all / peak
	}
	if sampled > 0 {
		head := hidden * float64(a.Vocab) / tp
		n.bytes += head * 2
		n.seconds += 2 * head * float64(sampled) / plainPeak(s)
	}
}

// attention needs what is between sequences and the cache.
func (n *need) attention(s *Scenario, sequences []sequence) {
	a, heads := s.Model.Architecture, float64(s.Model.Architecture.Heads/s.Engine.TensorParallelSize)
	element := 2.
	if s.Engine.KVCacheDtype == "fp8" {
		element = 1
	}
	read := element * 2 * float64(a.HeadDim) * max(float64(a.KVHeads)/float64(s.Engine.TensorParallelSize), 1)
	decode, prefill := float64(2*a.HeadDim), float64(2*a.HeadDim)
	if a.KVLoraRank > 0 {
		read = element * float64(a.KVLoraRank+a.QKRopeDim)
		decode = float64(a.KVLoraRank + a.QKRopeDim + a.KVLoraRank)
		prefill = float64(a.QKNopeDim + a.QKRopeDim + a.VHeadDim)
	}
	for layer := range a.Layers {
		window := math.MaxInt
		if layer < a.SlidingLayers {
			window = a.SlidingWindow
		}
		for _, q := range sequences {
			dims := prefill
			if q.new == 1 {
				dims = decode
			} else if a.KVLoraRank > 0 { // keys and values of the past, made of latents
				n.seconds += float64(q.past) * 2 * float64(a.KVLoraRank) * heads * float64(a.QKNopeDim+a.VHeadDim) / plainPeak(s)
			}
			for i := 1; i <= q.new; i++ {
				n.seconds += 2 * heads * dims * float64(min(q.past+i, window)) / plainPeak(s)
			}
			n.bytes += read * float64(q.new+min(q.past, window-1))
		}
	}
}

// anyConstants are anywhere within their bounds, some of them on one.
func anyConstants(r *rand.Rand) (c cost.Constants) {
	for _, p := range cost.Parameters {
		x := p.Least + (p.Most-p.Least)*r.Float64()
		switch r.IntN(3) {
		case 0:
			x = p.Least
		case 1:
			x = p.Most
		}
		*p.Of(&c) = x
	}
	return c
}

// ideal has every share at 1 and all that takes time besides at 0.
func ideal() (c cost.Constants) {
	for _, p := range cost.Parameters {
		if *p.Of(&c) = p.Least; p.Unit == "" && p.Most == 1 && p.Name != "roof_softness" {
			*p.Of(&c) = 1
		}
	}
	return c
}

// anyOperators is a model of any shape, on GPUs of any speed, spread in any way that it can be.
func anyOperators(r *rand.Rand) *Scenario {
	of := func(n ...int) int { return n[r.IntN(len(n))] }
	tp := of(1, 2, 4, 8)
	a := &Architecture{
		Layers: 1 + r.IntN(6), Hidden: 128 * (1 + r.IntN(64)), Heads: 8 * (1 + r.IntN(16)), HeadDim: of(64, 128, 256),
		Intermediate: 64 * (1 + r.IntN(400)), Vocab: 1000 + r.IntN(200_000), NormsPerLayer: 2, TiedEmbeddings: r.IntN(2) == 0,
	}
	a.KVHeads = of(1, 2, 4, 8, a.Heads)
	a.Weights.Dtype = weightDtypes[r.IntN(len(weightDtypes))]
	if r.IntN(2) == 0 {
		a.Experts = of(8, 16, 64, 256)
		a.ExpertsPerToken = 1 + r.IntN(8)
		a.MoEIntermediate = 64 * (1 + r.IntN(50))
		a.SharedIntermediate = r.IntN(2) * a.MoEIntermediate
		a.DenseLayers = r.IntN(a.Layers + 1)
		a.Weights.ExpertsOnly = r.IntN(3) == 0
	}
	switch r.IntN(3) {
	case 0:
		a.KVLoraRank, a.QKNopeDim, a.QKRopeDim, a.VHeadDim = of(256, 512), 128, 64, 128
		a.QLoraRank = of(0, 1536)
	case 1:
		a.SlidingWindow, a.SlidingLayers = 1+r.IntN(2000), 1+r.IntN(a.Layers)
	}
	bf16 := 1e13 + 1e15*r.Float64()
	spec := &Spec{Peaks: map[string]float64{"bf16": bf16}, NVLink: float64(of(0, 450)) * 1e9, PCIe: 64e9}
	if r.IntN(2) == 0 {
		spec.Peaks["fp8"], spec.Peaks["int8"], spec.Peaks["fp4"] = 2*bf16, 2*bf16, 4*bf16
	}
	s := &Scenario{
		Model:    a.model("any"),
		Hardware: Hardware{Bandwidth: 1e11 + 8e12*r.Float64(), PeakFLOPS: spec.peak(a.Weights.Dtype), Spec: spec},
		Engine: Engine{MaxNumSeqs: 1 + r.IntN(1024), TensorParallelSize: tp, PipelineParallelSize: 1 + r.IntN(a.Layers),
			DataParallelSize: of(1, 1, 2, 8), EnableExpertParallel: a.Experts > 0 && r.IntN(2) == 0},
		Cost: Cost{Model: "operators", Constants: anyConstants(r)},
	}
	if r.IntN(2) == 0 {
		s.Engine.KVCacheDtype = "fp8"
	}
	return s
}

// anyBatch is a step of decodes, of prompts, or of both.
func anyBatch(r *rand.Rand) (b batch) {
	for range r.IntN(200) {
		b.sequences = append(b.sequences, sequence{1 + r.IntN(1+r.IntN(20_000)), 1})
	}
	if len(b.sequences) == 0 || r.IntN(2) == 0 {
		for range 1 + r.IntN(4) {
			b.sequences = append(b.sequences, sequence{r.IntN(2) * r.IntN(5000), 2 + r.IntN(2000)})
		}
	}
	b.sampled = r.IntN(len(b.sequences) + 1)
	return b
}

// No step is faster than its bytes over the bandwidth or its arithmetic over the peak, with any
// constants, any model, and however it is spread.
func TestOperatorsFloors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		s, b := anyOperators(r), anyBatch(r)
		if r.IntN(3) == 0 {
			s.Cost.Constants = ideal() // where the floors are nearest
		}
		n := need{}
		n.matrices(s, b.shape().Tokens, b.sampled)
		n.attention(s, b.sequences)
		got, bound := s.StepCost().StepTime(b.shape())
		if floor := 1e9 * max(n.bytes/s.Hardware.Bandwidth, n.seconds); float64(got) < floor*(1-1e-9)-0.51 {
			t.Fatalf("StepTime(%+v) = %v by %v, needs %.0f ns:\n%+v\n%+v", b.shape(), got, bound, floor, s.Model.Architecture, s.Engine)
		}
	}
}

// The same of every step that a scheduler makes, with the constants of the catalogue. Of layers with
// a window no attention is counted.
func TestOperatorsFloorsOfARun(t *testing.T) {
	for _, c := range []struct {
		model, gpu string
		tp         int
	}{
		{"llama-3.1-8b", "h100-sxm", 1}, {"qwen3-30b-a3b", "h100-sxm", 2}, {"gpt-oss-120b", "h100-sxm", 2}, {"deepseek-v3", "h200-sxm", 8},
	} {
		s, err := parallel(c.model, c.gpu, c.tp, 1, 1, edit(t, "workload.requests=300", "workload.arrivals.rate=30",
			"workload.prompt_tokens={lognormal: [600, 0.8]}", "workload.output_tokens={lognormal: [100, 0.6]}")...)
		if err != nil {
			t.Fatal(err)
		}
		source, _, err := s.Source()
		if err != nil {
			t.Fatal(err)
		}
		a := s.Model.Architecture
		all := float64(a.Layers - a.SlidingLayers) // layers that attend to everything
		full := all / float64(a.Layers) * float64(s.Model.KVBytesPerToken) * a.kvShare(c.tp)
		pair := all * 2 * float64(a.Heads/c.tp) * float64(2*a.HeadDim) / plainPeak(s)
		run, steps := sim.NewRun(s.Cluster(), source), 0
		for {
			p, more := run.Advance()
			if !more {
				break
			}
			for i := range p.Steps {
				step := &p.Steps[i]
				h := step.Shape
				n := need{bytes: full * float64(h.Context), seconds: pair * float64(h.PrefillPairs)}
				n.matrices(s, h.Tokens, h.Sampled)
				if took := step.End - step.Start; took.Seconds() < max(n.bytes/s.Hardware.Bandwidth, n.seconds) {
					t.Fatalf("%s: a step of %+v took %v, needs %.9f s of reads and %.9f s of arithmetic", c.model, h, took, n.bytes/s.Hardware.Bandwidth, n.seconds)
				}
				steps++
			}
		}
		if steps < 100 {
			t.Errorf("%s: %d steps, want more", c.model, steps)
		}
	}
}

// Every matrix is on every GPU that needs it, and nowhere else: over all GPUs the weights are the
// model's without embedding, norms and biases, and once more per GPU what each holds for itself.
func TestOperatorsReadAllWeights(t *testing.T) {
	const latents = 61 * 7168 * (1536 + 512 + 64) // deepseek-v3's projections to latents, 8 bits
	for _, c := range []struct {
		model string
		// Parameters of 16 bits that no linear layer has: the embedding of the input, norms, biases and sinks.
		unmultiplied float64
		replicated   func(tp float64) float64 // bytes, beyond the first copy
		attention    float64                  // FLOPs of a token that attends to itself, per replica of its KV
	}{
		{"llama-3.1-8b", 128256*4096 + 65*4096, func(float64) float64 { return 0 }, 32 * 32 * 4 * 128},
		{"mixtral-8x7b", 32000*4096 + 65*4096, func(tp float64) float64 { return (tp - 1) * 32 * 4096 * 8 * 2 }, 32 * 32 * 4 * 128},
		// Each of 4 KV heads is on two GPUs of 8.
		{"qwen3-30b-a3b", 151936*2048 + 97*2048 + 48*2*128, func(tp float64) float64 {
			return (tp-1)*48*2048*128*2 + (max(tp, 4)/4-1)*48*2048*2*4*128*2
		}, 48 * 32 * 4 * 128},
		// A decode attends to latents: of 576 with queries, of 512 with weights.
		{"deepseek-v3", 129280*7168 + 123*7168 + 61*(512+1536) + 58*256, func(tp float64) float64 {
			return (tp - 1) * (58*7168*256*2 + latents)
		}, 61 * 128 * 2 * (576 + 512)},
		{"gpt-oss-120b", 201088*2880 + 73*2880 + 36*(4096+2*512+2880+64+128) + 36*128*3*2880, func(tp float64) float64 {
			return (tp - 1) * 36 * 2880 * 128 * 2
		}, 36 * 64 * 4 * 64},
	} {
		for _, tp := range []int{1, 2, 4, 8} {
			for _, whole := range []bool{false, true} {
				s := on(t, "model.name="+c.model, "hardware.name=h200-sxm", "engine.tensor_parallel_size=8")
				s.Engine.TensorParallelSize, s.Engine.EnableExpertParallel = tp, whole && s.Model.Architecture.Experts > 0
				o := s.operators()
				gpu := float64(o.Experts.Layers*o.Experts.Count) * o.Experts.Bytes / float64(max(o.Experts.GPUs, 1))
				for _, l := range append(o.Linears, o.Head) {
					gpu += float64(l.K*l.N*l.Count) * l.Element
				}
				a := s.Model.Architecture
				want := a.WeightBytes() - 2*c.unmultiplied + c.replicated(float64(tp))
				if got := gpu * float64(tp); math.Abs(got/want-1) > 1e-9 {
					t.Errorf("%s on %d GPUs, whole experts %v: %.0f bytes of weights, want %.0f", c.model, tp, whole, got, want)
				}
				if tp > 1 {
					continue
				}
				b := s.StepCost().Explain(batch{[]sequence{{0, 1}}, 1}.shape())
				if flops := 2*(float64(a.ActiveParameters())-c.unmultiplied) + c.attention; math.Abs(b.FLOPs/flops-1) > 2e-3 {
					t.Errorf("%s: a token takes %.6g FLOPs, want %.6g", c.model, b.FLOPs, flops)
				}
			}
		}
	}
}

// Under expert parallelism within data-parallel ranks every GPU reads all shared experts, for its
// part of the rank's tokens: no more arithmetic, and the weights that the memory is counted with.
func TestSharedExpertsOfAGPU(t *testing.T) {
	reads := func(dp int) (bytes, flops float64) {
		s := on(t, "model.name=deepseek-v3", "hardware.name=h200-sxm", "engine.tensor_parallel_size=8")
		s.Engine.TensorParallelSize, s.Engine.DataParallelSize, s.Engine.EnableExpertParallel = 8, dp, true
		for _, l := range s.operators().Linears {
			if l.Count == 58 && l.Element == 1 { // in layers with experts; the router has 16 bits
				bytes += float64(l.K*l.N*l.Count) * l.Element
				flops += 2 * float64(l.K*l.N*l.Count) / float64(max(l.Split, 1))
			}
		}
		return bytes, flops
	}
	const shared = 58 * 3 * 7168 * 2048
	for dp, want := range map[int]float64{1: shared / 8, 2: shared} {
		if bytes, flops := reads(dp); bytes != want || flops != 2*shared/8 {
			t.Errorf("%d ranks: shared experts of %.0f bytes and %.0f FLOPs a token, want %.0f and %d", dp, bytes, flops, want, 2*shared/8)
		}
	}
}

// A prompt's keys and values are made of latents once: those of its own tokens as part of what every
// token is multiplied with, those of the tokens before it besides.
func TestLatentsAreExpandedOnce(t *testing.T) {
	s := on(t, "model.name=deepseek-v3", "hardware.name=h200-sxm", "engine.tensor_parallel_size=8")
	flops := func(q sequence) float64 { return s.StepCost().Explain(batch{[]sequence{q}, 0}.shape()).FLOPs }
	const (
		heads  = 16 // of 128 on 8 GPUs
		pair   = 61 * heads * 2 * (128 + 64 + 128)
		expand = 61 * heads * 2 * 512 * (128 + 128)
	)
	alone := flops(sequence{0, 1024})
	weights := flops(sequence{0, 1}) - 61*heads*2*(576+512) // of a token, without its attention to itself
	if want := 1024*weights + 1024*1025/2*pair; math.Abs(alone/want-1) > 1e-9 {
		t.Errorf("a prompt of 1024 takes %.6g FLOPs, want %.6g", alone, want)
	}
	if got, want := flops(sequence{3000, 1024})-alone, 3000.*expand+3000*1024*pair; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("3000 tokens before a prompt take %.6g FLOPs more, want %.6g", got, want)
	}
	if got, want := flops(sequence{0, 2048})-2*alone, 1024.*1024*pair; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("a prompt of 2048 takes %.6g FLOPs more than two of 1024, want %.6g", got, want)
	}
}

// A tied lm_head is computed as any other.
func TestTiedHeadIsComputed(t *testing.T) {
	s := on(t, "model.name=llama-3.2-1b", "hardware.name=h100-sxm")
	if h := s.operators().Head; h != (cost.Linear{K: 2048, N: 128256, Count: 1, Element: 2}) {
		t.Errorf("lm_head of llama-3.2-1b = %+v, want 2048 x 128256 of 16 bits", h)
	}
}

// llama-3.1-8b on an H100 that reaches all of its data sheet, by hand.
func TestOperatorsByHand(t *testing.T) {
	const (
		layers, hidden, qkv, inner, vocab = 32, 4096, 4096 + 2*1024, 14336, 128256
		matrices                          = layers * (hidden*qkv + hidden*hidden + hidden*2*inner + inner*hidden)
		kv                                = layers * 2 * 8 * 128 * 2 // bytes of a token
		bandwidth, peak, link             = 3.35e12, 989.4e12, 450e9
		// 16-bit values of a token that go into linear layers and come out of them, and between them
		// through activations, norms and the rotary embedding.
		between = layers * 2 * (3*inner + 2*(2*hidden) + 2*qkv)
		rows    = layers * 2 * (hidden + qkv + hidden + hidden + hidden + 2*inner + inner + hidden)
		head    = 2*hidden*vocab + 2*(hidden+vocab)
	)
	s := on(t, "model.name=llama-3.1-8b", "hardware.name=h100-sxm")
	s.Cost.Constants = ideal()
	price := func(q sequence) float64 {
		took, _ := s.StepCost().StepTime(batch{[]sequence{q}, 1}.shape())
		return took.Seconds()
	}
	// 15.15 GB over 3.35 TB/s.
	if got, want := price(sequence{999, 1}), (2.*matrices+head+1000*kv+rows+between)/bandwidth; math.Abs(got-want) > 1e-9 {
		t.Errorf("a decode at 1000 tokens takes %.9f s, want %.9f", got, want)
	}
	// Linear layers and attention at the peak; what is beside them is read.
	const n = 8192
	flops := 2.*n*matrices + layers*32*4*128*(n*(n+1)/2.)
	reads := head + n*(between+layers*2.*(2*4096+2*1024))
	if got, want := price(sequence{0, n}), flops/peak+reads/bandwidth; math.Abs(got/want-1) > 1e-8 {
		t.Errorf("a prompt of 8192 takes %.9f s, want %.9f", got, want)
	}
	// A GPU of two sends half of the hidden states and gets half, twice, after attention and after
	// the MLP of every layer and after the embedding.
	s.Engine.TensorParallelSize = 2
	s.Cost.Constants.AllReduceLatency = 10
	b := s.StepCost().Explain(batch{[]sequence{{0, n}}, 1}.shape())
	if got, want := b.Time[cost.AllReduce], 65*(10e-6+2*hidden*n/link); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("all-reduces of 8192 tokens take %.9f s, want %.9f", got, want)
	}
}

// More work never makes a step shorter.
func TestMoreWorkIsNotFaster(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		s, b := anyOperators(r), anyBatch(r)
		model := s.StepCost()
		before, _ := model.StepTime(b.shape())
		more := batch{append([]sequence{}, b.sequences...), b.sampled}
		switch q := &more.sequences[r.IntN(len(more.sequences))]; r.IntN(5) {
		case 0:
			more.sequences = append(more.sequences, sequence{r.IntN(3000), 1})
		case 1:
			more.sequences = append(more.sequences, sequence{r.IntN(3000), 2 + r.IntN(500)})
		case 2:
			q.past += 1 + r.IntN(100)
		case 3:
			if q.new > 1 {
				q.new += 1 + r.IntN(100)
			}
		case 4:
			more.sampled = min(more.sampled+1, len(more.sequences))
		}
		if after, _ := model.StepTime(more.shape()); after < before-1 {
			t.Fatalf("StepTime(%+v) = %v, of %+v %v: want no less\n%+v\n%+v", b.shape(), before, more.shape(), after, s.Model.Architecture, s.Engine)
		}
	}
}

// A GPU that reads, computes or sends faster, and constants that say that more of it is reached or
// less time goes by, never make a step longer.
func TestBetterHardwareIsNotSlower(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		s, shape := anyOperators(r), anyBatch(r).shape()
		before, _ := s.StepCost().StepTime(shape)
		changed := "bandwidth"
		switch i := r.IntN(len(cost.Parameters) + 3); i {
		default:
			p := cost.Parameters[i]
			x := p.Of(&s.Cost.Constants)
			if changed = p.Name; p.Unit == "" && p.Most == 1 && p.Name != "roof_softness" {
				*x += (p.Most - *x) * r.Float64()
			} else {
				*x -= (*x - p.Least) * r.Float64()
			}
		case len(cost.Parameters):
			s.Hardware.Bandwidth *= 1 + r.Float64()
		case len(cost.Parameters) + 1:
			changed = "peaks"
			s.Hardware.PeakFLOPS *= 1.5
			for dtype := range s.Hardware.Spec.Peaks {
				s.Hardware.Spec.Peaks[dtype] *= 1.5
			}
		case len(cost.Parameters) + 2:
			changed = "links"
			s.Hardware.Spec.NVLink *= 1.5
			s.Hardware.Spec.PCIe *= 1.5
		}
		if after, _ := s.StepCost().StepTime(shape); after > before+1 {
			t.Fatalf("StepTime(%+v) = %v, with better %s %v: want no more\n%+v", shape, before, changed, after, s.Model.Architecture)
		}
	}
}

// What a step is said to consist of adds up to its time, and no roof is higher than that.
func TestTermsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 2000 {
		s, shape := anyOperators(r), anyBatch(r).shape()
		if i%2 == 0 {
			s.Cost = Cost{Model: "roofline", Efficiency: Efficiency{0.1 + 0.9*r.Float64(), 0.1 + 0.9*r.Float64()}, StepOverhead: time.Duration(r.IntN(1e6))}
		}
		model := s.StepCost()
		took, _ := model.StepTime(shape)
		b := model.Explain(shape)
		for term, x := range b.Time {
			if !(x >= 0) {
				t.Fatalf("%v of %+v = %v, want no less than 0", cost.Term(term), shape, x)
			}
		}
		total := b.Total()
		if math.Abs(total*1e9-float64(took)) > 1+1e-12*float64(took) {
			t.Fatalf("%s: terms of %+v take %.12f s, the step %v", s.Cost.Model, shape, total, took)
		}
		if roof := max(b.MemoryTime, b.ComputeTime); roof > total*(1+1e-12) {
			t.Fatalf("%s: roofs of %+v are at %v and %v s, above its time %v", s.Cost.Model, shape, b.MemoryTime, b.ComputeTime, total)
		}
	}
}

// A batch is padded to the next size that a CUDA graph was captured of; a larger one is not.
func TestPaddingToCaptures(t *testing.T) {
	padded := func(n int) int {
		switch {
		case n <= 2:
			return n
		case n <= 4:
			return 4
		case n <= 256:
			return (n + 7) / 8 * 8
		default:
			return (n + 15) / 16 * 16
		}
	}
	for seqs, c := range map[int]struct{ most, sizes int }{1: {2, 2}, 64: {128, 19}, 256: {512, 51}, 1024: {512, 51}} {
		s := on(t, "model.name=llama-3.1-8b", "hardware.name=h100-sxm")
		s.Engine.MaxNumSeqs = seqs
		if sizes := captureSizes(seqs); len(sizes) != c.sizes || sizes[len(sizes)-1] != c.most {
			t.Errorf("captureSizes(%d) = %v, want %d to %d", seqs, sizes, c.sizes, c.most)
		}
		model := s.StepCost()
		one := model.Explain(cost.Shape{Tokens: 1}).FLOPs
		for n := 1; n <= 600; n++ {
			want := n
			if n <= c.most {
				want = padded(n)
			}
			if got := model.Explain(cost.Shape{Tokens: n}).FLOPs / one; math.Abs(got-float64(want)) > 1e-6 {
				t.Errorf("max_num_seqs %d: %d tokens are computed as %.3f, want %d", seqs, n, got, want)
			}
		}
	}
}
