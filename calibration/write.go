package calibration

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"llmsim/report"
	"llmsim/sim/cost"
)

// A Report is a result, and what it was had from.
type Report struct {
	Result
	FittedOn []string `json:"fitted_on"` // SHA-256 of files, lower-case hexadecimal
	Notes    []string `json:"notes"`

	files []string
}

// Report joins a result with its inputs and the notes on them.
func (in Inputs) Report(r Result, notes []string) Report {
	all := Report{Result: r, FittedOn: in.Digests(), Notes: notes}
	if all.Notes == nil {
		all.Notes = []string{}
	}
	for _, s := range in.Sources {
		all.files = append(all.files, filepath.Base(s.Path))
	}
	for _, t := range in.Timings {
		all.files = append(all.files, filepath.Base(t.Path))
	}
	return all
}

// WriteTable writes the report for people.
func (r Report) WriteTable(w io.Writer) error { return r.write(w, report.Table.WriteText, "") }

// WriteMarkdown writes the report for a pull request.
func (r Report) WriteMarkdown(w io.Writer) error { return r.write(w, report.Table.WriteMarkdown, "\n") }

func (r Report) write(w io.Writer, table func(report.Table, io.Writer) error, space string) error {
	var b strings.Builder
	t := report.Table{Head: []string{"parameter", "unit", "from", "to", "start", "fitted", "std. error", "at bound"}}
	for _, e := range r.Parameters {
		deviation, bound := "-", "no"
		if e.StandardError != nil {
			deviation = significant(*e.StandardError, 2)
		}
		if e.AtBound {
			bound = "yes"
		}
		t.Rows = append(t.Rows, []string{e.Name, unitOf(e.Unit), number(e.Least), number(e.Most), significant(e.Start, digits), number(e.Value), deviation, bound})
	}
	if err := table(t, &b); err != nil {
		return err
	}
	b.WriteString("\n")
	t = report.Table{Head: []string{"errors in %", "n", "median before", "after", "MAPE before", "after", "mean before", "after"}}
	for _, e := range r.Errors {
		side := "fitted"
		if e.HeldOut {
			side = "held out"
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%s of %s, %s", e.Figure, filepath.Base(e.Source), side), report.Count(int64(e.N)),
			percent(e.Before.Median), percent(e.After.Median), percent(e.Before.MAPE), percent(e.After.MAPE), signed(e.Before.Mean), signed(e.After.Mean),
		})
	}
	if err := table(t, &b); err != nil {
		return err
	}
	rest := "came to rest"
	if !r.Converged {
		rest = "had not come to rest: more evaluations may find better values"
	}
	b.WriteString("\n" + report.Wrap(fmt.Sprintf("Errors are simulated / measured - 1, median and MAPE of their sizes. Condition number %.1f, at most %d; %d evaluations, after which the fit %s.",
		r.Condition, MostCondition, r.Evaluations, rest)) + space)
	var lines []string
	for _, c := range r.Correlations {
		lines = append(lines, fmt.Sprintf("%s and %s are correlated by %+.2f: each is known worse than both together.", c.A, c.B, c.Value))
	}
	for _, one := range append(lines, r.Notes...) {
		b.WriteString(report.Wrap("Note: "+strings.TrimSuffix(one, ".")+".") + space)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func unitOf(unit string) string {
	if unit == "" {
		return "-"
	}
	return unit
}

func number(x float64) string  { return strconv.FormatFloat(x, 'f', -1, 64) }
func percent(x float64) string { return fmt.Sprintf("%.2f", 100*x) }
func signed(x float64) string  { return fmt.Sprintf("%+.2f", 100*x) }
func significant(x float64, n int) string {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', n, 64), 64)
	return number(x)
}

// WriteFile writes the parameter file that a scenario names by cost.parameter_file. It has no time and no
// folder in it: the same inputs give the same bytes.
func (r Report) WriteFile(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# Constants of the operators model; a scenario names this file by cost.parameter_file.\n")
	fmt.Fprintf(b, "source: %s\n", strconv.Quote("fitted by llmsim calibrate to "+strings.Join(r.files, ", ")))
	fmt.Fprintf(b, "parameters:\n")
	for _, e := range r.Parameters {
		fmt.Fprintf(b, "  %s: %s\n", e.Name, number(e.Value))
	}
	fmt.Fprintf(b, "standard_error: # in the parameter's unit; null: at a bound\n")
	for _, e := range r.Parameters {
		deviation := "null"
		if e.StandardError != nil && !math.IsNaN(*e.StandardError) {
			deviation = significant(*e.StandardError, 3)
		}
		fmt.Fprintf(b, "  %s: %s\n", e.Name, deviation)
	}
	held := false
	for _, e := range r.Errors {
		if !e.HeldOut {
			continue
		}
		if !held {
			fmt.Fprintf(b, "held_out: # absolute errors of what was not fitted to, as fractions\n")
			held = true
		}
		fmt.Fprintf(b, "  - {of: %s, n: %d, median: %s, mape: %s}\n", strconv.Quote(e.Figure+" of "+filepath.Base(e.Source)), e.N,
			significant(e.After.Median, 3), significant(e.After.MAPE, 3))
	}
	if !held {
		fmt.Fprintf(b, "held_out: []\n")
	}
	fmt.Fprintf(b, "fitted_on: # SHA-256 of the files\n")
	for _, digest := range r.FittedOn {
		fmt.Fprintf(b, "  - %s\n", digest)
	}
	return b.Flush()
}

// A Glossary is what each parameter is, and what tells it.
type Glossary []Term

// A Term is one parameter of a Glossary.
type Term struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Default float64 `json:"default"`
	What    string  `json:"what"`
	Needs   string  `json:"needs"`
}

// Parameters are all that can be fitted.
func Parameters() (g Glossary) {
	for _, p := range cost.Parameters {
		g = append(g, Term{p.Name, p.Unit, p.Least, p.Most, p.Default, p.What, Needs(p.Name)})
	}
	return g
}

// WriteTable writes the parameters for people.
func (g Glossary) WriteTable(w io.Writer) error {
	for i, t := range g {
		space := "\n"
		if i == 0 {
			space = ""
		}
		if _, err := io.WriteString(w, space+t.Name+"\n"+report.Wrap("  "+t.What+"; "+t.span()+"; told by "+t.Needs)); err != nil {
			return err
		}
	}
	return nil
}

func (t Term) span() string {
	unit := ""
	if t.Unit != "" {
		unit = " " + t.Unit
	}
	return fmt.Sprintf("%s to %s%s, default %s", number(t.Least), number(t.Most), unit, number(t.Default))
}

// WriteMarkdown writes them for a document.
func (g Glossary) WriteMarkdown(w io.Writer) error {
	t := report.Table{Head: []string{"parameter", "what", "bounds, default", "told by"}}
	for _, one := range g {
		t.Rows = append(t.Rows, []string{"`" + one.Name + "`", one.What, one.span(), one.Needs})
	}
	return t.WriteMarkdown(w)
}
