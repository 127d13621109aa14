// Package experiment predicts figures of scenarios, measures them afterwards, and judges the two.
//
// It knows questions, models that differ in one field, and the order of prediction and measurement.
// It knows nothing of how a scenario is written, or of what a server is.
package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"llmsim/report"
	"llmsim/scenarios"
	built "llmsim/scenarios/experiments"
	"llmsim/strict"

	"gopkg.in/yaml.v3"
)

// Base is the name of the model that the others differ from.
const Base = "base"

// An Experiment is a question and what answers it, complete and checked.
type Experiment struct {
	Name         string
	Question     string
	Base         string // the scenario of Base: a name, or a file
	Runs         int    // of every model, each with a seed of its own
	Models       []Model
	Metrics      []Metric
	Explanations []Explanation
	Digest       string // SHA-256 of all that changes values, verdicts and explanations
}

// A Model is a scenario that is run.
type Model struct {
	Name     string
	Of       string // the model that it differs from in one field; empty for Base
	Differs  string // that field and both values
	Control  bool   // takes a suspected cause away
	Scenario *scenarios.Scenario
	Digest   string // of the scenario
}

// A Metric is a figure of one model, or of one over another's.
type Metric struct {
	Name      string
	Key       string // of a summary's JSON, as report.Flatten has it
	Runs      string // what of the runs' figures is taken: Mean or Deviation
	Model     string
	Over      string // model; empty: none
	Tolerance Tolerance
	Published *Published
}

// What is taken of a figure over the runs of a model. The deviation is the standard deviation of a
// sample, and says how far one run is to be trusted.
const (
	Mean      = "mean"
	Deviation = "sd"
)

// A Published figure is somebody else's. Without a tolerance it is shown and not judged.
type Published struct {
	Value     float64
	Source    string
	Tolerance *Tolerance
}

// An Explanation is inferred until a control that takes the suspected cause away shows whether the
// effect goes with it: until the effect on the control over that on the model is known.
type Explanation struct {
	Claim        string
	Effect       string // key of a summary
	Runs         string // as of a Metric
	Model        string
	Control      string   // empty: none
	Below, Above *float64 // bounds of the ratio that confirm it; one of the two
}

// Names returns the built-in experiments.
func Names() (names []string) {
	entries, _ := built.Files.ReadDir(".")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load reads a built-in experiment by its name, or a file; a name with a slash or a dot is a
// file's. The error is scenarios.Faults: all there are.
func Load(nameOrFile string) (*Experiment, error) {
	name := strings.TrimSuffix(filepath.Base(nameOrFile), filepath.Ext(nameOrFile))
	if !strings.ContainsAny(nameOrFile, `/\.`) {
		text, err := built.Files.ReadFile(nameOrFile + ".yaml")
		if err != nil {
			message := "no such experiment"
			if near := scenarios.Nearest(nameOrFile, Names()); near != "" {
				message += ", did you mean " + near + "?"
			}
			return nil, scenarios.Faults{{Where: nameOrFile, Message: message + " (built in: " + strings.Join(Names(), ", ") + ")"}}
		}
		return read(text, "scenarios/experiments/"+nameOrFile+".yaml", name, "")
	}
	text, err := strict.ReadFile(nameOrFile)
	if err != nil {
		return nil, err
	}
	return read(text, nameOrFile, name, filepath.Dir(nameOrFile))
}

// file is an experiment as written.
type file struct {
	Question     string            `yaml:"question,required"`
	Scenario     string            `yaml:"scenario,required"`
	Workload     tree              `yaml:"workload"`
	Runs         *int              `yaml:"runs"`
	Models       []modelText       `yaml:"models"`
	Controls     []modelText       `yaml:"controls"`
	Metrics      []metricText      `yaml:"metrics,required"`
	Explanations []explanationText `yaml:"explanations"`
	Line         int               `yaml:"-"`
}

type modelText struct {
	Name string   `yaml:",key"`
	Of   string   `yaml:"of"`
	Set  []string `yaml:"set,required"`
	Line int      `yaml:"-"`
}

type metricText struct {
	Name      string         `yaml:",key"`
	Value     string         `yaml:"value,required"`
	OverRuns  string         `yaml:"over_runs"`
	Model     string         `yaml:"model"`
	Over      string         `yaml:"over"`
	Tolerance Tolerance      `yaml:"tolerance,required"`
	Published *publishedText `yaml:"published"`
	Line      int            `yaml:"-"`
}

type publishedText struct {
	Value     float64    `yaml:"value,required"`
	Source    string     `yaml:"source"`
	Tolerance *Tolerance `yaml:"tolerance"`
}

type explanationText struct {
	Claim     string     `yaml:"claim,required"`
	Effect    string     `yaml:"effect,required"`
	OverRuns  string     `yaml:"over_runs"`
	Model     string     `yaml:"model"`
	Control   string     `yaml:"control"`
	Confirmed *boundText `yaml:"confirmed"`
	Line      int        `yaml:"-"`
}

type boundText struct {
	Below *float64 `yaml:"below"`
	Above *float64 `yaml:"above"`
}

// A tree is a block that is laid over the scenario's as it stands.
type tree struct{ text string }

func (t *tree) ReadYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("must be a block of keys, is %s", strict.Show(n))
	}
	text, err := yaml.Marshal(n)
	t.text = string(text)
	return err
}

