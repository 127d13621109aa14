package cost

// Constants are what a GPU and an engine reach of what a data sheet says, and the time that goes
// by besides. Parameters lists them with units, bounds and meanings.
type Constants struct {
	GEMMMemoryEfficiency  float64
	GEMMComputeEfficiency float64
	GEMMComputeSmall      float64
	RoofSoftness          float64
	GEMMLaunch            float64 // us

	KVEfficiency               float64
	KVEfficiencySmall          float64
	AttentionComputeEfficiency float64
	AttentionLaunch            float64 // us
	AttentionRow               float64 // ns
	AttentionTile              float64 // tokens
	MixedAttentionFactor       float64

	ExpertMemoryEfficiency  float64
	ExpertMemorySmall       float64
	ExpertComputeEfficiency float64
	ExpertComputeSmall      float64
	ExpertComputeUnpacked   float64
	ExpertTile              float64 // rows
	ExpertLaunch            float64 // us

	AllReduceLatency float64 // us
	LinkEfficiency   float64
	PCIeLatency      float64 // us
	PCIeEfficiency   float64

	StepOverhead     float64 // us
	LayerOverhead    float64 // us
	SequenceOverhead float64 // us
	RequestOverhead  float64 // ms
}

// A Parameter is one of the Constants.
type Parameter struct {
	Name        string
	Unit        string // empty: a share or a factor
	Least, Most float64
	Default     float64
	What        string
	Of          func(*Constants) *float64
}

