package scenarios

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"llmsim/sim/cost"
)

// Memory is how one GPU's is used, in bytes: HBM = Reserve + Usable, and
// Usable = Weights + KV + Free. Activations, Context and Graphs are part of Reserve where they are
// counted, which takes a model of known architecture on a GPU of the catalogue; else they are 0.
//
// Of a pipeline it is a GPU of the binding stage, the one with room for the fewest blocks: all
// stages have as many blocks as that one.
type Memory struct {
	HBMBytes     float64
	ReserveBytes float64 // what gpu_memory_utilization leaves aside, and what the engine needs besides
	UsableBytes  float64
	WeightsBytes float64
	KVBytes      float64
	FreeBytes    float64 // below 0 if num_gpu_blocks asks for more than there is
	KVBlocks     int     // of the replica, or of a data-parallel rank: every GPU of it holds its part of each block
	BlockBytes   float64 // what the GPU holds of one block

	ActivationsBytes float64
	ContextBytes     float64
	GraphsBytes      float64

	Stage int // the binding stage of a pipeline, from 1; 0: there is one stage
}

// room is how many blocks the memory would hold, were there parts of blocks.
func (m Memory) room() float64 { return (m.UsableBytes - m.WeightsBytes) / m.BlockBytes }

// KVBlocks is how many blocks of KV cache a replica has, or each of its data-parallel ranks, and
// what they leave of a GPU's memory.
//
// Tensor parallelism splits weights and KV evenly over the replica's GPUs:
//
//	blocks = floor((hbm * utilization - weights/tp) / (kv_bytes_per_token * block_size / tp))
//
// unless num_gpu_blocks gives their number. With a known architecture, weights and KV are those of
// a stage's layers, and experts are spread over all ranks. On a GPU of the catalogue, usable memory
// is less by what vLLM sets aside, and a block by what each GPU holds of it.
func (s *Scenario) KVBlocks() (int, Memory) {
	var m Memory
	stages := []stretch{{}}
	if a := s.Model.Architecture; a != nil {
		stages = a.stages(s.Engine.PipelineParallelSize)
	}
	for i, stage := range stages {
		if other := s.stageMemory(stage); i == 0 || other.room() < m.room() {
			m = other
			m.Stage = i + 1
		}
	}
	if len(stages) == 1 {
		m.Stage = 0
	}
	m.KVBlocks = s.Engine.NumGPUBlocks
	if m.KVBlocks == 0 {
		m.KVBlocks = int(min(max(math.Floor(m.room()), 0), mostBlocks+1))
	}
	m.KVBytes = float64(float64(m.KVBlocks) * m.BlockBytes)
	m.FreeBytes = m.UsableBytes - m.WeightsBytes - m.KVBytes
	return m.KVBlocks, m
}

// stageMemory is what a GPU has for KV blocks, and takes for one, when it holds a stretch of the
// layers; a model of figures is held whole.
func (s *Scenario) stageMemory(of stretch) Memory {
	a, e := s.Model.Architecture, s.Engine
	tp := float64(e.TensorParallelSize)
	m := Memory{HBMBytes: s.Hardware.HBMBytes}
	m.UsableBytes = float64(m.HBMBytes * e.GPUMemoryUtilization)
	kv := s.Model.KVBytesPerToken
	if a == nil {
		m.WeightsBytes = float64(s.Model.WeightBytes() / tp)
	} else {
		m.WeightsBytes = a.gpuWeights(e, of)
		kv = kv / int64(a.Layers) * int64(of.layers())
	}
	m.BlockBytes = float64(kv) * float64(e.BlockSize)
	if s.profiled() {
		m.BlockBytes = float64(m.BlockBytes * a.kvShare(e.TensorParallelSize))
		r := a.profile(e, of)
		m.ActivationsBytes, m.ContextBytes, m.GraphsBytes = r.activations, r.context, r.graphs
		m.UsableBytes -= r.bytes()
	} else {
		m.BlockBytes /= tp
	}
	m.ReserveBytes = m.HBMBytes - m.UsableBytes
	return m
}

// profiled says whether memory is counted as vLLM finds it, not by the plain rule.
func (s *Scenario) profiled() bool { return s.Model.Architecture != nil && s.Hardware.Spec != nil }

// shape is what the size of a KV cache depends on.
var shape = []string{"model.name", "model.parameters_billions", "model.bytes_per_parameter", "hardware.name",
	"hardware.hbm_gib", "engine.gpu_memory_utilization", "engine.tensor_parallel_size", "engine.pipeline_parallel_size",
	"engine.data_parallel_size", "engine.block_size"}

