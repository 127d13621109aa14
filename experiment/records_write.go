package experiment

import (
	"io"
	"strings"

	"llmsim/report"
)

// A List is experiments, as data and for people.
type List []ListItem

// A ListItem is an experiment without its scenarios.
type ListItem struct {
	Name     string      `json:"name"`
	Question string      `json:"question"`
	Models   []ModelData `json:"models"`
	Metrics  []string    `json:"metrics"`
}

// NewList lists experiments.
func NewList(all []*Experiment) (l List) {
	for _, e := range all {
		item := ListItem{Name: e.Name, Question: e.Question, Metrics: metricNames([]*Experiment{e})}
		for _, m := range e.Models {
			item.Models = append(item.Models, ModelData{m.Name, m.Digest, m.Differs})
		}
		l = append(l, item)
	}
	return l
}

// WriteTable writes the questions, and the models under them with what they differ in.
func (l List) WriteTable(w io.Writer) error {
	var out strings.Builder
	for i, e := range l {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(report.Wrap(e.Name + ": " + e.Question))
		for _, m := range e.Models[1:] {
			out.WriteString(report.Wrap("- " + m.Name + ": " + m.Differs))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// WriteMarkdown writes them as a table.
func (l List) WriteMarkdown(w io.Writer) error {
	t := report.Table{Head: []string{"experiment", "question"}}
	for _, e := range l {
		t.Rows = append(t.Rows, []string{e.Name, e.Question})
	}
	return t.WriteMarkdown(w)
}

// Predictions are what one call predicted.
type Predictions []Prediction

func (p Predictions) table() report.Table {
	t := report.Table{Head: []string{"metric", "predicted", "by"}}
	for _, e := range p {
		for _, v := range e.Values {
			t.Rows = append(t.Rows, []string{e.Experiment + ": " + v.Metric, Shown(v.Value), v.By})
		}
	}
	return t
}

// WriteTable writes the values for people.
func (p Predictions) WriteTable(w io.Writer) error { return p.table().WriteText(w) }

// WriteMarkdown writes them for a pull request.
func (p Predictions) WriteMarkdown(w io.Writer) error { return p.table().WriteMarkdown(w) }

// Measurements are what one call measured.
type Measurements []Measurement

func (m Measurements) table() report.Table {
	t := report.Table{Head: []string{"metric", "measured", "seed"}}
	for _, e := range m {
		for _, v := range e.Values {
			t.Rows = append(t.Rows, []string{e.Experiment + ": " + v.Metric, Shown(v.Value), seeds(e.Seed, e.Runs)})
		}
	}
	return t
}

// Trusted says whether all are to be trusted.
func (m Measurements) Trusted() bool {
	for _, e := range m {
		if len(e.Distrust) > 0 {
			return false
		}
	}
	return true
}

// WriteTable writes the values for people, and why they are not to be trusted.
func (m Measurements) WriteTable(w io.Writer) error {
	return m.write(w, report.Table.WriteText, report.Wrap)
}

// WriteMarkdown writes them for a pull request.
func (m Measurements) WriteMarkdown(w io.Writer) error {
	return m.write(w, report.Table.WriteMarkdown, func(text string) string { return "\n" + text + "\n" })
}

func (m Measurements) write(w io.Writer, tabled func(report.Table, io.Writer) error, item func(string) string) error {
	if err := tabled(m.table(), w); err != nil {
		return err
	}
	for _, e := range m {
		for _, why := range e.Distrust {
			if _, err := io.WriteString(w, item(e.Experiment+": not to be trusted: "+why)); err != nil {
				return err
			}
		}
	}
	return nil
}
