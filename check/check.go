// Package check holds scenarios to committed figures and says what moved where they drift.
//
// It knows expected figures, tolerances and what step time is made of. It knows nothing of why
// somebody expects a figure.
package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"llmsim/experiment"
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/scenarios/expect"
	"llmsim/strict"
)

// An Expectation is a file of figures that a scenario is held to.
type Expectation struct {
	File     string
	Scenario *scenarios.Scenario
	Metrics  []Metric

	digest    string // of the scenario when it was written; empty: not known
	terms     []amount
	decisions []amount
	text      []byte
}

// A Metric is one figure.
type Metric struct {
	Key       string // of a summary's JSON
	Value     float64
	Tolerance experiment.Tolerance
	Line      int

	absent bool // no value was ever written
}

// An amount is a part of the mean step's time in milliseconds, or a figure of decisions.
type amount struct {
	Name  string
	Value float64
}

// expectation is a file as written.
type expectation struct {
	Scenario  string                `yaml:"scenario,required"`
	Set       []string              `yaml:"set"`
	Tolerance *experiment.Tolerance `yaml:"tolerance"`
	Metrics   []metricText          `yaml:"metrics,required"`
	Digest    string                `yaml:"digest"`
	Terms     amounts               `yaml:"step_ms"`
	Decisions amounts               `yaml:"decisions"`
	Line      int                   `yaml:"-"`
}

type metricText struct {
	Key      string   `yaml:",key"`
	Value    *float64 `yaml:"value"`
	Relative *share   `yaml:"relative"`
	Absolute *float64 `yaml:"absolute"`
	Line     int      `yaml:"-"`
}

type share float64

func (s *share) ReadYAML(n *yaml.Node) error {
	x, err := experiment.ReadShare(n)
	*s = share(x)
	return err
}

type amounts []amount

func (a *amounts) ReadYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("must be a block of keys, is %s", strict.Show(n))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		x, ok := strict.Number(n.Content[i+1])
		if !ok {
			return fmt.Errorf("%s: must be a number, is %s", n.Content[i].Value, strict.Show(n.Content[i+1]))
		}
		*a = append(*a, amount{n.Content[i].Value, x})
	}
	return nil
}

// mostMetrics and mostFiles bound what is checked at once.
const (
	mostMetrics = 500
	mostFiles   = 1000
)

// BuiltIn returns the names of the built-in expectations.
func BuiltIn() (names []string) {
	entries, _ := expect.Files.ReadDir(".")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// LoadBuiltIn reads the built-in expectations. Further edits are made to all scenarios.
func LoadBuiltIn(edits []scenarios.Edit) (all []*Expectation, err error) {
	for _, name := range BuiltIn() {
		text, bad := expect.Files.ReadFile(name)
		if bad == nil {
			var e *Expectation
			e, bad = read(text, "scenarios/expect/"+name, "", edits, false)
			all = append(all, e)
		}
		err = errors.Join(err, bad)
	}
	return all, err
}

// Load reads files. A scenario that one names as a file is taken from the file's folder. Further
// edits are made to all scenarios. Where missing is set, metrics need no value. The error has all
// faults of all files.
func Load(files []string, edits []scenarios.Edit, missing bool) (all []*Expectation, err error) {
	if len(files) > mostFiles {
		return nil, fmt.Errorf("must be at most %d files, are %d", mostFiles, len(files))
	}
	for i, file := range files {
		if slices.ContainsFunc(files[:i], func(other string) bool { return report.SameOutput(file, other) }) {
			err = errors.Join(err, fmt.Errorf("%s: is given twice", file))
			continue
		}
		text, bad := strict.ReadFile(file)
		if bad == nil {
			var e *Expectation
			e, bad = read(text, file, filepath.Dir(file), edits, missing)
			all = append(all, e)
		}
		err = errors.Join(err, bad)
	}
	return all, err
}

func read(text []byte, where, folder string, edits []scenarios.Edit, missing bool) (*Expectation, error) {
	var f expectation
	if faults := strict.Decode(text, where, &f); len(faults) > 0 {
		return nil, faults
	}
	var faults scenarios.Faults
	add := func(line int, path, format string, args ...any) {
		faults = append(faults, scenarios.Fault{Where: fmt.Sprintf("%s:%d", where, line), Path: path, Message: fmt.Sprintf(format, args...)})
	}
	e := &Expectation{File: where, digest: f.Digest, terms: f.Terms, decisions: f.Decisions, text: text}
	if n := len(f.Metrics); n == 0 || n > mostMetrics {
		add(f.Line, "metrics", "must be from 1 to %d, are %d", mostMetrics, n)
	}
	keys := experiment.Keys()
	for _, m := range f.Metrics {
		path := "metrics." + m.Key
		if !slices.Contains(keys, m.Key) {
			add(m.Line, path, "is no figure of a summary, %s", experiment.KeyHint(m.Key))
		}
		metric := Metric{Key: m.Key, Line: m.Line}
		switch {
		case m.Value != nil:
			metric.Value = *m.Value
		case missing:
			metric.absent = true
		default:
			add(m.Line, path+".value", "is missing; llmsim check --update writes it")
		}
		if f.Tolerance != nil {
			metric.Tolerance = *f.Tolerance
		}
		if m.Relative != nil || m.Absolute != nil {
			metric.Tolerance = experiment.Tolerance{}
		}
		if m.Relative != nil {
			metric.Tolerance.Relative = float64(*m.Relative)
		}
		if m.Absolute != nil {
			if metric.Tolerance.Absolute = *m.Absolute; *m.Absolute < 0 {
				add(m.Line, path+".absolute", "must not be negative, is %v", *m.Absolute)
			}
		}
		e.Metrics = append(e.Metrics, metric)
	}
	s, err := scenario(f.Scenario, f.Set, where, folder, edits)
	if failed, ok := err.(scenarios.Faults); ok {
		faults = append(faults, failed...)
	} else if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults
	}
	e.Scenario = s
	return e, nil
}