// Bounds of what a file may ask for.
const (
	mostModels  = 50
	mostMetrics = 200
	mostRuns    = 1000
	longestName = 28 // what leaves a table for people within 80 columns
)

// A check collects what is wrong with a file.
type check struct {
	where  string
	faults scenarios.Faults
	broken []string // models that were found wrong: that they are missing is not told again
}

func (c *check) add(line int, path, format string, args ...any) {
	c.faults = append(c.faults, scenarios.Fault{Where: fmt.Sprintf("%s:%d", c.where, line), Path: path, Message: fmt.Sprintf(format, args...)})
}

// read checks the text of a file in a folder; no folder: a built-in one's.
func read(text []byte, where, name, folder string) (*Experiment, error) {
	var f file
	if faults := strict.Decode(text, where, &f); len(faults) > 0 {
		return nil, faults
	}
	c := &check{where: where}
	e := &Experiment{Name: name, Question: f.Question, Runs: 1}
	if f.Runs != nil {
		if e.Runs = *f.Runs; e.Runs < 1 || e.Runs > mostRuns {
			c.add(f.Line, "runs", "must be from 1 to %d, is %d", mostRuns, e.Runs)
		}
	}
	if n := len(f.Models) + len(f.Controls); n > mostModels {
		c.add(f.Line, "models", "must be at most %d with the controls, are %d", mostModels, n)
		return nil, c.faults
	}
	if n := len(f.Metrics); n == 0 || n > mostMetrics {
		c.add(f.Line, "metrics", "must be from 1 to %d, are %d", mostMetrics, n)
	}
	if err := e.build(c, &f, folder); err != nil {
		return nil, err
	}
	keys := Keys()
	for _, m := range f.Metrics {
		e.metric(c, m, keys)
	}
	for _, x := range f.Explanations {
		e.explanation(c, x, keys)
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	e.Digest = e.digest()
	return e, nil
}

// Keys are what a summary has numbers for.
func Keys() (keys []string) {
	fields, _ := report.Flatten(report.Summary{})
	for _, f := range fields {
		if _, number := number(f.Value); number && f.Key != "seed" {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// build makes the models: the base, and those that differ from one before them in one field.
func (e *Experiment) build(c *check, f *file, folder string) error {
	base := f.Scenario
	if folder != "" && strings.ContainsAny(base, `/\.`) && !filepath.IsAbs(base) {
		base = filepath.Join(folder, base)
	}
	var edits []scenarios.Edit
	if f.Workload.text != "" {
		edits = append(edits, scenarios.Edit{Path: "workload", Value: f.Workload.text, Label: c.where + ": workload"})
	}
	s, err := scenarios.Load(base, edits)
	if err != nil {
		return err
	}
	e.Base = base
	e.add(c, f.Line, Model{Name: Base, Scenario: s})
	for _, m := range f.Models {
		e.model(c, m, "models", false)
	}
	for _, m := range f.Controls {
		e.model(c, m, "controls", true)
	}
	return nil
}

func (e *Experiment) add(c *check, line int, m Model) {
	digest, err := m.Scenario.Digest()
	if err != nil {
		c.add(line, "", "%v", err)
	}
	m.Digest = digest
	e.Models = append(e.Models, m)
}

// Model finds a model by its name; nil: there is none.
func (e *Experiment) Model(name string) *Model {
	if i := slices.IndexFunc(e.Models, func(m Model) bool { return m.Name == name }); i >= 0 {
		return &e.Models[i]
	}
	return nil
}

// known finds a model that a file names, Base if it names none.
func (e *Experiment) known(c *check, line int, path, name string) *Model {
	if name == "" {
		name = Base
	}
	m := e.Model(name)
	if m == nil && !slices.Contains(c.broken, name) {
		var names []string
		for _, m := range e.Models {
			names = append(names, m.Name)
		}
		c.add(line, path, "%q is no model above, %s", name, hint(name, names))
	}
	return m
}

// hint says which of the known names a wrong one may have meant, or else which there are.
func hint(wrong string, known []string) string {
	if near := scenarios.Nearest(wrong, known); near != "" {
		return "did you mean " + near + "?"
	}
	const most = 12
	if more := len(known) - most; more > 0 {
		return fmt.Sprintf("there is %s and %d more", strings.Join(known[:most], ", "), more)
	}
	return "there is " + strings.Join(known, ", ")
}

// KeyHint says which figure of a summary a wrong key may have meant, or else where all are shown.
func KeyHint(wrong string) string {
	if near := scenarios.Nearest(wrong, Keys()); near != "" {
		return "did you mean " + near + "?"
	}
	return "see llmsim simulate --format csv for all"
}

func (e *Experiment) model(c *check, m modelText, block string, control bool) {
	path := block + "." + m.Name
	defer func() {
		if e.Model(m.Name) == nil {
			c.broken = append(c.broken, m.Name)
		}
	}()
	if e.Model(m.Name) != nil || m.Name == "" || len(m.Name) > longestName {
		c.add(m.Line, path, "must be a name of its own of 1 to %d letters", longestName)
		return
	}
	of := e.known(c, m.Line, path+".of", m.Of)
	if of == nil {
		return
	}
	var edits []scenarios.Edit
	for _, text := range m.Set {
		edit, err := scenarios.ParseEdit(text)
		if err != nil {
			c.add(m.Line, path+".set", "must be PATH=VALUE, is %q", text)
			return
		}
		if edit.Path == "seed" || edit.Path == "name" {
			c.add(m.Line, path+".set", "%s can't be what a model differs in", edit.Path)
			return
		}
		if edit.Path == "workload" {
			c.add(m.Line, path+".set", "must be of a key of workload, is of the whole block")
			return
		}
		edit.Label = fmt.Sprintf("%s:%d: %s.set: %s", c.where, m.Line, path, text)
		edits = append(edits, edit)
	}
	s, err := of.Scenario.With(edits...)
	if err != nil {
		if faults, ok := err.(scenarios.Faults); ok {
			c.faults = append(c.faults, faults...)
		} else {
			c.add(m.Line, path, "%v", err)
		}
		return
	}
	differ := differences(of.Scenario, s)
	if len(differ) > 0 && len(m.Set) == 1 && isScalar(edits[0].Value) && (len(differ) > 1 || !strings.HasPrefix(differ[0], edits[0].Path+" ")) {
		// One written field: what else differs follows from it.
		differ = []string{fmt.Sprintf("%s to %s", edits[0].Path, edits[0].Value)}
	}
	switch {
	case len(differ) == 0:
		c.add(m.Line, path+".set", "must differ from %s in one field, is the same", of.Name)
	case len(differ) > 1:
		c.add(m.Line, path+".set", "must differ from %s in one field, differs in %d: %s", of.Name, len(differ), strings.Join(differ, "; "))
	default:
		e.add(c, m.Line, Model{Name: m.Name, Of: of.Name, Differs: differ[0], Control: control, Scenario: s})
	}
}

func isScalar(value string) bool {
	var n yaml.Node
	return yaml.Unmarshal([]byte(value), &n) == nil && len(n.Content) == 1 && n.Content[0].Kind == yaml.ScalarNode
}

func (e *Experiment) metric(c *check, m metricText, keys []string) {
	path := "metrics." + m.Name
	if m.Name == "" || len(m.Name) > longestName {
		c.add(m.Line, path, "must be a name of 1 to %d letters", longestName)
	}
	if !slices.Contains(keys, m.Value) {
		c.add(m.Line, path+".value", "%q is no figure of a summary, %s", m.Value, KeyHint(m.Value))
	}
	of := e.known(c, m.Line, path+".model", m.Model)
	metric := Metric{
		Name: m.Name, Key: m.Value, Over: m.Over, Tolerance: m.Tolerance,
		Runs: e.overRuns(c, m.Line, path, m.OverRuns),
	}
	if of != nil {
		metric.Model = of.Name
	}
	if m.Over != "" {
		if over := e.known(c, m.Line, path+".over", m.Over); over != nil && over == of {
			c.add(m.Line, path+".over", "must be another model than %s", over.Name)
		}
	}
	tolerances := []Tolerance{m.Tolerance}
	if p := m.Published; p != nil {
		if p.Tolerance != nil {
			tolerances = append(tolerances, *p.Tolerance)
		}
		metric.Published = &Published{p.Value, p.Source, p.Tolerance}
	}
	if slices.ContainsFunc(tolerances, func(t Tolerance) bool { return !t.suits(m.Value) || t.timed && m.Over != "" }) {
		c.add(m.Line, path+".tolerance", "absolute: must be a number, is a time, and the figure none in milliseconds")
	}
	e.Metrics = append(e.Metrics, metric)
}

func (e *Experiment) explanation(c *check, x explanationText, keys []string) {
	if !slices.Contains(keys, x.Effect) {
		c.add(x.Line, "explanations.effect", "%q is no figure of a summary, %s", x.Effect, KeyHint(x.Effect))
	}
	of := e.known(c, x.Line, "explanations.model", x.Model)
	explanation := Explanation{
		Claim: x.Claim, Effect: x.Effect, Control: x.Control,
		Runs: e.overRuns(c, x.Line, "explanations", x.OverRuns),
	}
	if of != nil {
		explanation.Model = of.Name
	}
	b := x.Confirmed
	switch {
	case (x.Control == "") != (b == nil):
		c.add(x.Line, "explanations", "control and confirmed go together: both or none")
	case b != nil && (b.Below == nil) == (b.Above == nil):
		c.add(x.Line, "explanations.confirmed", "must be {below: RATIO} or {above: RATIO}")
	case b != nil:
		explanation.Below, explanation.Above = b.Below, b.Above
	}
	if x.Control != "" {
		if control := e.known(c, x.Line, "explanations.control", x.Control); control != nil && of != nil && control.Of != of.Name {
			c.add(x.Line, "explanations.control", "must differ from %s in one field, %s differs from %s", of.Name, control.Name, orNone(control.Of))
		}
	}
	e.Explanations = append(e.Explanations, explanation)
}

// overRuns checks what is taken of the runs.
func (e *Experiment) overRuns(c *check, line int, path, what string) string {
	switch {
	case what == "":
		return Mean
	case what != Mean && what != Deviation:
		c.add(line, path+".over_runs", "must be %s or %s, is %q", Mean, Deviation, what)
	case what == Deviation && e.Runs < 2:
		c.add(line, path+".over_runs", "%s needs runs of 2 or more, has %d", Deviation, e.Runs)
	}
	return what
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// digest is of everything that values, verdicts and explanations come from; not of the experiment's
// name and question.
func (e *Experiment) digest() string {
	type model struct{ Name, Digest string }
	var models []model
	for _, m := range e.Models {
		models = append(models, model{m.Name, m.Digest})
	}
	return digestOf(struct {
		Runs         int
		Models       []model
		Metrics      []Metric
		Explanations []Explanation
	}{e.Runs, models, e.Metrics, e.Explanations})
}

// digestOf is SHA-256 of plain data's JSON, in which Go writes fields in their order and floats as
// the shortest text that reads back the same.
func digestOf(data any) string {
	text, err := json.Marshal(data)
	if err != nil { // a number that is none; no file has one
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
