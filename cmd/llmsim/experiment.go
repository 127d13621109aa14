package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmsim/experiment"
	"llmsim/picture"
	"llmsim/plan"
	"llmsim/report"
)

func newExperimentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "experiment",
		Short: "predict figures, measure them afterwards, and judge the two",
		Long: `An experiment asks a question of models that differ in one field each. Its
figures are predicted first, then measured, then judged; a prediction is never
made or changed after its measurement.`,
		Example: `  llmsim experiment predict e1
  llmsim experiment measure --virtual e1
  llmsim experiment judge e1`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newExperimentListCommand(), newExperimentPredictCommand(), newExperimentMeasureCommand(), newExperimentJudgeCommand())
	return c
}

const ofNames = "Without a NAME or FILE, all built-in experiments."

// experiments loads those that arguments name, or all that are built in.
func experiments(args []string) (all []*experiment.Experiment, err error) {
	if len(args) == 0 {
		args = experiment.Names()
	}
	for _, name := range args {
		e, bad := experiment.Load(name)
		all, err = append(all, e), errors.Join(err, bad)
	}
	return all, err
}

func registerDir(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "dir", ".", "`FOLDER` of predictions/ and measurements/")
}

func folder(dir string) experiment.Folder {
	return experiment.Folder{Path: dir, Version: plan.Version, Now: time.Now}
}

// runsOf is how many runs experiments take.
func runsOf(all []*experiment.Experiment) (n int64) {
	for _, e := range all {
		n += int64(len(e.Models) * e.Runs)
	}
	return n
}

func newExperimentListCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "list [NAME|FILE...]",
		Short: "list experiments, their questions and what their models differ in",
		Long:  "Lists experiments, their questions, and the one field in which each model differs.\n" + ofNames,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			all, err := experiments(args)
			if err != nil {
				return err
			}
			return writeResult(c.OutOrStdout(), experiment.NewList(all), format)
		},
	}
	registerFormat(c, &format)
	return c
}

func newExperimentPredictCommand() *cobra.Command {
	var format, dir string
	var values []string
	c := &cobra.Command{
		Use:   "predict [NAME|FILE...]",
		Short: "write predictions, before anything is measured",
		Long: `Runs every model in virtual time and writes what the metrics come to into
predictions/NAME.json, or what --value says for a metric. Refuses an experiment
that has been measured. ` + ofNames,
		Example: `  llmsim experiment predict e1
  llmsim experiment predict e1 --value 'TTFT p50 (ms)=100'`,
		RunE: func(c *cobra.Command, args []string) error {
			err := errors.Join(checkFormat(format), checkGiven(c.Flags(), "dir"))
			given, bad := parseGiven(values)
			all, failed := experiments(args)
			if err = errors.Join(err, bad, failed); err != nil {
				return err
			}
			progress := report.NewProgress(os.Stderr, runsOf(all))
			predictions, err := folder(dir).Predict(c.Context(), all, given, progress.Set)
			progress.Done()
			if err != nil {
				return err
			}
			return writeResult(c.OutOrStdout(), experiment.Predictions(predictions), format)
		},
	}
	registerFormat(c, &format)
	registerDir(c, &dir)
	c.Flags().StringArrayVar(&values, "value", nil, "predict a `METRIC=NUMBER` yourself; repeatable")
	return c
}

func parseGiven(values []string) (experiment.Given, error) {
	given := experiment.Given{}
	var err error
	for _, text := range values {
		i := strings.LastIndexByte(text, '=')
		x, bad := strconv.ParseFloat(text[i+1:], 64)
		if i <= 0 || bad != nil || x-x != 0 {
			err = errors.Join(err, fmt.Errorf("--value: must be METRIC=NUMBER, is %q", text))
			continue
		}
		if _, twice := given[text[:i]]; twice {
			err = errors.Join(err, fmt.Errorf("--value: %q is given twice", text[:i]))
		}
		given[text[:i]] = x
	}
	return given, err
}

