package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// swept calls sweep, which must succeed, and returns what it prints.
func swept(t *testing.T, args ...string) string {
	t.Helper()
	a := invoke(t.Context(), append([]string{"sweep"}, args...)...)
	if a.code != exitYes {
		t.Fatalf("%v, want 0", a)
	}
	return a.stdout
}

var smallSweep = []string{"--over", "rate=20..60:20", "--over", "engine.max_num_seqs=8,64", "--requests", "200"}

// A point of a sweep is what simulate says of it.
func TestSweepAgreesWithSimulate(t *testing.T) {
	out := swept(t, "--over", "rate=20,60", "--over", "policy,model=classic:article-7b,vllm-v1:llama-3.1-8b", "--requests", "300", "--format", "json")
	var result struct {
		Fields []string
		Points []struct {
			At      map[string]string
			Seed    uint64 `json:"base_seed"`
			Digest  string
			Figures map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || len(result.Points) != 4 {
		t.Fatalf("sweep --format json: %v\n%s", err, out)
	}
	for _, p := range result.Points {
		leaves := flatten(t, simulated(t, "--rate", p.At["rate"], "--policy", p.At["policy"], "--model", p.At["model"], "--requests", "300", "--format", "json"))
		if leaves["scenario.digest"] != p.Digest || p.Seed != 42 {
			t.Errorf("%v has the digest %s and seed %d, simulate says %v", p.At, p.Digest, p.Seed, leaves["scenario.digest"])
		}
		for name, path := range map[string]string{
			"arrived": "requests.arrived", "completed": "requests.completed", "refused": "requests.refused",
			"offered_rps": "throughput.offered_rps", "completed_rps": "throughput.completed_rps",
			"input_tokens_per_s": "throughput.input_tokens_per_s", "output_tokens_per_s": "throughput.output_tokens_per_s",
			"ttft_mean_ms": "latency_ms.ttft.mean", "ttft_p99_ms": "latency_ms.ttft.p99", "itl_p50_ms": "latency_ms.itl.p50",
			"tpot_p90_ms": "latency_ms.tpot.p90", "e2e_max_ms": "latency_ms.e2e.max", "queue_p95_ms": "latency_ms.queue.p95",
			"preemptions": "preemptions.total", "batch_mean": "steps.mean_batch", "step_mean_ms": "steps.mean_ms",
			"kv_use_mean": "kv.use_mean", "kv_use_max": "kv.use_max", "bound_weights": "bound.time.weights",
			"blocked_slots": "blocked.slots", "waiting_mean": "queue_length.mean", "virtual_s": "virtual_s",
			"prefix_hit_rate": "prefix_cache.hit_rate", "steps": "steps.count",
		} {
			if got, ok := p.Figures[name]; !ok || got != figureAt(t, leaves, path) {
				t.Errorf("%v: %s = %v, simulate says %v", p.At, name, got, leaves[path])
			}
		}
	}
}

// However a sweep is run, in whatever shards, on however many threads, its file is the same.
func TestSweepGivesTheSameBytes(t *testing.T) {
	inFolder(t, nil)
	want := swept(t, append(smallSweep, "--seeds", "2", "--format", "csv")...)
	swept(t, append(smallSweep, "--seeds", "2", "--out", "whole.csv")...)
	if got := readText(t, "whole.csv"); got != want {
		t.Errorf("--out whole.csv has\n%s\nstandard output\n%s", got, want)
	}
	for _, threads := range []int{1, 3} {
		before := runtime.GOMAXPROCS(threads)
		got := swept(t, append(smallSweep, "--seeds", "2", "--format", "csv")...)
		runtime.GOMAXPROCS(before)
		if got != want {
			t.Errorf("with GOMAXPROCS %d:\n%s\nwant\n%s", threads, got, want)
		}
	}
	for i := range 4 {
		t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(i))
		shard := "auto/4"
		if i == 2 {
			shard = "2/4"
		}
		a := invoke(t.Context(), append([]string{"sweep", "--seeds", "2", "--out", "s.csv", "--shard", shard, "--parallel", fmt.Sprint(i)}, smallSweep...)...)
		if points := []int{2, 2, 1, 1}[i]; a.code != exitYes || a.stdout != "" ||
			a.errs != fmt.Sprintf("s.csv.shard-%d-of-4: %s, shard %d/4 of a sweep of 6\n", i, plural(points, "point"), i) {
			t.Errorf("%v, want 0 and what was written", a)
		}
	}
	for format, args := range map[string][]string{
		"csv": {"s.csv.shard-3-of-4", "s.csv.shard-0-of-4", "s.csv.shard-1-of-4", "s.csv.shard-2-of-4"}, "json": {"s.csv.shard-*-of-4"},
		"table": {"s.csv.shard-?-of-4"}, "md": {"s.csv.shard-*"},
	} {
		whole := swept(t, append(smallSweep, "--seeds", "2", "--format", format, "--columns", "ttft_p99_ms,completed")...)
		if got := swept(t, append([]string{"merge", "--format", format, "--columns", "ttft_p99_ms,completed"}, args...)...); got != whole {
			t.Errorf("merged as %s:\n%s\nunsharded:\n%s", format, got, whole)
		}
	}
	swept(t, "merge", "s.csv.shard-*-of-4", "--out", "s.csv")
	if got := readText(t, "s.csv"); got != want {
		t.Errorf("merged:\n%s\nunsharded:\n%s", got, want)
	}
	rows, err := csv.NewReader(strings.NewReader(want)).ReadAll()
	if err != nil || len(rows) != 7 || rows[0][0] != "rate" || rows[0][3] != "arrived_stderr" || rows[6][0] != "60" || rows[6][1] != "64" {
		t.Errorf("%v: %v, want a head and six rows", err, rows)
	}
}

// A sweep that is killed goes on where it was, when the same command is given again.
func TestSweepGoesOnAfterKill(t *testing.T) {
	inFolder(t, nil)
	args := []string{"sweep", "--over", "rate=10..70:1", "--requests", "3000", "--out"}
	if a := invoke(t.Context(), append(args, "want.csv")...); a.code != exitYes {
		t.Fatal(a)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		c := exec.CommandContext(t.Context(), os.Args[0], append(args, "r.csv", "--parallel", "1")...)
		c.Env = append(os.Environ(), "LLMSIM_AS_PROCESS=1")
		var errs bytes.Buffer
		c.Stderr = &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if text, _ := os.ReadFile("r.csv.partial"); bytes.Count(text, []byte("\n")) > 3 {
				break
			}
		}
		c.Process.Signal(signal)
		c.Wait()
		if files := strings.Join(filesHere(t), " "); files != "r.csv.partial want.csv" {
			t.Fatalf("after %v: %s, stderr %q", signal, files, &errs)
		}
		if signal == syscall.SIGTERM {
			if want := "r.csv.partial: the same command goes on from here\nllmsim: interrupted\n"; errs.String() != want || c.ProcessState.ExitCode() != exitInterrupted {
				t.Errorf("after %v: exit code %d, stderr %q, want %q", signal, c.ProcessState.ExitCode(), &errs, want)
			}
		}
		refused(t, "r.csv.partial: is of sweep sha256:", "sweep", "--over", "rate=10..80:1", "--requests", "3000", "--out", "r.csv")
		a := invoke(t.Context(), append(args, "r.csv")...)
		if a.code != exitYes || !strings.HasPrefix(a.errs, "r.csv.partial: goes on after ") || !strings.HasSuffix(a.errs, "r.csv: 61 points\n") {
			t.Errorf("after %v: %v", signal, a)
		}
		if readText(t, "r.csv") != readText(t, "want.csv") {
			t.Errorf("after %v, r.csv differs from what one run writes", signal)
		}
		if files := strings.Join(filesHere(t), " "); files != "r.csv want.csv" {
			t.Errorf("at the end there are %s", files)
		}
		if err := os.Remove("r.csv"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepInterrupted(t *testing.T) {
	inFolder(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	a := invoke(ctx, append([]string{"sweep", "--out", "r.csv"}, smallSweep...)...)
	if a.code != exitInterrupted || a.stdout != "" || a.errs != "llmsim: interrupted\n" || len(filesHere(t)) != 0 {
		t.Errorf("%v and %v, want %d, one line and no file", a, filesHere(t), exitInterrupted)
	}
}

func TestSweepRefusesBadInput(t *testing.T) {
	inFolder(t, map[string]string{"x.csv": fewRequests, "chat.yaml": fewChat, "lengths.csv": "num_prefill_tokens,num_decode_tokens\n1,2\n"})
	sweep := func(args ...string) []string { return append([]string{"sweep", "--out", "out.csv"}, args...) }
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--over: needs a field and its values, such as rate=10..90:10, is not given", nil},
		{"--over rate: must be FIELD=VALUES", []string{"--over", "rate"}},
		{"--over rate=9..1:1,: 9..1:1: the step must lead from 9 to 1, is 1\n--over rate=9..1:1,: has an empty value", []string{"--over", "rate=9..1:1,"}},
		{"--over rate=0: must be positive, is 0 (1 of 2 points, first rate=0)", []string{"--over", "rate=0,1"}},
		{"--over engine.max_num_seq=1: unknown key, did you mean max_num_seqs? (1 of 2 points", []string{"--over", "engine.max_num_seq=1,2"}},
		{"--over gpu=h100-80g: ", []string{"--over", "gpu=h100-80g,a100-80gb"}},
		{"--rate -1: must be positive, is -1\n", []string{"--over", "tp=1,2", "--rate", "-1"}},
		{"--over rate=1,2: rate is set by --rate 3 already", []string{"--over", "rate=1,2", "--rate", "3"}},
		{"--over seed=1,2: seed is set by --set seed=3 already", []string{"--over", "seed=1,2", "--set", "seed=3"}},
		{"--over workload.arrivals.rate=1: workload.arrivals.rate is set by --over rate=2 already",
			[]string{"--over", "rate=2", "--over", "workload.arrivals.rate=1"}},
		{"--over seed=1,2, --seeds 3: seeds come from one of the two", []string{"--over", "seed=1,2", "--seeds", "3"}},
		{"there must be 1 to 1000 seeds, are 0", []string{"--over", "rate=1,2", "--seeds", "0"}},
		{"there must be 1 to 1000 seeds, are 1001", []string{"--over", "rate=1,2", "--seeds", "1001"}},
		{"a sweep must have at most 1000000 runs, has 1001 x 1000", []string{"--over", "rate=1..1001:1", "--over", "seed=1..1000:1"}},
		{"--shard: must be INDEX/OF such as 0/4, auto/4 or auto, is \"4\"", []string{"--over", "rate=1,2", "--shard", "4"}},
		{"--shard: auto needs JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID", []string{"--over", "rate=1,2", "--shard", "auto"}},
		{"--format: goes to llmsim sweep merge, a shard writes all figures\n--columns: goes to",
			[]string{"--over", "rate=1,2", "--shard", "0/2", "--format", "md", "--columns", "steps"}},
		{"--columns: \"ttft\" is not known, did you mean ttft_", []string{"--over", "rate=1,2", "--columns", "ttft"}},
		{"--format: must be one of table, json, csv, md, is \"xml\"", []string{"--over", "rate=1,2", "--format", "xml"}},
		{"--shard: needs a shard such as 0/4, is empty\n--columns: needs names of figures, is empty", []string{"--over", "rate=1,2", "--shard=", "--columns="}},
		{"--out x.csv, workload.arrivals.file x.csv: must be two files, are one", []string{"--over", "trace=x.csv", "--out", "x.csv"}},
		{"--out chat.yaml, --scenario chat.yaml: must be two files", []string{"--over", "rate=1", "--scenario", "chat.yaml", "--out", "chat.yaml"}},
		{"--out: absent/x.csv: no such file or directory", []string{"--over", "rate=1", "--out", "absent/x.csv"}},
		{"--out /dev/null: must be a file, beside which", []string{"--over", "rate=1", "--out", "/dev/null", "--shard", "0/2"}},
		{"absent.csv: no such file or directory (1 of 2 points, first trace=absent.csv)", []string{"--over", "trace=x.csv,absent.csv"}},
		{"has lengths only, no arrivals", []string{"--over", "trace=x.csv,lengths.csv"}},
		{"\"nothing\" is not a command of llmsim sweep", []string{"nothing"}},
	} {
		refused(t, c.want, sweep(c.args...)...)
	}
	refused(t, "--shard: needs --out FILE, beside which its part goes", "sweep", "--over", "rate=1,2", "--shard", "0/2")
	for want, args := range map[string][]string{
		"llmsim sweep merge needs at least one PART":              nil,
		"nowhere: no such file or directory":                      {"nowhere"},
		"p*: there is no such file":                               {"p*"},
		"x.csv:1: must be a line of a sweep":                      {"x.csv"},
		"--out ./x.csv, x.csv: must be two files, are one":        {"x.csv", "--out", "./x.csv"},
		"--columns: \"foo\" is not known, there is arrived, ":     {"x.csv", "--columns", "foo"},
		"--format: must be one of table, json, csv, md, is \"x\"": {"x.csv", "--format", "x"},
	} {
		refused(t, want, append([]string{"sweep", "merge"}, args...)...)
	}
}

// People read the table on a terminal, and Markdown in a pull request.
func TestSweepShowsPeopleTheResult(t *testing.T) {
	args := []string{"--over", "rate=20,80", "--over", "engine.max_num_seqs=64", "--requests", "300", "--slo", "ttft-p99=40ms"}
	table := swept(t, args...)
	for line := range strings.Lines(table) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	if !strings.HasPrefix(table, "rate  max_num_seqs  req/s  tokens/s  TTFT p99 (ms)  ITL p99 (ms)  SLO (%)") || !strings.Contains(table, "- steps run at the full roofline") {
		t.Errorf("sweep %v:\n%s", args, table)
	}
	if md := swept(t, append(args, "--format", "md")...); !strings.Contains(md, "| rate |") || !strings.Contains(md, "|---") {
		t.Errorf("sweep --format md:\n%s", md)
	}
}

// The manifests of docs/scale-out are of as many shards as they have pods, and merge what these write.
func TestScaleOutManifests(t *testing.T) {
	type job struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       struct {
			CompletionMode           string `yaml:"completionMode"`
			Completions, Parallelism int
			Template                 struct {
				Spec struct {
					RestartPolicy string `yaml:"restartPolicy"`
					Containers    []struct{ Args []string }
				}
			}
		}
	}
	read := func(name string) (j job) {
		t.Helper()
		if err := yaml.Unmarshal([]byte(readText(t, filepath.Join("../../docs/scale-out", name))), &j); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if j.APIVersion != "batch/v1" || j.Kind != "Job" || len(j.Spec.Template.Spec.Containers) != 1 || j.Spec.Template.Spec.RestartPolicy == "" {
			t.Fatalf("%s = %+v, want a Job of one container", name, j)
		}
		return j
	}
	sweep, merge := read("job.yaml"), read("merge.yaml")
	if s := sweep.Spec; s.CompletionMode != "Indexed" || s.Completions != 4 || s.Parallelism > s.Completions {
		t.Errorf("job.yaml: %+v, want an indexed job of four", s)
	}
	inFolder(t, nil)
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	here := func(args []string) (all []string) {
		for _, a := range args {
			a = strings.ReplaceAll(a, "/results/", folder+"/")
			all = append(all, strings.ReplaceAll(a, "--requests=20000", "--requests=50"))
		}
		return all
	}
	for i := range sweep.Spec.Completions {
		t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(i))
		if a := invoke(t.Context(), here(sweep.Spec.Template.Spec.Containers[0].Args)...); a.code != exitYes {
			t.Fatal(a)
		}
	}
	if a := invoke(t.Context(), here(merge.Spec.Template.Spec.Containers[0].Args)...); a.code != exitYes {
		t.Fatal(a)
	}
	if rows := strings.Count(readText(t, "rates.csv"), "\n"); rows != 18 {
		t.Errorf("rates.csv has %d lines, want a head and 17 points", rows)
	}
}
