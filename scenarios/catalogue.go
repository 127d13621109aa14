package scenarios

import "slices"

// models and gpus are the catalogue. A model's KV bytes per token are
// 2 (key and value) * layers * KV heads * head size * bytes per element.
var (
	models = []Model{
		// The article's: 32 layers, 32 KV heads of 128, 16-bit weights and KV.
		{Name: "article-7b", Parameters: 6.74e9, BytesPerParam: 2, KVBytesPerToken: 524288},
	}
	gpus = []Hardware{
		// The article's figures, rounded from NVIDIA's for the SXM5 board (3.35 TB/s).
		{Name: "h100-80gb", HBMBytes: 80 << 30, Bandwidth: 3000e9, PeakFLOPS: 989e12},
	}
)

// Models returns the models of the catalogue.
func Models() []Model { return slices.Clone(models) }

// GPUs returns the hardware of the catalogue.
func GPUs() []Hardware { return slices.Clone(gpus) }

func modelNames() (names []string) {
	for _, m := range models {
		names = append(names, m.Name)
	}
	return names
}

func gpuNames() (names []string) {
	for _, g := range gpus {
		names = append(names, g.Name)
	}
	return names
}
