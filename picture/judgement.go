package picture

import (
	"io"
	"strings"

	"llmsim/experiment"
	"llmsim/plan"
)

// WriteJudgement writes the page of experiments that were judged: the verdict, then each with its tables.
func WriteJudgement(w io.Writer, j experiment.Judgement, version string) error {
	p := newPage(w, "llmsim experiment judge")
	title, reason, _ := strings.Cut(j.End(), "; ")
	if reason == "" {
		reason = plural(len(j.Experiments), "experiment") + " judged, each predicted before it was measured"
	}
	p.verdict(plan.Verdict{Holds: j.Holds(), Reason: reason}, capital(title))
	for _, e := range j.Experiments {
		p.heading(e.Name, e.Question)
		p.text("<p class=\"sub\">predicted ", esc(e.Predicted), "</p>\n<p class=\"sub\">measured ", esc(e.Measured), "</p>\n")
		for _, t := range e.Tables() {
			p.table(t)
		}
		p.list(e.Remarks())
	}
	return p.end(version)
}
