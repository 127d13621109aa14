package plan_test

import (
	"context"
	"fmt"

	"llmsim/plan"
	"llmsim/scenarios"
)

// How many replicas of the base model sustain 140 requests per second?
func ExampleAsk() {
	s, err := scenarios.Load("base", []scenarios.Edit{{Path: "workload.arrivals.rate", Value: "140"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := plan.Ask(context.Background(), plan.Question{Scenario: s})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Verdict.Holds, answer.Replicas, answer.GPUs)
	// Output: true 2 2
}
