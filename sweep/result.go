package sweep

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmsim/report"
)

// A Result is a whole sweep, to be shown.
type Result struct {
	Header
	lines   []Line
	columns []column
	chosen  bool     // by the caller
	people  []string // of the measure
}

// A Point is what one point came to: of several seeds the means, and their standard errors.
type Point struct {
	At      map[string]string `json:"at"`
	Seed    uint64            `json:"base_seed"`
	Digest  string            `json:"digest"` // of its scenario
	Figures map[string]Number `json:"figures"`
	Errors  map[string]Number `json:"stderr,omitempty"`
}

type column struct {
	Figure
	at int // among a line's figures
}

// Result is what a whole part says. Columns are the figures wanted; nil: all, and in a table those of most
// use.
func (p Part) Result(m Measure, columns []string) Result {
	r := Result{Header: p.Header, lines: p.Lines, chosen: columns != nil, people: m.People}
	if columns == nil {
		columns = p.Figures
	}
	for _, name := range columns {
		at := slices.Index(p.Figures, name)
		c := column{m.Figures[at], at}
		if !r.chosen && !slices.Contains(m.People, name) {
			c.Head = "" // not shown to people
		}
		r.columns = append(r.columns, c)
	}
	return r
}

// A row is a point's runs.
type row []Line

// rows are the points in their order.
func (r Result) rows() iter.Seq[row] {
	return func(yield func(row) bool) {
		for runs := range slices.Chunk(r.lines, r.Seeds) {
			if !yield(runs) {
				return
			}
		}
	}
}

// average is the mean of a figure over runs and its standard error, to millionths; NaN where a run has none.
func (runs row) average(figure int) (mean, stderr Number) {
	if len(runs) == 1 {
		return runs[0].Figures[figure], 0
	}
	n := float64(len(runs))
	sum := 0.0
	for _, l := range runs {
		sum += float64(l.Figures[figure])
	}
	m := sum / n
	squares := 0.0
	for _, l := range runs {
		d := float64(l.Figures[figure]) - m
		squares += float64(d * d)
	}
	return millionths(m), millionths(math.Sqrt(squares / (n - 1) / n))
}

func millionths(x float64) Number { return Number(math.Round(x*1e6) / 1e6) }

const stderrSuffix = "_stderr"

// WriteCSV writes a head and a row for every point: the values of the fields, the figures, and what the row
// is of. A figure that there is none of is empty.
func (r Result) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	cells := slices.Clone(r.Fields)
	for _, c := range r.columns {
		cells = append(cells, c.Name)
		if r.Seeds > 1 {
			cells = append(cells, c.Name+stderrSuffix)
		}
	}
	out.Write(append(cells, "base_seed", "digest", "llmsim"))
	for row := range r.rows() {
		cells = append(cells[:0], row[0].At...)
		for _, c := range r.columns {
			mean, stderr := row.average(c.at)
			cells = append(cells, mean.text())
			if r.Seeds > 1 {
				cells = append(cells, stderr.text())
			}
		}
		out.Write(append(cells, strconv.FormatUint(row[0].Seed, 10), row[0].Digest, r.Version))
	}
	out.Flush()
	return out.Error()
}

