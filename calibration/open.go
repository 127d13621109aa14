package calibration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"llmsim/scenarios"
	"llmsim/sim/cost"
	"llmsim/validation"
)

// Inputs are the files of a calibration.
type Inputs struct {
	Sources []validation.Source // runs and tables
	Timings []Timings
	HeldOut []validation.Source // runs that are compared, not fitted to
}

// Open reads measurements, told apart by what is in them: runs and tables as validation.Open has them,
// folders of these, and timings of operators. Held out are runs alone: of tables and timings, half is
// anyway. The error is scenarios.Faults, all there are.
func Open(paths, heldOut []string) (in Inputs, err error) {
	var faults scenarios.Faults
	add := func(err error) {
		if more, is := errors.AsType[scenarios.Faults](err); is {
			faults = append(faults, more...)
		} else if err != nil {
			faults = append(faults, scenarios.Fault{Message: err.Error()})
		}
	}
	var others []string
	opened := map[string]bool{}
	for _, path := range paths {
		if filepath.Ext(path) == ".csv" && !strings.HasSuffix(path, "requests.csv") {
			t, is, err := ReadTimings(path)
			add(err)
			if is && err == nil && !opened[filepath.Clean(path)] {
				opened[filepath.Clean(path)] = true
				in.Timings = append(in.Timings, t)
			}
			if is || err != nil {
				continue
			}
		}
		others = append(others, path)
	}
	in.Sources, err = validation.Open(others)
	add(err)
	in.HeldOut, err = validation.Open(heldOut)
	add(err)
	for _, s := range in.HeldOut {
		if s.Run == nil {
			faults = append(faults, scenarios.Fault{Where: s.Path, Message: "is a table, of which half the rows are held out anyway; only runs can be held out whole"})
		}
		if slices.ContainsFunc(in.Sources, func(fitted validation.Source) bool { return fitted.Digest == s.Digest }) {
			faults = append(faults, scenarios.Fault{Where: s.Path, Message: "is both fitted to and held out"})
		}
	}
	if len(faults) > 0 {
		return Inputs{}, faults
	}
	return in, nil
}

// Files are all files that were read.
func (in Inputs) Files() (files []string) {
	for _, s := range slices.Concat(in.Sources, in.HeldOut) {
		files = append(files, s.Path)
		if s.Run != nil {
			files = append(files, s.Run.File)
		}
	}
	for _, t := range in.Timings {
		files = append(files, t.Path)
	}
	return files
}

// Digests are the SHA-256 of the files that are fitted to, in lower-case hexadecimal.
func (in Inputs) Digests() (all []string) {
	for _, s := range in.Sources {
		all = append(all, s.Digest)
	}
	for _, t := range in.Timings {
		all = append(all, t.Digest)
	}
	return all
}

// A Setting is what a calibration depends on beside its files.
type Setting struct {
	Fit       []string         // names of parameters; none: those that the files can mostly tell
	Edits     []scenarios.Edit // of every scenario
	Preset    string           // served or in-process; empty: as each run was
	GPU       string           // whose rows of tables are taken, and whose timings those are that don't say
	Dtype     string           // bf16 or fp8: take timings of this format alone; empty: all
	Catalogue string           // a file, laid over the embedded one
}

// Dtypes are the formats that timings can be taken of.
var Dtypes = []string{"bf16", "fp8"}

// defaults are the parameters fitted to each kind of file, if none are asked for.
var defaults = map[string][]string{
	gemmFile:       {"gemm_memory_efficiency", "gemm_compute_efficiency", "roof_softness", "gemm_launch"},
	contextFile:    {"attention_compute_efficiency", "attention_launch", "attention_tile"},
	generationFile: {"kv_efficiency", "attention_launch", "attention_row"},
	denseFile:      {"gemm_memory_efficiency", "gemm_compute_efficiency", "roof_softness", "gemm_launch"},
	perSequence:    {"gemm_memory_efficiency"},
	mixedFile:      {"kv_efficiency", "attention_compute_efficiency", "attention_launch", "mixed_attention_factor"},
	"run":          {"gemm_memory_efficiency", "gemm_compute_efficiency", "attention_compute_efficiency", "mixed_attention_factor"},
	"table":        {"gemm_memory_efficiency", "gemm_compute_efficiency", "sequence_overhead"},
}

