package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/validation"
)

func newValidateCommand() *cobra.Command {
	var sets []string
	var catalogue, perRow, format string
	c := &cobra.Command{
		Use:   "validate PATH...",
		Short: "replay measured runs of a real engine and show how far off the simulation is",
		Long: `Replays measured runs and compares: a run's *.meta.json with its *.requests.csv,
request by request, or a table of closed-loop runs, row by row. A folder stands
for all of these below it. Model, GPU and engine are those of the measurement.

Errors are simulated / measured - 1: of TTFT, TPOT, E2E and throughput, by how
full the replica was, apart for what the constants in use were fitted to. What
can't be simulated is named on standard error.`,
		Example: `  llmsim validate run.meta.json
  llmsim validate measured/ --format json
  llmsim validate table.csv --set cost.step_overhead=1ms --per-row errors.csv`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs at least one PATH\nsee: %s --help", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := errors.Join(checkFormat(format), checkGiven(c.Flags(), "catalogue", "per-row"))
			var options validation.Options
			if catalogue != "" {
				options.Edits = append(options.Edits, scenarios.Edit{Path: "catalogue", Value: fmt.Sprintf("%q", catalogue), Label: "--catalogue " + catalogue})
			}
			for _, set := range sets {
				edit, bad := scenarios.ParseEdit(set)
				err = errors.Join(err, bad)
				options.Edits = append(options.Edits, edit)
			}
			if err != nil {
				return err
			}
			sources, err := validation.Open(args)
			if err != nil {
				return err
			}
			return validate(c, sources, options, perRow, format)
		},
	}
	c.Flags().StringArrayVar(&sets, "set", nil, "set any field of every scenario, as `PATH=VALUE`; repeatable")
	annotate(c.Flags(), "set", "scenario")
	c.Flags().StringVar(&catalogue, "catalogue", "", "more models and GPUs, a `FILE`")
	annotate(c.Flags(), "catalogue", "scenario")
	registerFormat(c, &format)
	c.Flags().StringVar(&perRow, "per-row", "", "write every request and row, measured and simulated, to this CSV `FILE`")
	annotate(c.Flags(), "per-row", "output")
	helpByGroup(c, "scenario", "Scenarios", "output", "Output", "", "Other")
	return c
}

func validate(c *cobra.Command, sources []validation.Source, options validation.Options, perRow, format string) error {
	rows, err := openPerRow(perRow, sources)
	if err != nil {
		return err
	}
	if rows != nil {
		defer rows.Abort()
	}
	predictions, err := predict(c.Context(), sources, options)
	if err != nil {
		return err
	}
	compared := 0
	for _, p := range predictions {
		compared += len(p.Items)
	}
	skips := strings.Join(validation.SkipLines(predictions), "\n")
	if compared == 0 {
		return fmt.Errorf("nothing could be compared\n%s", skips)
	}
	if skips != "" {
		fmt.Fprintln(c.ErrOrStderr(), skips)
	}
	if rows != nil {
		if err := validation.WriteItems(rows, predictions); err != nil {
			return err
		}
		if err := rows.Commit(); err != nil {
			return err
		}
	}
	return writeResult(c.OutOrStdout(), validation.Report(validation.Judge(predictions)), format)
}

func predict(ctx context.Context, sources []validation.Source, options validation.Options) ([]validation.Prediction, error) {
	progress := report.NewProgress(os.Stderr, int64(validation.Simulations(sources)))
	defer progress.Done()
	return validation.Predict(ctx, sources, options, func(done int) { progress.Set(int64(done)) })
}

// openPerRow opens the file of rows, unless it would take the place of a measurement.
func openPerRow(path string, sources []validation.Source) (*report.AtomicFile, error) {
	if path == "" {
		return nil, nil
	}
	for _, s := range sources {
		files := []string{s.Path}
		if s.Run != nil {
			files = append(files, s.Run.File)
		}
		for _, file := range files {
			if report.SameOutput(path, file) {
				return nil, fmt.Errorf("--per-row: %s is what is read, must be another file", path)
			}
		}
	}
	return report.CreateAtomic(path)
}
