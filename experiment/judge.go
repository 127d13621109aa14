package experiment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"llmsim/report"
)

// A Judgement is what predictions and measurements of some experiments come to.
type Judgement struct {
	Verdict     string   `json:"verdict"` // "go on", "stop" or "not to be trusted"
	Experiments []Judged `json:"experiments"`
}

// Judged is one experiment's part.
type Judged struct {
	Name         string      `json:"name"`
	Question     string      `json:"question"`
	Predicted    string      `json:"predicted"` // when and by which seeds
	Measured     string      `json:"measured"`
	Metrics      []Line      `json:"metrics"`
	Published    []Line      `json:"published,omitempty"`
	Explanations []Explained `json:"explanations,omitempty"`
	Notes        []string    `json:"notes,omitempty"`
	Distrust     []string    `json:"distrust,omitempty"`
}

// A Line compares one figure. Verdict is "holds", "fails", or empty: not judged.
type Line struct {
	Metric     string    `json:"metric"`
	Predicted  float64   `json:"predicted"`
	By         string    `json:"by"`
	Measured   float64   `json:"measured"`
	Difference float64   `json:"difference"`
	Tolerance  Tolerance `json:"tolerance"`
	Verdict    string    `json:"verdict"`
}

// Explained is an explanation with its status: "inferred", "confirmed by CONTROL" or "ruled out by
// CONTROL".
type Explained struct {
	Claim   string   `json:"claim"`
	Status  string   `json:"status"`
	Effect  string   `json:"effect"`
	Model   *float64 `json:"model,omitempty"`
	Control *float64 `json:"control,omitempty"`
}

const (
	holds = "holds"
	fails = "fails"
)

// Judge compares the predictions of experiments to what was measured after them. It refuses, in
// one error, whatever was predicted too late, changed since, or is of something else.
func (f Folder) Judge(all []*Experiment) (Judgement, error) {
	j := Judgement{Verdict: "go on"}
	err := distinct(all)
	for _, e := range all {
		p, bad := f.predicted(e)
		if p == nil {
			err = errors.Join(err, bad)
			continue
		}
		path := f.measurement(e.Name)
		if !exists(path) {
			err = errors.Join(err, bad, fmt.Errorf("%s: there is no measurement %s: llmsim experiment measure comes first", e.Name, path))
			continue
		}
		var m Measurement
		if failed := readRecord(path, &m); failed != nil {
			err = errors.Join(err, bad, failed)
			continue
		}
		if bad = errors.Join(bad, m.after(p, e, path)); bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		judged := e.judge(p, &m)
		if judged.failures() > 0 {
			j.Verdict = "stop"
		}
		j.Experiments = append(j.Experiments, judged)
	}
	if err != nil {
		return Judgement{}, err
	}
	if !j.Trusted() {
		j.Verdict = "not to be trusted"
	}
	return j, nil
}

// after says what keeps a measurement from being one of a prediction made before it.
func (m *Measurement) after(p *Prediction, e *Experiment, path string) (err error) {
	if m.Experiment != e.Name {
		err = errors.Join(err, fmt.Errorf("%s: must be of experiment %s, is of %q", path, e.Name, m.Experiment))
	}
	if m.Digest != e.Digest {
		err = errors.Join(err, fmt.Errorf("%s: must be of the experiment as it is, %s, is of %s", path, short(e.Digest), short(m.Digest)))
	}
	if digest := p.digest(); m.Prediction != digest {
		err = errors.Join(err, fmt.Errorf("%s: must follow the prediction as it is, %s, follows %s: a prediction is not changed after its measurement",
			path, short(digest), short(m.Prediction)))
	}
	if !m.Started.After(p.Written) {
		err = errors.Join(err, fmt.Errorf("%s: must start after its prediction was written, %s, started %s", path, p.Written.UTC().Format(time.RFC3339Nano), m.Started.UTC().Format(time.RFC3339Nano)))
	}
	if m.ID <= p.ID {
		err = errors.Join(err, fmt.Errorf("%s: id: must be above its prediction's, %d, is %d", path, p.ID, m.ID))
	}
	if err = errors.Join(err, e.complete(m.Values, path)); err != nil {
		return err
	}
	return e.effects(m.Effects, path)
}

// effects refuses effects that are not those of the explanations with a control, in order.
func (e *Experiment) effects(effects []Effect, path string) error {
	var claims, found []string
	for _, x := range e.Explanations {
		if x.Control != "" {
			claims = append(claims, x.Claim)
		}
	}
	for _, x := range effects {
		found = append(found, x.Claim)
	}
	if !slices.Equal(claims, found) {
		return fmt.Errorf("%s: effects: must be those of %d explanations with a control, in their order, are %d", path, len(claims), len(found))
	}
	return nil
}

func (e *Experiment) judge(p *Prediction, m *Measurement) Judged {
	j := Judged{
		Name: e.Name, Question: e.Question, Distrust: m.Distrust,
		Predicted: fmt.Sprintf("%s, seed %s", stamp(p.Written), seeds(p.Seed, p.Runs)),
		Measured:  fmt.Sprintf("%s, seed %s, %s", stamp(m.Started), seeds(m.Seed, m.Runs), m.By),
	}
	if p.Version != m.Version {
		j.Notes = append(j.Notes, fmt.Sprintf("predicted by version %s, measured by %s: a difference may be the program's", p.Version, m.Version))
	}
	for i, metric := range e.Metrics {
		want, got := p.Values[i], m.Values[i].Value
		j.Metrics = append(j.Metrics, line(metric.Name, want.Value, want.By, got, &metric.Tolerance))
		if k := metric.Published; k != nil {
			j.Published = append(j.Published, line(metric.Name, k.Value, k.Source, got, k.Tolerance))
		}
	}
	effects := m.Effects
	for _, x := range e.Explanations {
		explained := Explained{Claim: x.Claim, Status: "inferred", Effect: x.Effect}
		if x.Runs == Deviation {
			explained.Effect = Deviation + " over runs of " + x.Effect
		}
		if x.Control != "" {
			found := effects[0]
			effects = effects[1:]
			explained.Model, explained.Control = &found.Model, &found.Control
			explained.Status = x.status(found)
		}
		j.Explanations = append(j.Explanations, explained)
	}
	return j
}