// checkMemory sees that the model fits, and with it the shortest request there can be.
func (r *reading) checkMemory(s *Scenario) {
	if !r.checkFit(s) {
		return
	}
	lengths := []string{"workload.prompt_tokens", "workload.output_tokens"}
	least := s.Workload.Prompt.least() + s.Workload.Output.least()
	if longest := s.Engine.MaxModelLen; least > longest {
		r.addAmong(append(lengths, "engine.max_model_len"),
			"prompt and output must fit max_model_len %d, have %d tokens", longest, least)
	}
	blocks, _ := s.KVBlocks()
	if tokens := s.UsableBlocks() * s.Engine.BlockSize; least > tokens {
		r.addAmong(slices.Concat(lengths, shape, []string{"engine.num_gpu_blocks", "model.kv_bytes_per_token"}),
			"prompt and output must fit the KV cache of %d blocks, %d tokens, have %d", blocks, tokens, least)
	}
}

// checkFit sees that the model fits, and that the engine would start.
func (r *reading) checkFit(s *Scenario) bool {
	misfits := s.misfits()
	for _, m := range misfits {
		r.addAmong(m.keys, "%s", m.message)
	}
	if len(misfits) > 0 {
		return false
	}
	r.fitLength(s)
	blocks, m := s.KVBlocks()
	if blocks > mostBlocks {
		r.addAmong(append(shape, "model.kv_bytes_per_token"), "KV cache must have at most %.0e blocks, has more", mostBlocks)
		return false
	}
	if blocks == 0 || m.WeightsBytes > m.HBMBytes {
		r.addAmong(shape, "model does not fit: weights of %s and one KV block exceed the usable %s of a GPU by %s%s",
			gib(m.WeightsBytes), gib(m.UsableBytes), gib(m.WeightsBytes-m.UsableBytes+m.BlockBytes), fits(*s))
		return false
	}
	one := cost.Shape{Sequences: 1, Tokens: 1, Sampled: 1, Context: 1}
	if took, bound := s.StepCost().StepTime(one); took-s.Cost.StepOverhead > longestStep {
		r.addAmong(append([]string{"hardware.memory_bandwidth_gbps", "hardware.peak_tflops", "cost.efficiency.memory", "cost.efficiency.compute", "cost.model",
			"model.kv_bytes_per_token"}, shape...),
			"a step of one token must take at most %v, takes %v for %s", longestStep, took, bound)
		return false
	}
	usable := s.UsableBlocks()
	counted := blocks // by vLLM when it starts
	if profiles[s.Engine.Models].nullBlockCounts {
		counted = usable
	}
	if _, isVLLM := profiles[s.Engine.Models]; isVLLM && s.Engine.MaxModelLen > counted*s.Engine.BlockSize {
		r.addAmong(append([]string{"engine.max_model_len", "engine.num_gpu_blocks", "engine.policy"}, shape...),
			"vLLM would not start: max_model_len %d needs %d KV blocks, there are %d (set max_model_len to at most %d)",
			s.Engine.MaxModelLen, (s.Engine.MaxModelLen+s.Engine.BlockSize-1)/s.Engine.BlockSize, counted, max(counted, 0)*s.Engine.BlockSize)
		return false
	}
	return true
}

// fitLength lowers a max_model_len that is the model's own to the longest that one request can hold
// of the KV cache: vLLM would refuse to start, and who asks for a plan has not asked for that length.
// Without chunked prefill a longer one leaves a smaller cache.
func (r *reading) fitLength(s *Scenario) {
	if !r.chosen.length {
		return
	}
	own := s.Engine
	with := func(length int) Engine {
		e := own
		e.MaxModelLen = length
		r.chosen.settle(&e)
		return e
	}
	tooLong := sort.Search(own.MaxModelLen, func(i int) bool {
		s.Engine = with(i + 1)
		return s.UsableBlocks()*s.Engine.BlockSize < i+1
	})
	switch s.Engine = own; tooLong {
	case own.MaxModelLen:
		return
	case 0: // nothing fits, which the shortest tells best
		s.Engine = with(1)
		return
	}
	r.chosen.fitted = fmt.Sprintf(" (what the KV cache holds: vLLM needs --max-model-len for it, the model has %d)", own.MaxModelLen)
	s.Engine = with(tooLong)
}

// longestStep is how long a step of a single token may take: far longer than on any hardware.
const longestStep = time.Hour

// fits says with how many GPUs a model that does not fit would. Only powers of two are tried, since
// GPUs split a model's heads evenly.
func fits(s Scenario) string {
	s.Engine.NumGPUBlocks = 0
	for tp := 2; tp <= mostGPUs; tp *= 2 {
		if s.Engine.TensorParallelSize = tp; len(s.misfits()) > 0 {
			continue
		}
		if blocks, _ := s.KVBlocks(); blocks > 0 {
			return fmt.Sprintf("; tensor_parallel_size %d is the smallest power of two that fits", tp)
		}
	}
	return fmt.Sprintf("; no tensor_parallel_size up to %d fits", mostGPUs)
}
