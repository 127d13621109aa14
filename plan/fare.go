package plan

import (
	"llmsim/report"
	"llmsim/scenarios"
)

// Fare says how an objective fared in a run. Without samples it is not met.
func Fare(o scenarios.Objective, r *report.Recorder) Objective { return fare(o, r) }
