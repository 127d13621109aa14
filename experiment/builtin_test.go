package experiment

import (
	"strings"
	"testing"
	"time"
)

// clock goes on by a second whenever it is read.
func clock() func() time.Time {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Second)
		return at
	}
}

func newFolder(t *testing.T) Folder {
	return Folder{Path: t.TempDir(), Version: "1.2.3", Now: clock()}
}

func quiet(int64) {}

func load(t *testing.T, nameOrFile string) *Experiment {
	t.Helper()
	e, err := Load(nameOrFile)
	if err != nil {
		t.Fatalf("Load(%s): %v", nameOrFile, err)
	}
	return e
}

func (f Folder) predict(t *testing.T, given Given, all ...*Experiment) []Prediction {
	t.Helper()
	p, err := f.Predict(t.Context(), all, given, quiet)
	if err != nil {
		t.Fatalf("Predict: %v", err)
	}
	return p
}

func (f Folder) measure(t *testing.T, all ...*Experiment) []Measurement {
	t.Helper()
	m, err := f.Measure(t.Context(), all, Measuring{Target: Virtual{}, By: "virtual time"}, quiet)
	if err != nil {
		t.Fatalf("Measure: %v", err)
	}
	return m
}

func (f Folder) judged(t *testing.T, all ...*Experiment) Judgement {
	t.Helper()
	j, err := f.Judge(all)
	if err != nil {
		t.Fatalf("Judge: %v", err)
	}
	return j
}

// Every built-in experiment, predicted and then measured under other seeds, holds, what the
// article published too; and every explanation is confirmed by its control.
func TestBuiltInExperimentsHold(t *testing.T) {
	f := newFolder(t)
	var all []*Experiment
	for _, name := range Names() {
		e := load(t, name)
		if runs := e.Runs * len(e.Models); runs > 10 && testing.Short() {
			continue
		}
		all = append(all, e)
	}
	if len(all) < 5 {
		t.Fatalf("%d experiments, want e1 to e5 at least", len(all))
	}
	f.predict(t, nil, all...)
	f.measure(t, all...)
	j := f.judged(t, all...)
	for _, e := range j.Experiments {
		for _, l := range append(e.Metrics, e.Published...) {
			if l.Verdict != holds {
				t.Errorf("%s: %s: predicted %v by %s, measured %v: %s, want it to hold", e.Name, l.Metric, l.Predicted, l.By, l.Measured, l.Verdict)
			}
		}
		for _, x := range e.Explanations {
			if !strings.HasPrefix(x.Status, "confirmed by ") {
				t.Errorf("%s: %q is %s, want it confirmed", e.Name, x.Claim, x.Status)
			}
		}
	}
	if !j.Holds() || !j.Trusted() {
		t.Errorf("verdict %q, trusted %v, want go on and true", j.Verdict, j.Trusted())
	}
}

// The first tokens of E1 are late for one reason: their prompts share a step.
func TestPhaseLockIsConfirmed(t *testing.T) {
	f, e := newFolder(t), load(t, "e1")
	f.predict(t, nil, e)
	f.measure(t, e)
	x := f.judged(t, e).Experiments[0].Explanations[0]
	if !strings.Contains(x.Claim, "phase-lock") || x.Status != "confirmed by unequal" || *x.Model < 111 || *x.Control > 8 {
		t.Errorf("%q is %s: %v ms, on the control %v; want phase-lock confirmed by unequal, 111.7 and 7.1", x.Claim, x.Status, *x.Model, *x.Control)
	}
}
