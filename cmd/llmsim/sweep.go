package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sweep"
)

// sweepFlags are those of sweep, but for the scenario's.
type sweepFlags struct {
	scenario scenarioFlags
	over     []string
	seeds    int
	parallel int
	shard    string
	output   sweepOutput
	pictures sweepPictures
}

// sweepOutput is where a result goes, and how it is written.
type sweepOutput struct{ columns, format, out string }

func newSweepCommand() *cobra.Command {
	flags := sweepFlags{seeds: 1}
	c := &cobra.Command{
		Use:   "sweep",
		Short: "simulate a scenario at every point of a grid over its fields",
		Long: `Simulates a scenario at every point of a grid over any of its fields, as many at
a time as there are processors. All points have the same seeds, so that what
differs between them is not chance.

--over FIELD=VALUES is one axis of the grid: a path as of --set, or the name of
a scenario flag, and values with commas between them, of which each may be a
range FROM..TO:STEP or FROM..TO:xFACTOR. Fields that move together are one axis:
--over tp,replicas=1:8,2:4,4:2. The last axis moves fastest.

With --out, a sweep that was stopped goes on where it was when the same command
is given again; and --shard does a part of it, for llmsim sweep merge.`,
		Example: `  llmsim sweep --over rate=10..90:20
  llmsim sweep --over engine.max_num_seqs=32,64,128 --over rate=20..80:20 --out grid.csv
  llmsim sweep --over rate=10..90:5 --seeds 5 --columns ttft_p99_ms,output_tokens_per_s
  llmsim sweep --over rate=1..200:1 --out rates.csv --shard 0/4`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return flags.run(c) },
	}
	f := c.Flags()
	f.StringArrayVar(&flags.over, "over", nil, "sweep fields over values, as `FIELD=VALUES`; repeatable")
	f.Var(whole[int]{&flags.seeds}, "seeds", "runs of every point: shows means and their standard errors")
	f.StringVar(&flags.shard, "shard", "", "do a part only: `INDEX/OF` from 0/OF on; auto/OF by JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID, auto by a Slurm array")
	f.Var(whole[int]{&flags.parallel}, "parallel", "runs at once (0: as many as processors)")
	for _, name := range []string{"over", "seeds", "shard", "parallel"} {
		annotate(f, name, "sweep")
	}
	flags.scenario.register(c)
	flags.output.register(c)
	flags.pictures.register(c)
	c.AddCommand(newSweepMergeCommand())
	helpByGroup(c, "sweep", "Sweep", "scenario", "Scenario", "output", "Output", "", "Other")
	return c
}

func (o *sweepOutput) register(c *cobra.Command) {
	registerFormat(c, &o.format)
	c.Flags().Lookup("format").Usage += "; of a file csv unless given"
	c.Flags().StringVar(&o.out, "out", "", "write the result to this `FILE`, complete or not at all")
	annotate(c.Flags(), "out", "output")
	c.Flags().StringVar(&o.columns, "columns", "", "the figures to show, `NAMES` with commas between them; an unknown one lists all (default: all, in a table the most used)")
	annotate(c.Flags(), "columns", "output")
}

// check returns the columns that are asked for.
func (o *sweepOutput) check(c *cobra.Command, m sweep.Measure) ([]string, error) {
	if o.out != "" && !c.Flags().Changed("format") {
		o.format = "csv"
	}
	columns, err := m.Columns(o.columns)
	if err != nil {
		err = fmt.Errorf("--columns: %w", err)
	}
	return columns, errors.Join(checkFormat(o.format), err)
}

