package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Scenarios that share their files read each once: what is written to it later they don't see.
func TestShareFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	write := func(row string) {
		if err := os.WriteFile(path, []byte("arrival_s,input_tokens,output_tokens\n"+row), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(edits ...Edit) *Scenario {
		s, err := Load("base", append(edits, TraceEdit(path)))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	digest := func(s *Scenario) string {
		d, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write("0,10,5\n")
	first := load()
	before := digest(first)
	write("0,20,5\n")
	shared, apart := load(), load()
	shared.ShareFiles(first)
	if digest(shared) != before || digest(apart) == before {
		t.Errorf("digests: first %s, shared %s, apart %s, want the first two alike", before, digest(shared), digest(apart))
	}
	// Traces that are read in many ways are let go in time.
	for i := range 3 * mostTraces {
		s := load(Edit{Path: "workload.arrivals.speedup", Value: fmt.Sprint(1 + i)})
		s.ShareFiles(first)
		digest(s)
	}
	if n := len(first.files.traces); n > mostTraces {
		t.Errorf("%d traces are held, want at most %d", n, mostTraces)
	}
}