func (x Explanation) status(found Effect) string {
	r, err := ratio(found.Control, found.Model)
	switch {
	case err != nil:
		return "inferred"
	case x.Below != nil && r < *x.Below, x.Above != nil && r > *x.Above:
		return "confirmed by " + x.Control
	}
	return "ruled out by " + x.Control
}

func line(metric string, want float64, by string, got float64, t *Tolerance) Line {
	l := Line{Metric: metric, Predicted: want, By: by, Measured: got, Difference: millionths(got - want)}
	if t != nil {
		l.Tolerance, l.Verdict = *t, fails
		if t.Holds(want, got) {
			l.Verdict = holds
		}
	}
	return l
}

func millionths(x float64) float64 {
	if math.Abs(x) > 1e9 {
		return x
	}
	return math.Round(x*1e6) / 1e6
}

// stamp is an instant as records have it, to the second.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// failures counts figures that are off, published ones among them.
func (j Judged) failures() (n int) {
	for _, l := range append(slices.Clone(j.Metrics), j.Published...) {
		if l.Verdict == fails {
			n++
		}
	}
	return n
}

// Trusted says whether every measurement is to be trusted.
func (j Judgement) Trusted() bool {
	return !slices.ContainsFunc(j.Experiments, func(e Judged) bool { return len(e.Distrust) > 0 })
}

// Holds says whether every prediction does.
func (j Judgement) Holds() bool { return j.Verdict == "go on" }

func table(first string, lines []Line) report.Table {
	t := report.Table{Head: []string{"metric", first, "measured", "difference", "tolerance", "verdict"}}
	for _, l := range lines {
		tolerance, verdict := l.Tolerance.String(), l.Verdict
		if verdict == "" {
			tolerance, verdict = "", "-"
		}
		if l.Verdict == fails {
			verdict = "FAILS"
		}
		t.Rows = append(t.Rows, []string{l.Metric, Shown(l.Predicted), Shown(l.Measured), Shown(l.Difference), tolerance, verdict})
	}
	return t
}

// Shown is a figure as people read it; a whole number has no decimals.
func Shown(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return report.Count(int64(x))
	}
	return report.Figure(x)
}

// Tables compare predictions to what was measured and, where there are some, published figures.
func (j Judged) Tables() []report.Table {
	all := []report.Table{table("predicted", j.Metrics)}
	if len(j.Published) > 0 {
		all = append(all, table("published", j.Published))
	}
	return all
}

// Remarks are what stands under an experiment's tables.
func (j Judged) Remarks() (lines []string) {
	for _, x := range j.Explanations {
		text := fmt.Sprintf("%s: %s", x.Status, x.Claim)
		if x.Model != nil {
			text += fmt.Sprintf(" (%s %s, on the control %s)", x.Effect, report.Figure(*x.Model), report.Figure(*x.Control))
		}
		lines = append(lines, text)
	}
	lines = append(lines, j.Notes...)
	for _, d := range j.Distrust {
		lines = append(lines, "not to be trusted: "+d)
	}
	return lines
}

// write writes every experiment with its tables and the verdict.
func (j Judgement) write(w io.Writer, head string, tabled func(report.Table, io.Writer) error, item func(string) string) error {
	var out strings.Builder
	for _, e := range j.Experiments {
		fmt.Fprintf(&out, head, e.Name)
		out.WriteString(item(e.Question))
		out.WriteString(item("predicted " + e.Predicted))
		out.WriteString(item("measured " + e.Measured))
		out.WriteString("\n")
		for i, t := range e.Tables() {
			if i > 0 {
				out.WriteString("\n")
			}
			if err := tabled(t, &out); err != nil {
				return err
			}
		}
		if notes := e.Remarks(); len(notes) > 0 {
			out.WriteString("\n")
			for _, note := range notes {
				out.WriteString(item(note))
			}
		}
		out.WriteString("\n")
	}
	out.WriteString(report.Wrap(j.End()))
	_, err := io.WriteString(w, out.String())
	return err
}

// End is the last line.
func (j Judgement) End() string {
	failed, of := 0, 0
	for _, e := range j.Experiments {
		failed += e.failures()
		of += len(e.Metrics) + len(e.Published)
	}
	if !j.Trusted() {
		return "no verdict: a measurement is not to be trusted"
	}
	if failed == 0 {
		return fmt.Sprintf("go on: no figure of %d is off", of)
	}
	return fmt.Sprintf("stop: %d of %d figures are off; find which of the two is wrong, and leave the prediction as it is", failed, of)
}

// WriteTable writes the judgement for people.
func (j Judgement) WriteTable(w io.Writer) error {
	return j.write(w, "%s\n", report.Table.WriteText, report.Wrap)
}

// WriteMarkdown writes it for a pull request.
func (j Judgement) WriteMarkdown(w io.Writer) error {
	return j.write(w, "### %s\n\n", report.Table.WriteMarkdown, func(text string) string { return "- " + text + "\n" })
}
