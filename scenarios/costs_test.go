package scenarios

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmsim/sim/cost"
)

// The embedded constants are of GPUs that there are, each in one group, and of the presets that a
// scenario can name; none is outside its bounds.
func TestEmbeddedConstants(t *testing.T) {
	p, err := embeddedPresets()
	if err != nil {
		t.Fatal(err)
	}
	known, err := OpenCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, g := range p.gpus {
		if len(g.gpus) == 0 {
			t.Errorf("%s: is for no GPU", g.name)
		}
		for _, gpu := range g.gpus {
			if !slices.Contains(known.gpuNames(), gpu) {
				t.Errorf("%s: %s is not in the catalogue", g.name, gpu)
			}
			if seen[gpu] != "" {
				t.Errorf("%s is in %s and in %s", gpu, seen[gpu], g.name)
			}
			seen[gpu] = g.name
		}
	}
	for _, name := range presetNames {
		if _, ok := p.engines[name]; !ok {
			t.Errorf("preset %s has no constants", name)
		}
	}
	if len(p.engines) != len(presetNames) {
		t.Errorf("%d engines, want the presets %v", len(p.engines), presetNames)
	}
	check := func(name string, c constants) {
		if len(c.values) == 0 {
			t.Errorf("%s has no constants", name)
		}
		for _, known := range cost.Parameters {
			if x, ok := c.values[known.Name]; ok && !(x >= known.Least && x <= known.Most) {
				t.Errorf("%s: %s is %v, want %v to %v", name, known.Name, x, known.Least, known.Most)
			}
		}
	}
	for _, g := range p.gpus {
		check(g.name, g.constants)
	}
	for name, c := range p.engines {
		check(name, c)
	}
	for _, known := range cost.Parameters {
		if !(known.Default >= known.Least && known.Default <= known.Most) {
			t.Errorf("%s: default %v, want %v to %v", known.Name, known.Default, known.Least, known.Most)
		}
	}
}

// A scenario's own parameter goes before a file's, that before the preset's, and that before the GPU's.
func TestConstantsInTheirOrder(t *testing.T) {
	file := writeNamed(t, "mine.yaml", "parameters: {kv_efficiency: 0.5, step_overhead: 3, sequence_overhead: 4}\n")
	c := on(t, "model.name=llama-3.1-8b", "hardware.name=h100-sxm", "cost.preset=in-process", "cost.parameter_file="+file,
		"cost.parameters={sequence_overhead: 6}").Cost.Constants
	got := []float64{c.GEMMMemoryEfficiency, c.RequestOverhead, c.KVEfficiency, c.StepOverhead, c.SequenceOverhead}
	if want := []float64{0.859, 0, 0.5, 3, 6}; !slices.Equal(got, want) {
		t.Errorf("constants of the GPU, the preset, the file, the file and the scenario are %v, want %v", got, want)
	}
}

func TestFaultsOfCosts(t *testing.T) {
	const known = "model: {name: llama-3.1-8b}\nhardware: {name: h100-sxm}\nengine: {policy: vllm-v1}\n"
	var names []string
	for _, p := range cost.Parameters {
		names = append(names, p.Name)
	}
	all := strings.Join(names, ", ")
	for _, c := range []struct {
		text string
		want []string
	}{
		{known + "cost: {parameters: {kv_eficiency: 1}}", []string{"chat.yaml:4: cost.parameters.kv_eficiency: unknown key, did you mean kv_efficiency?"}},
		{known + "cost: {parameters: {source: me}}", []string{"chat.yaml:4: cost.parameters.source: unknown key, there is " + all}},
		{known + "cost:\n  preset: servd\n  parameters:\n    kv_efficiency: 1.5\n    gemm_memory_efficiency: 0.01\n    mixed_attention_factor: 0.9\n" +
			"    step_overhead: -1\n    gemm_launch: .nan\n    roof_softness: x\n  parameter_file: none.yaml", []string{
			`chat.yaml:5: cost.preset: "servd" is not known, did you mean served?`,
			"chat.yaml:7: cost.parameters.kv_efficiency: must be at most 1, is 1.5",
			"chat.yaml:8: cost.parameters.gemm_memory_efficiency: must be at least 0.05, is 0.01",
			"chat.yaml:9: cost.parameters.mixed_attention_factor: must be at least 1, is 0.9",
			"chat.yaml:10: cost.parameters.step_overhead: must not be negative, is -1",
			"chat.yaml:11: cost.parameters.gemm_launch: must be a number, is .nan",
			`chat.yaml:12: cost.parameters.roof_softness: must be a number, is "x"`,
			"chat.yaml:13: cost.parameter_file: must be a file, none.yaml: no such file or directory",
		}},
		{known + "cost: {model: operators, efficiency: {compute: 2}, step_overhead: 3}", []string{
			"chat.yaml:4: cost.step_overhead: makes no sense under operators, whose cost.parameters say it",
			"chat.yaml:4: cost.efficiency: makes no sense under operators, whose cost.parameters say it",
		}},
		{known + "cost: {model: roofline, preset: served, parameters: {}}", []string{
			"chat.yaml:4: cost.preset: makes no sense under roofline, only under operators",
			"chat.yaml:4: cost.parameters: makes no sense under roofline, only under operators",
		}},
		// What is asked of operators is looked at where it cannot be had.
		{"cost: {model: operators, preset: servd}", []string{
			"chat.yaml:1: cost.model: operators needs a model of known architecture and a GPU of the catalogue",
			`chat.yaml:1: cost.preset: "servd" is not known, did you mean served?`,
		}},
		{"model: {name: gpt}\nhardware: {name: h100-sxm}\ncost: {preset: served, parameters: {kv_efficiency: 2}}", []string{
			`chat.yaml:1: model.name: "gpt" is not in the catalogue, did you mean gpt-oss-20b or gpt-oss-120b?`,
			"chat.yaml:3: cost.parameters.kv_efficiency: must be at most 1, is 2",
		}},
	} {
		if got := faults(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("Load(%q) =\n%s\nwant\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{"mine.yaml:1: parameters: is missing"}},
		{"[1", []string{"mine.yaml:1: must be YAML: did not find expected ',' or ']'"}},
		{"\x00\xff", []string{"mine.yaml:1: must be YAML: control characters are not allowed"}},
		{strings.Repeat("#", 1<<20+1), []string{"mine.yaml: must be at most 1 MiB, is longer"}},
		{"parameters: {kv_efficiency: 3, kv_efficency: 1}\nfitted_on: [abc]\ncolour: red", []string{
			"mine.yaml:1: parameters.kv_efficiency: must be at most 1, is 3",
			"mine.yaml:1: parameters.kv_efficency: unknown key, did you mean kv_efficiency?",
			"mine.yaml:2: fitted_on: must be a list of SHA-256 digests",
			"mine.yaml:3: colour: unknown key, there is source, fitted_on, parameters, standard_error, held_out",
		}},
	} {
		file := filepath.Join(t.TempDir(), "mine.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := faults(t, known, Edit{Path: "cost.parameter_file", Value: file})
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], filepath.Dir(file)+"/", "")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Load with a parameter file of %.80q =\n%s\nwant\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
