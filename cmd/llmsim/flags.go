package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmsim/report"
	"llmsim/scenarios"
)

// scenarioFlags choose a scenario and edit it before it is built; they do nothing else.
type scenarioFlags struct {
	scenario string
	edits    []string
	slo      string
	set      *pflag.FlagSet
}

// direct are the flags that stand for one field.
var direct = []struct{ flag, path, unit, usage string }{
	{"rate", "workload.arrivals.rate", "REQ/S", "requests per second"},
	{"spread", "workload.arrivals.spread", "HOW", "spread a trace's requests of one instant: uniform or poisson"},
	{"speedup", "workload.arrivals.speedup", "FACTOR", "replay a trace so many times as fast"},
	{"requests", "workload.requests", "N", "requests in all; of a trace, at most"},
	{"seed", "seed", "N", "seed of everything drawn at random"},
	{"policy", "engine.policy", "NAME", "scheduling policy"},
	{"model", "model.name", "NAME|FILE", "model of the catalogue, also by its Hugging Face name, or a config.json"},
	{"gpu", "hardware.name", "NAME", "GPU of the catalogue; of plan also any, which compares all"},
	{"catalogue", "catalogue", "FILE", "more models and GPUs"},
	{"tp", "engine.tensor_parallel_size", "N", "GPUs that share every layer of one replica"},
	{"pp", "engine.pipeline_parallel_size", "N", "stages that the layers of one replica are spread over"},
	{"replicas", "cluster.replicas", "N", "replicas behind the router"},
}

// A word is a flag's text, checked where it goes: in the scenario.
type word struct{ text, unit string }

func (w *word) String() string        { return w.text }
func (w *word) Set(text string) error { w.text = text; return nil }
func (w *word) Type() string          { return w.unit }

func (s *scenarioFlags) register(c *cobra.Command) {
	s.set = c.Flags()
	group := func(name string) { annotate(s.set, name, "scenario") }
	s.set.StringVar(&s.scenario, "scenario", "base", "scenario to start from, a `NAME|FILE`; see llmsim scenarios")
	group("scenario")
	s.set.String("trace", "", "replay the requests of this `FILE` instead of the scenario's workload")
	group("trace")
	for _, d := range direct {
		s.set.Var(&word{unit: d.unit}, d.flag, d.usage)
		group(d.flag)
	}
	s.set.StringVar(&s.slo, "slo", "", "latencies to hold, such as `ttft-p99=500ms,itl-p99=50ms`; plan judges them")
	group("slo")
	s.set.StringArrayVar(&s.edits, "set", nil, "set any field, as `PATH=VALUE`; repeatable")
	group("set")
}

// load reads the scenario with all its edits.
func (s *scenarioFlags) load() (*scenarios.Scenario, error) { return s.loadOn("") }

// value is what a flag of one field says; empty where it is not given.
func (s *scenarioFlags) value(flag string) string {
	if f := s.set.Lookup(flag); f.Changed {
		return f.Value.String()
	}
	return ""
}

// loadOn is load with a GPU in the place of that of --gpu, unless it is empty, and with more edits
// at the end.
func (s *scenarioFlags) loadOn(gpu string, more ...scenarios.Edit) (*scenarios.Scenario, error) {
	edits, err := s.given()
	if err != nil {
		return nil, err
	}
	if gpu != "" {
		for i := range edits {
			if edits[i].Path == "hardware.name" && strings.HasPrefix(edits[i].Label, "--gpu ") {
				edits[i].Value, edits[i].Label = gpu, "--gpu "+gpu
			}
		}
	}
	return scenarios.Load(s.scenario, append(edits, more...))
}

// given are the edits that the flags ask for.
func (s *scenarioFlags) given() ([]scenarios.Edit, error) {
	if err := checkGiven(s.set, "scenario", "trace", "slo"); err != nil {
		return nil, err
	}
	var edits []scenarios.Edit
	if trace := s.set.Lookup("trace"); trace.Changed {
		edits = append(edits, scenarios.TraceEdit(trace.Value.String()))
	}
	for _, text := range s.edits {
		edit, err := scenarios.ParseEdit(text)
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit)
	}
	for _, d := range direct {
		if f := s.set.Lookup(d.flag); f.Changed {
			value := f.Value.String()
			if d.flag == "model" && isConfig(value) {
				d.path = "model.config"
			}
			edits = append(edits, scenarios.Edit{Path: d.path, Value: value, Label: fmt.Sprintf("--%s %s", d.flag, value)})
		}
	}
	if s.set.Changed("slo") {
		edits = append(edits, scenarios.Edit{
			Path: "slo", Label: "--slo " + s.slo,
			Value: sloBlock(s.slo),
		})
	}
	return edits, nil
}

