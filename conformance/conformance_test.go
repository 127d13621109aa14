package conformance

import (
	"testing"

	"llmsim/internal/shared"
	"llmsim/sim/vllmv1"
)

// The decisions of the real scheduler, block ids included, are those that the rules give.
func TestRecordedDecisions(t *testing.T) {
	profile, err := vllmv1.FindProfile(vllmv1.DefaultProfile)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{shared.Golden(t, "vllm-v1", "sync.jsonl.gz"), shared.Golden(t, "vllm-v1", "async.jsonl.gz")}
	r, err := Check(t.Context(), files, profile)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cases != 400 || r.Steps != 15161+8835 || r.Mismatches != 0 {
		t.Errorf("Check = %d cases, %d steps, %d mismatches, want 400, 23996, 0", r.Cases, r.Steps, r.Mismatches)
	}
	for _, m := range r.First {
		t.Errorf("%s:%d: %s: step %d: %s: expected %s, got %s", m.File, m.Line, m.Case, m.Step, m.Field, m.Expected, m.Got)
	}
}
