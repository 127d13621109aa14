package scenarios

import (
	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/rng"
)

// Cluster makes the scenario's replicas and their router, at the start of a run.
func (s *Scenario) Cluster() *sim.Cluster {
	blocks, _ := s.KVBlocks()
	e := s.Engine
	return sim.New(sim.Config{
		Replicas: s.Fleet.Replicas,
		Policy: func() policy.Policy {
			limits := policy.Limits{MaxNumSeqs: e.MaxNumSeqs, MaxNumBatchedTokens: e.MaxNumBatchedTokens}
			return policy.NewClassic(kv.NewPool(blocks, e.BlockSize), limits, e.Watermark)
		},
		Cost:        s.StepCost(),
		Router:      s.router(),
		MaxModelLen: e.MaxModelLen,
		KVTokens:    blocks * e.BlockSize,
	})
}

// StepCost prices the steps of one replica. Its GPUs add up their arithmetic and their bandwidth;
// what they tell each other is free.
func (s *Scenario) StepCost() cost.Model {
	tp := float64(s.Engine.TensorParallelSize)
	return cost.Roofline{
		Parameters:        s.Model.Parameters,
		WeightBytes:       s.Model.WeightBytes(),
		KVBytesPerToken:   float64(s.Model.KVBytesPerToken),
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
