package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const measuredRun = "../../validation/testdata/tiny.meta.json"

// The keys of the list are a contract with scripts.
func TestValidateJSON(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows.csv")
	a := invoke(t.Context(), "validate", "../../validation/testdata", "--format", "json", "--per-row", rows)
	if a.code != exitYes || !strings.Contains(a.errs, "table.csv:4: skipped: pp_size 2 is not modelled") {
		t.Fatalf("%v, want 0 and the row that is skipped", a)
	}
	var list []struct {
		Source, Model, GPU, Kind string
		N                        int
		Errors                   map[string]map[string]float64
		InSample                 *bool `json:"in_sample"`
	}
	if err := json.Unmarshal([]byte(a.stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Kind != "table" || list[1].Kind != "run" || list[1].N != 5 || list[1].Model != "llama-3.1-8b" ||
		list[1].GPU != "rtx-4090" || list[1].InSample == nil || list[1].Source != measuredRun {
		t.Fatalf("%+v, want the table and the run", list)
	}
	for _, figure := range []string{"ttft", "tpot", "e2e", "throughput"} {
		for _, key := range []string{"mean", "mape", "p50", "p90", "p99"} {
			if _, ok := list[1].Errors[figure][key]; !ok {
				t.Errorf("errors.%s.%s is missing", figure, key)
			}
		}
	}
	text, err := os.ReadFile(rows)
	if err != nil || strings.Count(string(text), "\n") != 1+2+5 {
		t.Errorf("per row (%v):\n%s\nwant a head, two rows and five requests", err, text)
	}
}

func TestValidateForPeople(t *testing.T) {
	for _, format := range []string{"table", "md", "csv"} {
		a := invoke(t.Context(), "validate", measuredRun, "--format", format)
		if a.code != exitYes || a.errs != "" || !strings.Contains(a.stdout, "llama-3.1-8b") {
			t.Errorf("%v, want 0 and the model's name", a)
		}
		for line := range strings.Lines(a.stdout) {
			if format == "table" && len(line) > 101 {
				t.Errorf("a line of %d columns: %s", len(line)-1, line)
			}
		}
	}
}

func TestValidateRefusesBadInput(t *testing.T) {
	refused(t, "needs at least one PATH", "validate")
	refused(t, "nowhere: no such file", "validate", "nowhere")
	refused(t, "--format: must be one of", "validate", measuredRun, "--format", "xml")
	refused(t, "--per-row: needs a file name, is empty", "validate", measuredRun, "--per-row", "")
	refused(t, "is what is read, must be another file", "validate", measuredRun, "--per-row", measuredRun)
	refused(t, "--set engine: must be PATH=VALUE", "validate", measuredRun, "--set", "engine")
	refused(t, "engine.max_num_seq=3: unknown key, did you mean max_num_seqs?", "validate", measuredRun, "--set", "engine.max_num_seq=3")
	refused(t, `"none" is not in the catalogue`, "validate", measuredRun, "--set", "model.name=none")
	refused(t, "nowhere.yaml: ", "validate", measuredRun, "--catalogue", "nowhere.yaml")
}
