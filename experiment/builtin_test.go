package experiment

import (
	"os"
	"testing"
	"time"
)

// Every built-in experiment, predicted and measured in virtual time, holds.
func TestBuiltIn(t *testing.T) {
	f := Folder{Path: t.TempDir(), Version: "test", Now: time.Now}
	var all []*Experiment
	for _, name := range Names() {
		e, err := Load(name)
		if err != nil {
			t.Fatalf("Load(%s): %v", name, err)
		}
		all = append(all, e)
	}
	if _, err := f.Predict(t.Context(), all, nil, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Measure(t.Context(), all, Measuring{Target: Virtual{}, By: "virtual time"}, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	j, err := f.Judge(all)
	if err != nil {
		t.Fatal(err)
	}
	j.WriteTable(os.Stdout)
}
