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
	Seed       uint64         `json:"seed"`
	Verdict    Verdict        `json:"verdict"`
	Capacity   *Capacity      `json:"capacity,omitempty"` // of open arrivals
	Replicas   int            `json:"replicas"`
	GPUs       int            `json:"gpus"` // of all replicas
	Bottleneck Bottleneck     `json:"bottleneck"`
	Memory     Memory         `json:"memory"`          // of several pools, the first's
	Pools      []Pool         `json:"pools,omitempty"` // if replicas differ
	SLO        []Objective    `json:"slo,omitempty"`
	Trials     []Trial        `json:"trials"` // in the order in which they were made
	Run        report.Summary `json:"run"`    // of the answer's number of replicas
}

// A Verdict is the answer in one sentence.
type Verdict struct {
	Holds  bool   `json:"holds"`
	Reason string `json:"reason"`
	Margin string `json:"margin,omitempty"` // what to beware of although it holds
}

// A Capacity is what one replica serves when saturated, in requests per second: the mean of some
// runs with its 95% confidence interval.
type Capacity struct {
	PerReplica float64    `json:"per_replica_rps"`
	CI         [2]float64 `json:"ci_rps"`
	Spread     float64    `json:"spread_rps"` // standard deviation between runs
	Runs       int        `json:"runs"`
	Requests   int        `json:"requests"` // of each
}

// A Bottleneck is what breaks first as the load grows, with its evidence.
type Bottleneck struct {
	What    string         `json:"what"`
	Of      string         `json:"of"` // the run that shows it
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

// An Objective is one bound of the SLO and how it fared.
type Objective struct {
	Name  string  `json:"name"`
	Limit float64 `json:"limit_ms"`
	Value float64 `json:"value_ms"`
	Met   bool    `json:"met"`
}

// A Trial is one number of replicas that was simulated.
type Trial struct {
	Replicas int     `json:"replicas"`
	State    string  `json:"state"` // keeps up, falls behind, unclear
	Requests int64   `json:"requests"`
	VirtualS float64 `json:"virtual_s"`
	WarmupS  float64 `json:"warmup_s"`
	Growth   float64 `json:"backlog_growth_rps"`
	StdErr   float64 `json:"backlog_growth_stderr_rps"`
}
