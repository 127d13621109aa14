package cost

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// dense is llama-3.1-8b on an H100, mixture qwen3-30b-a3b on one of two.
func dense() Operators {
	return Operators{
		Constants: DefaultConstants(), PeakFLOPS: 989e12, ExpertFLOPS: 989e12, PlainFLOPS: 989e12, Bandwidth: 3.35e12,
		Layers: 32, Hidden: 4096,
		Linears: []Linear{
			{K: 4096, N: 6144, Count: 32, Element: 2}, {K: 4096, N: 4096, Count: 32, Element: 2},
			{K: 4096, N: 28672, Count: 32, Element: 2}, {K: 14336, N: 4096, Count: 32, Element: 2},
		},
		Head:      Linear{K: 4096, N: 128256, Count: 1, Element: 2},
		Attention: []Attention{{Layers: 32, Heads: 32, ReadBytes: 4096, DecodeDims: 256, Dims: 256, RowBytes: 20480}},
		Captures:  []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512},
	}
}

func mixture() Operators {
	o := dense()
	o.TP, o.LinkBandwidth, o.Layers, o.Hidden = 2, 450e9, 48, 2048
	o.Linears = []Linear{{K: 2048, N: 2560, Count: 48, Element: 2}, {K: 2048, N: 2048, Count: 48, Element: 2}, {K: 2048, N: 128, Count: 48, Element: 2}}
	o.Head = Linear{K: 2048, N: 75968, Count: 1, Element: 2}
	o.Attention = []Attention{{Layers: 48, Heads: 16, ReadBytes: 1024, DecodeDims: 256, Dims: 256, RowBytes: 9216}}
	o.Experts = Experts{Layers: 48, Count: 128, PerToken: 8, Bytes: 9437184, FLOPs: 9437184, GPUs: 2, Ranks: 1, RowBytes: 14336}
	return o
}

// Two equal times hinder each other by the root of the softness; at the ends they overlap or add up.
func TestSmooth(t *testing.T) {
	for _, c := range []struct{ a, b, softness, want float64 }{
		{3, 5, 0, 5}, {5, 3, 0, 5}, {3, 5, 1, 8}, {4, 4, 0.25, 6}, {0, 7, 0.5, 7}, {0, 0, 0.5, 0},
	} {
		if got := smooth(c.a, c.b, c.softness); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("smooth(%v, %v, %v) = %v, want %v", c.a, c.b, c.softness, got, c.want)
		}
	}
}

// Matrices of 16 bits beside those of 8 are multiplied at the peak of 16, routers among them.
func TestPeakOfALinear(t *testing.T) {
	for small, seconds := range map[bool]float64{true: 1, false: 2} {
		o := Operators{PeakFLOPS: 2e6, PlainFLOPS: 1e6, Bandwidth: 1e12, Linears: []Linear{{K: 1000, N: 1000, Count: 1, Element: 1, Small: small}}}
		if got := o.Model().Explain(Shape{Tokens: 1}).ComputeTime; math.Abs(got-seconds) > 1e-9 {
			t.Errorf("2e6 FLOPs of 8 bits: %v take %v s, want %v", small, got, seconds)
		}
	}
}

// The experts that a batch reads are as many as when every token draws its own.
func TestExpertsTouched(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ experts, each, tokens, ranks int }{
		{8, 2, 1, 1}, {8, 2, 3, 1}, {128, 8, 1, 1}, {128, 8, 10, 1}, {128, 4, 100, 1}, {256, 8, 16, 4},
	} {
		const trials = 1000
		touched := 0
		for range trials {
			hit := make([]bool, c.experts)
			for range c.tokens * c.ranks {
				for _, expert := range r.Perm(c.experts)[:c.each] {
					if !hit[expert] {
						hit[expert] = true
						touched++
					}
				}
			}
		}
		o := Operators{Constants: DefaultConstants(), Bandwidth: 1, PlainFLOPS: 1, ExpertFLOPS: 1,
			Experts: Experts{Layers: 1, Count: c.experts, PerToken: c.each, Bytes: 1, GPUs: 1, Ranks: c.ranks}}
		got, want := o.Model().Explain(Shape{Tokens: c.tokens}).WeightBytes, float64(touched)/trials
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%+v: %.2f experts are read, drawn were %.2f", c, got, want)
		}
	}
}

// Constants out of bounds, or that are no numbers, make no step faster than physics or endless.
func TestConstantsAreBounded(t *testing.T) {
	shape := decode(32, 1000)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e300} {
		o := mixture()
		for _, p := range Parameters {
			*p.Of(&o.Constants) = x
		}
		model := o.Model()
		took, _ := model.StepTime(shape)
		b := model.Explain(shape)
		if floor := max(b.MemoryTime, b.ComputeTime); !(took.Seconds() >= floor) || took >= Longest {
			t.Errorf("all constants at %v: StepTime = %v, want at least %v s and an end", x, took, floor)
		}
	}
}

// A step is priced without memory: a run prices millions.
func TestPricingDoesNotAllocate(t *testing.T) {
	for _, m := range []Explainer{dense().Model(), mixture().Model(), base.Model()} {
		shape := Shape{Sequences: 65, Tokens: 64 + 512, Sampled: 65, Context: 64512, Decodes: 64, DecodeContext: 64000, PrefillPairs: 131328}
		if n := testing.AllocsPerRun(100, func() { m.StepTime(shape); m.Explain(shape) }); n != 0 {
			t.Errorf("%T allocates %v times a step", m, n)
		}
	}
}

func BenchmarkStepTime(b *testing.B) {
	for _, c := range []struct {
		name  string
		model Model
	}{{"roofline", base.Model()}, {"dense", dense().Model()}, {"mixture", mixture().Model()}} {
		for _, decodes := range []int{4, 256} {
			b.Run(c.name+"-"+strconv.Itoa(decodes), func(b *testing.B) {
				shape := decode(decodes, 1000)
				for b.Loop() {
					shape.Context++
					shape.DecodeContext++
					c.model.StepTime(shape)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/step")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
