package plan

import (
	"fmt"
	"math"

	"llmsim/report"
	"llmsim/scenarios"
)

// A Sensitivity is one knob turned alone, and what a replica then sustains under the SLO.
type Sensitivity struct {
	Knob       string  `json:"knob"` // the field that is set
	From       string  `json:"from"`
	To         string  `json:"to"`
	PerReplica float64 `json:"per_replica_rps"`
	PerGPU     float64 `json:"per_gpu_rps"`
	Change     float64 `json:"change"`           // of the rate of a replica, as a share
	Reason     string  `json:"reason,omitempty"` // why there is no figure
}

// How much is done for knobs: runs of each, and steps of all together.
const (
	knobRuns  = 4
	knobSeeds = 2
	knobSteps = 12_000_000
)

// A knob is a change of one thing that a planner can change.
type knob struct {
	name, from, to string
	edits          []scenarios.Edit
}

func edit(path string, value any) scenarios.Edit {
	return scenarios.Edit{Path: path, Value: fmt.Sprint(value), Label: fmt.Sprintf("%s %v", path, value)}
}

// knobs are those that a scenario has.
func knobs(s *scenarios.Scenario) (all []knob) {
	e := s.Engine
	add := func(name string, from, to any, edits ...scenarios.Edit) {
		if len(edits) == 0 {
			edits = []scenarios.Edit{edit(name, to)}
		}
		all = append(all, knob{name, fmt.Sprint(from), fmt.Sprint(to), edits})
	}
	add("engine.max_num_seqs", e.MaxNumSeqs, 2*e.MaxNumSeqs)
	add("engine.max_num_batched_tokens", e.MaxNumBatchedTokens, 2*e.MaxNumBatchedTokens)
	if half := e.MaxNumBatchedTokens / 2; half >= e.MaxNumSeqs {
		add("engine.max_num_batched_tokens", e.MaxNumBatchedTokens, half)
	}
	if u := e.GPUMemoryUtilization; u < 0.95 && e.NumGPUBlocks == 0 {
		add("engine.gpu_memory_utilization", u, 0.95)
	}
	if a := s.Model.Architecture; a != nil {
		if e.KVCacheDtype == "" {
			add("engine.kv_cache_dtype", "16 bits", "fp8")
		}
		if a.Weights.Dtype == "bf16" || a.Weights.Dtype == "fp16" {
			add("model.weight_dtype", a.Weights.Dtype, "fp8")
		}
	}
	add("engine.tensor_parallel_size", e.TensorParallelSize, 2*e.TensorParallelSize)
	if next := nextGPU(s); next != "" {
		add("hardware.name", s.Hardware.Name, next)
	}
	w := s.Workload
	if e.EnablePrefixCaching && w.Prefix.Groups == 0 && (w.Prompt.Kind == "fixed" || w.Prompt.Kind == "uniform") {
		if half := int(w.Prompt.A) / 2; half >= e.BlockSize {
			add("workload.prefix", "no shared prefix", fmt.Sprintf("one of %d tokens", half),
				edit("workload.prefix", fmt.Sprintf("{groups: 1, tokens: %d}", half)))
		}
	}
	if longer := scaled(w.Output, 1.1); longer != "" {
		add("workload.output_tokens", w.Output, "10% longer", edit("workload.output_tokens", longer))
	}
	if longer := scaled(w.Prompt, 1.1); longer != "" {
		add("workload.prompt_tokens", w.Prompt, "10% longer", edit("workload.prompt_tokens", longer))
	}
	return all
}

// scaled is a distribution of lengths some times as long, as a scenario gives it; empty: it can't be.
func scaled(t scenarios.Tokens, by float64) string {
	whole := func(x float64) float64 { return math.Round(x * by) }
	switch t.Kind {
	case "fixed":
		return fmt.Sprintf("%.0f", whole(t.A))
	case "uniform":
		return fmt.Sprintf("{uniform: [%.0f, %.0f]}", whole(t.A), whole(t.B))
	case "normal":
		return fmt.Sprintf("{normal: [%g, %g]}", t.A*by, t.B*by)
	case "lognormal":
		return fmt.Sprintf("{lognormal: [%g, %g]}", t.A*by, t.B)
	}
	return ""
}

// nextGPU is the catalogue's GPU with the least bandwidth above that of the scenario's; of equals the
// first. Empty: there is none.
func nextGPU(s *scenarios.Scenario) (name string) {
	c, err := scenarios.OpenCatalogue(s.Catalogue.Path)
	if err != nil {
		return ""
	}
	best := math.Inf(1)
	for _, g := range c.GPUs {
		if g.Bandwidth > 1.02*s.Hardware.Bandwidth && g.Bandwidth < best && g.Spec != nil {
			name, best = g.Name, g.Bandwidth
		}
	}
	return name
}

// sensitivities turns each knob alone, with the same arrivals and lengths.
func (p *planning) sensitivities() error {
	if p.sat == nil || !p.q.Sensitivity {
		return nil
	}
	s := p.q.Scenario
	all := knobs(s)
	perRequest := float64(p.sat.steps) / float64(p.sat.requests) / float64(p.sat.runs)
	requests := float64(float64(p.sat.requests) * (knobRuns + 9))
	if len(s.SLO) > 0 {
		requests += 13 * leastJudged
	}
	if steps := requests * perRequest * float64(len(all)+1); steps > knobSteps {
		p.answer.Notes = append(p.answer.Notes, fmt.Sprintf("what other settings would give is left out: it takes about %s steps, more than %s",
			report.Count(int64(steps)), report.Count(knobSteps)))
		return nil
	}
	rates := make([]Sensitivity, len(all)+1)
	err := each(len(rates), func(i int) error {
		x, varied := Sensitivity{}, s
		if i > 0 {
			k := all[i-1]
			x = Sensitivity{Knob: k.name, From: k.from, To: k.to}
			var err error
			if varied, err = s.With(k.edits...); err != nil {
				x.Reason = firstFault(err)
				rates[i] = x
				return nil
			}
		}
		sat, err := saturate(&p.pace, *varied, knobRuns)
		if err != nil || sat == nil {
			x.Reason = "no rate saturates it"
			rates[i] = x
			return err
		}
		e, err := underSLO(&p.pace, *varied, sat, knobSeeds)
		if err != nil {
			return err
		}
		x.PerReplica = millionths(e.mean)
		x.PerGPU = millionths(e.mean / float64(varied.Engine.GPUs()))
		rates[i] = x
		return nil
	})
	if err != nil {
		return err
	}
	p.answer.Unchanged = rates[0].PerReplica
	for _, x := range rates[1:] {
		if x.Reason == "" && rates[0].PerReplica > 0 {
			x.Change = millionths(x.PerReplica/rates[0].PerReplica - 1)
		}
		p.answer.Sensitivity = append(p.answer.Sensitivity, x)
	}
	return nil
}

// firstFault is what is wrong with a scenario, in short.
func firstFault(err error) string {
	if faults, ok := err.(scenarios.Faults); ok && len(faults) > 0 {
		return faults[0].Message
	}
	return err.Error()
}
