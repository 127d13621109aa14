package scenarios

import (
	"fmt"
	"strings"
)

// String describes the workload in a line for people.
func (w Workload) String() string {
	a := w.Arrivals
	var text string
	switch a.Process {
	case "trace":
		text = "trace " + a.Trace.Name
		if a.Spread != "" {
			text += ", spread " + a.Spread
		}
		if a.Speedup != 0 && a.Speedup != 1 {
			text += fmt.Sprintf(", %g times as fast", a.Speedup)
		}
		if w.Requests > 0 {
			text += fmt.Sprintf(", at most %d requests", w.Requests)
		}
		return text
	case "closed":
		text = fmt.Sprintf("closed loop of %d streams", a.Concurrency)
		if a.ThinkTime > 0 {
			text += fmt.Sprintf(" that think for %v", a.ThinkTime)
		}
	case "all-at-once":
		text = "all at once"
	case "gamma":
		text = fmt.Sprintf("gamma arrivals at %g req/s, CV %g", a.Rate, a.CV)
	case "poisson":
		text = fmt.Sprintf("Poisson arrivals at %g req/s", a.Rate)
	default:
		text = fmt.Sprintf("%s arrivals at %g req/s", a.Process, a.Rate)
	}
	if a.Grid > 0 {
		text += fmt.Sprintf(" on a grid of %v", a.Grid)
	}
	return fmt.Sprintf("%s, %s in / %s out tokens", text, w.Prompt, w.Output)
}

func (t Tokens) String() string {
	switch t.Kind {
	case "fixed":
		return fmt.Sprintf("%g", t.A)
	case "uniform":
		return fmt.Sprintf("%g-%g", t.A, t.B)
	case "empirical":
		return strings.TrimSpace("as in " + t.File.Name)
	}
	return fmt.Sprintf("%s(%g, %g)", t.Kind, t.A, t.B)
}
