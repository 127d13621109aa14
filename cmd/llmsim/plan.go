package main

import (
	"os"

	"github.com/spf13/cobra"

	"llmsim/plan"
	"llmsim/report"
)

func newPlanCommand() *cobra.Command {
	var flags scenarioFlags
	var format, html string
	c := &cobra.Command{
		Use:   "plan",
		Short: "say how many replicas sustain a load, and what breaks first",
		Long: `Finds the smallest number of replicas that sustains the load, or, with
--replicas, says whether so many do. Runs are made longer until that is clear;
the warm-up is left out of what is shown. Says what one replica sustains under
the SLO, what breaks first, what one setting changed alone would give, and what
it costs. With --gpu any, compares all GPUs that the model fits.`,
		Example: `  llmsim plan --rate 80
  llmsim plan --rate 90 --replicas 1
  llmsim plan --model llama-3.1-8b --gpu h100-sxm --rate 80 --slo ttft-p99=500ms,itl-p99=50ms
  llmsim plan --model qwen2.5-7b --gpu any --rate 40 --slo ttft=1s,tpot=50ms,goodput=99%
  llmsim plan --trace requests.csv --slo ttft-p99=500ms,itl-p99=50ms`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			if err := checkGiven(c.Flags(), "html"); err != nil {
				return err
			}
			if flags.value("gpu") == anyGPU {
				return compareGPUs(c, &flags, format, html)
			}
			s, err := flags.load()
			if err != nil {
				return err
			}
			page, err := flags.openPage(html, s)
			if err != nil {
				return err
			}
			defer page.abort()
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
			if page.file != nil {
				if err := drawPlan(c.Context(), page.file, s, answer); err != nil {
					return err
				}
			}
			if err := page.commit(); err != nil {
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
	c.Flags().StringVar(&html, "html", "", "draw the answer into this `FILE`, a page that needs no network")
	annotate(c.Flags(), "html", "output")
	helpByGroup(c, "scenario", "Scenario", "output", "Output", "", "Other")
	return c
}
