package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inFolder makes files in a new folder and goes there.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
}

// refused calls the program, which must refuse: exit code 2, nothing on stdout, the wanted text on
// stderr, and no file that was not there before.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	before := filesHere(t)
	a := invoke(t.Context(), args...)
	if a.code != exitBadInput || a.stdout != "" || !strings.HasPrefix(a.errs, "llmsim: ") || !strings.Contains(a.errs, want) {
		t.Errorf("%v\nwant 2, nothing on stdout, and %q", a, want)
	}
	if after := filesHere(t); !slices.Equal(before, after) {
		t.Errorf("llmsim %s leaves %v, want %v", strings.Join(args, " "), after, before)
	}
}

func filesHere(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// simulateToFiles is a call that would write two files.
func simulateToFiles(args ...string) []string {
	return append([]string{"simulate", "--requests-out", "r.csv", "--steps-out", "s.csv"}, args...)
}

// A value that makes no sense is told of with the flag, what it must be and what it is.
func TestAbsurdValuesAreRefused(t *testing.T) {
	inFolder(t, nil)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--rate", "-5"}, "--rate -5: must be positive, is -5\n"},
		{[]string{"--rate", "0"}, "--rate 0: must be positive, is 0\n"},
		{[]string{"--rate", "NaN"}, `--rate NaN: must be a number, is "NaN"`},
		{[]string{"--rate", ".nan"}, "--rate .nan: must be a number, is .nan\n"},
		{[]string{"--rate", ".inf"}, "--rate .inf: must be at most 1000000, is .inf\n"},
		{[]string{"--rate", "1e9"}, "--rate 1e9: must be at most 1000000, is 1e9\n"},
		{[]string{"--rate", "1e-9"}, "--rate 1e-9: must be at least 1e-06, is 1e-09\n"},
		{[]string{"--rate", "fast"}, `--rate fast: must be a number, is "fast"`},
		{[]string{"--rate", ""}, "--rate : must be a number, is empty\n"},
		{[]string{"--requests", "-1"}, "--requests -1: must be positive, is -1\n"},
		{[]string{"--requests", "0"}, "--requests 0: must be positive, is 0\n"},
		{[]string{"--requests", "010"}, "--requests 010: must be a whole number, is 010\n"},
		{[]string{"--seed", "0x2A"}, "--seed 0x2A: must be a whole number from 0 to 2^63-1, is 0x2A\n"},
		{[]string{"--requests", "1.5"}, "--requests 1.5: must be a whole number, is 1.5\n"},
		{[]string{"--requests", "1e12"}, "--requests 1e12: must be at most 1000000000, is 1e12\n"},
		{[]string{"--seed", "-1"}, "--seed -1: must be a whole number from 0 to 2^63-1, is -1\n"},
		{[]string{"--replicas", "0"}, "--replicas 0: must be positive, is 0\n"},
		{[]string{"--tp", "3000"}, "--tp 3000: must be at most 1024, is 3000\n"},
		{[]string{"--set", "workload.prompt_tokens=-5"}, "--set workload.prompt_tokens=-5: must be positive, is -5\n"},
		{[]string{"--set", "workload.prompt_tokens=0"}, "--set workload.prompt_tokens=0: must be positive, is 0\n"},
		{[]string{"--set", "workload.output_tokens=1e12"}, "--set workload.output_tokens=1e12: must be at most 10000000, is 1e12\n"},
		{[]string{"--set", "workload.output_tokens={uniform: [9, 2]}"}, "workload.output_tokens.uniform: must be [lo, hi] with lo <= hi, is [9, 2]\n"},
		{[]string{"--set", "workload.prompt_tokens=40000"},
			"--set workload.prompt_tokens=40000: prompt and output must fit max_model_len 32768, have 40064 tokens\n"},
		{[]string{"--set", "engine.block_size=0"}, "--set engine.block_size=0: must be positive, is 0\n"},
		{[]string{"--set", "engine.num_gpu_blocks=-3"}, "--set engine.num_gpu_blocks=-3: must not be negative, is -3\n"},
		{[]string{"--set", "engine.num_gpu_blocks=1e15"}, "--set engine.num_gpu_blocks=1e15: must be at most 1000000000, is 1e15\n"},
		{[]string{"--set", "engine.num_gpu_blocks=3"},
			"--set engine.num_gpu_blocks=3: prompt and output must fit the KV cache of 3 blocks, 48 tokens, have 576\n"},
		{[]string{"--set", "cost.step_overhead=-1ms"}, "--set cost.step_overhead=-1ms: must not be negative, is -1ms\n"},
		{[]string{"--pp", "2"}, "--pp 2: pipeline_parallel_size 2 needs a model of known architecture: by figures it has no layers to spread\n"},
		{[]string{"--model", "llama-3.1-8b", "--pp", "33"}, "--pp 33: pipeline_parallel_size must be at most the model's layers, 32, is 33\n"},
		{[]string{"--set", "cost.efficiency.memory=0"}, "--set cost.efficiency.memory=0: must be positive, is 0\n"},
		{[]string{"--set", "model.parameters_billions=70"},
			"--set model.parameters_billions=70: model does not fit: weights of 130.39 GiB and one KV block exceed the usable 72.00 GiB of a GPU " +
				"by 58.39 GiB; tensor_parallel_size 2 is the smallest power of two that fits\n"},
		{[]string{"--set", "model.parameters_billions=70", "--set", "engine.tensor_parallel_size=1"}, "tensor_parallel_size 2 is the smallest power of two that fits\n"},
	} {
		refused(t, c.want, simulateToFiles(c.args...)...)
	}
}

