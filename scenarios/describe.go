package scenarios

import (
	"fmt"
	"strings"
)

// String describes the workload in a line for people.
func (w Workload) String() string {
	a := w.Arrivals
	var text string
	rate := fmt.Sprintf("%g req/s", a.Rate)
	if w.InSessions() {
		rate = fmt.Sprintf("%g sessions/s", a.Rate)
	}
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
		text = fmt.Sprintf("gamma arrivals at %s, CV %g", rate, a.CV)
	case "poisson":
		text = fmt.Sprintf("Poisson arrivals at %s", rate)
	default:
		text = fmt.Sprintf("%s arrivals at %s", a.Process, rate)
	}
	if a.Grid > 0 {
		text += fmt.Sprintf(" on a grid of %v", a.Grid)
	}
	if w.InSessions() {
		text += fmt.Sprintf(", sessions of %s turns", w.Sessions.Turns)
		if w.Sessions.ThinkTime > 0 {
			text += fmt.Sprintf(" that think for %v", w.Sessions.ThinkTime)
		}
		text += fmt.Sprintf(", %s new in / %s out tokens a turn", w.Prompt, w.Output)
	} else {
		text += fmt.Sprintf(", %s in / %s out tokens", w.Prompt, w.Output)
	}
	switch p := w.Prefix; p.Groups {
	case 0:
		return text
	case 1:
		return text + fmt.Sprintf(", one system prompt of %d tokens", p.Tokens)
	default:
		return text + fmt.Sprintf(", %d system prompts of %d tokens", p.Groups, p.Tokens)
	}
}

// InSessions reports whether requests are the turns of conversations.
func (w Workload) InSessions() bool { return w.Sessions.Turns.Kind != "" }

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
