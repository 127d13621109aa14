package plan

import "llmsim/report"

// TrialsTable is what was simulated, for people.
func (a *Answer) TrialsTable() report.Table { return a.trials() }

// ChoicesTable is the fleets that hold, for people.
func (c *Comparison) ChoicesTable() report.Table { return c.choices() }

// Short names the knob as tables do.
func (x Sensitivity) Short() string { return shortKnob(x.Knob) }