// A name that is not known is told of with one that may be meant.
func TestUnknownNamesAreRefused(t *testing.T) {
	inFolder(t, nil)
	for _, c := range []struct {
		args []string
		want string
	}{
		{simulateToFiles("--model", "article-7"), `--model article-7: "article-7" is not in the catalogue, did you mean article-7b?`},
		{simulateToFiles("--gpu", "h100"), `--gpu h100: "h100" is not in the catalogue, did you mean h100-80gb or h100-pcie or h100-sxm?`},
		{simulateToFiles("--policy", "clasic"), `--policy clasic: "clasic" is not known, did you mean classic?`},
		{simulateToFiles("--scenario", "e7-bunch"), "e7-bunch: no such scenario or file, did you mean e7-bunched"},
		{simulateToFiles("--scenario", "e7.yml"), "e7.yml: no such file, did you mean e7"},
		{simulateToFiles("--set", "engine.max_num_seq=3"), "--set engine.max_num_seq=3: unknown key, did you mean max_num_seqs?"},
		{simulateToFiles("--set", "cluster.router=robin"), `--set cluster.router=robin: "robin" is not known, did you mean round-robin?`},
		{simulateToFiles("--set", "workload.arrivals.process=poison"), `"poison" is not known, did you mean poisson?`},
		{simulateToFiles("--set", "rate"), "--set rate: must be PATH=VALUE"},
		{simulateToFiles("--format", "xml"), `--format: must be one of table, json, csv, md, is "xml"`},
		{simulateToFiles("--rat", "3"), "unknown flag: --rat, did you mean --rate?\nsee: llmsim simulate --help"},
		{simulateToFiles("--rate"), "flag needs an argument: --rate\nsee: llmsim simulate --help"},
		{simulateToFiles("now"), `llmsim simulate takes flags only, not "now"`},
		{[]string{"simulat"}, `"simulat" is not a command, did you mean simulate?`},
		{[]string{"fly"}, "\"fly\" is not a command\nsee: llmsim --help"},
		{[]string{"simulat", "--rate", "3"}, "\"simulat\" is not a command, did you mean simulate?\nsee: llmsim --help"},
		{[]string{"trace", "inspekt"}, "\"inspekt\" is not a command of llmsim trace, did you mean inspect?\nsee: llmsim trace --help"},
		{[]string{"trace", "inspekt", "--strict"}, `"inspekt" is not a command of llmsim trace, did you mean inspect?`},
		{[]string{"trace", "--strict"}, "unknown flag: --strict"},
		{[]string{"help", "simulat"}, `"simulat" is not a command, did you mean simulate?`},
		{[]string{"help", "trace", "convrt"}, `"convrt" is not a command of llmsim trace, did you mean convert?`},
	} {
		refused(t, c.want, c.args...)
	}
}

