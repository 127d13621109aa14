// Package scenarios reads scenario files and builds what they describe.
//
// It knows names, units and what goes together. It knows nothing of how a scenario is run, or of
// what its results mean.
package scenarios

import (
	"math"
	"time"

	"llmsim/sim/cost"
)

// A Scenario is one experiment, complete and checked: what a file says over the base scenario.
type Scenario struct {
	Name     string
	Model    Model
	Hardware Hardware
	Engine   Engine
	Cost     Cost
	Fleet    Fleet // the block called cluster
	Workload Workload
	Seed     uint64
	SLO      []Objective // in the order of their names

	Catalogue File `json:",omitzero"` // entries over the embedded ones; its figures are in Model and Hardware

	files   *files
	written *written
}

// A Model is what a language model's shape costs.
type Model struct {
	Name            string // of the catalogue or, with figures, any; may then be empty
	Parameters      float64
	BytesPerParam   float64 // 2: 16-bit weights; 0.5: 4-bit
	KVBytesPerToken int64   // over all layers and GPUs
	MaxModelLen     int     `json:"-"` // tokens it was made for; 0: not known

	Architecture *Architecture `json:",omitempty"` // nil: only the figures are known
}

// WeightBytes is the size of the weights over all GPUs.
func (m Model) WeightBytes() float64 { return float64(m.Parameters * m.BytesPerParam) }

// Hardware is one GPU.
type Hardware struct {
	Name      string // of the catalogue or, with figures, any; may then be empty
	HBMBytes  float64
	Bandwidth float64 // of the HBM, bytes per second
	PeakFLOPS float64 // dense, per second, in the precision that is served

	Spec *Spec `json:",omitempty"` // nil: only the figures are known

	// Price is US$ per hour, 0: not known. It changes no result of a run.
	Price       float64 `json:"-"`
	PriceSource string  `json:"-"`
}

// An Engine is one replica's serving engine; names and meanings are vLLM's.
type Engine struct {
	Policy string // how steps are scheduled
	Models string // the engine version that Policy follows

	BlockSize                 int // tokens
	GPUMemoryUtilization      float64
	NumGPUBlocks              int // 0: computed from the memory
	Watermark                 float64
	MaxNumBatchedTokens       int
	MaxNumSeqs                int
	MaxModelLen               int // tokens
	EnablePrefixCaching       bool
	EnableChunkedPrefill      bool
	LongPrefillTokenThreshold int // tokens; 0: none
	SchedulingPolicy          string
	AsyncScheduling           bool
	SchedulerReserveFullISL   bool
	TensorParallelSize        int    // GPUs that share every layer
	PipelineParallelSize      int    `json:",omitempty"` // stages that the layers are spread over
	DataParallelSize          int    `json:",omitempty"` // schedulers of one replica, each with GPUs of its own
	EnableExpertParallel      bool   `json:",omitempty"` // GPUs hold whole experts
	KVCacheDtype              string `json:",omitempty"` // fp8; empty: 16 bits

	Defaults []string // settings that were not given, and that the engine's version chooses
}

// A Cost names the model of a step's time and its parameters: StepOverhead and Efficiency are those
// of roofline, the others those of operators.
type Cost struct {
	Model        string
	StepOverhead time.Duration
	Efficiency   Efficiency

	Preset    string         `json:",omitempty"`
	Constants cost.Constants `json:",omitzero"`
	File      File           `json:"-"` // what some of the constants were read from
	Sources   []string       `json:"-"` // of the constants, for people
	FittedOn  []string       `json:"-"` // SHA-256 of the files that the constants were fitted on
}

// An Efficiency is the part of the hardware's peak that is reached, in (0, 1].
type Efficiency struct {
	Compute float64
	Memory  float64
}

// A Fleet is the replicas and what spreads requests over them. With Pools, Replicas is the sum of
// theirs, and the scenario's Model, Hardware, Engine and Cost are those of the first.
type Fleet struct {
	Replicas int
	Router   string
	Pools    []Pool `json:",omitempty"` // if replicas differ
}

// A Workload is the requests and when they come.
type Workload struct {
	Arrivals Arrivals
	Prompt   Tokens
	Output   Tokens
	Requests int // 0: all that the trace has

	Prefix   SystemPrompts `json:",omitzero"`
	Sessions Sessions      `json:",omitzero"`
}

// SystemPrompts are texts, Groups of them and all as likely, with the Tokens of one of which every
// prompt starts. No groups: prompts share nothing.
type SystemPrompts struct {
	Groups int
	Tokens int
}

// Sessions are conversations: Arrivals are then those of their first turns, and prompts are what is
// new of each. Without Turns there are none.
type Sessions struct {
	Turns     Tokens // a distribution of turns
	ThinkTime time.Duration
}

// Arrivals is when requests come. Fields that its process does not use are zero.
type Arrivals struct {
	Process     string
	Rate        float64 // requests per second
	CV          float64 // coefficient of variation of the gaps
	Grid        time.Duration
	Concurrency int
	ThinkTime   time.Duration
	Trace       File
	Spread      string
	Speedup     float64
}

// Tokens is a distribution of lengths. Kind is fixed, uniform, normal, lognormal, empirical or,
// for a trace's own, empty; A and B are its parameters in the order in which a file gives them.
type Tokens struct {
	Kind string
	A, B float64
	File File
}

// least is the shortest length that is possible; 1 if that takes reading a file.
func (t Tokens) least() int {
	switch t.Kind {
	case "fixed", "uniform":
		return int(t.A)
	case "normal", "lognormal":
		if t.B == 0 {
			return int(math.Round(t.A))
		}
	}
	return 1
}

// An Objective is a bound on one figure of the latency, or, of goodput, on the share of requests that
// each keep the bounds without a statistic.
type Objective struct {
	Name   string  // as the file gives it: METRIC-STATISTIC, METRIC or goodput
	Metric string  // ttft, itl, tpot, e2e, queue or goodput
	P      float64 // percentile, in (0, 100); 0 for the mean, 100 for the largest
	Limit  time.Duration

	Each  bool    `json:",omitzero"` // a bound of every single request, which goodput counts
	Share float64 `json:",omitzero"` // of goodput, in (0, 1]
}
