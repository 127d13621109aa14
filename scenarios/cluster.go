package scenarios

import (
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/rng"
)

// Cluster makes the scenario's replicas and their router, at the start of a run. Data-parallel
// ranks schedule for themselves: each is a replica to the router.
func (s *Scenario) Cluster() *sim.Cluster {
	return sim.New(sim.Config{
		Replicas:    s.Fleet.Replicas * s.Engine.DataParallelSize,
		Policy:      s.policy,
		Cost:        s.StepCost(),
		Router:      s.router(),
		MaxModelLen: s.Engine.MaxModelLen,
		KVTokens:    s.UsableBlocks() * s.Engine.BlockSize,
		Ahead:       s.Engine.AsyncScheduling,
		Delay:       time.Duration(s.Cost.Constants.RequestOverhead * 1e6),
	})
}

// UsableBlocks is how many blocks of a replica one request can hold: in vLLM V1, all but the null
// block.
func (s *Scenario) UsableBlocks() int {
	blocks, _ := s.KVBlocks()
	switch {
	case profiles[s.Engine.Models].v0:
		// A prompt that would not leave the watermark is never admitted.
		blocks -= int(policy.V0Watermark*float64(blocks)) + 1
	case s.Engine.Policy == "vllm-v1":
		blocks--
	}
	return blocks
}

func (s *Scenario) policy() policy.Policy {
	e := s.Engine
	blocks, _ := s.KVBlocks()
	limits := policy.Limits{
		MaxNumSeqs:                e.MaxNumSeqs,
		MaxNumBatchedTokens:       e.MaxNumBatchedTokens,
		LongPrefillTokenThreshold: e.LongPrefillTokenThreshold,
	}
	if e.Policy == "classic" {
		return policy.NewClassic(kv.NewPool(blocks, e.BlockSize), limits, e.Watermark)
	}
	p := profiles[e.Models]
	if p.v0 {
		return policy.NewVLLMV0(kv.NewPool(blocks, e.BlockSize), limits)
	}
	pool := kv.NewPool(s.UsableBlocks(), e.BlockSize)
	if e.EnablePrefixCaching {
		pool = kv.NewCachingPool(s.UsableBlocks(), e.BlockSize, p.unhashedFirst)
	}
	return policy.NewVLLMV1(pool, limits, policy.VLLMV1Options{
		NumGPUBlocks:            blocks,
		Watermark:               e.Watermark,
		EnableChunkedPrefill:    e.EnableChunkedPrefill,
		SchedulerReserveFullISL: e.SchedulerReserveFullISL,
		Priority:                e.SchedulingPolicy == "priority",
		AsyncScheduling:         e.AsyncScheduling,
		DropStale:               !p.staleDelivered,
		CursorSlips:             !p.cursorFollows,
	})
}

// StepCost prices the steps of one replica. Under roofline its GPUs add up their arithmetic and
// their bandwidth, and what they tell each other is free.
func (s *Scenario) StepCost() cost.Explainer {
	if s.Cost.Model == "operators" {
		return s.operators().Model()
	}
	tp := float64(s.Engine.TensorParallelSize)
	kv := float64(s.Model.KVBytesPerToken)
	if s.profiled() {
		// What several GPUs hold of the same, several read.
		kv = float64(kv*s.Model.Architecture.kvShare(s.Engine.TensorParallelSize)) * tp
	}
	return cost.Roofline{
		Parameters:        s.Model.Parameters,
		WeightBytes:       s.Model.WeightBytes(),
		KVBytesPerToken:   kv,
		PeakFLOPS:         float64(s.Hardware.PeakFLOPS * tp),
		Bandwidth:         float64(s.Hardware.Bandwidth * tp),
		ComputeEfficiency: s.Cost.Efficiency.Compute,
		MemoryEfficiency:  s.Cost.Efficiency.Memory,
		Overhead:          s.Cost.StepOverhead,
	}.Model()
}

func (s *Scenario) router() sim.Router {
	switch s.Fleet.Router {
	case "least-loaded":
		return sim.LeastLoaded{}
	case "join-shortest-queue":
		return sim.ShortestQueue{}
	case "power-of-two-choices":
		return sim.PowerOfTwo{Stream: rng.New(s.Seed, "router")}
	}
	return new(sim.RoundRobin)
}
