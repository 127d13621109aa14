package validation

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"llmsim/report"
)

// A Report is all groups; as JSON, a list.
type Report []Group

// WriteTable writes the report for people: how far off the worst are first, then each group.
func (r Report) WriteTable(w io.Writer) error { return r.write(w, report.Table.WriteText, "", "") }

// WriteMarkdown writes the report for a pull request.
func (r Report) WriteMarkdown(w io.Writer) error {
	return r.write(w, report.Table.WriteMarkdown, "**", "\n")
}

func (r Report) write(w io.Writer, table func(report.Table, io.Writer) error, strong, space string) error {
	worst := slices.Clone(r)
	slices.SortStableFunc(worst, func(a, b Group) int { return cmp.Compare(b.badness(), a.badness()) })
	var b strings.Builder
	t := report.Table{Head: append([]string{"worst first", "n"}, partHead...)}
	for _, g := range worst {
		t.Rows = append(t.Rows, append([]string{g.title(), report.Count(int64(g.N))}, part(g.Errors)...))
	}
	b.WriteString(report.Wrap("Errors in %: simulated / measured - 1. mean: of the means of a run's requests, on average over a table's rows; MAPE: mean absolute error.") + "\n")
	if err := table(t, &b); err != nil {
		return err
	}
	for _, g := range worst {
		what := map[string]string{"run": "request", "table": "closed-loop row"}[g.Kind]
		if g.N != 1 {
			what += "s"
		}
		b.WriteString("\n" + report.Wrap(fmt.Sprintf("%s%s%s: %s %s of %s, %s, modelled as %s", strong, g.title(), strong,
			report.Count(int64(g.N)), what, filepath.Base(g.Source), g.side(), strings.Join(g.Engines, ", "))) + space)
		for _, note := range g.Notes {
			b.WriteString(report.Wrap("Note: "+note+".") + space)
		}
		b.WriteString("\n")
		if err := table(g.figures(), &b); err != nil {
			return err
		}
		b.WriteString("\n")
		if err := table(g.parts(), &b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (g Group) title() string {
	t := g.Model + " on " + g.GPU
	if g.OtherSetup {
		t += ", other set-up"
	}
	if g.InSample {
		return t + " (fitted)"
	}
	return t
}

func (g Group) side() string {
	if g.InSample {
		return "in sample"
	}
	return "blind"
}

// badness orders groups: E2E, or what of it there is.
func (g Group) badness() float64 {
	for _, e := range []*Errors{g.Errors.E2E, g.Errors.TPOT, g.Errors.TTFT} {
		if e != nil {
			return e.MAPE
		}
	}
	return 0
}

var partHead = []string{"TTFT mean", "MAPE", "TPOT mean", "MAPE", "E2E mean", "MAPE", "tok/s mean"}

func part(m Metrics) (cells []string) {
	for _, e := range []*Errors{m.TTFT, m.TPOT, m.E2E} {
		if e == nil {
			cells = append(cells, "-", "-")
		} else {
			cells = append(cells, signed(e.Mean), percent(e.MAPE))
		}
	}
	if m.Throughput == nil {
		return append(cells, "-")
	}
	return append(cells, signed(m.Throughput.Mean))
}

// figures are a group's errors in full.
func (g Group) figures() report.Table {
	t := report.Table{Head: []string{"figure", "n", "mean", "MAPE", "median", "p50", "p90", "p99"}}
	if g.Kind == "table" {
		t.Head = []string{"figure", "n", "mean", "MAPE", "median", "p50 of |error|", "p90", "p99"}
	}
	at := signed
	if g.Kind == "table" {
		at = percent
	}
	for _, f := range []struct {
		name string
		*Errors
	}{{"TTFT", g.Errors.TTFT}, {"TPOT", g.Errors.TPOT}, {"E2E", g.Errors.E2E}, {"tokens/s", g.Errors.Throughput}} {
		if f.Errors != nil {
			t.Rows = append(t.Rows, []string{f.name, report.Count(int64(f.N)), signed(f.Mean), percent(f.MAPE), percent(f.MedianAPE), at(f.P50), at(f.P90), at(f.P99)})
		}
	}
	return t
}

// parts are a group's errors by utilisation and by tensor parallelism.
func (g Group) parts() report.Table {
	t := report.Table{Head: append([]string{"of these", "n"}, partHead...)}
	for _, x := range g.Bands {
		t.Rows = append(t.Rows, append([]string{"load " + x.Utilisation, report.Count(int64(x.N))}, part(x.Errors)...))
	}
	for _, x := range g.Widths {
		t.Rows = append(t.Rows, append([]string{fmt.Sprintf("tp %d", x.TP), report.Count(int64(x.N))}, part(x.Errors)...))
	}
	return t
}

func signed(x float64) string  { return fmt.Sprintf("%+.1f", 100*x) }
func percent(x float64) string { return fmt.Sprintf("%.1f", 100*x) }

// WriteItems writes every request and row as CSV: times in milliseconds, errors as fractions; what was
// not measured is empty.
func WriteItems(w io.Writer, predictions []Prediction) error {
	c := csv.NewWriter(w)
	c.Write([]string{"source", "id", "model", "gpu", "tp", "in_sample", "utilisation", "measured_ttft_ms", "simulated_ttft_ms", "ttft_error",
		"measured_tpot_ms", "simulated_tpot_ms", "tpot_error", "measured_e2e_ms", "simulated_e2e_ms", "e2e_error"})
	for _, p := range predictions {
		for _, i := range p.Items {
			row := []string{i.Source, i.ID, i.Model, i.GPU, strconv.Itoa(i.TP), strconv.FormatBool(i.InSample), i.Band}
			for _, f := range []pair{
				{i.Measured.TTFT, i.Simulated.TTFT}, {i.Measured.TPOT, i.Simulated.TPOT}, {i.Measured.E2E, i.Simulated.E2E},
			} {
				row = append(row, decimal(f.measured, 6), decimal(f.simulated, 6))
				if f.whole() {
					row = append(row, decimal(f.err(), 6))
				} else {
					row = append(row, "")
				}
			}
			c.Write(row)
		}
	}
	c.Flush()
	return c.Error()
}

func decimal(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}
