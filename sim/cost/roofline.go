package cost

import "time"

// A Roofline prices a step as the longer of its arithmetic and its memory traffic, plus a fixed
// overhead:
//
//	compute = 2 * Parameters * tokens / (PeakFLOPS * ComputeEfficiency)
//	memory  = (WeightBytes + KVBytesPerToken * context) / (Bandwidth * MemoryEfficiency)
//
// Both in seconds; context in tokens. PeakFLOPS and Bandwidth are those of all GPUs that share
// the model.
type Roofline struct {
	Parameters        float64
	WeightBytes       float64
	KVBytesPerToken   float64
	PeakFLOPS         float64 // FLOP/s
	Bandwidth         float64 // bytes/s
	ComputeEfficiency float64 // reached share of PeakFLOPS, 0 to 1
	MemoryEfficiency  float64 // reached share of Bandwidth, 0 to 1
	Overhead          time.Duration
}

// Model prepares the prices.
func (r Roofline) Model() Explainer {
	const ns = 1e9
	flops := float64(r.PeakFLOPS * r.ComputeEfficiency)
	bandwidth := float64(r.Bandwidth * r.MemoryEfficiency)
	return &roofline{
		token:    float64(2*r.Parameters/flops) * ns,
		weights:  float64(r.WeightBytes/bandwidth) * ns,
		context:  float64(r.KVBytesPerToken/bandwidth) * ns,
		overhead: r.Overhead,
		of:       r,
	}
}

// Prices in nanoseconds.
type roofline struct {
	token, weights, context float64
	overhead                time.Duration
	of                      Roofline
}

// StepTime rounds to nanoseconds once. Products are converted explicitly before they are added,
// which forbids fusing them: a fused product would differ between machines.
func (r *roofline) StepTime(s Shape) (time.Duration, Bound) {
	compute := float64(r.token * float64(s.Tokens))
	reads := float64(r.context * float64(s.Context))
	memory := r.weights + reads
	longest, bound := memory, Weights
	switch {
	case compute > memory:
		longest, bound = compute, Compute
	case reads > r.weights:
		bound = KVReads
	}
	if float64(r.overhead) > longest {
		bound = Overhead
	}
	if !(longest < float64(Longest)) {
		return Longest, bound
	}
	return min(max(time.Duration(longest+0.5)+r.overhead, 1), Longest), bound
}

// Explain gives the longer one of arithmetic and memory traffic, and the overhead.
func (r *roofline) Explain(s Shape) (b Breakdown) {
	compute := float64(r.token * float64(s.Tokens))
	reads := float64(r.context * float64(s.Context))
	if compute > r.weights+reads {
		b.Time[LinearCompute] = compute * 1e-9
	} else {
		b.Time[LinearReads], b.Time[DecodeAttention] = r.weights*1e-9, reads*1e-9
	}
	b.Time[StepOverhead] = r.overhead.Seconds()
	b.FLOPs = float64(2 * r.of.Parameters * float64(s.Tokens))
	b.ComputeTime = b.FLOPs / r.of.PeakFLOPS
	b.WeightBytes = r.of.WeightBytes
	b.ContextBytes = float64(r.of.KVBytesPerToken * float64(s.Context))
	b.MemoryTime = (b.WeightBytes + b.ContextBytes) / r.of.Bandwidth
	return b
}
