package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"llmsim/plan"
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/workload"
)

func newSimulateCommand() *cobra.Command {
	var flags scenarioFlags
	var format, requestsOut, stepsOut string
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
			if err := checkGiven(c.Flags(), "requests-out", "steps-out"); err != nil {
				return err
			}
			s, err := flags.load()
			if err != nil {
				return err
			}
			if err := spareInputs(flags.inputs(s), requestsOut, stepsOut); err != nil {
				return err
			}
			logs, err := openLogs(requestsOut, stepsOut)
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
	c.Flags().StringVar(&requestsOut, "requests-out", "", "write every completed request's life to this CSV `FILE`")
	annotate(c.Flags(), "requests-out", "output")
	c.Flags().StringVar(&stepsOut, "steps-out", "", "write every step to this CSV `FILE`")
	annotate(c.Flags(), "steps-out", "output")
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
	recorder := report.Recorder{PoolOf: s.PoolOf()}
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
	return summary, nil
}

// spareInputs refuses logs that would take the place of what the run reads.
func spareInputs(inputs []input, requestsOut, stepsOut string) (err error) {
	for _, out := range []struct{ flag, path string }{{"--requests-out", requestsOut}, {"--steps-out", stepsOut}} {
		for _, in := range inputs {
			if out.path != "" && report.SameOutput(out.path, in.path) {
				err = errors.Join(err, fmt.Errorf("%s %s, %s: must be two files, are one", out.flag, out.path, in.name))
			}
		}
	}
	return err
}

// logs are the files of --requests-out and --steps-out; nil where not asked for.
type logs struct {
	files    []*report.AtomicFile
	requests *report.RequestLog
	steps    *report.StepLog
}

func openLogs(requestsOut, stepsOut string) (*logs, error) {
	if requestsOut != "" && stepsOut != "" && report.SameOutput(requestsOut, stepsOut) {
		return nil, fmt.Errorf("--requests-out %s, --steps-out %s: must be two files, are one", requestsOut, stepsOut)
	}
	var l logs
	if requestsOut != "" {
		file, err := l.open("--requests-out", requestsOut)
		if err != nil {
			return nil, err
		}
		l.requests = report.NewRequestLog(file)
	}
	if stepsOut != "" {
		file, err := l.open("--steps-out", stepsOut)
		if err != nil {
			return nil, err
		}
		l.steps = report.NewStepLog(file)
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
}

// commit makes the files appear: both, or after an error none.
func (l *logs) commit() error {
	var err error
	if l.requests != nil {
		err = l.requests.Close()
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
