package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"llmsim/picture"
	"llmsim/plan"
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
)

// An outFile is a file that a flag names; without a path it was not asked for.
type outFile struct{ flag, path string }

// spareInputs refuses outputs that would take the place of what the run reads.
func spareInputs(inputs []input, outs []outFile) (err error) {
	for _, out := range outs {
		for _, in := range inputs {
			if out.path != "" && report.SameOutput(out.path, in.path) {
				err = errors.Join(err, fmt.Errorf("%s %s, %s: must be two files, are one", out.flag, out.path, in.name))
			}
		}
	}
	return err
}

// apart refuses two outputs that are one file.
func apart(outs []outFile) error {
	for i, a := range outs {
		for _, b := range outs[i+1:] {
			if a.path != "" && b.path != "" && report.SameOutput(a.path, b.path) {
				return fmt.Errorf("%s %s, %s %s: must be two files, are one", a.flag, a.path, b.flag, b.path)
			}
		}
	}
	return nil
}

// An openPage is the file of --html, opened before the work whose result goes there; or none.
type openPage struct{ file *report.AtomicFile }

// openPage opens a page. The scenario may be nil.
func (s *scenarioFlags) openPage(path string, loaded *scenarios.Scenario) (openPage, error) {
	if path == "" {
		return openPage{}, nil
	}
	if loaded != nil {
		if err := spareInputs(s.inputs(loaded), []outFile{{"--html", path}}); err != nil {
			return openPage{}, err
		}
	}
	file, err := report.CreateAtomic(path)
	if err != nil {
		return openPage{}, fmt.Errorf("--html: %w", err)
	}
	return openPage{file}, nil
}

func (p openPage) commit() error {
	if p.file == nil {
		return nil
	}
	return p.file.Commit()
}

func (p openPage) abort() {
	if p.file != nil {
		p.file.Abort()
	}
}

// watchedSteps is how long a run is watched for a picture of a plan.
const watchedSteps = 5_000_000

// drawPlan writes the page of a plan, for which one replica is simulated at several rates, and its answer once
// more, watched.
func drawPlan(ctx context.Context, file *report.AtomicFile, s *scenarios.Scenario, a *plan.Answer) error {
	progress := report.NewProgress(os.Stderr, 0)
	defer progress.Done()
	curve, err := plan.Curve(ctx, s, a.Rates(), progress.Set)
	if err != nil {
		return err
	}
	run, err := watch(ctx, s, a.Replicas)
	if err != nil {
		return err
	}
	return picture.WritePlan(file, a, curve, run)
}

// mostWatched is how many replicas are watched: more tell nothing that these don't.
const mostWatched = 4096

// watch runs so many replicas of a scenario and looks on; nil where there are too many.
func watch(ctx context.Context, s *scenarios.Scenario, replicas int) (*picture.Run, error) {
	fleet := *s
	fleet.Fleet.Replicas = replicas
	if replicas*s.Engine.DataParallelSize > mostWatched {
		return nil, nil
	}
	source, notes, err := fleet.Source()
	if err != nil {
		return nil, err
	}
	id, err := plan.Identify(&fleet, notes)
	if err != nil {
		return nil, err
	}
	watched := picture.NewRun(&fleet)
	run := sim.NewRun(fleet.Cluster(), source)
	steps, cut := 0, false
	for rounds := 0; !cut; rounds++ {
		p, more := run.Advance()
		if !more {
			break
		}
		watched.Take(p)
		steps += len(p.Steps)
		cut = steps > watchedSteps
		if rounds%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	watched.Summary = watched.Recorder.Summary(id)
	watched.Note = fmt.Sprintf("The charts below are of one more run of %s requests, its warm-up included.", report.Count(watched.Summary.Requests.Arrived))
	if cut {
		watched.Note = fmt.Sprintf("The charts below are of the first %s steps of one more run, its warm-up included.", report.Count(int64(steps)))
	}
	return watched, run.Err()
}
