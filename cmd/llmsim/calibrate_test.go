package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const timings = "../../calibration/testdata/h100-sxm-gemm.csv"

// The keys are a contract with scripts, and the file is what a scenario reads.
func TestCalibrate(t *testing.T) {
	out := filepath.Join(t.TempDir(), "fit.yaml")
	a := invoke(t.Context(), "calibrate", timings, "--fit", "gemm_memory_efficiency,gemm_compute_efficiency,gemm_launch", "--format", "json", "--out", out)
	if a.code != exitYes || a.errs != "" {
		t.Fatalf("%v, want 0", a)
	}
	var result struct {
		Parameters []struct {
			Name          string
			Fitted        float64
			StandardError *float64 `json:"standard_error"`
			AtBound       *bool    `json:"at_bound"`
		}
		Errors []struct {
			Figure  string
			HeldOut bool `json:"held_out"`
			After   struct{ Median float64 }
		}
		Correlations []any
		Condition    float64
		FittedOn     []string `json:"fitted_on"`
		Notes        []string
	}
	if err := json.Unmarshal([]byte(a.stdout), &result); err != nil {
		t.Fatal(err)
	}
	// The fixture was made of 0.80, 0.70 and 4 us.
	for i, want := range []float64{0.80, 0.70, 4} {
		if p := result.Parameters[i]; p.Fitted < 0.93*want || p.Fitted > 1.07*want || p.StandardError == nil || p.AtBound == nil {
			t.Errorf("%+v, want about %v", p, want)
		}
	}
	if len(result.Errors) != 2 || len(result.FittedOn) != 1 || result.Condition < 1 || result.Errors[0].HeldOut == result.Errors[1].HeldOut {
		t.Errorf("%+v, want errors of both halves and one file", result)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), "gemm_launch: ") || !strings.Contains(string(text), result.FittedOn[0]) {
		t.Errorf("%v:\n%s", err, text)
	}
	b := invoke(t.Context(), "simulate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--rate", "1", "--requests", "20", "--format", "json",
		"--set", "cost.model=operators", "--set", "cost.parameter_file="+out)
	if b.code != exitYes {
		t.Errorf("%v, want a scenario to read the file", b)
	}
	again := out + "2"
	if c := invoke(t.Context(), "calibrate", timings, "--fit", "gemm_memory_efficiency,gemm_compute_efficiency,gemm_launch", "--out", again); c.code != exitYes {
		t.Fatalf("%v, want 0", c)
	}
	if second, err := os.ReadFile(again); err != nil || string(second) != string(text) {
		t.Errorf("the same inputs gave (%v)\n%s\nand then\n%s", err, text, second)
	}
}

func TestCalibrateForPeople(t *testing.T) {
	for _, format := range []string{"table", "md", "csv"} {
		a := invoke(t.Context(), "calibrate", timings, "--format", format)
		if a.code != exitYes || a.errs != "" || !strings.Contains(a.stdout, "gemm_memory_efficiency") {
			t.Errorf("%v, want 0 and a parameter's name", a)
		}
		a = invoke(t.Context(), "calibrate", "--list", "--format", format)
		if a.code != exitYes || !strings.Contains(a.stdout, "mixed_attention_factor") {
			t.Errorf("%v, want all parameters", a)
		}
	}
}

func TestCalibrateRefuses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "fit.yaml")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"link_efficiency has no influence", []string{timings, "--fit", "gemm_memory_efficiency,link_efficiency"}},
		{"gemm_launch and step_overhead are collinear", []string{measuredRun, "--fit", "gemm_launch,step_overhead"}},
		{"did you mean gemm_launch?", []string{timings, "--fit", "gemm_lanch"}},
		{"--gpu: \"z80\" is not in the catalogue", []string{timings, "--gpu", "z80"}},
		{"nowhere.csv: no such file", []string{"nowhere.csv"}},
		{"is both fitted to and held out", []string{measuredRun, "--hold-out", measuredRun}},
		{"--preset: must be one of in-process, served", []string{timings, "--preset", "fast"}},
		{"--dtype: must be one of bf16, fp8", []string{timings, "--dtype", "int3"}},
		{"--max-evaluations: must be from 1", []string{timings, "--max-evaluations", "0"}},
		{"makes no sense under roofline", []string{measuredRun, "--set", "cost.model=roofline"}},
	} {
		refused(t, c.want, append([]string{"calibrate", "--out", out}, c.args...)...)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: wrote a file", c.args)
			os.Remove(out)
		}
	}
	refused(t, "needs at least one FILE", "calibrate")
	refused(t, "--fit: needs names of parameters", "calibrate", timings, "--fit", "")
	refused(t, "is what is read, must be another file", "calibrate", timings, "--out", timings)
}
