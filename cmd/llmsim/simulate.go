package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"llmsim/picture"
	"llmsim/plan"
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/workload"
)

func newSimulateCommand() *cobra.Command {
	var flags scenarioFlags
	var format string
	var outs outputs
	var explain bool
	c := &cobra.Command{
		Use:   "simulate",
		Short: "run one scenario once, as written, and show what happened",
		Long: `Runs one scenario once, as written: nothing is removed, nothing is judged.
Shows the distributions of TTFT, ITL, TPOT and E2E, the throughput, the steps and
the preemptions.`,
		Example: `  llmsim simulate --scenario e5
  llmsim simulate --trace requests.csv --replicas 2 --format json
  llmsim simulate --rate 40 --set engine.max_num_seqs=32 --requests-out requests.csv`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			if err := checkGiven(c.Flags(), "requests-out", "steps-out", "html", "timeline", "plot"); err != nil {
				return err
			}
			s, err := flags.load()
			if err != nil {
				return err
			}
			if err := spareInputs(flags.inputs(s), outs.files()); err != nil {
				return err
			}
			logs, err := openLogs(outs, s)
			if err != nil {
				return err
			}
			defer logs.abort()
			summary, err := simulate(c.Context(), s, logs, explain)
			if err != nil {
				return err
			}
			if err := logs.commit(); err != nil {
				return err
			}
			return writeResult(c.OutOrStdout(), summary, format)
		},
	}
	flags.register(c)
	registerFormat(c, &format)
	c.Flags().BoolVar(&explain, "explain", false, "show what the time of steps goes to, and how much of the hardware they reach")
	annotate(c.Flags(), "explain", "output")
	for _, out := range []struct {
		to          *string
		flag, usage string
	}{
		{&outs.requests, "requests-out", "write every completed request's life to this CSV `FILE`"},
		{&outs.steps, "steps-out", "write every step to this CSV `FILE`"},
		{&outs.html, "html", "draw the run into this `FILE`, a page that needs no network"},
		{&outs.plot, "plot", "draw the run's charts into this `FILE`, by its end .png, .svg or .pdf"},
		{&outs.timeline, "timeline", "write steps, requests and preemptions to this `FILE`, for ui.perfetto.dev"},
	} {
		c.Flags().StringVar(out.to, out.flag, "", out.usage)
		annotate(c.Flags(), out.flag, "output")
	}
	helpByGroup(c, "scenario", "Scenario", "output", "Output", "", "Other")
	return c
}

// simulate runs a scenario from its start to the end of its last request.
func simulate(ctx context.Context, s *scenarios.Scenario, logs *logs, explain bool) (report.Summary, error) {
	source, notes, err := s.Source()
	if err != nil {
		return report.Summary{}, err
	}
	if len(s.SLO) > 0 {
		notes = append(notes, "the SLO is not judged here: see llmsim plan")
	}
	id, err := plan.Identify(s, notes)
	if err != nil {
		return report.Summary{}, err
	}
	progress := report.NewProgress(os.Stderr, int64(s.Requests()))
	defer progress.Done()
	recorder := &report.Recorder{PoolOf: s.PoolOf()}
	if logs.run != nil {
		logs.run.Recorder = recorder
	}
	var explainer *report.Explainer
	if explain {
		var costs []cost.Explainer
		for _, pool := range s.Pools() {
			costs = append(costs, pool.StepCost())
		}
		explainer = report.NewExplainer(costs, s.PoolOf())
	}
	run := sim.NewRun(s.Cluster(), source)
	for rounds := 0; ; rounds++ {
		p, more := run.Advance()
		if !more {
			break
		}
		recorder.Take(p)
		logs.take(p)
		if explainer != nil {
			explainer.Take(p)
		}
		if rounds%1024 == 0 && ctx.Err() != nil {
			return report.Summary{}, ctx.Err()
		}
		if len(p.Arrived) > 0 {
			progress.Set(p.Arrived[len(p.Arrived)-1].ID + 1)
		}
	}
	if err := run.Err(); err != nil {
		return report.Summary{}, err
	}
	if replay, ok := source.(*workload.Replay); ok && replay.Err() != nil {
		return report.Summary{}, replay.Err()
	}
	summary := recorder.Summary(id)
	if explainer != nil {
		summary.Explain = explainer.Explanation()
	}
	if logs.run != nil {
		logs.run.Summary = summary
	}
	return summary, nil
}

