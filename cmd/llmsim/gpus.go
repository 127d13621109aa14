package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"llmsim/report"
	"llmsim/scenarios"
)

// A gpuFacts is a GPU's figures; of one that has only the figures of a scenario, those.
type gpuFacts struct {
	Name         string             `json:"name"`
	HBMBytes     float64            `json:"hbm_bytes"`
	BandwidthBps float64            `json:"memory_bandwidth_bytes_per_s"`
	Peaks        map[string]float64 `json:"peak_flops"` // dense, by dtype
	NVLinkBps    float64            `json:"nvlink_bytes_per_s,omitempty"`
	PCIeBps      float64            `json:"pcie_bytes_per_s,omitempty"`
	Price        *float64           `json:"price_per_hour,omitempty"` // US$
	Sources      map[string]string  `json:"sources,omitempty"`
}

func gpuFactsOf(g scenarios.CatalogueGPU) gpuFacts {
	f := gpuFacts{
		Name: g.Name, HBMBytes: g.HBMBytes, BandwidthBps: g.Bandwidth,
		Peaks: map[string]float64{"bf16": g.PeakFLOPS}, Sources: g.Sources,
	}
	if g.Spec != nil {
		f.Peaks, f.NVLinkBps, f.PCIeBps = g.Spec.Peaks, g.Spec.NVLink, g.Spec.PCIe
	}
	if g.Price > 0 {
		f.Price = &g.Price
	}
	return f
}

// gpus is the answer of the verb.
type gpus struct {
	GPUs []gpuFacts `json:"gpus"`
}

func (g gpus) table() report.Table {
	t := report.Table{Head: []string{"GPU", "memory (GiB)", "bandwidth (GB/s)", "16 bit (TFLOP/s)", "fp8 (TFLOP/s)", "fp4 (TFLOP/s)", "NVLink (GB/s)", "US$ per hour"}}
	giga := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return report.Figure(x / 1e9)
	}
	tera := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return report.Figure(x / 1e12)
	}
	for _, f := range g.GPUs {
		price := "-"
		if f.Price != nil {
			price = fmt.Sprintf("%.2f", *f.Price)
		}
		t.Rows = append(t.Rows, []string{
			f.Name, report.Figure(f.HBMBytes / (1 << 30)), giga(f.BandwidthBps), tera(max(f.Peaks["bf16"], f.Peaks["fp16"])),
			tera(f.Peaks["fp8"]), tera(f.Peaks["fp4"]), giga(f.NVLinkBps), price,
		})
	}
	return t
}

func (g gpus) WriteTable(w io.Writer) error    { return g.table().WriteText(w) }
func (g gpus) WriteMarkdown(w io.Writer) error { return g.table().WriteMarkdown(w) }

func (f gpuFacts) WriteTable(w io.Writer) error    { return writeSheet(w, f, sheetLine) }
func (f gpuFacts) WriteMarkdown(w io.Writer) error { return writeSheet(w, f, markdownLine) }

func newGPUsCommand() *cobra.Command {
	var format, catalogue string
	c := &cobra.Command{
		Use:   "gpus [NAME]",
		Short: "list the GPUs of the catalogue, or show one with the sources of its figures",
		Example: `  llmsim gpus
  llmsim gpus h100-sxm --format json`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			known, err := openCatalogue(c, format, catalogue)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				g, err := known.FindGPU(args[0])
				if err != nil {
					return err
				}
				return writeResult(c.OutOrStdout(), gpuFactsOf(g), format)
			}
			var all gpus
			for _, g := range known.GPUs {
				all.GPUs = append(all.GPUs, gpuFactsOf(g))
			}
			return writeResult(c.OutOrStdout(), all, format)
		},
	}
	registerCatalogue(c, &format, &catalogue)
	return c
}
