package scenarios

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"llmsim/sim/cost"
)

// Presets are constants of the operators model that go together.
type presets struct {
	engines map[string]constants // what an engine adds to its kernels, by how it is used
	gpus    []gpuConstants
}

// constants are values of some of cost.Parameters, and where they are from.
type constants struct {
	values map[string]float64
	source string
	fitted []string // SHA-256 of the files they were fitted on, lower-case
}

type gpuConstants struct {
	constants
	name string
	gpus []string // of the catalogue
}

var embeddedPresets = sync.OnceValues(func() (presets, error) {
	const name = "catalogue/costs.yaml"
	var p presets
	text, err := catalogueFiles.ReadFile(name)
	if err != nil {
		return p, err
	}
	root, faults := parse(text, &origin{layer: 1, where: "scenarios/" + name, place: place{folder: "catalogue"}})
	r := &reading{root: root, faults: faults}
	b := r.block(root, "")
	p.engines = map[string]constants{}
	engines := b.block("engines")
	for _, key := range engines.keys {
		one := r.block(engines.get(key), join("engines", key))
		c := one.provenance()
		c.values = r.parameters(one)
		p.engines[key] = c
	}
	gpus := b.block("gpus")
	for _, key := range gpus.keys {
		g := gpuConstants{name: key}
		one := r.block(gpus.get(key), join("gpus", key))
		if n := one.get("for"); n != nil {
			for _, item := range n.items {
				g.gpus = append(g.gpus, item.text())
			}
		}
		g.constants = one.provenance()
		g.values = r.parameters(one)
		p.gpus = append(p.gpus, g)
	}
	b.close()
	r.tellUnknown()
	if len(r.faults) > 0 {
		return p, r.faults
	}
	return p, nil
})

// parameters reads a block of them.
func (r *reading) parameters(b *block) map[string]float64 {
	defer b.close()
	values := map[string]float64{}
	if b.node == nil {
		return values
	}
	for _, p := range cost.Parameters {
		if b.has(p.Name) {
			values[p.Name] = b.number(p.Name, between(p.Least, p.Most))
		}
	}
	return values
}

// provenance reads where parameters are from, which stands beside them.
func (b *block) provenance() (c constants) {
	if b.has("source") {
		c.source = b.word("source", "where the figures are from")
	}
	n := b.get("fitted_on")
	if n == nil {
		return c
	}
	for _, item := range n.items {
		if digest := strings.ToLower(item.text()); len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == "" {
			c.fitted = append(c.fitted, digest)
		}
	}
	if n.items == nil || len(c.fitted) < len(n.items) {
		b.add(n, join(b.path, "fitted_on"), "must be a list of SHA-256 digests")
	}
	return c
}

func (c constants) into(all *cost.Constants) {
	for _, p := range cost.Parameters {
		if x, ok := c.values[p.Name]; ok {
			*p.Of(all) = x
		}
	}
}

// presetNames are the ways of using an engine.
var presetNames = []string{"served", "served-before-0.14", "in-process"}

// operatorsCost reads the constants: those of the GPU, of the way the engine is used, of a file,
// and the scenario's own, each over those before.
func (r *reading) operatorsCost(b *block, c *Cost, gpu string) {
	p, err := embeddedPresets()
	if err != nil {
		r.faults = append(r.faults, err.(Faults)...)
		return
	}
	c.Constants = cost.DefaultConstants()
	i := slices.IndexFunc(p.gpus, func(g gpuConstants) bool { return slices.Contains(g.gpus, gpu) })
	if i >= 0 {
		c.take(p.gpus[i].constants)
	} else {
		c.Sources = append(c.Sources, unmeasured+gpu+", constants are defaults: expect 5-20% on TPOT and two to three times that on TTFT near saturation")
	}
	c.Preset = presetNames[0]
	if b.has("preset") {
		c.Preset = b.choice("preset", presetNames...)
	}
	c.take(p.engines[c.Preset])
	if b.has("parameter_file") {
		if c.File = r.file(b, "parameter_file"); c.File.Name != "" && !r.told(b.get("parameter_file")) {
			c.take(r.parameterFile(b, c.File))
		}
	}
	if b.has("parameters") {
		constants{values: r.parameters(b.block("parameters"))}.into(&c.Constants)
	}
}

func (c *Cost) take(from constants) {
	from.into(&c.Constants)
	c.FittedOn = append(c.FittedOn, from.fitted...)
	if from.source != "" {
		c.Sources = append(c.Sources, from.source)
	}
}

// parameterFile reads what calibrate wrote; its faults are told beside the scenario's.
func (r *reading) parameterFile(b *block, file File) constants {
	text, err := readFile(file.Path)
	if err != nil {
		r.add(b.get("parameter_file"), join(b.path, "parameter_file"), "%s: %v", file.Path, reason(err))
		return constants{}
	}
	root, faults := parse(text, &origin{layer: 1, where: file.Path, place: place{folder: filepath.Dir(file.Path)}})
	if root == nil {
		r.faults = append(r.faults, faults...)
		return constants{}
	}
	other := &reading{root: root, faults: faults}
	top := other.block(root, "")
	c := top.provenance()
	c.values = other.parameters(top.block("parameters"))
	for _, key := range []string{"standard_error", "held_out"} { // for people
		top.has(key)
	}
	top.close()
	other.tellUnknown()
	other.sort()
	r.faults = append(r.faults, other.faults...)
	return c
}

// notes are what a reader should know of the constants.
func (c Cost) notes() (notes []string) {
	notes = append(notes, fmt.Sprintf("step times are of the operators model, for an engine that is %s", c.Preset))
	return append(notes, c.Sources...)
}

const unmeasured = "nothing was measured on "

// Unmeasured says whether a source of constants is that there is none.
func Unmeasured(source string) bool { return strings.HasPrefix(source, unmeasured) }
