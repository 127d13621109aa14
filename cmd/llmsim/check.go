package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/check"
	"llmsim/report"
	"llmsim/scenarios"
)

var checkFormats = []string{"table", "json", "md", "junit", "github"}

// checkFlags are those of check.
type checkFlags struct {
	scenario, format string
	sets             []string
	update           bool
}

func newCheckCommand() *cobra.Command {
	var flags checkFlags
	c := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "hold scenarios to committed figures, and say what moved where they drift",
		Long: `Runs the scenario that each FILE names and compares it to the figures there, each
within its tolerance. Prints what is off only, and of what the time of a step is
made of and of the decisions what moved most. Without a FILE, the figures of the
built-in scenarios are checked.

--update rewrites the figures instead; with --scenario it starts a new FILE.

Exit codes: 0 no drift, 1 drift, 2 bad input.`,
		Example: `  llmsim check
  llmsim check expect/*.yaml --format github
  llmsim check --update expect/*.yaml
  llmsim check --update --scenario e5 expect/e5.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			err := checkGiven(c.Flags(), "scenario")
			if !slices.Contains(checkFormats, flags.format) {
				err = errors.Join(err, fmt.Errorf("--format: must be one of %s, is %q", strings.Join(checkFormats, ", "), flags.format))
			}
			var edits []scenarios.Edit
			for _, text := range flags.sets {
				edit, bad := scenarios.ParseEdit(text)
				edits, err = append(edits, edit), errors.Join(err, bad)
			}
			if err = errors.Join(err, flags.fit(args)); err != nil {
				return err
			}
			if flags.update {
				return flags.rewrite(c, args)
			}
			all, err := check.LoadBuiltIn(edits)
			if len(args) > 0 {
				all, err = check.Load(args, edits, false)
			}
			if err != nil {
				return err
			}
			progress := report.NewProgress(os.Stderr, int64(len(all)))
			r, err := check.Check(c.Context(), all, progress.Set)
			progress.Done()
			if err != nil {
				return err
			}
			if err := writeCheck(c.OutOrStdout(), r, flags.format); err != nil {
				return err
			}
			if !r.Holds() {
				return errNo
			}
			return nil
		},
	}
	c.Flags().BoolVar(&flags.update, "update", false, "rewrite the figures of every FILE, and sum up what changes")
	c.Flags().StringVar(&flags.scenario, "scenario", "", "with --update: start a new FILE for this scenario, a `NAME|FILE`")
	c.Flags().StringArrayVar(&flags.sets, "set", nil, "set any field of every scenario, to see what drifts, or of a new file's, as `PATH=VALUE`; repeatable")
	c.Flags().StringVar(&flags.format, "format", "table", "`FORMAT` of the result: "+strings.Join(checkFormats, ", "))
	return c
}

// fit refuses flags that don't go together.
func (f *checkFlags) fit(args []string) (err error) {
	switch {
	case f.update && len(args) == 0:
		err = errors.New("--update: needs a FILE: the built-in figures are part of the program")
	case !f.update && f.scenario != "":
		err = errors.New("--scenario: starts a new file, with --update")
	case f.update && f.scenario == "" && len(f.sets) > 0:
		err = errors.New("--set: with --update, only for a new file, with --scenario: others have their own set")
	case f.update && f.scenario != "" && len(args) != 1:
		err = fmt.Errorf("--scenario: starts one new FILE, %d are given", len(args))
	}
	if f.update && f.scenario != "" && len(args) == 1 {
		if _, failed := os.Lstat(args[0]); failed == nil {
			err = errors.Join(err, fmt.Errorf("--scenario: %s is there already: leave out --scenario to rewrite it", args[0]))
		}
	}
	if f.update && !slices.Contains([]string{"table", "json", "md"}, f.format) {
		err = errors.Join(err, fmt.Errorf("--format: must be one of table, json, md with --update, is %q", f.format))
	}
	return err
}

// rewrite writes files anew, or a new one.
func (f *checkFlags) rewrite(c *cobra.Command, args []string) error {
	var all []*check.Expectation
	var err error
	if f.scenario == "" {
		all, err = check.Load(args, nil, true)
	} else {
		var e *check.Expectation
		name, folder := f.scenario, filepath.Dir(args[0])
		if strings.ContainsAny(name, `/\.`) {
			if name, err = seenFrom(folder, name); err != nil {
				return err
			}
		}
		e, err = check.New(args[0], folder, name, f.sets)
		all = append(all, e)
	}
	if err != nil {
		return err
	}
	progress := report.NewProgress(os.Stderr, int64(len(all)))
	u, err := check.Prepare(c.Context(), all, progress.Set)
	progress.Done()
	if err != nil {
		return err
	}
	if err := u.Write(); err != nil {
		return err
	}
	return writeResult(c.OutOrStdout(), u, f.format)
}

// seenFrom is a path as a file in a folder gives it.
func seenFrom(folder, path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	seen, err := filepath.Rel(from, to)
	if err != nil {
		return "", err
	}
	return "./" + filepath.ToSlash(seen), nil
}

func writeCheck(w io.Writer, r check.Result, format string) error {
	switch format {
	case "junit":
		return r.WriteJUnit(w)
	case "github":
		return r.WriteGitHub(w)
	}
	return writeResult(w, r, format)
}