// WriteJSON writes an object of what the sweep is, and of its points, one on each line.
func (r Result) WriteJSON(w io.Writer) error {
	head, err := json.Marshal(struct {
		Version     string   `json:"llmsim"`
		Sweep       string   `json:"sweep"`
		Measure     string   `json:"measure"`
		Scenario    string   `json:"scenario"`
		Fields      []string `json:"fields"`
		Seeds       int      `json:"seeds"`
		Assumptions []string `json:"assumptions"`
	}{r.Version, r.Sweep, r.Measure, r.Scenario, r.Fields, r.Seeds, append([]string{}, r.Assumptions...)})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.Write(bytes.TrimSuffix(head, []byte("}")))
	out.WriteString(",\n\"points\": [")
	separator := "\n"
	for row := range r.rows() {
		text, err := json.Marshal(r.point(row))
		if err != nil {
			return err
		}
		out.WriteString(separator)
		out.Write(text)
		separator = ",\n"
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}

func (r Result) point(runs row) Point {
	p := Point{At: map[string]string{}, Seed: runs[0].Seed, Digest: runs[0].Digest, Figures: map[string]Number{}}
	for i, f := range r.Fields {
		p.At[f] = runs[0].At[i]
	}
	if r.Seeds > 1 {
		p.Errors = map[string]Number{}
	}
	for _, c := range r.columns {
		mean, stderr := runs.average(c.at)
		p.Figures[c.Name] = mean
		if r.Seeds > 1 {
			p.Errors[c.Name] = stderr
		}
	}
	return p
}

func (n Number) text() string {
	if math.IsNaN(float64(n)) {
		return ""
	}
	return strconv.FormatFloat(float64(n), 'f', -1, 64)
}

// WriteTable writes the result for people.
func (r Result) WriteTable(w io.Writer) error {
	if err := r.table().WriteText(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n"+report.Wrap(r.footnote()))
	for _, a := range r.Assumptions {
		if err == nil {
			_, err = io.WriteString(w, report.Wrap("- "+a))
		}
	}
	return err
}

// WriteMarkdown writes the result for a pull request.
func (r Result) WriteMarkdown(w io.Writer) error {
	if err := r.table().WriteMarkdown(w); err != nil {
		return err
	}
	text := "\n" + r.footnote() + "\n"
	for i, a := range r.Assumptions {
		if i == 0 {
			text += "\n"
		}
		text += "- " + a + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func (r Result) footnote() string {
	points := report.Count(int64(r.Points)) + " points"
	if r.Points == 1 {
		points = "1 point"
	}
	text := fmt.Sprintf("llmsim %s, scenario %s, %s, sweep %.19s", r.Version, r.Scenario, points, r.Sweep)
	if r.Seeds > 1 {
		return text + fmt.Sprintf("; means of %d seeds +/- their standard error", r.Seeds)
	}
	return text
}

// leastShown is how many columns of figures a table has, however wide it is.
const leastShown = 4

// table leaves out columns without a figure and, while it is too wide, those of least use.
func (r Result) table() report.Table {
	shown := r.shown()
	t := r.tableOf(shown)
	for i := len(r.people) - 1; i >= leastShown && !r.chosen && t.Wide(); i-- {
		shown = slices.DeleteFunc(shown, func(c column) bool { return c.Name == r.people[i] })
		t = r.tableOf(shown)
	}
	return t
}

func (r Result) tableOf(shown []column) (t report.Table) {
	for _, f := range r.Fields {
		t.Head = append(t.Head, shortened(f, r.Fields))
	}
	for _, c := range shown {
		t.Head = append(t.Head, c.Head)
	}
	for row := range r.rows() {
		cells := slices.Clone(row[0].At)
		for _, c := range shown {
			cells = append(cells, r.cell(row, c))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func (r Result) cell(runs row, c column) string {
	mean, stderr := runs.average(c.at)
	switch {
	case math.IsNaN(float64(mean)):
		return "-"
	case r.Seeds == 1:
		return c.show(float64(mean))
	}
	return c.show(float64(mean)) + " +/- " + c.show(float64(stderr))
}

// shown are the columns of a table: without those that have no figure, unless they were chosen.
func (r Result) shown() (all []column) {
	for _, c := range r.columns {
		has := slices.ContainsFunc(r.lines, func(l Line) bool { return !math.IsNaN(float64(l.Figures[c.at])) })
		if c.Head != "" && (has || r.chosen) {
			all = append(all, c)
		}
	}
	return all
}

// shortened is the last word of a field's path, unless another field ends in it too.
func shortened(field string, fields []string) string {
	last := func(f string) string { return f[strings.LastIndexByte(f, '.')+1:] }
	for _, other := range fields {
		if other != field && last(other) == last(field) {
			return field
		}
	}
	return last(field)
}

// Write writes the result in a format: table, csv, json or md.
func (r Result) Write(w io.Writer, format string) error {
	switch format {
	case "csv":
		return r.WriteCSV(w)
	case "json":
		return r.WriteJSON(w)
	case "md":
		return r.WriteMarkdown(w)
	}
	return r.WriteTable(w)
}