// sloBlock is the YAML of latencies such as ttft-p99=500ms,itl-p99=50ms.
func sloBlock(text string) string {
	return "{" + strings.NewReplacer("=", ": ", ",", ", ").Replace(text) + "}"
}

// An input is a file that a run reads.
type input struct{ name, path string }

// inputs are the files of a scenario that was loaded, those apart that are built in.
func (s *scenarioFlags) inputs(loaded *scenarios.Scenario) (all []input) {
	if !slices.Contains(scenarios.Names(), s.scenario) {
		all = append(all, input{"--scenario " + s.scenario, s.scenario})
	}
	trace := "workload.arrivals.file "
	if s.set.Changed("trace") {
		trace = "--trace "
	}
	return append(all, dataFiles(loaded, trace)...)
}

// dataFiles are the files that a scenario names; trace is what the one of its arrivals is called.
func dataFiles(loaded *scenarios.Scenario, trace string) (all []input) {
	w := &loaded.Workload
	for _, named := range []struct {
		name string
		file scenarios.File
	}{
		{trace, w.Arrivals.Trace}, {"workload.prompt_tokens.empirical ", w.Prompt.File},
		{"workload.output_tokens.empirical ", w.Output.File}, {"workload.sessions.turns.empirical ", w.Sessions.Turns.File},
		{"cost.parameter_file ", loaded.Cost.File},
	} {
		if named.file.Path != "" && !named.file.Embedded {
			all = append(all, input{named.name + named.file.Name, named.file.Path})
		}
	}
	return all
}

// needs is what the flags need that name something of no default.
var needs = map[string]string{
	"scenario": "a name or a file", "trace": "a file name", "slo": "latencies to hold, such as ttft-p99=500ms",
	"catalogue": "a file name", "requests-out": "a file name", "steps-out": "a file name", "html": "a file name", "plot": "a file name", "timeline": "a file name", "output": "a file name", "per-row": "a file name",
	"out": "a file name", "fit": "names of parameters; see llmsim calibrate --list", "gpu": "a GPU's name",
	"columns": "names of figures", "shard": "a shard such as 0/4",
	"dir": "a folder's name", "target": "a URL",
}

// checkGiven refuses flags that are given, but empty: as a script's variable that is not set.
func checkGiven(set *pflag.FlagSet, flags ...string) (err error) {
	for _, name := range flags {
		if f := set.Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			err = errors.Join(err, fmt.Errorf("--%s: needs %s, is empty", name, needs[name]))
		}
	}
	return err
}

// sets reports whether the command line gives a field, by its own flag or by --set.
func (s *scenarioFlags) sets(path string) bool {
	for _, d := range direct {
		if d.path == path && s.set.Changed(d.flag) {
			return true
		}
	}
	for _, text := range s.edits {
		if edit, err := scenarios.ParseEdit(text); err == nil && edit.Path == path {
			return true
		}
	}
	return false
}

const groupAnnotation = "group"

func annotate(set *pflag.FlagSet, flag, group string) {
	set.SetAnnotation(flag, groupAnnotation, []string{group})
}

// helpByGroup prints a verb's flags in groups.
func helpByGroup(c *cobra.Command, titles ...string) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStderr()
		fmt.Fprintf(out, "Usage:\n  %s\n", c.UseLine())
		if c.HasExample() {
			fmt.Fprintf(out, "\nExamples:\n%s\n", c.Example)
		}
		for i := 0; i < len(titles); i += 2 {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			set.SortFlags = false
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				group := ""
				if g := f.Annotations[groupAnnotation]; len(g) > 0 {
					group = g[0]
				}
				if group == titles[i] {
					set.AddFlag(f)
				}
			})
			if set.HasFlags() {
				fmt.Fprintf(out, "\n%s:\n%s", titles[i+1], set.FlagUsagesWrapped(80))
			}
		}
		return nil
	})
}

// nearFlag suggests a flag for one that is not known.
func nearFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := scenarios.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return ", did you mean --" + near + "?"
	}
	return ""
}

var formats = []string{"table", "json", "csv", "md"}

func registerFormat(c *cobra.Command, format *string) {
	c.Flags().StringVar(format, "format", "table", "`FORMAT` of the result: "+strings.Join(formats, ", "))
	annotate(c.Flags(), "format", "output")
}

func checkFormat(format string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return fmt.Errorf("--format: must be one of %s, is %q", strings.Join(formats, ", "), format)
}

// A result is plain data, which people read as tables.
type result interface {
	WriteTable(io.Writer) error
	WriteMarkdown(io.Writer) error
}

func writeResult(w io.Writer, r result, format string) error {
	switch format {
	case "json":
		return report.WriteJSON(w, r)
	case "csv":
		return report.WriteCSV(w, r)
	case "md":
		return r.WriteMarkdown(w)
	}
	return r.WriteTable(w)
}
