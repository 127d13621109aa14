package scenarios

import (
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed catalogue/*.yaml
var catalogueFiles embed.FS

// A Catalogue is models and GPUs by name, in the order of its files.
type Catalogue struct {
	Models []CatalogueModel
	GPUs   []CatalogueGPU
}

// A CatalogueModel is a model with what is known of it besides.
type CatalogueModel struct {
	Model
	MaxModelLen int     // tokens; 0: not said
	Published   float64 // parameters, by the source; 0: not said
	Source      string
	Aliases     []string // other names of the same shape
}

// A CatalogueGPU is a GPU with what is known of it besides.
type CatalogueGPU struct {
	Hardware
	Aliases []string // other names of the same board
	Price   float64  // US$ per hour; 0: not known
	Sources map[string]string
}

// A Spec is what a GPU has beyond the figures of Hardware.
type Spec struct {
	Peaks  map[string]float64 // dense operations per second, by dtype: bf16 or fp16, fp8, fp4, int8
	NVLink float64            // bytes per second to the other GPUs, one way; 0: none
	PCIe   float64            // the same
}

// peak is the arithmetic that weights of a dtype get. Formats that a GPU does not multiply, and
// those with integer groups, are turned into 16 bits on the way.
func (s *Spec) peak(dtype string) float64 {
	key := map[string]string{"fp8": "fp8", "int8": "int8", "nvfp4": "fp4"}[dtype]
	if p := s.Peaks[key]; p > 0 {
		return p
	}
	return max(s.Peaks["bf16"], s.Peaks["fp16"])
}

var embeddedCatalogue = sync.OnceValues(func() (Catalogue, error) {
	var c Catalogue
	for _, name := range []string{"catalogue/models.yaml", "catalogue/gpus.yaml"} {
		text, err := catalogueFiles.ReadFile(name)
		if err != nil {
			return c, err
		}
		if faults := c.add(text, "scenarios/"+name); len(faults) > 0 {
			return c, faults
		}
	}
	return c, nil
})

// OpenCatalogue returns the embedded catalogue and, over it, that of a file; an empty name is no
// file. The error is Faults, all there are.
func OpenCatalogue(file string) (Catalogue, error) {
	c, err := embeddedCatalogue()
	if err != nil || file == "" {
		return c, err
	}
	text, err := readFile(file)
	if err != nil {
		return c, Faults{{file, "", reason(err).Error()}}
	}
	c.Models, c.GPUs = slices.Clone(c.Models), slices.Clone(c.GPUs)
	if faults := c.add(text, file); len(faults) > 0 {
		return c, faults
	}
	return c, nil
}

func (c Catalogue) modelNames() (names []string) {
	for _, m := range c.Models {
		names = append(names, m.Name)
	}
	return names
}

func (c Catalogue) gpuNames() (names []string) {
	for _, g := range c.GPUs {
		names = append(names, g.Name)
	}
	return names
}

// suggestAmong is suggest for lists that are too long to be read in an error.
func suggestAmong(wrong string, known []string, verb string) string {
	if names := near(wrong, known); len(names) > 0 {
		return "did you mean " + strings.Join(names, " or ") + "?"
	}
	return fmt.Sprintf("llmsim %s lists the %d there are", verb, len(known))
}

// add reads a catalogue's text; entries take the place of those of the same name.
func (c *Catalogue) add(text []byte, where string) Faults {
	root, faults := parse(text, &origin{layer: 1, where: where, place: place{folder: filepath.Dir(where)}})
	if root == nil {
		return faults
	}
	r := &reading{root: root, faults: faults}
	b := r.block(root, "")
	if b.node != nil && !b.has("models") && !b.has("gpus") {
		r.add(root, "", "must have models or gpus, or both")
	}
	if b.has("models") {
		c.addModels(r, r.block(b.get("models"), "models"))
	}
	if b.has("gpus") {
		c.addGPUs(r, r.block(b.get("gpus"), "gpus"))
	}
	b.close()
	r.tellUnknown()
	r.sort()
	return r.faults
}

func (c *Catalogue) addModels(r *reading, models *block) {
	if models.node == nil {
		return
	}
	for _, name := range models.keys {
		m := r.catalogueModel(r.block(models.get(name), join(models.path, name)))
		m.Name = name
		c.Models = laid(c.Models, slices.Index(c.modelNames(), name), m)
	}
}

func (c *Catalogue) addGPUs(r *reading, gpus *block) {
	if gpus.node == nil {
		return
	}
	for _, name := range gpus.keys {
		g := r.catalogueGPU(r.block(gpus.get(name), join(gpus.path, name)))
		g.Name = name
		c.GPUs = laid(c.GPUs, slices.Index(c.gpuNames(), name), g)
	}
}

// laid puts an entry in the place of the one of its name, or, below 0, behind the others.
func laid[E any](list []E, i int, entry E) []E {
	if i < 0 {
		return append(list, entry)
	}
	list[i] = entry
	return list
}

// openCatalogue reads the catalogue that a scenario names over the embedded one.
func (r *reading) openCatalogue(b *block) {
	var err error
	if r.catalogue, err = embeddedCatalogue(); err != nil {
		r.faults = append(r.faults, err.(Faults)...)
		return
	}
	if !b.has("catalogue") {
		return
	}
	file := r.file(b, "catalogue")
	if file.Name == "" || r.told(b.get("catalogue")) {
		return
	}
	c, err := OpenCatalogue(file.Path)
	if err != nil {
		r.faults = append(r.faults, err.(Faults)...)
		return
	}
	r.catalogue = c
}
