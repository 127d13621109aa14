package plan

import (
	"llmsim/report"
	"llmsim/scenarios"
)

// A Question is what a plan is asked.
type Question struct {
	Scenario *scenarios.Scenario
	// Fixed asks whether the scenario's number of replicas holds. Otherwise the smallest number
	// that does is looked for.
	Fixed bool
	// Sensitivity asks what each knob would give when turned alone, if that takes few steps.
	Sensitivity bool
	// Progress, if not nil, is told now and then how many requests have been simulated.
	Progress func(requests int64)
}

// An Answer is what a plan says, in the terms of its JSON.
type Answer struct {
	Version  string `json:"llmsim"`
	Scenario struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	} `json:"scenario"`
	Seed       uint64     `json:"seed"`
	Verdict    Verdict    `json:"verdict"`
	Capacity   *Capacity  `json:"capacity,omitempty"` // of open arrivals
	Replicas   int        `json:"replicas"`
	GPUs       int        `json:"gpus"`            // of all replicas
	Price      *Price     `json:"price,omitempty"` // if the price of a GPU is known
	Bottleneck Bottleneck `json:"bottleneck"`
	// Sensitivity is what a replica would sustain with one setting changed, the largest gain first.
	Sensitivity []Sensitivity `json:"sensitivity"`
	// Unchanged is what a replica sustains by as few runs as stand behind Sensitivity, which compares
	// with it.
	Unchanged float64        `json:"sensitivity_unchanged_rps,omitempty"`
	Memory    Memory         `json:"memory"`          // of several pools, the first's
	Pools     []Pool         `json:"pools,omitempty"` // if replicas differ
	Notes     []string       `json:"notes,omitempty"`
	SLO       []Objective    `json:"slo,omitempty"`
	Trials    []Trial        `json:"trials"` // in the order in which they were made
	Run       report.Summary `json:"run"`    // of the answer's number of replicas
}

// A Verdict is the answer in one sentence.
type Verdict struct {
	Holds  bool   `json:"holds"`
	Reason string `json:"reason"`
	Margin string `json:"margin,omitempty"` // what to beware of although it holds
}

// A Capacity is the highest rate that one replica sustains under the SLO, in requests per second: the
// mean of some runs with its 95% confidence interval. Without an SLO it is what a saturated replica
// serves.
type Capacity struct {
	PerReplica float64    `json:"per_replica_rps"`
	CI         [2]float64 `json:"ci_rps"`
	Spread     float64    `json:"spread_rps"` // standard deviation between runs
	Runs       int        `json:"runs"`
	PerGPU     float64    `json:"per_gpu_rps"`
	// Headroom is how much more than what was asked the answer's replicas sustain, as a share.
	Headroom float64 `json:"headroom"`

	Saturation   float64    `json:"saturation_rps"` // of one replica, whatever the latency
	SaturationCI [2]float64 `json:"saturation_ci_rps"`
	Requests     int        `json:"requests"` // of each saturated run

	// Of several pools: what all of them sustain together, the figures of a replica are shares of.
	Fleet float64 `json:"fleet_rps,omitempty"`
	// Of a trace: the most times as fast as which the answer's replicas keep up with it under the SLO.
	Speedup float64 `json:"speedup,omitempty"`
}

// A Bottleneck is what breaks first as the load grows, with its evidence.
type Bottleneck struct {
	What string `json:"what"`
	Of   string `json:"of"` // the run that shows it
	// Breaks are the SLO's bounds that are missed there, before saturation; empty: saturation is first.
	Breaks  []string       `json:"breaks,omitempty"`
	Blocked report.Blocked `json:"blocked"`
	Bound   report.Bounds  `json:"bound"`
}

// Memory is how that of one GPU is used, in bytes: HBM = Reserve + Weights + KV + Free. Of a
// pipeline it is a GPU of the stage that has room for the fewest blocks.
type Memory struct {
	HBM      float64 `json:"hbm_bytes"`
	Reserve  float64 `json:"reserve_bytes"`
	Weights  float64 `json:"weights_bytes"`
	KV       float64 `json:"kv_bytes"`
	Free     float64 `json:"free_bytes"`
	KVBlocks int     `json:"kv_blocks"`
	KVTokens int     `json:"kv_tokens"`
	GPUs     int     `json:"gpus_per_replica"`
	Stage    int     `json:"pipeline_stage,omitempty"` // from 1; 0: there is one
}

// A Pool is equal replicas of a fleet whose replicas differ.
type Pool struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	GPUs     int    `json:"gpus"` // of all its replicas
	Memory   Memory `json:"memory"`
}

// An Objective is one bound of the SLO and how it fared, in milliseconds; goodput in percent.
type Objective struct {
	Name  string  `json:"name"`
	Limit float64 `json:"limit_ms"`
	Value float64 `json:"value_ms"`
	Unit  string  `json:"unit,omitempty"` // %, or, of milliseconds, nothing
	Met   bool    `json:"met"`
}

// empty says that an objective is missed because no request has what it bounds.
func (o Objective) empty() bool { return !o.Met && o.Unit == "" && o.Value <= o.Limit }

// A Trial is one number of replicas that was simulated.
type Trial struct {
	Replicas int     `json:"replicas"`
	State    string  `json:"state"` // keeps up, falls behind, unclear
	Requests int64   `json:"requests"`
	VirtualS float64 `json:"virtual_s"`
	WarmupS  float64 `json:"warmup_s"`
	Growth   float64 `json:"backlog_growth_rps"`
	StdErr   float64 `json:"backlog_growth_stderr_rps"`
	// MissesSLO is false without an SLO, too.
	MissesSLO bool `json:"misses_slo,omitempty"`
}
