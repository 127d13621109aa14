package scenarios

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"llmsim/sim/rng"
	"llmsim/workload"
)

// Source starts the scenario's workload. The notes are what a reader of results should know: how
// a trace was read and which assumptions it takes. A scenario, and copies of it, may be started
// any number of times, also at once; its files are read the first time. A trace's source is a
// *workload.Replay, whose Err tells whether it ended early.
func (s *Scenario) Source() (workload.Source, []string, error) {
	a, notes := s.Workload.Arrivals, s.notes()
	if a.Process == "trace" {
		t, err := s.trace()
		if err != nil {
			return nil, nil, err
		}
		if !t.HasArrivals {
			return nil, nil, fmt.Errorf("%s: has lengths only, no arrivals: choose a process and give prompt_tokens and output_tokens as {empirical: %s}",
				a.Trace.Path, a.Trace.Name)
		}
		source, err := t.Source()
		if err != nil {
			return nil, nil, err
		}
		return source, append(notes, t.Notes...), nil
	}
	lengths, more, err := s.lengths()
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, more...)
	caching := slices.ContainsFunc(s.Pools(), func(p *Scenario) bool { return p.Engine.EnablePrefixCaching })
	if caching && s.Workload.Prefix.Groups == 0 && !s.Workload.InSessions() {
		notes = append(notes, "no prompts share a prefix: the prefix hit rate is assumed to be 0")
	}
	if a.Process == "closed" {
		return s.shared(workload.Closed(a.Concurrency, a.ThinkTime, lengths, s.Workload.Requests)), notes, nil
	}
	stream := rng.New(s.Seed, workload.ForArrivals)
	var arrivals workload.Arrivals
	switch a.Process {
	case "poisson":
		arrivals = workload.NewPoisson(a.Rate, stream)
	case "gamma":
		arrivals = workload.NewGamma(a.Rate, a.CV, stream)
	case "constant":
		arrivals = workload.NewConstant(a.Rate)
	case "all-at-once":
		arrivals = workload.NewAllAtOnce()
	default:
		return nil, nil, fmt.Errorf("workload.arrivals.process: %q is not known", a.Process)
	}
	if a.Grid > 0 {
		arrivals = workload.OnGrid(arrivals, a.Grid)
	}
	if s.Workload.InSessions() {
		source, more, err := s.sessions(arrivals, lengths)
		return source, append(notes, more...), err
	}
	return s.shared(workload.Open(arrivals, lengths, s.Workload.Requests)), notes, nil
}

// shared has prompts start with the workload's system prompts, if it has any.
func (s *Scenario) shared(source workload.Source) workload.Source {
	if s.Workload.Prefix.Groups == 0 {
		return source
	}
	return workload.Shared(source, s.groups())
}

func (s *Scenario) groups() workload.Groups {
	p := s.Workload.Prefix
	return workload.Groups{Count: p.Groups, Tokens: p.Tokens, Stream: rng.New(s.Seed, workload.ForGroups)}
}

func (s *Scenario) sessions(starts workload.Arrivals, lengths workload.PairSource) (workload.Source, []string, error) {
	w := s.Workload
	turns, notes, err := s.draw(w.Sessions.Turns, workload.ForTurns)
	if err != nil {
		return nil, nil, err
	}
	return workload.Sessions(starts, lengths, workload.SessionOptions{
		Turns:    turns,
		Think:    w.Sessions.ThinkTime,
		Context:  s.longest(),
		Requests: w.Requests,
		Block:    s.finestBlock(), // the coarsest pieces that tell blocks apart exactly
		Groups:   s.groups(),
	}), notes, nil
}

// Requests is how many the workload has; 0 if its trace can't be read.
func (s *Scenario) Requests() int {
	if s.Workload.Arrivals.Process != "trace" {
		return s.Workload.Requests
	}
	t, err := s.trace()
	if err != nil {
		return 0
	}
	return t.Requests
}

func (s *Scenario) notes() (notes []string) {
	if s.Mixed() {
		return s.poolNotes()
	}
	return s.partNotes()
}

// partNotes are the notes of equal replicas.
func (s *Scenario) partNotes() (notes []string) {
	if _, m := s.KVBlocks(); m.FreeBytes < 0 {
		notes = append(notes, fmt.Sprintf("engine.num_gpu_blocks: %d blocks need %s more than a GPU has to use: no real one runs this",
			m.KVBlocks, gib(-m.FreeBytes)))
	}
	a := s.Model.Architecture
	operators := s.Cost.Model == "operators"
	linked := operators && s.Hardware.Spec.NVLink+s.Hardware.Spec.PCIe > 0
	notes = append(notes, s.Engine.notes(a, operators, linked)...)
	if operators {
		notes = append(notes, s.Cost.notes()...)
	}
	if a == nil {
		return notes
	}
	if a.Experts > 0 && operators {
		notes = append(notes, "tokens are routed to experts evenly: where some are preferred, fewer are read")
	}
	if a.Experts > 0 && !operators {
		notes = append(notes, fmt.Sprintf("steps are priced as if every token passed all %d experts, not %d: prefill and small batches are simulated too slow",
			a.Experts, a.ExpertsPerToken))
	}
	if a.SlidingLayers > 0 && s.Engine.MaxModelLen > a.SlidingWindow {
		notes = append(notes, fmt.Sprintf("the KV cache holds every token of every layer, also of the %d that see the last %d tokens only",
			a.SlidingLayers, a.SlidingWindow))
	}
	return notes
}

