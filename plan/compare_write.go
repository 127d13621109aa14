package plan

import (
	"fmt"
	"io"
	"strings"

	"llmsim/report"
)

// WriteTable writes the comparison for people, verdict first.
func (c *Comparison) WriteTable(w io.Writer) error {
	return c.write(w, report.Table.WriteText, "", "")
}

// WriteMarkdown writes the comparison for a pull request.
func (c *Comparison) WriteMarkdown(w io.Writer) error {
	return c.write(w, report.Table.WriteMarkdown, "**", "\n")
}

func (c *Comparison) write(w io.Writer, table func(report.Table, io.Writer) error, strong, space string) error {
	var b strings.Builder
	verdict := "CHEAPEST: " + c.Best
	if !c.Verdict.Holds {
		verdict = "DOES NOT HOLD"
	}
	b.WriteString(report.Wrap(strong+verdict+strong) + space)
	b.WriteString(report.Wrap(c.Verdict.Reason+".") + space)
	if c.Verdict.Margin != "" {
		b.WriteString(report.Wrap("Beware: "+c.Verdict.Margin+".") + space)
	}
	if t := c.choices(); len(t.Rows) > 0 {
		b.WriteString("\n")
		if err := table(t, &b); err != nil {
			return err
		}
		b.WriteString(report.Wrap("$/M: per million output tokens; req/s: what one replica sustains. *: no other has more of both, output tokens/s per GPU and per user. ?: nothing was measured on it, its step times are defaults. "+
			"Of the first, whole fleets were simulated; of the others one replica, and the rest is division.") + space)
	}
	if len(c.Others) > 0 {
		b.WriteString("\n")
		t := report.Table{Head: []string{"not among them", "because"}}
		for _, o := range c.Others {
			t.Rows = append(t.Rows, []string{o.GPU, shorten(o.Reason, 55)})
		}
		if err := table(t, &b); err != nil {
			return err
		}
	}
	for _, note := range c.Notes {
		b.WriteString(space + report.Wrap("- "+note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Comparison) choices() report.Table {
	t := report.Table{Head: []string{"GPU", "TP", "replicas", "GPUs", "$/h", "$/M", "req/s", "tok/s/GPU", "tok/s/user"}}
	for _, x := range c.Choices {
		perHour, perMillion := "-", "-"
		if x.Price != nil {
			perHour, perMillion = fmt.Sprintf("%.2f", x.Price.PerHour), dollars(x.Price.PerMillionOutput)
		}
		name := x.GPU
		if x.Pareto {
			name += " *"
		}
		if x.Basis != "measured" {
			name += " ?"
		}
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(x.TP), report.Count(int64(x.Replicas)), report.Count(int64(x.GPUs)),
			perHour, perMillion, report.Figure(x.PerReplica), report.Figure(x.PerGPU), report.Figure(x.PerUser)})
	}
	return t
}

// shorten keeps the beginning of a text that is too long for a table.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most-3] + "..."
}