// question reads all flags but those of the output.
func (s *sweepFlags) question(c *cobra.Command) (q sweep.Question, err error) {
	err = errors.Join(checkGiven(c.Flags(), "shard", "out", "columns", "html", "plot"), s.pictures.check(s.output.out))
	given, bad := s.scenario.given()
	err = errors.Join(err, bad)
	q = sweep.Question{Seeds: s.seeds, Measure: sweep.Simulate, Shard: sweep.Whole, Parallel: s.parallel}
	if len(s.over) == 0 {
		err = errors.Join(err, errors.New("--over: needs a field and its values, such as rate=10..90:10, is not given"))
	}
	set := map[string]string{} // what sets a field, by its path
	for _, e := range given {
		set[e.Path] = e.Label
		if e.Label == "" {
			set[e.Path] = "--set " + e.Path + "=" + e.Value
		}
	}
	for _, text := range s.over {
		axis, bad := sweep.ParseAxis(text)
		if bad != nil {
			err = errors.Join(err, labelled("--over "+text, bad))
			continue
		}
		for i, field := range axis.Fields {
			edit, bad := axisEdit(field, axis.Stops[0][i])
			if other := set[edit.Path]; bad == nil && other != "" {
				bad = fmt.Errorf("--over %s: %s is set by %s already", text, field, other)
			}
			err = errors.Join(err, bad)
			set[edit.Path] = "--over " + text
		}
		q.Axes = append(q.Axes, axis)
	}
	if other := set["seed"]; s.seeds != 1 && strings.HasPrefix(other, "--over ") {
		err = errors.Join(err, fmt.Errorf("%s, --seeds %d: seeds come from one of the two", other, s.seeds))
	}
	if s.shard != "" {
		var bad error
		if q.Shard, bad = sweep.ParseShard(s.shard, os.Getenv); bad != nil {
			err = errors.Join(err, fmt.Errorf("--shard: %w", bad))
		}
		for _, other := range []struct{ flag, why string }{{"format", "goes to llmsim sweep merge"}, {"columns", "goes to llmsim sweep merge"}} {
			if c.Flags().Changed(other.flag) {
				err = errors.Join(err, fmt.Errorf("--%s: %s, a shard writes all figures", other.flag, other.why))
			}
		}
		for _, picture := range []string{"html", "plot"} {
			if c.Flags().Changed(picture) {
				err = errors.Join(err, fmt.Errorf("--%s: goes to llmsim sweep merge, a shard has a part of the points", picture))
			}
		}
		if s.output.out == "" {
			err = errors.Join(err, errors.New("--shard: needs --out FILE, beside which its part goes"))
		}
	}
	q.Load = func(values []string) (*scenarios.Scenario, error) { return s.load(q.Axes, given, values) }
	return q, err
}

// labelled puts what was wrong with a flag behind it, each on its own line.
func labelled(flag string, err error) error {
	return errors.New(flag + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+flag+": "))
}

// load composes the scenario of a point; its files are not what is written.
func (s *sweepFlags) load(axes []sweep.Axis, given []scenarios.Edit, values []string) (*scenarios.Scenario, error) {
	edits := append([]scenarios.Edit{}, given...)
	for _, axis := range axes {
		for _, field := range axis.Fields {
			edit, err := axisEdit(field, values[0])
			if err != nil {
				return nil, err
			}
			edits, values = append(edits, edit), values[1:]
		}
	}
	loaded, err := scenarios.Load(s.scenario.scenario, edits)
	if err != nil {
		return nil, err
	}
	return loaded, spareInputs(s.scenario.inputs(loaded), append(s.pictures.files(), outFile{"--out", s.output.out}))
}

// axisEdit sets a field, a path or the name of a flag, to a value.
func axisEdit(field, value string) (scenarios.Edit, error) {
	label := fmt.Sprintf("--over %s=%s", field, value)
	switch {
	case field == "trace":
		edit := scenarios.TraceEdit(value)
		edit.Label = label
		return edit, nil
	case field == "slo" && !strings.HasPrefix(value, "{"):
		return scenarios.Edit{Path: field, Value: sloBlock(value), Label: label}, nil
	}
	for _, d := range direct {
		if d.flag == field && !strings.HasPrefix(value, "{") { // a block is the field's own
			if d.flag == "model" && isConfig(value) {
				d.path = "model.config"
			}
			return scenarios.Edit{Path: d.path, Value: value, Label: label}, nil
		}
	}
	edit, err := scenarios.ParseEdit(field + "=" + value)
	edit.Label = label
	return edit, err
}

func (s *sweepFlags) run(c *cobra.Command) error {
	q, err := s.question(c)
	columns, bad := s.output.check(c, q.Measure)
	if err := errors.Join(err, bad); err != nil {
		return err
	}
	checking := report.NewProgress(os.Stderr, int64(q.Points()))
	checked, err := sweep.New(c.Context(), q, func(done int) { checking.Set(int64(done)) })
	checking.Done()
	if err != nil {
		return err
	}
	out := s.output.out
	if s.shard != "" {
		out = q.Shard.Path(out)
	}
	pictures, err := s.pictures.open()
	if err != nil {
		return err
	}
	defer pictures.abort()
	journal, err := s.journal(c, checked, out)
	if err != nil {
		return err
	}
	part, err := measure(c.Context(), checked, journal)
	if err != nil {
		if journal != nil {
			err = errors.Join(err, journal.Close())
			fmt.Fprintf(c.ErrOrStderr(), "%s: the same command goes on from here\n", sweep.JournalPath(out))
		}
		return err
	}
	if s.shard != "" {
		err = writePart(out, part)
	} else {
		result := part.Result(q.Measure, columns)
		if err = pictures.draw(result, checked.SLO()); err == nil {
			err = s.output.write(c, result, pictures.files...)
		}
	}
	if err != nil || out == "" {
		return err
	}
	of := ""
	if s.shard != "" {
		of = fmt.Sprintf(", shard %s of a sweep of %d", q.Shard, part.Points)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s%s\n", out, plural(len(part.Lines)/part.Seeds, "point"), of)
	if journal != nil {
		return journal.Remove()
	}
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// journal opens that of an output, once it is clear that the output can be written. What is no file, such as a
// pipe, has none: nil.
func (s *sweepFlags) journal(c *cobra.Command, checked *sweep.Sweep, out string) (*sweep.Journal, error) {
	if out == "" {
		return nil, nil
	}
	if info, err := os.Stat(s.output.out); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		if s.shard != "" {
			return nil, fmt.Errorf("--out %s: must be a file, beside which a shard's part goes", s.output.out)
		}
		return nil, nil
	}
	probe, err := report.CreateAtomic(out)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	probe.Abort()
	journal, err := sweep.OpenJournal(sweep.JournalPath(out), checked.Header)
	if err != nil {
		return nil, err
	}
	if n := len(journal.Lines); n > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%s: goes on after %d of %s\n", sweep.JournalPath(out), n, plural(checked.Runs(), "run"))
	}
	return journal, nil
}

