package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/conformance"
	"llmsim/report"
	"llmsim/sim/vllmv1"
)

// newConformanceCommand is the verb that holds the modelled scheduler against recordings of the real one.
func newConformanceCommand() *cobra.Command {
	var models, format string
	c := &cobra.Command{
		Use:   "conformance FILE...",
		Short: "replay recorded decisions of vLLM's scheduler and compare each one",
		Long: `conformance replays decisions that were recorded from vLLM's own scheduler, one
case a line of JSON, plain or gzip, and compares each: who computes how many
tokens, who is preempted, who waits, how many blocks are free, which they are.

Exit codes: 0 all agree, 1 some case differs, 2 bad input.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs at least one FILE\nsee: %s --help", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			show, ok := map[string]func(io.Writer, conformance.Report) error{
				"table": writeConformance,
				"json":  func(w io.Writer, r conformance.Report) error { return report.WriteJSON(w, r) },
			}[format]
			if !ok {
				return fmt.Errorf("--format: must be one of table, json, is %q", format)
			}
			profile, err := vllmv1.FindProfile(models)
			if err != nil {
				return fmt.Errorf("--models: %w", err)
			}
			r, err := conformance.Check(c.Context(), args, profile)
			if err != nil {
				return err
			}
			if err := show(c.OutOrStdout(), r); err != nil {
				return err
			}
			if r.Mismatches > 0 {
				return errNo
			}
			return nil
		},
	}
	var names []string
	for _, p := range vllmv1.Profiles() {
		names = append(names, p.Name)
	}
	c.Flags().StringVar(&models, "models", vllmv1.DefaultProfile, "version whose rules are replayed, a `PROFILE`: "+strings.Join(names, ", "))
	c.Flags().StringVar(&format, "format", "table", "`FORMAT` of the result: table, json")
	return c
}

// writeConformance writes the counts, and the first difference of each case that differs.
func writeConformance(w io.Writer, r conformance.Report) error {
	if _, err := fmt.Fprintf(w, "models %s: %s\ncases %d  steps %d  mismatches %d\n", r.Models, r.Versions, r.Cases, r.Steps, r.Mismatches); err != nil {
		return err
	}
	if r.Mismatches == 0 {
		return nil
	}
	t := report.Table{Head: []string{"case", "step", "field", "expected", "got"}}
	for _, m := range r.First {
		t.Rows = append(t.Rows, []string{printable(m.Case), strconv.Itoa(m.Step), printable(m.Field), printable(m.Expected), printable(m.Got)})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := t.WriteText(w); err != nil {
		return err
	}
	if more := r.Mismatches - len(r.First); more > 0 {
		_, err := fmt.Fprintf(w, "\nshown are the first %d of %d cases that differ\n", len(r.First), r.Mismatches)
		return err
	}
	return nil
}

// printable keeps what a file calls its cases and requests from steering the terminal.
func printable(s string) string {
	quoted := strconv.Quote(s)
	if quoted == `"`+s+`"` {
		return s
	}
	return quoted
}