func newExperimentMeasureCommand() *cobra.Command {
	var format, dir, target, seed string
	var virtual bool
	c := &cobra.Command{
		Use:   "measure (--virtual | --target URL) [NAME|FILE...]",
		Short: "measure what was predicted",
		Long: `Measures every model of experiments that were predicted, under other seeds than
the prediction's, and writes measurements/NAME.json. ` + ofNames + `

Exit codes: 0 measured, 2 bad input, 3 measured, but not to be trusted.`,
		Example: `  llmsim experiment measure --virtual e1
  llmsim experiment measure --virtual --seed 1000`,
		RunE: func(c *cobra.Command, args []string) error {
			err := errors.Join(checkFormat(format), checkGiven(c.Flags(), "dir", "target"))
			how := experiment.Measuring{Target: experiment.Virtual{}, By: "virtual time"}
			switch {
			case virtual == (target != ""):
				err = errors.Join(err, fmt.Errorf("give one of --virtual and --target URL"))
			case target != "":
				err = errors.Join(err, fmt.Errorf("--target %s: this version has no load generator: use --virtual", target))
			}
			if c.Flags().Changed("seed") {
				n, bad := strconv.ParseUint(seed, 10, 63)
				if bad != nil || n > maxSeed {
					err = errors.Join(err, fmt.Errorf("--seed %s: must be a whole number from 0 to %d", seed, uint64(maxSeed)))
				}
				how.Seed = &n
			}
			all, failed := experiments(args)
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			progress := report.NewProgress(os.Stderr, runsOf(all))
			measured, err := folder(dir).Measure(c.Context(), all, how, progress.Set)
			progress.Done()
			if err != nil {
				return err
			}
			result := experiment.Measurements(measured)
			if err := writeResult(c.OutOrStdout(), result, format); err != nil {
				return err
			}
			if !result.Trusted() {
				return errUntrusted
			}
			return nil
		},
	}
	registerFormat(c, &format)
	registerDir(c, &dir)
	c.Flags().BoolVar(&virtual, "virtual", false, "measure in virtual time")
	c.Flags().StringVar(&target, "target", "", "measure the server at `URL`; takes a load generator, which this version has not")
	c.Flags().StringVar(&seed, "seed", "", "first seed `N` (default: the one after the prediction's last)")
	return c
}

// maxSeed leaves room for the seeds of further runs.
const maxSeed = 1<<62 - 1

func newExperimentJudgeCommand() *cobra.Command {
	var format, dir, html string
	c := &cobra.Command{
		Use:   "judge [NAME|FILE...]",
		Short: "compare predictions to what was measured after them",
		Long: `Compares every prediction to its measurement, and published figures to it, and
says of every explanation whether a control confirms it or it is only inferred.
Refuses a prediction that was made or changed after its measurement, and one of
another experiment than the one there is. ` + ofNames + `

Exit codes: 0 all hold, 1 stop: one fails, 2 bad input, 3 a measurement is not to
be trusted.`,
		RunE: func(c *cobra.Command, args []string) error {
			err := errors.Join(checkFormat(format), checkGiven(c.Flags(), "dir", "html"))
			all, failed := experiments(args)
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			if err := spareInputs(judged(folder(dir), args, all), []outFile{{"--html", html}}); err != nil {
				return err
			}
			j, err := folder(dir).Judge(all)
			if err != nil {
				return err
			}
			if html != "" {
				if err := drawJudgement(html, j); err != nil {
					return err
				}
			}
			if err := writeResult(c.OutOrStdout(), j, format); err != nil {
				return err
			}
			switch {
			case !j.Trusted():
				return errUntrusted
			case !j.Holds():
				return errNo
			}
			return nil
		},
	}
	registerFormat(c, &format)
	registerDir(c, &dir)
	c.Flags().StringVar(&html, "html", "", "draw the judgement into this `FILE`, a page that needs no network")
	return c
}

// judged are the files that judging experiments reads.
func judged(f experiment.Folder, args []string, all []*experiment.Experiment) (read []input) {
	for _, name := range args {
		if strings.ContainsAny(name, `/\.`) { // else it is built in
			read = append(read, input{name, name})
		}
	}
	for _, e := range all {
		if strings.ContainsAny(e.Base, `/\.`) {
			read = append(read, input{e.Base, e.Base})
		}
		for _, m := range e.Models {
			read = append(read, dataFiles(m.Scenario, "workload.arrivals.file ")...)
		}
		for _, path := range f.Records(e.Name) {
			read = append(read, input{path, path})
		}
	}
	return read
}

func drawJudgement(path string, j experiment.Judgement) error {
	file, err := report.CreateAtomic(path)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	defer file.Abort()
	if err := picture.WriteJudgement(file, j, plan.Version); err != nil {
		return err
	}
	return file.Commit()
}
