package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/report"
	"llmsim/scenarios"
)

// A modelFacts is what a model's shape makes it cost; without a known architecture, what is given.
type modelFacts struct {
	Name             string  `json:"name"`
	Parameters       float64 `json:"parameters"`
	ActiveParameters float64 `json:"active_parameters"` // of one token
	WeightDtype      string  `json:"weight_dtype,omitempty"`
	WeightsBytes     float64 `json:"weights_bytes"`
	KVBytesPerToken  int64   `json:"kv_bytes_per_token"`      // 16 bits an element
	MaxModelLen      int     `json:"max_model_len,omitempty"` // the model's own
	Architecture     *shape  `json:"architecture,omitempty"`  // nil: not known
	Source           string  `json:"source,omitempty"`
}

// A shape is an architecture under the keys that a catalogue file has for it.
type shape struct {
	Layers             int    `json:"layers"`
	Hidden             int    `json:"hidden"`
	Heads              int    `json:"heads"`
	KVHeads            int    `json:"kv_heads"`
	HeadDim            int    `json:"head_dim,omitempty"` // of latent attention the others say it
	Intermediate       int    `json:"intermediate,omitempty"`
	Vocab              int    `json:"vocab"`
	TiedEmbeddings     bool   `json:"tied_embeddings"`
	AttentionBias      string `json:"attention_bias,omitempty"`
	QKNorm             string `json:"qk_norm,omitempty"`
	Experts            int    `json:"experts,omitempty"`
	ExpertsPerToken    int    `json:"experts_per_token,omitempty"`
	MoEIntermediate    int    `json:"moe_intermediate,omitempty"`
	SharedIntermediate int    `json:"shared_intermediate,omitempty"`
	DenseLayers        int    `json:"dense_layers,omitempty"`
	KVLoraRank         int    `json:"kv_lora_rank,omitempty"`
	QLoraRank          int    `json:"q_lora_rank,omitempty"`
	QKNopeDim          int    `json:"qk_nope_head_dim,omitempty"`
	QKRopeDim          int    `json:"qk_rope_head_dim,omitempty"`
	VHeadDim           int    `json:"v_head_dim,omitempty"`
	SlidingWindow      int    `json:"sliding_window,omitempty"`
	SlidingLayers      int    `json:"sliding_layers,omitempty"`
	GroupSize          int    `json:"group_size,omitempty"`
	Quantized          string `json:"quantized,omitempty"` // experts: of a mixture only they
}

func factsOf(m scenarios.CatalogueModel) modelFacts {
	f := modelFacts{
		Name: m.Name, Parameters: m.Parameters, ActiveParameters: m.Parameters, WeightsBytes: m.WeightBytes(),
		KVBytesPerToken: m.KVBytesPerToken, MaxModelLen: m.MaxModelLen, Source: m.Source,
	}
	a := m.Architecture
	if a == nil {
		return f
	}
	f.ActiveParameters, f.WeightDtype, f.WeightsBytes = float64(a.ActiveParameters()), a.Weights.Dtype, a.WeightBytes()
	f.Architecture = &shape{
		Layers: a.Layers, Hidden: a.Hidden, Heads: a.Heads, KVHeads: a.KVHeads, HeadDim: a.HeadDim,
		Intermediate: a.Intermediate, Vocab: a.Vocab, TiedEmbeddings: a.TiedEmbeddings, AttentionBias: a.AttentionBias, QKNorm: a.QKNorm,
		Experts: a.Experts, ExpertsPerToken: a.ExpertsPerToken, MoEIntermediate: a.MoEIntermediate,
		SharedIntermediate: a.SharedIntermediate, DenseLayers: a.DenseLayers,
		KVLoraRank: a.KVLoraRank, QLoraRank: a.QLoraRank, QKNopeDim: a.QKNopeDim, QKRopeDim: a.QKRopeDim, VHeadDim: a.VHeadDim,
		SlidingWindow: a.SlidingWindow, SlidingLayers: a.SlidingLayers,
		GroupSize: a.Weights.Group,
	}
	if a.KVLoraRank > 0 {
		f.Architecture.HeadDim = 0
	}
	if a.Weights.ExpertsOnly {
		f.Architecture.Quantized = "experts"
	}
	return f
}

