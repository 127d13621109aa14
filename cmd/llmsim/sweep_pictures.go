package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"llmsim/picture"
	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sweep"
)

// sweepPictures are the files that a sweep is drawn into; empty where not asked for.
type sweepPictures struct{ html, plot string }

func (s *sweepPictures) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.html, "html", "", "draw the figures into this `FILE`, a page that needs no network")
	f.StringVar(&s.plot, "plot", "", "draw the figures into this `FILE`, by its end .png, .svg or .pdf")
	annotate(f, "html", "output")
	annotate(f, "plot", "output")
}

func (s *sweepPictures) files() []outFile {
	return []outFile{{"--html", s.html}, {"--plot", s.plot}}
}

// check refuses names that the pictures can't have; out is that of the result, beside which its journal goes.
func (s *sweepPictures) check(out string) (err error) {
	if s.plot != "" {
		if _, bad := picture.FormatOf(s.plot); bad != nil {
			err = fmt.Errorf("--plot: %w", bad)
		}
	}
	others := []outFile{{"--out", out}}
	if out != "" {
		others = append(others, outFile{"the journal of --out,", sweep.JournalPath(out)})
	}
	return errors.Join(err, apart(append(s.files(), others...)))
}

// openPictures are the files of sweepPictures, opened before the work whose result goes there.
type openPictures struct {
	files      []*report.AtomicFile
	html, plot *report.AtomicFile
	format     string // of the plot
}

func (s *sweepPictures) open() (o openPictures, err error) {
	if s.plot != "" {
		if o.format, err = picture.FormatOf(s.plot); err != nil {
			return o, fmt.Errorf("--plot: %w", err)
		}
	}
	for i, file := range []**report.AtomicFile{&o.html, &o.plot} {
		out := s.files()[i]
		if out.path == "" {
			continue
		}
		if *file, err = report.CreateAtomic(out.path); err != nil {
			o.abort()
			return openPictures{}, fmt.Errorf("%s: %w", out.flag, err)
		}
		o.files = append(o.files, *file)
	}
	return o, nil
}

// draw writes the pictures, which are not there until they are committed.
func (o openPictures) draw(r sweep.Result, slo []scenarios.Objective) (err error) {
	if o.html != nil {
		err = picture.WriteSweep(o.html, r, slo)
	}
	if o.plot != nil {
		err = errors.Join(err, picture.WritePlot(o.plot, o.format, picture.SweepCharts(r, slo)))
	}
	return err
}

// abort leaves nothing behind of files that were not committed.
func (o openPictures) abort() {
	for _, file := range o.files {
		file.Abort()
	}
}
