package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const traces = "../../workload/testdata/"

func runTrace(ctx context.Context, args ...string) (out, errs string, err error) {
	c := newTraceCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(args)
	err = c.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

// Results go to standard output, notes beside it, so that a pipe gets results alone.
func TestTraceInspect(t *testing.T) {
	for _, format := range []string{"table", "md", "json", "csv"} {
		out, errs, err := runTrace(t.Context(), "inspect", traces+"mooncake.jsonl", "--format", format)
		if err != nil || !strings.Contains(out, "mooncake") || !strings.Contains(errs, "note: "+traces+"mooncake.jsonl: instants lie on a grid of 3s") {
			t.Errorf("trace inspect --format %s = %q, %q, %v", format, out, errs, err)
		}
	}
	out, _, err := runTrace(t.Context(), "inspect", traces+"vidur_lengths.csv", "--format", "json")
	var data struct {
		Arrivals *struct{}                             `json:"arrivals"`
		Rows     struct{ Read, Kept int }              `json:"rows"`
		Tokens   struct{ Input struct{ P50 float64 } } `json:"tokens"`
	}
	if err != nil || json.Unmarshal([]byte(out), &data) != nil || data.Arrivals != nil || data.Rows.Kept != 2 || data.Tokens.Input.P50 != 2893.5 {
		t.Errorf("trace inspect of lengths only = %s, %v, want null arrivals and p50 2893.5", out, err)
	}
}

// A conversion reads back as the same workload, and is whole or not there.
func TestTraceConvert(t *testing.T) {
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "x.csv"), filepath.Join(dir, "x.csv.gz")
	for _, path := range []string{plain, packed} {
		if out, errs, err := runTrace(t.Context(), "convert", traces+"azure2023.csv", "-o", path); err != nil || out != "" || !strings.Contains(errs, path+": 3 requests") {
			t.Errorf("trace convert -o %s = %q, %q, %v", path, out, errs, err)
		}
	}
	const want = "arrival_s,input_tokens,output_tokens\n0.000000000,4808,10\n0.052000000,3180,8\n0.098189100,110,27\n"
	if out, _, err := runTrace(t.Context(), "convert", traces+"azure2023.csv"); out != want || err != nil {
		t.Errorf("trace convert = %q, %v, want %q", out, err, want)
	}
	if got, err := os.ReadFile(plain); string(got) != want || err != nil {
		t.Errorf("%s = %q, %v, want %q", plain, got, err, want)
	}
	file, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpack, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(unpack); string(got) != want || err != nil {
		t.Errorf("%s = %q, %v, want %q", packed, got, err, want)
	}

	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := runTrace(stopped, "convert", traces+"azure2023.csv", "-o", filepath.Join(dir, "stopped.csv")); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted trace convert = %v, want %v", err, context.Canceled)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("files left = %v, %v, want the two conversions", left, err)
	}
}

// Bad input is an error that names it, never half a result.
func TestTraceRefuses(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"inspekt"}, `"inspekt" is not a command, did you mean inspect?`},
		{[]string{"inspect"}, "accepts 1 arg"},
		{[]string{"inspect", traces + "absent.csv"}, "no such file"},
		{[]string{"inspect", traces + "azure2023.csv", "--format", "xml"}, `--format: must be one of table, json, csv, md, is "xml"`},
		{[]string{"inspect", traces + "faults.csv", "--strict"}, `faults.csv:4: ContextTokens: must be a whole number, is "abc"`},
		{[]string{"convert", traces + "vidur_lengths.csv"}, "lengths only"},
		{[]string{"convert", traces + "unsorted.csv", "--strict"}, "unsorted.csv:3: rows must be in order of arrival"},
		{[]string{"convert", traces + "azure2023.csv", "--speedup", "0"}, "--speedup: must be positive, is 0"},
		{[]string{"convert", traces + "azure2023.csv", "--spread", "even"}, `spread: must be uniform or poisson, is "even"`},
		{[]string{"inspect", traces + "azure2023.csv", "--requests", "010"}, `"010" for "--requests" flag: must be a whole number from 0 to 2^63-1`},
		{[]string{"inspect", traces + "azure2023.csv", "--seed", "0x10"}, `"0x10" for "--seed" flag: must be a whole number from 0 to 2^63-1`},
		{[]string{"convert", traces + "azure2023.csv", "-o", ""}, "--output: needs a file name, is empty"},
		{[]string{"convert", traces + "azure2023.csv", "-o", "no/such/x.csv"}, "--output: no/such/x.csv: no such file or directory"},
	} {
		if out, _, err := runTrace(t.Context(), test.args...); err == nil || !strings.Contains(err.Error(), test.want) || out != "" {
			t.Errorf("trace %v = %q, %v, want %q", test.args, out, err, test.want)
		}
	}
}
