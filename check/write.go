package check

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"llmsim/report"
)

// WriteTable writes the drifts for people; of what holds only how much.
func (r Result) WriteTable(w io.Writer) error {
	return r.write(w, "%s (%s)\n", report.Table.WriteText, report.Wrap)
}

// WriteMarkdown writes them for a pull request.
func (r Result) WriteMarkdown(w io.Writer) error {
	return r.write(w, "### %s (%s)\n\n", report.Table.WriteMarkdown, func(text string) string { return "- " + text + "\n" })
}

func (r Result) write(w io.Writer, head string, tabled func(report.Table, io.Writer) error, item func(string) string) error {
	var out strings.Builder
	for _, d := range r.Drifts {
		fmt.Fprintf(&out, head, d.File, d.Scenario)
		t := report.Table{Head: []string{"metric", "expected", "found", "difference", "tolerance"}}
		for _, m := range d.Metrics {
			t.Rows = append(t.Rows, []string{m.Key, exact(m.Expected), exact(m.Found), change(m.Expected, m.Found), m.Tolerance.String()})
		}
		if err := tabled(t, &out); err != nil {
			return err
		}
		out.WriteString("\n")
		for _, line := range d.explained() {
			out.WriteString(item(line))
		}
		out.WriteString("\n")
	}
	out.WriteString(r.end() + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// explained is what stands under a drift's figures.
func (d Drift) explained() []string {
	switch {
	case d.Changed:
		return append([]string{"the scenario is not the one that the figures are of: its digest is another"}, d.Moved...)
	case d.Same:
		return append([]string{"the scenario is the one that the figures are of: the figures or the program changed"}, d.Moved...)
	}
	return d.Moved
}

// end is the last line.
func (r Result) end() string {
	off := 0
	for _, d := range r.Drifts {
		off += len(d.Metrics)
	}
	if off == 0 {
		return fmt.Sprintf("no drift: %s of %d %s hold", report.Count(int64(r.Metrics))+" "+plural(r.Metrics, "figure"), r.Files, plural(r.Files, "file"))
	}
	return fmt.Sprintf("drift: %d of %d figures are off, in %d of %d %s", off, r.Metrics, len(r.Drifts), r.Files, plural(r.Files, "file"))
}

// WriteGitHub writes every figure that is off as an annotation of its line: a workflow command of
// GitHub Actions.
func (r Result) WriteGitHub(w io.Writer) error {
	var out strings.Builder
	for _, d := range r.Drifts {
		for _, m := range d.Metrics {
			text := strings.Join(append([]string{m.text()}, d.explained()...), "\n")
			fmt.Fprintf(&out, "::error file=%s,line=%d,title=%s::%s\n", property.Replace(d.File), m.Line,
				property.Replace("drift in "+d.Scenario), message.Replace(text))
		}
	}
	out.WriteString(message.Replace(r.end()) + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// As GitHub's own toolkit escapes what a command carries.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

type testSuites struct {
	XMLName  xml.Name  `xml:"testsuites"`
	Tests    int       `xml:"tests,attr"`
	Failures int       `xml:"failures,attr"`
	Suite    testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	File    string   `xml:"file,attr"`
	Failure *failure `xml:"failure"`
}

type failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a test case for every file.
func (r Result) WriteJUnit(w io.Writer) error {
	suite := testSuite{Name: "llmsim check", Tests: r.Files, Failures: len(r.Drifts)}
	for _, d := range r.Drifts {
		var lines []string
		for _, m := range d.Metrics {
			lines = append(lines, m.text())
		}
		suite.Cases = append(suite.Cases, testCase{"llmsim.check", d.Scenario, d.File, &failure{
			Message: fmt.Sprintf("%d %s off", len(d.Metrics), plural(len(d.Metrics), "figure")), Type: "drift",
			Text: strings.Join(append(lines, d.explained()...), "\n"),
		}})
	}
	for _, h := range r.Held {
		suite.Cases = append(suite.Cases, testCase{"llmsim.check", h.Scenario, h.File, nil})
	}
	text, err := xml.MarshalIndent(testSuites{Tests: suite.Tests, Failures: suite.Failures, Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}
