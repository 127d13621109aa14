package main

import (
	"os"

	"github.com/spf13/cobra"

	"llmsim/plan"
	"llmsim/report"
)

func newPlanCommand() *cobra.Command {
	var flags scenarioFlags
	var format string
	c := &cobra.Command{
		Use:   "plan",
		Short: "say how many replicas sustain a load, and what breaks first",
		Long: `Finds the smallest number of replicas that sustains the load, or, with
--replicas, says whether so many do. Runs are made longer until that is clear;
the warm-up is left out of what is shown.`,
		Example: `  llmsim plan --rate 80
  llmsim plan --rate 90 --replicas 1
  llmsim plan --trace requests.csv --slo ttft-p99=500ms,itl-p99=50ms`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			s, err := flags.load()
			if err != nil {
				return err
			}
			progress := report.NewProgress(os.Stderr, 0)
			answer, err := plan.Ask(c.Context(), plan.Question{
				Scenario: s,
				Fixed:    flags.sets("cluster.replicas"),
				Progress: progress.Set, Sensitivity: true,
			})
			progress.Done()
			if err != nil {
				return err
			}
			if err := writeResult(c.OutOrStdout(), answer, format); err != nil {
				return err
			}
			if !answer.Verdict.Holds {
				return errNo
			}
			return nil
		},
	}
	flags.register(c)
	registerFormat(c, &format)
	helpByGroup(c, "scenario", "Scenario", "output", "Output", "", "Other")
	return c
}
