package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/calibration"
	"llmsim/report"
	"llmsim/scenarios"
)

func newCalibrateCommand() *cobra.Command {
	var sets, held []string
	var setting calibration.Setting
	var fit, out, format string
	var most int
	var list bool
	c := &cobra.Command{
		Use:   "calibrate FILE...",
		Short: "fit constants of the operators cost model to measurements",
		Long: `Fits constants of the operators cost model to measurements, told apart by what
is in them: a run's *.meta.json with its *.requests.csv, a table of closed-loop
runs, or timings of single operators, such as h100_sxm-vllm-0.19.0-gemm.csv.

Runs and tables are simulated with other constants until their requests come
out as measured. Of tables and timings half is held out and compared; of runs,
those that --hold-out names. What the measurements can't tell is refused: a
constant that changes nothing, and constants of which one makes up for another.

The result is a parameter file, which a scenario names by cost.parameter_file.`,
		Example: `  llmsim calibrate run.requests.csv --out fit.yaml
  llmsim calibrate a.requests.csv --fit step_overhead,kv_efficiency --hold-out b.requests.csv
  llmsim calibrate h100_sxm-gemm.csv h100_sxm-generation_attention.csv
  llmsim simulate --set cost.model=operators --set cost.parameter_file=fit.yaml ...`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && !list {
				return fmt.Errorf("%s needs at least one FILE\nsee: %s --help", c.CommandPath(), c.CommandPath())
			}
			if len(args) > 0 && list {
				return fmt.Errorf("--list: tells of all parameters, takes no FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := errors.Join(checkFormat(format), checkGiven(c.Flags(), "catalogue", "out", "fit", "gpu"))
			if presets := []string{"in-process", "served"}; c.Flags().Changed("preset") && !slices.Contains(presets, setting.Preset) {
				err = errors.Join(err, fmt.Errorf("--preset: must be one of %s, is %q", strings.Join(presets, ", "), setting.Preset))
			}
			if c.Flags().Changed("dtype") && !slices.Contains(calibration.Dtypes, setting.Dtype) {
				err = errors.Join(err, fmt.Errorf("--dtype: must be one of %s, is %q", strings.Join(calibration.Dtypes, ", "), setting.Dtype))
			}
			if most < 1 || most > 1_000_000 {
				err = errors.Join(err, fmt.Errorf("--max-evaluations: must be from 1 to 1000000, is %d", most))
			}
			for _, set := range sets {
				edit, bad := scenarios.ParseEdit(set)
				err = errors.Join(err, bad)
				setting.Edits = append(setting.Edits, edit)
			}
			if fit != "" {
				for name := range strings.SplitSeq(fit, ",") {
					setting.Fit = append(setting.Fit, strings.TrimSpace(name))
				}
			}
			for _, name := range setting.Fit {
				if _, bad := calibration.Parameter(name); bad != nil {
					err = errors.Join(err, fmt.Errorf("--fit: %w", bad))
				}
			}
			if err != nil {
				return err
			}
			if list {
				return writeResult(c.OutOrStdout(), calibration.Parameters(), format)
			}
			in, err := calibration.Open(args, held)
			if err != nil {
				return err
			}
			return calibrate(c, in, setting, most, out, format)
		},
	}
	c.Flags().StringVar(&fit, "fit", "", "`PARAMETERS` to fit, with commas between; default: what the files can mostly tell")
	annotate(c.Flags(), "fit", "fit")
	c.Flags().StringArrayVar(&held, "hold-out", nil, "a run's `FILE` to compare with but not to fit to; repeatable")
	annotate(c.Flags(), "hold-out", "fit")
	c.Flags().IntVar(&most, "max-evaluations", 600, "simulate the measurements about `N` times at most")
	annotate(c.Flags(), "max-evaluations", "fit")
	c.Flags().BoolVar(&list, "list", false, "tell of all parameters: what they are, bounds, and what measurements tell them")
	annotate(c.Flags(), "list", "fit")
	c.Flags().StringArrayVar(&sets, "set", nil, "set any field of every scenario, as `PATH=VALUE`; repeatable")
	annotate(c.Flags(), "set", "scenario")
	c.Flags().StringVar(&setting.GPU, "gpu", "", "take a table's rows of this GPU; the GPU of timings, if their files' `NAME` has none")
	annotate(c.Flags(), "gpu", "scenario")
	c.Flags().StringVar(&setting.Dtype, "dtype", "", "take timings of one `FORMAT` alone, bf16 or fp8, as far as the files tell")
	annotate(c.Flags(), "dtype", "scenario")
	c.Flags().StringVar(&setting.Preset, "preset", "", "start from constants of a `WAY` of use, in-process or served; default: as measured")
	annotate(c.Flags(), "preset", "scenario")
	c.Flags().StringVar(&setting.Catalogue, "catalogue", "", "more models and GPUs, a `FILE`")
	annotate(c.Flags(), "catalogue", "scenario")
	registerFormat(c, &format)
	c.Flags().StringVar(&out, "out", "", "write the parameter file, a `FILE`")
	annotate(c.Flags(), "out", "output")
	helpByGroup(c, "fit", "Fit", "scenario", "Scenarios", "output", "Output", "", "Other")
	return c
}

func calibrate(c *cobra.Command, in calibration.Inputs, setting calibration.Setting, most int, out, format string) error {
	var file *report.AtomicFile
	if out != "" {
		for _, read := range in.Files() {
			if report.SameOutput(out, read) {
				return fmt.Errorf("--out: %s is what is read, must be another file", out)
			}
		}
		var err error
		if file, err = report.CreateAtomic(out); err != nil {
			return err
		}
		defer file.Abort()
	}
	problem, notes, err := in.Problem(c.Context(), setting)
	if err != nil {
		return err
	}
	progress := report.NewProgress(os.Stderr, 0)
	problem.MaxEvaluations = most
	problem.Told = func(done int) { progress.Set(int64(done)) }
	result, err := calibration.Fit(c.Context(), problem)
	progress.Done()
	if err != nil {
		return err
	}
	all := in.Report(result, notes)
	if file != nil {
		if err := all.WriteFile(file); err != nil {
			return err
		}
		if err := file.Commit(); err != nil {
			return err
		}
	}
	return writeResult(c.OutOrStdout(), all, format)
}
