package check

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"llmsim/report"
	"llmsim/strict"
)

// usual are the figures of a file that Update starts.
var usual = []string{
	"latency_ms.ttft.p50", "latency_ms.ttft.p99", "latency_ms.itl.p50", "latency_ms.itl.p99", "latency_ms.tpot.p50",
	"latency_ms.e2e.p50", "throughput.completed_rps", "throughput.output_tokens_per_s", "steps.count", "preemptions.total", "virtual_s",
}

// New is the expectation of a scenario that has none yet: the usual figures, within 0.1%. The
// scenario is named as seen from the file's folder.
func New(file, folder, scenario string, set []string) (*Expectation, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "scenario: %s\n", quoted(scenario))
	if len(set) > 0 {
		text.WriteString("set:\n")
		for _, s := range set {
			fmt.Fprintf(&text, "  - %s\n", quoted(s))
		}
	}
	text.WriteString("tolerance: {relative: 0.1%}\nmetrics:\n")
	for _, key := range usual {
		fmt.Fprintf(&text, "  %s: {}\n", key)
	}
	return read([]byte(text.String()), file, folder, nil, true)
}

// quoted is a text as YAML of one line.
func quoted(s string) string {
	text, err := yaml.Marshal(s)
	if line := strings.TrimSuffix(string(text), "\n"); err == nil && !strings.Contains(line, "\n") {
		return line
	}
	return strconv.Quote(s)
}

// An Update is what a file's figures become.
type Update struct {
	Files   int       `json:"files"`
	Changes []Changes `json:"changed"`

	texts [][]byte // of the files that change
}

// Changes are those of one file. A file of no Figures has another breakdown only.
type Changes struct {
	File     string   `json:"file"`
	Scenario string   `json:"scenario"`
	New      bool     `json:"new"`
	Figures  []Figure `json:"metrics"`
	Moved    []string `json:"moved,omitempty"`
}

// A Figure is one that changes; New: it had no value.
type Figure struct {
	Key   string  `json:"metric"`
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	IsNew bool    `json:"new"`
}

// Prepare runs the scenarios and says what their files are to say. It writes nothing.
func Prepare(ctx context.Context, all []*Expectation, progress func(int64)) (Update, error) {
	u := Update{Changes: []Changes{}}
	for i, e := range all {
		now, err := run(ctx, e.Scenario)
		if err != nil {
			return Update{}, fmt.Errorf("%s: %w", e.File, err)
		}
		progress(int64(i + 1))
		u.Files++
		c := Changes{File: e.File, Scenario: e.Scenario.Name, New: e.digest == "" && len(e.terms) == 0}
		for _, m := range e.Metrics {
			if x := now.figures[m.Key]; m.absent || x != m.Value {
				c.Figures = append(c.Figures, Figure{m.Key, m.Value, x, m.absent})
			}
		}
		if len(c.Figures) == 0 && e.digest == now.digest && slices.Equal(e.terms, now.terms) && slices.Equal(e.decisions, now.decisions) {
			continue
		}
		if !c.New && len(c.Figures) > 0 {
			c.Moved = e.moved(now)
		}
		text, err := e.rewritten(now)
		if err != nil {
			return Update{}, fmt.Errorf("%s: %w", e.File, err)
		}
		u.Changes, u.texts = append(u.Changes, c), append(u.texts, text)
	}
	return u, nil
}

// Write writes the files that change, all or after an error none.
func (u Update) Write() error {
	var files []*report.AtomicFile
	abort := func() {
		for _, f := range files {
			f.Abort()
		}
	}
	for i, c := range u.Changes {
		f, err := report.CreateAtomic(c.File)
		if err != nil {
			abort()
			return err
		}
		files = append(files, f)
		if _, err := f.Write(u.texts[i]); err != nil {
			abort()
			return err
		}
	}
	return report.CommitAll(files...)
}

// rewritten is the file's text with other figures; its comments and tolerances stay.
func (e *Expectation) rewritten(now *found) ([]byte, error) {
	doc, err := strict.Parse(e.text, e.File)
	if err != nil {
		return nil, err
	}
	root := doc.Content[0]
	metrics := at(root, "metrics")
	for _, m := range e.Metrics {
		put(at(metrics, m.Key), "value", figure(now.figures[m.Key]), true)
	}
	put(root, "digest", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: now.digest}, false)
	put(root, "step_ms", block(now.terms), false)
	put(root, "decisions", block(now.decisions), false)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

func figure(x float64) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: exact(x)}
	if !strings.Contains(n.Value, ".") {
		n.Tag = "!!int"
	}
	return n
}

func block(all []amount) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, a := range all {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: a.Name}, figure(a.Value))
	}
	return n
}

// at is the value of a key of a block; nil: there is none.
func at(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// put sets a key of a block, which keeps the comment beside it; a new key goes first or last.
func put(n *yaml.Node, key string, value *yaml.Node, first bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			value.LineComment = n.Content[i+1].LineComment
			n.Content[i+1] = value
			return
		}
	}
	pair := []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value}
	if first {
		n.Content = append(pair, n.Content...)
	} else {
		n.Content = append(n.Content, pair...)
	}
}

// WriteTable writes the summary for people.
func (u Update) WriteTable(w io.Writer) error {
	return u.write(w, "%s\n", report.Table.WriteText, report.Wrap)
}

// WriteMarkdown writes it for a pull request.
func (u Update) WriteMarkdown(w io.Writer) error {
	return u.write(w, "### %s\n\n", report.Table.WriteMarkdown, func(text string) string { return "- " + text + "\n" })
}

func (u Update) write(w io.Writer, head string, tabled func(report.Table, io.Writer) error, item func(string) string) error {
	var out strings.Builder
	for _, c := range u.Changes {
		kind := ""
		switch {
		case c.New:
			kind = ": new"
		case len(c.Figures) == 0:
			kind = ": the breakdown alone"
		}
		fmt.Fprintf(&out, head, c.File+" ("+c.Scenario+")"+kind)
		if len(c.Figures) > 0 {
			t := report.Table{Head: []string{"metric", "from", "to", "change"}}
			for _, f := range c.Figures {
				from, by := exact(f.From), change(f.From, f.To)
				if f.IsNew {
					from, by = "", ""
				}
				t.Rows = append(t.Rows, []string{f.Key, from, exact(f.To), by})
			}
			if err := tabled(t, &out); err != nil {
				return err
			}
		}
		if len(c.Moved) > 0 {
			out.WriteString("\n")
		}
		for _, m := range c.Moved {
			out.WriteString(item(m))
		}
		out.WriteString("\n")
	}
	fmt.Fprintf(&out, "%d of %d %s rewritten\n", len(u.Changes), u.Files, plural(u.Files, "file"))
	_, err := io.WriteString(w, out.String())
	return err
}

func plural(n int, noun string) string {
	return cmp.Or(map[int]string{1: noun}[n], noun+"s")
}
