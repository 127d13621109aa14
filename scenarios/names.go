package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// FindModel finds a model by its name, by an alias, or by its name on Hugging Face, in any case.
// Names of one shape are one entry: a tuning, as in -Instruct, changes nothing, and a format, as in
// -FP8, changes how the weights are stored.
func (c Catalogue) FindModel(name string) (CatalogueModel, error) {
	i, dtype, err := c.findModel(name)
	if err != nil {
		return CatalogueModel{}, err
	}
	m := c.Models[i]
	m.Model = m.Model.in(dtype)
	return m, nil
}

// FindGPU finds a GPU by its name or an alias, in any case, with or without the vendor.
func (c Catalogue) FindGPU(name string) (CatalogueGPU, error) {
	i, err := c.findGPU(name)
	if err != nil {
		return CatalogueGPU{}, err
	}
	return c.GPUs[i], nil
}

// in is the model with its weights in another format; none, or without a known shape: as it is.
func (m Model) in(dtype string) Model {
	if dtype == "" || m.Architecture == nil {
		return m
	}
	return m.stored(dtype, 2)
}

// findModel returns an entry's place, and the format that the name gives the weights if any.
func (c Catalogue) findModel(name string) (i int, dtype string, err error) {
	if i := slices.IndexFunc(c.Models, func(m CatalogueModel) bool { return m.Name == name }); i >= 0 {
		return i, "", nil
	}
	wanted, dtype := modelKey(name)
	var found []int
	for i, m := range c.Models {
		if slices.ContainsFunc(m.names(), func(known string) bool {
			key, _ := modelKey(known)
			return wanted.is(key)
		}) {
			found = append(found, i)
		}
	}
	if len(found) == 1 {
		return found[0], dtype, nil
	}
	return -1, "", c.unclear(name, wanted.model, found, c.modelNames(), "models")
}

func (c Catalogue) findGPU(name string) (int, error) {
	if i := slices.IndexFunc(c.GPUs, func(g CatalogueGPU) bool { return g.Name == name }); i >= 0 {
		return i, nil
	}
	wanted := gpuKey(name)
	var found []int
	for i, g := range c.GPUs {
		if slices.ContainsFunc(append([]string{g.Name}, g.Aliases...), func(known string) bool { return gpuKey(known) == wanted }) {
			found = append(found, i)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return -1, c.unclear(name, wanted, found, c.gpuNames(), "gpus")
}

// unclear is the error for a name that stands for nothing, or for several entries.
func (c Catalogue) unclear(name, key string, found []int, known []string, verb string) error {
	if len(found) > 1 {
		var names []string
		for _, i := range found {
			names = append(names, known[i])
		}
		return fmt.Errorf("%q may be %s", shorten(name), strings.Join(names, " or "))
	}
	hint := suggestAmong(name, known, verb)
	if len(near(name, known)) == 0 {
		hint = suggestAmong(key, known, verb)
	}
	return fmt.Errorf("%q is not in the catalogue, %s", shorten(name), hint)
}

// names are all that stand for a model: the catalogue's, the repository that its source names, and
// its aliases.
func (m CatalogueModel) names() []string {
	names := append([]string{m.Name}, m.Aliases...)
	if word, _, _ := strings.Cut(m.Source, " "); strings.Count(word, "/") == 1 && !strings.Contains(word, ":") {
		names = append(names, strings.TrimSuffix(word, ";"))
	}
	return names
}

// A repository is a model's name on Hugging Face without what leaves its shape alone, in lower case.
type repository struct{ owner, model string }

// is says whether a name means a known one. An owner that is not the model's own is believed only
// where it is known to publish other people's models in other formats.
func (r repository) is(known repository) bool {
	return r.model == known.model && (r.owner == "" || known.owner == r.owner || slices.Contains(republishers, r.owner))
}

var republishers = []string{
	"amd", "hugging-quants", "neuralmagic", "nm-testing", "nousresearch", "nvidia", "redhatai", "unsloth",
}

// Parts of a repository's name that leave the shape alone: tunings, and formats of the weights.
var (
	tunings = []string{"base", "chat", "hf", "instruct", "it", "pt", "thinking", "2507", "dynamic", "kv", "block", "quantized"}
	formats = map[string]string{
		"awq": "int4", "bf16": "bf16", "fp16": "fp16", "fp4": "nvfp4", "fp8": "fp8", "gptq": "int4", "int4": "int4", "int8": "int8",
		"mxfp4": "mxfp4", "nvfp4": "nvfp4", "w4a16": "int4", "w8a8": "int8",
	}
)

func modelKey(name string) (r repository, dtype string) {
	name = strings.ToLower(strings.TrimSpace(name))
	if owner, model, ok := strings.Cut(name, "/"); ok {
		r.owner, name = owner, model
	}
	name = strings.ReplaceAll(name, "quantized.", "")
	var kept []string
	for i, part := range strings.Split(name, "-") {
		format, isFormat := formats[part]
		switch {
		case isFormat && i > 0:
			if dtype == "" || part != "bf16" {
				dtype = format
			}
		case i == 0 && part == "meta", i > 0 && slices.Contains(tunings, part):
		default:
			kept = append(kept, part)
		}
	}
	r.model = strings.Join(kept, "-")
	return r, dtype
}

// gpuKey is a GPU's name in lower case, without its vendor, its parts joined by dashes.
func gpuKey(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return strings.ContainsRune(" _-", c) })
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool {
		return slices.Contains([]string{"nvidia", "geforce", "tesla", "amd", "instinct", "(tm)"}, part)
	}), "-")
}