// models is the answer of the verb.
type models struct {
	Models []modelFacts `json:"models"`
}

func (m models) table() report.Table {
	t := report.Table{Head: []string{"model", "parameters (B)", "active (B)", "weights", "weights (GiB)", "KV per token (bytes)", "layers", "heads / KV heads"}}
	for _, f := range m.Models {
		layers, heads := "", ""
		if a := f.Architecture; a != nil {
			layers, heads = fmt.Sprint(a.Layers), fmt.Sprintf("%d / %d", a.Heads, a.KVHeads)
			if a.KVLoraRank > 0 {
				heads = fmt.Sprintf("%d / latent", a.Heads)
			}
		}
		t.Rows = append(t.Rows, []string{
			f.Name, fmt.Sprintf("%.2f", f.Parameters/1e9), fmt.Sprintf("%.2f", f.ActiveParameters/1e9), f.WeightDtype,
			fmt.Sprintf("%.2f", f.WeightsBytes/(1<<30)), report.Count(f.KVBytesPerToken), layers, heads,
		})
	}
	return t
}

func (m models) WriteTable(w io.Writer) error    { return m.table().WriteText(w) }
func (m models) WriteMarkdown(w io.Writer) error { return m.table().WriteMarkdown(w) }

// writeSheet writes every figure of one thing, a line each, with its key before it.
func writeSheet(w io.Writer, data any, line func(key, value string) string) error {
	fields, err := report.Flatten(data)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(line(f.Key, f.Value))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func sheetLine(key, value string) string    { return fmt.Sprintf("%-32s %s\n", key, value) }
func markdownLine(key, value string) string { return fmt.Sprintf("- %s: %s\n", key, value) }

func (f modelFacts) WriteTable(w io.Writer) error    { return writeSheet(w, f, sheetLine) }
func (f modelFacts) WriteMarkdown(w io.Writer) error { return writeSheet(w, f, markdownLine) }

func newModelsCommand() *cobra.Command {
	var format, catalogue string
	c := &cobra.Command{
		Use:   "models [NAME|CONFIG.JSON]",
		Short: "list the models of the catalogue, or show one with what follows from its shape",
		Example: `  llmsim models
  llmsim models deepseek-v3
  llmsim models ./my-model/config.json --format json`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			known, err := openCatalogue(c, format, catalogue)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				var all models
				for _, m := range known.Models {
					all.Models = append(all.Models, factsOf(m))
				}
				return writeResult(c.OutOrStdout(), all, format)
			}
			var m scenarios.CatalogueModel
			if isConfig(args[0]) {
				m.Name, m.Source = args[0], args[0]
				m.Model, err = scenarios.ReadConfig(args[0])
				m.Model.Name, m.MaxModelLen = args[0], m.Model.MaxModelLen
			} else {
				m, err = known.FindModel(args[0])
			}
			if err != nil {
				return err
			}
			return writeResult(c.OutOrStdout(), factsOf(m), format)
		},
	}
	registerCatalogue(c, &format, &catalogue)
	return c
}

// isConfig tells a file's name from a catalogue's: it ends as such files do or has a slash, unless it
// has the form of a repository, owner/model, and there is no such file.
func isConfig(name string) bool {
	if !strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".json") {
		return strings.HasSuffix(name, ".json")
	}
	if !repository.MatchString(name) {
		return true
	}
	_, err := os.Stat(name)
	return err == nil
}

var repository = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

func registerCatalogue(c *cobra.Command, format, catalogue *string) {
	registerFormat(c, format)
	c.Flags().StringVar(catalogue, "catalogue", "", "read more entries from this `FILE`; they take the place of those of the same name")
	annotate(c.Flags(), "catalogue", "output")
	helpByGroup(c, "output", "Flags", "", "Other")
}

func openCatalogue(c *cobra.Command, format, file string) (scenarios.Catalogue, error) {
	if err := checkFormat(format); err != nil {
		return scenarios.Catalogue{}, err
	}
	if err := checkGiven(c.Flags(), "catalogue"); err != nil {
		return scenarios.Catalogue{}, err
	}
	return scenarios.OpenCatalogue(file)
}

func atMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one name, not %d: %q\nsee: %s --help", c.CommandPath(), len(args), args[1], c.CommandPath())
	}
	return nil
}
