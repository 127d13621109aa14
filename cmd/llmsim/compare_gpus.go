package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/picture"
	"llmsim/plan"
	"llmsim/report"
	"llmsim/scenarios"
)

// anyGPU is the value of --gpu that compares all of the catalogue.
const anyGPU = "any"

// widths are the tensor parallelisms that are compared where none is asked for.
var widths = []int{1, 2, 4, 8}

// compareGPUs answers a plan for every GPU that the model fits.
func compareGPUs(c *cobra.Command, flags *scenarioFlags, format, html string) error {
	catalogue, err := scenarios.OpenCatalogue(flags.value("catalogue"))
	if err != nil {
		return err
	}
	first, err := flags.loadOn(catalogue.GPUs[len(catalogue.GPUs)-1].Name)
	if first != nil && first.Mixed() || err != nil && strings.Contains(err.Error(), "every pool has its own") {
		return fmt.Errorf("--gpu any compares equal replicas, and cluster.pools has several kinds: name a GPU for each pool")
	}
	if err != nil && flags.broken(err) {
		return err
	}
	if first != nil && flags.sets("cluster.replicas") {
		return fmt.Errorf("--gpu any finds how many replicas it takes: leave out --replicas, or name one GPU")
	}
	var candidates []plan.Candidate
	for _, g := range catalogue.GPUs {
		if g.Spec == nil {
			continue // another name for figures that a GPU has
		}
		k := plan.Candidate{GPU: g.Name}
		tps := widths
		if flags.sets("engine.tensor_parallel_size") {
			tps = []int{0}
		}
		for _, tp := range tps {
			var more []scenarios.Edit
			if tp > 0 {
				more = append(more, scenarios.Edit{Path: "engine.tensor_parallel_size", Value: fmt.Sprint(tp), Label: fmt.Sprintf("tensor_parallel_size %d", tp)})
			}
			s, err := flags.loadOn(g.Name, more...)
			if err == nil {
				k.Scenarios = append(k.Scenarios, s)
			} else if k.Reason == "" {
				k.Reason = reasonOf(err)
			}
		}
		candidates = append(candidates, k)
	}
	if !slices.ContainsFunc(candidates, func(k plan.Candidate) bool { return len(k.Scenarios) > 0 }) && err != nil {
		return err
	}
	loaded := first
	for _, k := range candidates {
		if loaded == nil && len(k.Scenarios) > 0 {
			loaded = k.Scenarios[0]
		}
	}
	page, err := flags.openPage(html, loaded)
	if err != nil {
		return err
	}
	defer page.abort()
	progress := report.NewProgress(os.Stderr, 0)
	answer, err := plan.Compare(c.Context(), candidates, progress.Set)
	progress.Done()
	if err != nil {
		return err
	}
	if page.file != nil {
		if err := picture.WriteComparison(page.file, answer); err != nil {
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
}

func reasonOf(err error) string {
	if faults, ok := err.(scenarios.Faults); ok && len(faults) > 0 {
		return faults[0].Message
	}
	return err.Error()
}

// broken says whether a scenario has faults that no GPU mends.
func (s *scenarioFlags) broken(err error) bool {
	faults, ok := err.(scenarios.Faults)
	return !ok || slices.ContainsFunc(faults, func(f scenarios.Fault) bool {
		return !strings.Contains(f.Message, "does not fit") && !strings.Contains(f.Message, "vLLM would not start") && !strings.Contains(f.Message, "must fit")
	})
}