func scenario(name string, set []string, where, folder string, more []scenarios.Edit) (*scenarios.Scenario, error) {
	if folder != "" && strings.ContainsAny(name, `/\.`) && !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	var edits []scenarios.Edit
	for _, text := range set {
		edit, err := scenarios.ParseEdit(text)
		if err != nil {
			return nil, scenarios.Faults{{Where: where, Path: "set", Message: fmt.Sprintf("must be PATH=VALUE, is %q", text)}}
		}
		edit.Label = where + ": set: " + text
		edits = append(edits, edit)
	}
	return scenarios.Load(name, append(edits, more...))
}

// A found is what a scenario comes to now.
type found struct {
	digest    string
	figures   map[string]float64
	terms     []amount // in the order of cost.Term
	decisions []amount
}

// decisionKeys are the figures of a summary that say what was decided, and not how long it took.
var decisionKeys = []string{
	"requests.completed", "requests.refused", "steps.count", "steps.mean_batch", "steps.mean_tokens", "preemptions.total",
	"blocked.slots", "blocked.kv", "blocked.budget", "prefix_cache.hit_tokens", "running.max", "queue_length.max",
}

func run(ctx context.Context, s *scenarios.Scenario) (*found, error) {
	summary, err := experiment.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	figures, err := experiment.Figures(summary)
	if err != nil {
		return nil, err
	}
	f := &found{digest: summary.Scenario.Digest, figures: figures}
	if x := summary.Explain; x != nil {
		for _, t := range x.Terms {
			f.terms = append(f.terms, amount{t.Term, millionths(t.Share * summary.Steps.MeanMS)})
		}
	}
	for _, key := range decisionKeys {
		f.decisions = append(f.decisions, amount{key, figures[key]})
	}
	return f, nil
}

func millionths(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// A Result is what a check came to.
type Result struct {
	Files   int     `json:"files"`
	Metrics int     `json:"metrics"`
	Held    []Held  `json:"-"`
	Drifts  []Drift `json:"drifts"`
}

// Held is a file without a drift.
type Held struct{ File, Scenario string }

// A Drift is a file of which figures are off, and what moved.
type Drift struct {
	File     string   `json:"file"`
	Scenario string   `json:"scenario"`
	Changed  bool     `json:"scenario_changed"` // it is not the one that the figures were written for; neither: not known
	Metrics  []Off    `json:"metrics"`
	Same     bool     `json:"scenario_same"`
	Moved    []string `json:"moved"` // what of the step time and which decisions moved most
}

// Off is a figure that is off.
type Off struct {
	Key        string               `json:"metric"`
	Expected   float64              `json:"expected"`
	Found      float64              `json:"found"`
	Difference float64              `json:"difference"`
	Tolerance  experiment.Tolerance `json:"tolerance"`
	Line       int                  `json:"line"`
}

// Check runs the scenarios and compares.
func Check(ctx context.Context, all []*Expectation, progress func(int64)) (Result, error) {
	r := Result{Drifts: []Drift{}}
	for i, e := range all {
		now, err := run(ctx, e.Scenario)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", e.File, err)
		}
		progress(int64(i + 1))
		r.Files++
		r.Metrics += len(e.Metrics)
		d := Drift{File: e.File, Scenario: e.Scenario.Name, Changed: e.digest != "" && e.digest != now.digest, Same: e.digest == now.digest}
		for _, m := range e.Metrics {
			if x := now.figures[m.Key]; !m.Tolerance.Holds(m.Value, x) {
				d.Metrics = append(d.Metrics, Off{m.Key, m.Value, x, millionths(x - m.Value), m.Tolerance, m.Line})
			}
		}
		if len(d.Metrics) == 0 {
			r.Held = append(r.Held, Held{e.File, e.Scenario.Name})
			continue
		}
		d.Moved = e.moved(now)
		r.Drifts = append(r.Drifts, d)
	}
	return r, nil
}

// Holds says whether nothing drifted.
func (r Result) Holds() bool { return len(r.Drifts) == 0 }

func (m Off) text() string {
	return fmt.Sprintf("%s: expected %s (tolerance %s), found %s (%s)",
		m.Key, exact(m.Expected), m.Tolerance, exact(m.Found), change(m.Expected, m.Found))
}

func exact(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// change is by how much a figure moved, relative unless it was 0.
func change(from, to float64) string {
	if from == 0 {
		return fmt.Sprintf("%+.4g", to)
	}
	return fmt.Sprintf("%+.2f%%", 100*(to-from)/math.Abs(from))
}