func measure(ctx context.Context, s *sweep.Sweep, j *sweep.Journal) (sweep.Part, error) {
	runs := s.Runs()
	if j != nil {
		runs -= len(j.Lines)
	}
	progress := report.NewProgress(os.Stderr, int64(runs))
	defer progress.Done()
	return s.Run(ctx, j, func(done int) { progress.Set(int64(done)) })
}

// write writes to the file that is asked for, or to standard output. With it appear the files of others that are
// written already: all, or after an error none.
func (o *sweepOutput) write(c *cobra.Command, r sweep.Result, others ...*report.AtomicFile) error {
	if o.out == "" {
		if err := report.CommitAll(others...); err != nil {
			return err
		}
		return r.Write(c.OutOrStdout(), o.format)
	}
	file, err := report.CreateAtomic(o.out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer file.Abort()
	if err := r.Write(file, o.format); err != nil {
		return err
	}
	return commit(append(others, file)...)
}

func writePart(path string, p sweep.Part) error {
	file, err := report.CreateAtomic(path)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer file.Abort()
	if err := p.Write(file); err != nil {
		return err
	}
	return commit(file)
}

// commit makes files appear for good: what they were made from is removed next.
func commit(files ...*report.AtomicFile) error {
	for _, file := range files {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	return report.CommitAll(files...)
}

// expand finds the files of names with * or ? in them, for where there is no shell to do so.
func expand(names []string) (paths []string, err error) {
	for _, name := range names {
		if _, absent := os.Stat(name); absent == nil || !strings.ContainsAny(name, "*?") {
			paths = append(paths, name)
			continue
		}
		found, bad := filepath.Glob(name)
		if bad == nil && len(found) == 0 {
			bad = errors.New("there is no such file")
		}
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, bad))
		}
		paths = append(paths, found...)
	}
	return paths, err
}

func newSweepMergeCommand() *cobra.Command {
	var output sweepOutput
	var drawing sweepPictures
	c := &cobra.Command{
		Use:   "merge PART...",
		Short: "put the parts of all shards of a sweep together",
		Long: `Puts together what llmsim sweep --shard wrote, of all shards. The result is the
same to the byte as that of one sweep without shards. Parts of two sweeps, and
some that are missing, unfinished or given twice, are refused.`,
		Example: `  llmsim sweep merge rates.csv.shard-*-of-4 --out rates.csv`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs at least one PART\nsee: %s --help", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := checkGiven(c.Flags(), "out", "columns", "html", "plot")
			columns, bad := output.check(c, sweep.Simulate)
			err = errors.Join(err, bad, drawing.check(output.out))
			var parts []sweep.Part
			paths, bad := expand(args)
			err = errors.Join(err, bad)
			for _, path := range paths {
				err = errors.Join(err, spareInputs([]input{{path, path}}, append(drawing.files(), outFile{"--out", output.out})))
				part, bad := sweep.ReadPart(path)
				err = errors.Join(err, bad)
				parts = append(parts, part)
			}
			if err != nil {
				return err
			}
			whole, err := sweep.Merge(parts)
			if err != nil {
				return err
			}
			measure, err := sweep.MeasureOf(parts[0])
			if err != nil {
				return err
			}
			pictures, err := drawing.open()
			if err != nil {
				return err
			}
			defer pictures.abort()
			result := whole.Result(measure, columns)
			if err := pictures.draw(result, nil); err != nil {
				return err
			}
			if err := output.write(c, result, pictures.files...); err != nil {
				return err
			}
			if output.out != "" {
				fmt.Fprintf(c.ErrOrStderr(), "%s: %s of %s\n", output.out, plural(whole.Points, "point"), plural(len(parts), "part"))
			}
			return nil
		},
	}
	output.register(c)
	drawing.register(c)
	helpByGroup(c, "output", "Output", "", "Other")
	return c
}
