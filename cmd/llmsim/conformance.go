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
			if err := checkFormat(format); err != nil {
				return err
			}
			profile, err := vllmv1.FindProfile(models)
			if err != nil {
				return fmt.Errorf("--models: %w", err)
			}
			r, err := conformance.Check(c.Context(), args, profile)
			if err != nil {
				return err
			}
			if err := writeResult(c.OutOrStdout(), comparison{r}, format); err != nil {
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
	registerFormat(c, &format)
	return c
}

// A comparison is plain data for programs and tables for people.
type comparison struct{ conformance.Report }

// WriteTable writes the counts, and the first difference of each case that differs.
func (r comparison) WriteTable(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "models %s: %s\ncases %d  steps %d  mismatches %d\n", r.Models, r.Versions, r.Cases, r.Steps, r.Mismatches); err != nil {
		return err
	}
	return r.writeFirst(w, report.Table.WriteText, printable)
}

// WriteMarkdown does so in Markdown.
func (r comparison) WriteMarkdown(w io.Writer) error {
	counts := report.Table{
		Head: []string{"models", "versions", "cases", "steps", "mismatches"},
		Rows: [][]string{{r.Models, r.Versions, strconv.Itoa(r.Cases), strconv.Itoa(r.Steps), strconv.Itoa(r.Mismatches)}},
	}
	if err := counts.WriteMarkdown(w); err != nil {
		return err
	}
	return r.writeFirst(w, report.Table.WriteMarkdown, func(s string) string {
		return strings.ReplaceAll(printable(s), "|", `\|`)
	})
}

// writeFirst writes the differences as a table, with cells as it can hold them.
func (r comparison) writeFirst(w io.Writer, write func(report.Table, io.Writer) error, cell func(string) string) error {
	if r.Mismatches == 0 {
		return nil
	}
	t := report.Table{Head: []string{"case", "step", "field", "expected", "got"}}
	for _, m := range r.First {
		t.Rows = append(t.Rows, []string{cell(m.Case), strconv.Itoa(m.Step), cell(m.Field), cell(m.Expected), cell(m.Got)})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := write(t, w); err != nil {
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