// A scenario's faults are told of all at once, each with its line, key and value.
func TestFaultyScenariosAreRefused(t *testing.T) {
	inFolder(t, map[string]string{
		"open.yaml":  "name: x\nworkload: {arrivals: {rate: 1}\n",
		"tabs.yaml":  "engine:\n\tblock_size: 3\n",
		"twice.yaml": "seed: 1\nseed: 2\n",
		"many.yaml": "engine: {max_num_seq: 3, block_size: 0}\nworkload:\n  arrivals: {rate: -1}\n  prompt_tokens: -5\n" +
			"  output_tokens: {uniform: [9, 2]}\nfoo: 1\nseed: -1\n",
	})
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	refused(t, "open.yaml:2: must be YAML: did not find expected ',' or '}'", simulateToFiles("--scenario", "open.yaml")...)
	refused(t, "tabs.yaml:2: must be YAML: found character that cannot start any token", simulateToFiles("--scenario", "tabs.yaml")...)
	refused(t, "twice.yaml:2: seed: is given twice", simulateToFiles("--scenario", "twice.yaml")...)
	refused(t, "folder: must be a file, is a folder", simulateToFiles("--scenario", "folder")...)
	refused(t, "many.yaml:1: engine.block_size: must be positive, is 0\n"+
		"many.yaml:1: engine.max_num_seq: unknown key, did you mean max_num_seqs?\n"+
		"many.yaml:3: workload.arrivals.rate: must be positive, is -1\n"+
		"many.yaml:4: workload.prompt_tokens: must be positive, is -5\n"+
		"many.yaml:5: workload.output_tokens.uniform: must be [lo, hi] with lo <= hi, is [9, 2]\n"+
		"many.yaml:6: foo: unknown key, there is name, catalogue, model, hardware, engine, cost, cluster, workload, seed, slo\n"+
		"many.yaml:7: seed: must be a whole number from 0 to 2^63-1, is -1\n"+
		"--tp 0: must be positive, is 0\n", simulateToFiles("--scenario", "many.yaml", "--tp", "0")...)
}

// A trace that is not whole, or holds no request, is refused; when strict, so is one with a row
// that is none.
func TestFaultyTracesAreRefused(t *testing.T) {
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	fmt.Fprintln(pack, "arrival_s,input_tokens,output_tokens")
	for i := range 3000 {
		fmt.Fprintf(pack, "%d.%06d,%d,%d\n", i, i*7919%1_000_000, 10+i%7, 3+i%5)
	}
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	whole := packed.String()
	const head = "arrival_s,input_tokens,output_tokens\n"
	inFolder(t, map[string]string{
		"half.csv.gz":  whole[:len(whole)/2],
		"tail.csv.gz":  whole[:len(whole)-4],
		"wrong.csv.gz": whole[:len(whole)-8] + "abcd" + whole[len(whole)-4:],
		"nothing.csv":  "",
		"rowless.csv":  head,
		"failed.csv":   head + "0,10,0\n1,10,0\n",
		"other.csv":    "name,age\nx,3\n",
		"bad.csv":      head + "0,10,5\n1,abc,5\n2,7,-1\n3,7,3\n",
		"order.csv":    head + "5,10,5\n1,10,5\n",
	})
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, want string }{
		{"half.csv.gz", "gzip data is truncated: the file ends early"},
		{"tail.csv.gz", "gzip data is truncated: the file ends early"},
		{"wrong.csv.gz", "wrong.csv.gz:"},
		{"nothing.csv", "nothing.csv: empty trace: the file has no line that is not blank"},
		{"rowless.csv", "rowless.csv: empty trace: 0 rows: 0 kept"},
		{"failed.csv", "failed.csv: empty trace: 2 rows: 0 kept, 2 skipped (2 zero output, first line 2)"},
		{"other.csv", "other.csv:1:"},
		{"folder", "--trace folder: must be a file, folder is none"},
		{"absent.csv", "--trace absent.csv: must be a file, absent.csv: no such file or directory"},
	} {
		refused(t, c.want, simulateToFiles("--trace", c.file)...)
	}
	refused(t, "bad.csv:3: input_tokens: must be a whole number, is \"abc\"\nbad.csv:4: output_tokens: must not be negative, is \"-1\"\n",
		"trace", "inspect", "bad.csv", "--strict")
	refused(t, "order.csv:3: rows must be in order of arrival: line 3 is at 1", "trace", "convert", "order.csv", "--strict", "-o", "new.csv")
	refused(t, "gzip data is truncated", "trace", "convert", "half.csv.gz", "-o", "new.csv")
}

