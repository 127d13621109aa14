package conformance

import (
	"context"
	"io"
	"os"

	"llmsim/sim/vllmv1"
)

// A Report is what replaying files found.
type Report struct {
	Models     string     `json:"models"` // name of the profile
	Versions   string     `json:"versions"`
	Files      []string   `json:"files"`
	Cases      int        `json:"cases"`
	Steps      int        `json:"steps"`      // decisions compared
	Mismatches int        `json:"mismatches"` // cases that differ
	First      []Mismatch `json:"first_mismatches"`
}

// Kept is how many mismatches a report describes at most.
const Kept = 20

// Check replays all cases of files.
func Check(ctx context.Context, files []string, profile vllmv1.Profile) (Report, error) {
	r := Report{Models: profile.Name, Versions: profile.Versions, Files: files, First: []Mismatch{}}
	for _, file := range files {
		if err := r.file(ctx, file, profile.Rules); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Report) file(ctx context.Context, file string, rules vllmv1.Rules) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return err
	} else if info.IsDir() {
		return &Fault{File: file, Text: "must be a file, is a directory"}
	}
	cases, err := NewReader(file, f)
	if err != nil {
		return err
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		k, err := cases.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		steps, m, err := Replay(k, rules)
		if err != nil {
			return err
		}
		r.Cases++
		r.Steps += steps
		if m != nil {
			r.Mismatches++
			if len(r.First) < Kept {
				r.First = append(r.First, *m)
			}
		}
	}
}
