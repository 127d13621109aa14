package scenarios

import (
	"fmt"
	"slices"
)

// GPUs is how many one replica has.
func (e Engine) GPUs() int {
	return e.TensorParallelSize * e.PipelineParallelSize * e.DataParallelSize
}

// expertGroup is how many GPUs share the routed experts of a layer, and whether each of them holds
// whole experts or a part of every one. As in vLLM, data-parallel ranks share them in both cases;
// all else every rank holds for itself.
func (e Engine) expertGroup() (gpus int, wholeExperts bool) {
	return e.TensorParallelSize * e.DataParallelSize, e.EnableExpertParallel
}

// sharedWhole says whether each GPU has all of the shared experts: vLLM then gives every GPU of a
// rank a part of the rank's tokens.
func (e Engine) sharedWhole() bool {
	return e.EnableExpertParallel && e.TensorParallelSize > 1 && e.DataParallelSize > 1
}

// stages spreads layers over the stages of a pipeline as vLLM's get_pp_indices does
// (vllm/distributed/utils.py): evenly, and of the layers that remain one each to the last stage but
// one, the one before it, and so on.
func (a *Architecture) stages(pp int) []stretch {
	all := make([]stretch, pp)
	remain, end := a.Layers%pp, 0
	for i := range all {
		first := end
		end += a.Layers / pp
		if last := pp - 1; i < last && i >= last-remain {
			end++
		}
		all[i] = stretch{first: first, end: end, embedding: i == 0, head: i == pp-1}
	}
	return all
}

// gpuWeights is the size of the weights that one of the engine's GPUs holds of a stretch: of whole
// experts, the GPU with the most of them.
func (a *Architecture) gpuWeights(e Engine, of stretch) float64 {
	b := a.bytes(of)
	tp := float64(e.TensorParallelSize)
	bytes := b.common / tp
	if e.sharedWhole() {
		bytes += b.shared
	} else {
		bytes += b.shared / tp
	}
	gpus, whole := e.expertGroup()
	if whole && a.Experts > 0 {
		return bytes + float64(b.experts*float64((a.Experts+gpus-1)/gpus))/float64(a.Experts)
	}
	return bytes + b.experts/float64(gpus)
}

// A misfit is something of an engine's parallelism that does not go with its model.
type misfit struct {
	keys    []string // which have it
	message string
}

func (s *Scenario) misfits() (all []misfit) {
	e, a := s.Engine, s.Model.Architecture
	add := func(keys []string, format string, args ...any) {
		keys = append(slices.Clone(keys), "model.name", "model.config")
		all = append(all, misfit{keys, fmt.Sprintf(format, args...)})
	}
	const tensor, pipeline, data, experts = "engine.tensor_parallel_size", "engine.pipeline_parallel_size",
		"engine.data_parallel_size", "engine.enable_expert_parallel"
	if gpus := e.GPUs(); gpus > mostGPUs {
		all = append(all, misfit{[]string{tensor, pipeline, data}, fmt.Sprintf("a replica must have at most %d GPUs, has %d x %d x %d",
			mostGPUs, e.TensorParallelSize, e.PipelineParallelSize, e.DataParallelSize)})
	}
	if ranks := s.Fleet.Replicas * e.DataParallelSize; ranks > mostReplicas {
		all = append(all, misfit{[]string{data, "cluster.replicas"}, fmt.Sprintf("replicas must have at most %d data-parallel ranks in all, have %d x %d",
			mostReplicas, s.Fleet.Replicas, e.DataParallelSize)})
	}
	if a == nil {
		figures := []string{"model.parameters_billions", "model.bytes_per_parameter", "model.kv_bytes_per_token"}
		if e.PipelineParallelSize > 1 {
			add(append(figures, pipeline), "pipeline_parallel_size %d needs a model of known architecture: by figures it has no layers to spread",
				e.PipelineParallelSize)
		}
		if e.EnableExpertParallel {
			add(append(figures, experts), "enable_expert_parallel needs a model of known architecture: by figures it has no experts")
		}
		return all
	}
	if !a.splits(e.TensorParallelSize) {
		add([]string{tensor}, "tensor_parallel_size must split %d heads and %d KV heads evenly, is %d", a.Heads, a.KVHeads, e.TensorParallelSize)
	}
	if e.PipelineParallelSize > a.Layers {
		add([]string{pipeline}, "pipeline_parallel_size must be at most the model's layers, %d, is %d", a.Layers, e.PipelineParallelSize)
	}
	gpus, whole := e.expertGroup()
	switch {
	case whole && a.Experts == 0:
		add([]string{experts}, "enable_expert_parallel needs a model with experts, %s has none", quoted(s.Model.Name))
	case whole && gpus > a.Experts:
		add([]string{experts, tensor, data}, "enable_expert_parallel needs an expert for each of %d x %d GPUs, there are %d",
			e.TensorParallelSize, e.DataParallelSize, a.Experts)
	case !whole && a.Experts > 0 && e.DataParallelSize > 1 && a.MoEIntermediate%gpus != 0:
		add([]string{data, tensor}, "%d x %d GPUs must split experts of %d evenly, or enable_expert_parallel give each whole ones",
			e.TensorParallelSize, e.DataParallelSize, a.MoEIntermediate)
	}
	return all
}

func quoted(model string) string {
	if model == "" {
		return "it"
	}
	return shorten(model)
}

// notes is what results rest on where layers or requests are spread over GPUs; linked: it is known how
// fast these talk to each other, and priced.
func (e Engine) notes(a *Architecture, operators, linked bool) (notes []string) {
	if pp := e.PipelineParallelSize; pp > 1 {
		notes = append(notes, fmt.Sprintf("a step passes the %d stages of the pipeline one after the other, and no other batch is under way meanwhile: "+
			"latency is that of an engine with little to do, throughput a lower bound", pp))
	}
	if tp := e.TensorParallelSize; tp > 1 && !linked {
		notes = append(notes, fmt.Sprintf("tensor parallelism over %d GPUs is ideal: communication between them is free", tp))
	}
	if dp := e.DataParallelSize; dp > 1 {
		note := fmt.Sprintf("each replica is %d data-parallel ranks of %s, each with a scheduler and KV cache of its own, which figures per replica are of: "+
			"requests are routed to ranks as to replicas", dp, gpus(e.GPUs()/dp))
		if a != nil && a.Experts > 0 {
			note += ", and ranks don't wait for each other, as those that share experts must"
			if operators {
				note += ", and what they send each other for experts is free"
			} else {
				note += ", and the GPUs of each read all experts, not their share"
			}
		}
		notes = append(notes, note)
	}
	return notes
}

func gpus(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}
