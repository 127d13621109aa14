package scenarios

import (
	"fmt"
	"slices"
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
	var config sim.Config
	for _, one := range s.Pools() {
		config.Pools = append(config.Pools, sim.Pool{
			Replicas:    one.Fleet.Replicas * one.Engine.DataParallelSize,
			Policy:      one.policy,
			Cost:        one.StepCost(),
			MaxModelLen: one.Engine.MaxModelLen,
			KVTokens:    one.UsableBlocks() * one.Engine.BlockSize,
			Ahead:       one.Engine.AsyncScheduling,
			Delay:       time.Duration(one.Cost.Constants.RequestOverhead * 1e6),
		})
	}
	weighted := slices.ContainsFunc(s.Fleet.Pools, func(p Pool) bool { return p.Weight != s.Fleet.Pools[0].Weight })
	for i, p := range s.Fleet.Pools {
		to := &config.Pools[i]
		to.Name, to.Accepts = p.Name, p.PromptTokens
		if weighted {
			// A rank is the part of a replica.
			to.Weight = float32(p.Weight / float64(p.Engine.DataParallelSize))
		}
	}
	config.Routers = func(set uint64) sim.Router {
		if !s.Mixed() {
			return s.router("router")
		}
		return s.router(fmt.Sprintf("router of pools %b", set))
	}
	return sim.New(config)
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

// router makes one whose chance is a stream of its own purpose.
func (s *Scenario) router(purpose string) sim.Router {
	switch s.Fleet.Router {
	case "least-loaded":
		return sim.LeastLoaded{}
	case "join-shortest-queue":
		return sim.ShortestQueue{}
	case "power-of-two-choices":
		return sim.PowerOfTwo{Stream: rng.New(s.Seed, purpose)}
	case "prefix-affinity":
		return sim.NewPrefixAffinity(sim.KnownBeginnings)
	}
	return new(sim.RoundRobin)
}