// outputs are the files that were asked for; empty where one was not.
type outputs struct{ requests, steps, html, plot, timeline string }

func (o outputs) files() []outFile {
	return []outFile{{"--requests-out", o.requests}, {"--steps-out", o.steps}, {"--html", o.html}, {"--plot", o.plot}, {"--timeline", o.timeline}}
}

// logs are the files of a run; nil where not asked for.
type logs struct {
	files      []*report.AtomicFile
	requests   *report.RequestLog
	steps      *report.StepLog
	timeline   *report.Timeline
	run        *picture.Run // what is drawn, if anything is
	html, plot *report.AtomicFile
	format     string // of the plot
}

func openLogs(o outputs, s *scenarios.Scenario) (*logs, error) {
	if err := apart(o.files()); err != nil {
		return nil, err
	}
	var l logs
	if o.plot != "" {
		var err error
		if l.format, err = picture.FormatOf(o.plot); err != nil {
			return nil, fmt.Errorf("--plot: %w", err)
		}
	}
	opened := map[string]*report.AtomicFile{}
	for _, out := range o.files() {
		if out.path == "" {
			continue
		}
		file, err := l.open(out.flag, out.path)
		if err != nil {
			return nil, err
		}
		opened[out.flag] = file
	}
	if f := opened["--requests-out"]; f != nil {
		l.requests = report.NewRequestLog(f)
	}
	if f := opened["--steps-out"]; f != nil {
		l.steps = report.NewStepLog(f)
	}
	if f := opened["--timeline"]; f != nil {
		l.timeline = report.NewTimeline(f)
	}
	l.html, l.plot = opened["--html"], opened["--plot"]
	if l.html != nil || l.plot != nil {
		l.run = picture.NewRun(s)
	}
	return &l, nil
}

// open adds a file; after an error none is left.
func (l *logs) open(flag, path string) (*report.AtomicFile, error) {
	file, err := report.CreateAtomic(path)
	if err != nil {
		l.abort()
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	l.files = append(l.files, file)
	return file, nil
}

// take writes a stretch of a run. A file that can't be written fails at commit.
func (l *logs) take(p *sim.Progress) {
	if l.requests != nil {
		for i := range p.Refused {
			l.requests.Skip(p.Refused[i].Request.ID)
		}
		for i := range p.Steps {
			for j := range p.Steps[i].Finished {
				l.requests.Finished(&p.Steps[i].Finished[j])
			}
		}
	}
	if l.steps != nil {
		for i := range p.Steps {
			l.steps.Step(&p.Steps[i])
		}
	}
	if l.timeline != nil {
		l.timeline.Take(p)
	}
	if l.run != nil {
		l.run.History.Take(p)
	}
}

// commit makes the files appear: all, or after an error none.
func (l *logs) commit() error {
	var err error
	if l.html != nil {
		err = picture.WriteRun(l.html, l.run)
	}
	if l.plot != nil {
		err = errors.Join(err, picture.WritePlot(l.plot, l.format, l.run.Charts()))
	}
	if l.timeline != nil {
		err = errors.Join(err, l.timeline.Close())
	}
	if l.requests != nil {
		err = errors.Join(err, l.requests.Close())
	}
	if l.steps != nil {
		err = errors.Join(err, l.steps.Close())
	}
	if err != nil {
		return err
	}
	return report.CommitAll(l.files...)
}

// abort leaves nothing behind of files that were not committed.
func (l *logs) abort() {
	for _, file := range l.files {
		file.Abort()
	}
}