// When one of two outputs can't be written, neither is left.
func TestOutputsThatCannotBeWrittenAreRefused(t *testing.T) {
	inFolder(t, map[string]string{"locked.csv": "mine\n"})
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join("absent", "x.csv")
	for _, c := range []struct {
		requests, steps, want string
	}{
		{absent, "s.csv", "--requests-out: absent/x.csv: no such file or directory\n"},
		{"r.csv", absent, "--steps-out: absent/x.csv: no such file or directory\n"},
		{"folder", "s.csv", "--requests-out: folder: is a directory\n"},
		{"r.csv", "folder", "--steps-out: folder: is a directory\n"},
	} {
		refused(t, c.want, "simulate", "--requests-out", c.requests, "--steps-out", c.steps)
	}

	// What was there stays when a run is refused.
	refused(t, "--rate -1: must be positive", "simulate", "--rate", "-1", "--requests-out", "locked.csv")
	if text := readText(t, "locked.csv"); text != "mine\n" {
		t.Errorf("locked.csv = %q after a refused run, want it untouched", text)
	}
	if os.Getuid() == 0 {
		return // may write anything
	}
	if err := os.Chmod("locked.csv", 0o400); err != nil {
		t.Fatal(err)
	}
	refused(t, "--requests-out: locked.csv: permission denied\n", "simulate", "--requests-out", "locked.csv")
}

// One file for two logs would hold one of them; a name that is empty is a mistake of the shell's.
func TestOutputsNeedTwoNames(t *testing.T) {
	inFolder(t, map[string]string{"there.csv": "mine\n"})
	if err := os.Symlink("there.csv", "link.csv"); err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs("same.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"same.csv", "same.csv"}, {"same.csv", "./x/../same.csv"}, {"same.csv", absolute}, {"there.csv", "link.csv"},
		{"/dev/stdout", "/dev/stdout"},
	} {
		refused(t, fmt.Sprintf("--requests-out %s, --steps-out %s: must be two files, are one\n", c[0], c[1]),
			"simulate", "--requests-out", c[0], "--steps-out", c[1])
	}
	if text := readText(t, "there.csv"); text != "mine\n" {
		t.Errorf("there.csv = %q after refused runs, want it untouched", text)
	}
	simulated(t, "--requests", "5", "--requests-out", "/dev/null", "--steps-out", "/dev/null")

	refused(t, "llmsim: --requests-out: needs a file name, is empty\n--steps-out: needs a file name, is empty\n",
		"simulate", "--requests-out", "", "--steps-out=")
	refused(t, "llmsim: --scenario: needs a name or a file, is empty\n--trace: needs a file name, is empty\n"+
		"--slo: needs latencies to hold, such as ttft-p99=500ms, is empty\n", simulateToFiles("--scenario", "", "--trace", "", "--slo", " ")...)
	refused(t, "--slo: needs latencies to hold", "plan", "--slo", "")
}

// What stands in the way of the second file when the run ends takes the first back.
func TestLogsAppearBothOrNone(t *testing.T) {
	inFolder(t, map[string]string{"old.csv": "mine\n"})
	for _, requests := range []string{"new.csv", "old.csv"} {
		logs, err := openLogs(outputs{requests: requests, steps: "s.csv"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir("s.csv", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := logs.commit(); err == nil || !strings.HasPrefix(err.Error(), "s.csv: ") || strings.Contains(err.Error(), ".part") {
			t.Errorf("commit() with a folder in the way = %v, want an error of s.csv and no other name", err)
		}
		logs.abort()
		if err := os.Remove("s.csv"); err != nil {
			t.Fatal(err)
		}
		if left := filesHere(t); !slices.Equal(left, []string{"old.csv"}) || readText(t, "old.csv") != "mine\n" {
			t.Errorf("after commit() failed there are %v and old.csv = %q, want it alone and untouched", left, readText(t, "old.csv"))
		}
	}
}