func (s *Scenario) trace() (*workload.Trace, error) {
	a := s.Workload.Arrivals
	return s.opened().trace(a.Trace, workload.TraceOptions{
		Spread: a.Spread, Seed: s.Seed, Speedup: a.Speedup, Limit: s.Workload.Requests,
	})
}

// opened is the scenario's files; one that was not made by Load has none kept.
func (s *Scenario) opened() *files {
	if s.files == nil {
		return new(files)
	}
	return s.files
}

// lengths draws a request's two lengths apart, but those of one trace's rows together.
func (s *Scenario) lengths() (workload.PairSource, []string, error) {
	w := s.Workload
	if w.Prompt.Kind == "empirical" && w.Prompt == w.Output {
		l, err := s.opened().lengthsOf(w.Prompt.File)
		if err != nil {
			return nil, nil, err
		}
		if l.prompts != nil {
			return workload.NewPairs(l.prompts, l.outputs, rng.New(s.Seed, workload.ForPairs)), l.notes, nil
		}
	}
	prompts, notes, err := s.draw(w.Prompt, workload.ForPrompts)
	if err != nil {
		return nil, nil, err
	}
	outputs, more, err := s.draw(w.Output, workload.ForOutputs)
	if err != nil {
		return nil, nil, err
	}
	return workload.Independent(prompts, outputs), append(notes, more...), nil
}

func (s *Scenario) draw(t Tokens, purpose string) (workload.Lengths, []string, error) {
	stream := rng.New(s.Seed, purpose)
	switch t.Kind {
	case "fixed":
		return workload.Fixed(int(t.A)), nil, nil
	case "uniform":
		return workload.NewUniform(int(t.A), int(t.B), stream), nil, nil
	case "normal":
		return workload.NewNormal(t.A, t.B, stream), nil, nil
	case "lognormal":
		return workload.NewLogNormal(t.A, t.B, stream), nil, nil
	case "empirical":
		l, err := s.opened().lengthsOf(t.File)
		switch {
		case err != nil:
			return nil, nil, err
		case l.cdf != nil:
			return workload.NewCDF(l.cdf, stream), nil, nil
		case l.values != nil:
			return workload.NewEmpirical(l.values, stream), nil, nil
		case purpose == workload.ForTurns:
			return nil, nil, fmt.Errorf("%s: must be a list of numbers or a distribution function to draw turns from, is a trace", t.File.Path)
		case purpose == workload.ForPrompts:
			return workload.NewEmpirical(l.prompts, stream), l.notes, nil
		}
		return workload.NewEmpirical(l.outputs, stream), l.notes, nil
	}
	return nil, nil, fmt.Errorf("workload: distribution %q of lengths is not known", t.Kind)
}

// unnamed takes out what does not change results.
func unnamed(m *Model, h *Hardware, e *Engine) {
	m.Name, h.Name, e.Defaults = "", "", nil
	// Nothing is spread over one of something.
	if e.PipelineParallelSize == 1 {
		e.PipelineParallelSize = 0
	}
	if e.DataParallelSize == 1 {
		e.DataParallelSize = 0
	}
}

// Digest names everything about the scenario that changes results: all its figures and the
// contents of its files, but not its name, nor where figures and contents come from. Scenarios of
// one digest give the same results.
func (s *Scenario) Digest() (string, error) {
	figures := *s
	figures.Name = ""
	unnamed(&figures.Model, &figures.Hardware, &figures.Engine)
	if s.Mixed() {
		figures.Model, figures.Hardware, figures.Engine, figures.Cost = Model{}, Hardware{}, Engine{}, Cost{}
		figures.Fleet.Pools = slices.Clone(s.Fleet.Pools)
		for i := range figures.Fleet.Pools {
			p := &figures.Fleet.Pools[i]
			p.Name = ""
			unnamed(&p.Model, &p.Hardware, &p.Engine)
		}
	}
	figures.Catalogue = File{}
	figures.Workload.Arrivals.Trace = File{}
	figures.Workload.Prompt.File = File{}
	figures.Workload.Output.File = File{}
	figures.Workload.Sessions.Turns.File = File{}
	var contents []string
	if s.Workload.Arrivals.Process == "trace" {
		t, err := s.trace()
		if err != nil {
			return "", err
		}
		contents = append(contents, t.Digest)
	}
	for _, t := range []Tokens{s.Workload.Prompt, s.Workload.Output, s.Workload.Sessions.Turns} {
		if t.Kind == "empirical" {
			l, err := s.opened().lengthsOf(t.File)
			if err != nil {
				return "", err
			}
			contents = append(contents, l.digest)
		}
	}
	// Go writes fields in their order and floats as the shortest text that reads back the same.
	text, err := json.Marshal(struct {
		Scenario Scenario
		Contents []string
	}{figures, contents})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