// Parameter finds a parameter by its name.
func Parameter(name string) (cost.Parameter, error) {
	var names []string
	for _, p := range cost.Parameters {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	hint := "there is " + strings.Join(names, ", ")
	if near := scenarios.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return cost.Parameter{}, fmt.Errorf("%q is not a parameter, %s", name, hint)
}

// chosen are the parameters to fit, in the order of cost.Parameters.
func (in Inputs) chosen(s Setting, points [][]priced, rows [][]row, small, plain bool) (chosen []cost.Parameter, err error) {
	wanted := map[string]bool{}
	for _, name := range s.Fit {
		if _, bad := Parameter(name); bad != nil {
			err = errors.Join(err, bad)
		} else if wanted[name] {
			err = errors.Join(err, fmt.Errorf("%s is named twice", name))
		}
		wanted[name] = true
	}
	if err != nil {
		return nil, err
	}
	if len(s.Fit) == 0 {
		for _, one := range in.Sources {
			for _, name := range defaults[one.Kind()] {
				wanted[name] = true
			}
		}
		if small {
			wanted["gemm_compute_efficiency_8bit"] = true
			wanted["gemm_compute_efficiency"] = plain
		}
		for i, t := range in.Timings {
			for _, name := range defaults[t.Kind] {
				wanted[name] = true
			}
			for k, r := range rows[i] {
				o := points[i][k].operator
				switch {
				case t.Kind == gemmFile && r.small:
					wanted["gemm_compute_efficiency_8bit"] = true
				case t.Kind == generationFile && r.small:
					wanted["kv_efficiency_8bit"] = true
				case t.Kind == allReduceFile && o.PCIe:
					wanted["pcie_latency"], wanted["pcie_efficiency"] = true, true
				case t.Kind == allReduceFile:
					wanted["allreduce_latency"], wanted["link_efficiency"] = true, true
				}
			}
		}
	}
	for _, p := range cost.Parameters {
		if wanted[p.Name] {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// cost are the edits that choose the model and the preset.
func (s Setting) cost(measured *validation.Setup) []scenarios.Edit {
	edits := validation.Cost(measured)
	if s.Preset != "" {
		edits = append(edits, scenarios.Edit{Path: "cost.preset", Value: s.Preset, Label: "--preset " + s.Preset})
	}
	return edits
}

func (s Setting) catalogueEdit() []scenarios.Edit {
	if s.Catalogue == "" {
		return nil
	}
	return []scenarios.Edit{{Path: "catalogue", Value: fmt.Sprintf("%q", s.Catalogue), Label: "--catalogue " + s.Catalogue}}
}

// on is a scenario on a GPU: of its operators only the hardware and the constants count.
func (s Setting) on(gpu string) (*scenarios.Scenario, error) {
	edits := slices.Concat(s.cost(new(validation.Setup)), s.catalogueEdit(), []scenarios.Edit{
		{Path: "hardware", Value: fmt.Sprintf("{name: %q}", gpu), Label: "the timings' GPU " + gpu},
		{Path: "model", Value: "{name: llama-3.1-8b}"},
		{Path: "engine.num_gpu_blocks", Value: "4096"},
	}, s.Edits)
	return scenarios.Load("base", edits)
}

// Problem makes points of the files. The notes are for people: what is left out, and what the split is.
func (in Inputs) Problem(ctx context.Context, s Setting) (p Problem, notes []string, err error) {
	catalogue, err := scenarios.OpenCatalogue(s.Catalogue)
	if err != nil {
		return p, nil, err
	}
	if s.GPU != "" {
		found, err := catalogue.FindGPU(s.GPU)
		if err != nil {
			return p, nil, fmt.Errorf("--gpu: %w", err)
		}
		s.GPU = found.Name
	}
	type source struct {
		constants cost.Constants
		path      string
	}
	var sources []source
	var gpus []string
	seen := func(gpu string) {
		if !slices.Contains(gpus, gpu) {
			gpus = append(gpus, gpu)
		}
	}
	r := &replay{heldOut: in.HeldOut, options: validation.Options{Cost: s.cost, Edits: slices.Concat(s.catalogueEdit(), s.Edits)}}
	var small, plain bool // 8 bits are multiplied, or 16, in some run or row
	multiplied := func(s *scenarios.Scenario) {
		a, spec := s.Model.Architecture, s.Hardware.Spec
		if a == nil || spec == nil || a.Weights.ExpertsOnly {
			plain = true
			return
		}
		key := map[string]string{"fp8": "fp8", "int8": "int8", "nvfp4": "fp4"}[a.Weights.Dtype]
		if spec.Peaks[key] > 0 {
			small = true
		} else {
			plain = true
		}
	}
	tables := 0
	for _, one := range in.Sources {
		if one.Run == nil {
			tables++
			fitted, blind, err := split(one, s.GPU, catalogue)
			if err != nil {
				return p, nil, err
			}
			r.fitted = append(r.fitted, fitted)
			r.heldOut = append(r.heldOut, blind)
			one = fitted
		} else {
			r.fitted = append(r.fitted, one)
		}
		var first error
		found := false
		for _, row := range one.Rows {
			scenario, err := row.Scenario(r.options)
			if err != nil {
				first = errors.Join(first, fmt.Errorf("%s: %w", row.Place, err))
				continue
			}
			if !found {
				sources = append(sources, source{scenario.Cost.Constants, one.Path})
			}
			found = true
			seen(scenario.Hardware.Name)
			multiplied(scenario)
		}
		if one.Run != nil {
			scenario, err := one.Run.Scenario(r.options)
			if err != nil {
				return p, nil, fmt.Errorf("%s: %w", one.Path, err)
			}
			found = true
			sources = append(sources, source{scenario.Cost.Constants, one.Path})
			seen(scenario.Hardware.Name)
			multiplied(scenario)
		}
		if !found {
			return p, nil, first
		}
	}
	timed := make([][]priced, len(in.Timings))
	rows := make([][]row, len(in.Timings))
	names := make([][]string, len(in.Timings))
	blocks := make([][][4]int64, len(in.Timings))
	bases := make([]map[string]*scenarios.Scenario, len(in.Timings))
	owner := make([][]string, len(in.Timings)) // GPU of each row
	for i, t := range in.Timings {
		bases[i] = map[string]*scenarios.Scenario{}
		named, rest, ok := gpuOf(t.Path, catalogue)
		if s.GPU != "" && t.Kind != allReduceFile {
			if ok && named != s.GPU {
				return p, nil, fmt.Errorf("%s: are timings of %s by the file's name, --gpu says %s", t.Path, named, s.GPU)
			}
			named, ok = s.GPU, true
		}
		if t.Kind != allReduceFile && !ok {
			return p, nil, fmt.Errorf("%s: whose timings are these? the file's name does not begin with a GPU's of the catalogue; say it with --gpu", t.Path)
		}
		var model *scenarios.Architecture
		tp := 1
		for _, k := range kinds {
			if k.name == t.Kind && k.ofModel {
				m := profileName.FindStringSubmatch(rest)
				if m == nil {
					return p, nil, fmt.Errorf("%s: of which model? the file must be named GPU-MODEL-tpN.*.csv", t.Path)
				}
				found, err := catalogue.FindModel(m[1])
				if err != nil {
					return p, nil, fmt.Errorf("%s: %w", t.Path, err)
				}
				if model = found.Architecture; model == nil || model.KVLoraRank > 0 || model.Experts > 0 {
					return p, nil, fmt.Errorf("%s: profiles of %s are not modelled: its layers must be dense ones of a known shape", t.Path, found.Name)
				}
				if tp, _ = strconv.Atoi(m[2]); tp < 1 {
					return p, nil, fmt.Errorf("%s: must be of at least one GPU, is tp%s", t.Path, m[2])
				}
			}
		}
		left := map[string]int{}
		for _, one := range t.rows {
			if s.Dtype != "" && t.hasDtype() && one.small != (s.Dtype == "fp8") {
				continue
			}
			gpu := named
			if t.Kind == allReduceFile {
				found, err := catalogue.FindGPU(one.name)
				if err != nil {
					return p, nil, fmt.Errorf("%s:%d: system: %w", t.Path, one.line, err)
				}
				if gpu = found.Name; s.GPU != "" && gpu != s.GPU {
					continue
				}
			}
			base := bases[i][gpu]
			if base == nil {
				if base, err = s.on(gpu); err != nil {
					return p, nil, fmt.Errorf("%s: %w", t.Path, err)
				}
				if base.Hardware.Spec == nil {
					return p, nil, fmt.Errorf("%s: the catalogue has no data sheet of %s", t.Path, gpu)
				}
				bases[i][gpu] = base
				sources = append(sources, source{base.Cost.Constants, t.Path})
				seen(gpu)
			}
			what, figure, block, use := t.price(one, base.Hardware, model, tp)
			if !use {
				left[figure]++
				continue
			}
			timed[i], rows[i] = append(timed[i], what), append(rows[i], one)
			names[i], blocks[i], owner[i] = append(names[i], figure), append(blocks[i], block), append(owner[i], gpu)
		}
		for _, figure := range sortedKeys(left) {
			why := "lie within the GPU's L2 cache, which a benchmark reads again and again"
			if t.Kind == gemmFile {
				why, figure = "are of 8 bits, which the GPU does not multiply", "gemm fp8"
			}
			notes = append(notes, fmt.Sprintf("%s: %d timings of %s are left out: they %s", t.Path, left[figure]+left[""], figure, why))
		}
		if len(timed[i]) == 0 {
			return p, nil, fmt.Errorf("%s: has no timing in it that could be fitted to", t.Path)
		}
	}
	if p.Parameters, err = in.chosen(s, timed, rows, small, plain); err != nil {
		return p, nil, fmt.Errorf("--fit: %w", err)
	}
	for _, one := range p.Parameters {
		if len(sources) == 0 {
			break
		}
		start := *one.Of(&sources[0].constants)
		p.Start = append(p.Start, start)
		for _, other := range sources[1:] {
			if x := *one.Of(&other.constants); x != start {
				notes = append(notes, fmt.Sprintf("%s starts from %v, as of %s; of %s it would be %v", one.Name, start, sources[0].path, other.path, x))
				break
			}
		}
	}
	r.parameters = p.Parameters
	first := 0
	if len(r.fitted) > 0 {
		e, skips, err := r.evidence(ctx, first)
		if err != nil {
			return p, nil, err
		}
		if !slices.ContainsFunc(e.Points, func(one Point) bool { return !one.HeldOut }) {
			return p, nil, fmt.Errorf("nothing that was measured could be simulated:\n%s", strings.Join(skips, "\n"))
		}
		notes = append(notes, skips...)
		p.Evidence = append(p.Evidence, e)
		for _, one := range e.Points {
			first = max(first, one.Block+1)
		}
	}
	for i, t := range in.Timings {
		constants := map[string]cost.Constants{}
		for gpu, base := range bases[i] {
			constants[gpu] = base.Cost.Constants
		}
		e := timingEvidence(t, timed[i], rows[i], names[i], blocks[i], owner[i], constants, p.Parameters, first)
		p.Evidence = append(p.Evidence, e)
		first += len(e.Points)
	}
	if len(gpus) > 1 {
		slices.Sort(gpus)
		notes = append(notes, "one value of each parameter for all of "+strings.Join(gpus, ", "))
	}
	if len(in.HeldOut) == 0 && tables == 0 && len(in.Timings) == 0 {
		notes = append(notes, "nothing is held out: a run is one piece; name another with --hold-out")
	}
	return p, notes, nil
}

func sortedKeys(m map[string]int) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// timingScale is the error above which a timing counts by the size of its error: kernels differ by so much
// from one shape to the next.
const timingScale = 0.05

// timingEvidence makes points of a file's rows. Those of one figure and GPU weigh as much as a run does.
func timingEvidence(t Timings, timed []priced, rows []row, names []string, blocks [][4]int64, owner []string, constants map[string]cost.Constants, parameters []cost.Parameter, first int) (e Evidence) {
	type group struct{ figure, gpu string }
	type part struct {
		block [4]int64
		group
	}
	count := map[group]float64{}
	known := map[part]int{}
	for i, r := range rows {
		if !r.held {
			count[group{names[i], owner[i]}]++
		}
	}
	for i, r := range rows {
		k := part{blocks[i], group{names[i], owner[i]}}
		if _, ok := known[k]; !ok {
			known[k] = first + len(known)
		}
		e.Points = append(e.Points, Point{
			Source: t.Path, Figure: names[i], Block: known[k], HeldOut: r.held,
			Weight: 1 / max(count[k.group], 1), Scale: timingScale, Measured: r.seconds,
		})
	}
	e.Simulate = func(_ context.Context, values []float64, heldOut bool) ([]float64, error) {
		set := map[string]cost.Constants{}
		for gpu, c := range constants {
			for i, p := range parameters {
				*p.Of(&c) = values[i]
			}
			set[gpu] = c
		}
		out := make([]float64, len(rows))
		for i := range rows {
			if rows[i].held && !heldOut {
				continue
			}
			out[i] = timed[i].seconds(set[owner[i]])
		}
		return out, nil
	}
	return e
}