// Parameters are all Constants, in the order of the struct.
var Parameters = []Parameter{
	{"gemm_memory_efficiency", "", 0.05, 1, 0.80, "share of the HBM's bandwidth at which linear layers read weights",
		func(c *Constants) *float64 { return &c.GEMMMemoryEfficiency }},
	{"gemm_compute_efficiency", "", 0.05, 1, 0.75, "share of the peak that linear layers of 16 bits reach",
		func(c *Constants) *float64 { return &c.GEMMComputeEfficiency }},
	{"gemm_compute_efficiency_8bit", "", 0.05, 1, 0.60, "the same where 8 bits or fewer are multiplied",
		func(c *Constants) *float64 { return &c.GEMMComputeSmall }},
	{"roof_softness", "", 0, 1, 0.05, "how much arithmetic and reads of equal length hinder each other: 0 not at all, 1 they add up",
		func(c *Constants) *float64 { return &c.RoofSoftness }},
	{"gemm_launch", "us", 0, 100, 4, "start and end of one linear layer",
		func(c *Constants) *float64 { return &c.GEMMLaunch }},

	{"kv_efficiency", "", 0.05, 1, 0.78, "share of the HBM's bandwidth at which attention reads a KV cache of 16 bits",
		func(c *Constants) *float64 { return &c.KVEfficiency }},
	{"kv_efficiency_8bit", "", 0.05, 1, 0.70, "the same of 8 bits",
		func(c *Constants) *float64 { return &c.KVEfficiencySmall }},
	{"attention_compute_efficiency", "", 0.05, 1, 0.60, "share of the 16-bit peak that attention reaches",
		func(c *Constants) *float64 { return &c.AttentionComputeEfficiency }},
	{"attention_launch", "us", 0, 200, 10, "start and end of one layer's attention",
		func(c *Constants) *float64 { return &c.AttentionLaunch }},
	{"attention_row", "ns", 0, 1000, 3.5, "per decoding sequence and query head",
		func(c *Constants) *float64 { return &c.AttentionRow }},
	{"attention_tile", "tokens", 0, 10000, 150, "keys per query that a prefill computes beyond those that are attended to",
		func(c *Constants) *float64 { return &c.AttentionTile }},
	{"mixed_attention_factor", "", 1, 10, 1.5, "decode attention beside a prefill, over that in a step of decodes",
		func(c *Constants) *float64 { return &c.MixedAttentionFactor }},

	{"expert_memory_efficiency", "", 0.05, 1, 0.75, "share of the HBM's bandwidth at which experts are read",
		func(c *Constants) *float64 { return &c.ExpertMemoryEfficiency }},
	{"expert_memory_efficiency_8bit", "", 0.05, 1, 0.60, "the same where 8 bits or fewer are multiplied",
		func(c *Constants) *float64 { return &c.ExpertMemorySmall }},
	{"expert_compute_efficiency", "", 0.05, 1, 0.45, "share of the peak that experts of 16 bits reach",
		func(c *Constants) *float64 { return &c.ExpertComputeEfficiency }},
	{"expert_compute_efficiency_8bit", "", 0.01, 1, 0.40, "the same where 8 bits or fewer are multiplied",
		func(c *Constants) *float64 { return &c.ExpertComputeSmall }},
	{"expert_compute_efficiency_4bit", "", 0.01, 1, 0.20, "share of the 16-bit peak where weights of 4 bits are turned into 16 first",
		func(c *Constants) *float64 { return &c.ExpertComputeUnpacked }},
	{"expert_tile", "rows", 0, 256, 12, "rows per expert that are computed beyond those routed to it",
		func(c *Constants) *float64 { return &c.ExpertTile }},
	{"expert_launch", "us", 0, 500, 20, "routing, start and end of one layer's experts",
		func(c *Constants) *float64 { return &c.ExpertLaunch }},

	{"allreduce_latency", "us", 0, 1000, 10, "of one all-reduce over NVLink, whatever its size",
		func(c *Constants) *float64 { return &c.AllReduceLatency }},
	{"link_efficiency", "", 0.05, 1, 0.60, "share of NVLink's bandwidth that an all-reduce reaches",
		func(c *Constants) *float64 { return &c.LinkEfficiency }},
	{"pcie_latency", "us", 0, 1000, 20, "of one all-reduce over PCIe",
		func(c *Constants) *float64 { return &c.PCIeLatency }},
	{"pcie_efficiency", "", 0.05, 1, 0.40, "share of PCIe's bandwidth that an all-reduce reaches",
		func(c *Constants) *float64 { return &c.PCIeEfficiency }},

	{"step_overhead", "us", 0, 1e6, 500, "of the engine in every step: scheduling, inputs, sampling",
		func(c *Constants) *float64 { return &c.StepOverhead }},
	{"layer_overhead", "us", 0, 1000, 10, "small kernels of a layer: norms, rotary embedding, activation",
		func(c *Constants) *float64 { return &c.LayerOverhead }},
	{"sequence_overhead", "us", 0, 1000, 5, "per sequence of a step: sampling, and of a served engine detokenising and HTTP",
		func(c *Constants) *float64 { return &c.SequenceOverhead }},
	{"request_overhead", "ms", 0, 10000, 0, "once per request, before the scheduler sees it: HTTP, tokenising, the way between processes",
		func(c *Constants) *float64 { return &c.RequestOverhead }},
}

// DefaultConstants are for a GPU that nothing was measured on.
func DefaultConstants() (c Constants) {
	for _, p := range Parameters {
		*p.Of(&c) = p.Default
	}
	return c
}

// bounded keeps every constant within its bounds, whatever made it: no step is faster than physics.
func (c Constants) bounded() Constants {
	for _, p := range Parameters {
		x := p.Of(&c)
		if !(*x >= p.Least) { // or not a number
			*x = p.Least
		}
		*x = min(*x, p.Most)
	}
	return c
}

func (c *Constants) gemmCompute(small bool) float64 {
	if small {
		return c.GEMMComputeSmall
	}
	return c.GEMMComputeEfficiency
}

func (c *Constants) expertCompute(e *Experts) float64 {
	switch {
	case e.Small:
		return c.ExpertComputeSmall
	case e.Unpacked:
		return c.ExpertComputeUnpacked
	}
	return c.ExpertComputeEfficiency
}

func (c *Constants) expertMemory(small bool) float64 {
	if small {
		return c.ExpertMemorySmall
	}
	return c.ExpertMemoryEfficiency
}

func (c *Constants) kv(small bool) float64 {
	if small {
		return c.KVEfficiencySmall
	}
	return c.KVEfficiency
}
