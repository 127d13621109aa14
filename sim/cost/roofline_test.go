package cost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// The article's base model.
var base = Roofline{
	Parameters: 6.74e9, WeightBytes: 13.48e9, KVBytesPerToken: 524288,
	PeakFLOPS: 989e12, Bandwidth: 3000e9, ComputeEfficiency: 1, MemoryEfficiency: 1,
}

func decode(n int, context int64) Shape {
	return Shape{Sequences: n, Tokens: n, Sampled: n, Context: int64(n) * context, Decodes: n, DecodeContext: int64(n) * context}
}

// The figures that the article gives for its base model (section 4), to the digits it gives.
func TestArticleStepTimes(t *testing.T) {
	for _, c := range []struct {
		what  string
		shape Shape
		want  float64 // ms
		unit  float64 // of its last digit
		bound Bound
	}{
		{"one short request decodes", decode(1, 10), 4.50, 0.01, Weights},
		{"29 requests at 4k context", decode(29, 4096), 25.2, 0.1, KVReads},
		{"64 decodes at 544 tokens", decode(64, 544), 10.6, 0.1, KVReads},
		// The article calls these the prompts' alone; the figures are those with the 64 decodes.
		{"one 512-token prompt and 64 decodes, arithmetic", Shape{Tokens: 512 + 64}, 7.9, 0.1, Compute},
		{"three 512-token prompts and 64 decodes", Shape{Tokens: 1536 + 64}, 21.8, 0.1, Compute},
	} {
		got, bound := base.Model().StepTime(c.shape)
		if ms := float64(got) / 1e6; math.Abs(ms-c.want) > c.unit || bound != c.bound {
			t.Errorf("%s: StepTime(%+v) = %.3f ms by %v, want %v ms by %v", c.what, c.shape, ms, bound, c.want, c.bound)
		}
	}
}

// No step is faster than its bytes over the bandwidth or its FLOPs over the peak, whatever the
// efficiencies and the overhead.
func TestPhysicalFloors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		m := base
		m.ComputeEfficiency = 0.01 + 0.99*r.Float64()
		m.MemoryEfficiency = 0.01 + 0.99*r.Float64()
		m.Overhead = time.Duration(r.IntN(3) * 250_000)
		s := Shape{Sequences: 1 + r.IntN(256)}
		s.Tokens = s.Sequences + r.IntN(8192)
		s.Context = int64(s.Tokens + r.IntN(1<<20))
		got, bound := m.Model().StepTime(s)
		bytes := (m.WeightBytes + m.KVBytesPerToken*float64(s.Context)) / m.Bandwidth
		flops := 2 * m.Parameters * float64(s.Tokens) / m.PeakFLOPS
		// Half a nanosecond for the rounding.
		if floor := max(bytes, flops)*1e9 + float64(m.Overhead) - 0.5001; float64(got) < floor {
			t.Fatalf("StepTime(%+v) = %v by %v, below the physical floor %.1f ns", s, got, bound, floor)
		}
	}
	for _, slow := range []Roofline{
		{WeightBytes: 1e12, PeakFLOPS: 1, Bandwidth: 1e-300, ComputeEfficiency: 1, MemoryEfficiency: 1},
		{Parameters: 1e12, PeakFLOPS: 1e-300, Bandwidth: 1, ComputeEfficiency: 1, MemoryEfficiency: 1},
		{PeakFLOPS: 1, Bandwidth: 1, ComputeEfficiency: 1, MemoryEfficiency: 1, Overhead: 1 << 62},
	} {
		if got, _ := slow.Model().StepTime(Shape{Tokens: 1, Context: 1}); got != Longest {
			t.Errorf("StepTime of %+v = %v, want no more than %v", slow, got, Longest)
		}
	}
	if got, _ := (Roofline{PeakFLOPS: 1, Bandwidth: 1, ComputeEfficiency: 1, MemoryEfficiency: 1}).Model().StepTime(Shape{}); got != 1 {
		t.Errorf("StepTime of nothing = %v, want 1ns: a step takes time", got)
	}
}

func ExampleRoofline() {
	m := Roofline{
		Parameters: 6.74e9, WeightBytes: 13.48e9, KVBytesPerToken: 524288,
		PeakFLOPS: 989e12, Bandwidth: 3000e9, ComputeEfficiency: 1, MemoryEfficiency: 1,
	}.Model()
	fmt.Println(m.StepTime(Shape{Sequences: 1, Tokens: 1, Context: 100}))
	fmt.Println(m.StepTime(Shape{Sequences: 1, Tokens: 8192, Context: 8192}))
	// Output:
	// 4.51081ms weights
	// 111.65638ms compute
}
