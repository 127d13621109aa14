package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// An answer is what one call of the program left.
type answer struct {
	args         []string
	code         int
	stdout, errs string
}

func (a answer) String() string {
	return fmt.Sprintf("llmsim %s = %d, stdout %.300q, stderr %q", strings.Join(a.args, " "), a.code, a.stdout, a.errs)
}

// invoke calls the program.
func invoke(ctx context.Context, args ...string) answer {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, &stdout, &stderr)
	return answer{args, code, stdout.String(), stderr.String()}
}

// simulated calls simulate, which must succeed and say nothing beside its result.
func simulated(t *testing.T, args ...string) string {
	t.Helper()
	a := invoke(t.Context(), append([]string{"simulate"}, args...)...)
	if a.code != exitYes || a.errs != "" || a.stdout == "" {
		t.Fatalf("%v, want 0, a result and an empty stderr", a)
	}
	return a.stdout
}

// flatten lists the scalars of a JSON text by their path.
func flatten(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		t.Fatalf("%.200q is no JSON: %v", text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("JSON is followed by something: %v", err)
	}
	leaves := map[string]any{}
	var walk func(string, any)
	walk = func(path string, v any) {
		below := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				walk(below(key), value)
			}
		case []any:
			for i, value := range v {
				walk(below(strconv.Itoa(i)), value)
			}
		default:
			leaves[path] = v
		}
	}
	walk("", root)
	return leaves
}

// figureAt is a number among the leaves of a result.
func figureAt(t *testing.T, leaves map[string]any, path string) float64 {
	t.Helper()
	n, ok := leaves[path].(json.Number)
	if !ok {
		t.Fatalf("%s = %#v, want a number", path, leaves[path])
	}
	x, err := n.Float64()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return x
}

// Scripts read these keys and count on their types.
func TestSimulateJSONKeepsItsContract(t *testing.T) {
	leaves := flatten(t, simulated(t, "--rate", "60", "--requests", "500", "--format", "json"))
	word, whole, number := regexp.MustCompile(`^".+"$`), regexp.MustCompile(`^[0-9]+$`), regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	contract := map[*regexp.Regexp][]string{
		word: {"llmsim", "scenario.name", "engine.policy", "engine.models"},
		whole: {"seed", "kv.blocks", "kv.block_size", "kv.tokens", "requests.arrived", "requests.completed", "requests.refused",
			"steps.count", "steps.max_batch", "preemptions.total", "preemptions.requests", "preemptions.max_per_request"},
		number: {"throughput.offered_rps", "throughput.completed_rps", "throughput.input_tokens_per_s", "throughput.output_tokens_per_s",
			"steps.mean_ms", "steps.mean_batch", "steps.mean_tokens", "preemptions.longest_freeze_ms", "virtual_s"},
		regexp.MustCompile(`^"sha256:[0-9a-f]{64}"$`): {"scenario.digest"},
	}
	for _, metric := range []string{"ttft", "itl", "tpot", "e2e", "queue"} {
		contract[whole] = append(contract[whole], "latency_ms."+metric+".count")
		for _, statistic := range []string{"mean", "p50", "p90", "p95", "p99", "max"} {
			contract[number] = append(contract[number], "latency_ms."+metric+"."+statistic)
		}
	}
	for form, paths := range contract {
		for _, path := range paths {
			text, err := json.Marshal(leaves[path])
			if err != nil || !form.Match(text) {
				t.Errorf("%s = %s, want %v", path, text, form)
			}
		}
	}
	for path, want := range map[string]float64{
		"seed": 42, "kv.blocks": 7609, "kv.block_size": 16, "kv.tokens": 121744, "requests.arrived": 500,
		"requests.completed": 500, "requests.refused": 0, "latency_ms.itl.count": 500 * 63, "latency_ms.ttft.count": 500,
	} {
		if got := figureAt(t, leaves, path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
}

// The table of a spreadsheet holds what the JSON does, one path per row.
func TestSimulateCSVIsItsJSONFlattened(t *testing.T) {
	args := []string{"--scenario", "e5", "--requests", "40"}
	want := flatten(t, simulated(t, append(args, "--format", "json")...))
	text := simulated(t, append(args, "--format", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || !strings.HasPrefix(text, "key,value\n") || strings.Count(text, "\n") != len(rows) {
		t.Fatalf("--format csv = %.80q, %v, want rows only, under the head key,value", text, err)
	}
	for _, row := range rows[1:] {
		if value, ok := want[row[0]]; !ok || fmt.Sprint(value) != row[1] {
			t.Errorf("--format csv: %s = %q, want %v as in JSON", row[0], row[1], value)
		}
	}
	if len(rows)-1 != len(want) {
		t.Errorf("--format csv has %d rows, want %d", len(rows)-1, len(want))
	}
}

// People read the table on a terminal of 80 columns, and Markdown in a pull request.
func TestSimulateShowsPeopleTheResult(t *testing.T) {
	for _, scenario := range []string{"base", "e1-uniform", "e3", "e5", "e7-bunched"} {
		args := []string{"--scenario", scenario}
		for i, line := range strings.Split(simulated(t, args...), "\n") {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("simulate --scenario %s, line %d = %q, %d columns, want at most 80", scenario, i+1, line, n)
			}
		}
		md := simulated(t, append(args, "--format", "md")...)
		for _, want := range []string{"| TTFT", "|---", scenario} {
			if !strings.Contains(md, want) {
				t.Errorf("simulate --scenario %s --format md has no %q:\n%s", scenario, want, md)
			}
		}
	}
}

// One seed gives the same bytes, in a result and in its files, however many threads there are.
func TestSimulateRepeatsItself(t *testing.T) {
	folder := t.TempDir()
	requests, steps := filepath.Join(folder, "r.csv"), filepath.Join(folder, "s.csv")
	once := func(threads int) (all [3]string) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
		all[0] = simulated(t, "--replicas", "3", "--rate", "200", "--requests", "2000", "--set", "cluster.router=power-of-two-choices",
			"--format", "json", "--requests-out", requests, "--steps-out", steps)
		all[1], all[2] = readText(t, requests), readText(t, steps)
		return all
	}
	first := once(1)
	for _, threads := range []int{1, 2} {
		for i, text := range once(threads) {
			if text != first[i] {
				t.Errorf("simulate with GOMAXPROCS %d: %s differs from the first run's", threads, []string{"stdout", "--requests-out", "--steps-out"}[i])
			}
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// csvColumns reads a CSV file's numbers by the names of their columns, seconds as nanoseconds.
func csvColumns(t *testing.T, path, head string) map[string][]int64 {
	t.Helper()
	text := readText(t, path)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || strings.Join(rows[0], ",") != head {
		t.Fatalf("%s: head %v, %v, want %s", path, rows[0], err, head)
	}
	seconds := regexp.MustCompile(`^[0-9]+\.[0-9]{9}$`)
	all := map[string][]int64{}
	for i, row := range rows[1:] {
		for j, value := range row {
			name := rows[0][j]
			if strings.HasSuffix(name, "_s") {
				if !seconds.MatchString(value) {
					t.Fatalf("%s:%d: %s = %q, want seconds with nine decimals", path, i+2, name, value)
				}
				value = strings.Replace(value, ".", "", 1)
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if name != "bound" && err != nil {
				t.Fatalf("%s:%d: %s: %v", path, i+2, name, err)
			}
			all[name] = append(all[name], n)
		}
	}
	return all
}

const (
	headOfRequests = "id,arrival_s,input_tokens,output_tokens,first_schedule_s,first_token_s,last_token_s,preemptions,replica"
	headOfSteps    = "step,replica,start_s,end_s,tokens,batch,prefill_tokens,running,waiting,free_blocks,preempted,bound"
)

func totalOf(values []int64) (total int64) {
	for _, v := range values {
		total += v
	}
	return total
}

// quantileOf interpolates linearly between the order statistics of sorted values.
func quantileOf(sorted []int64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i == len(sorted)-1 {
		return float64(sorted[i])
	}
	return float64(sorted[i]) + (at-float64(i))*float64(sorted[i+1]-sorted[i])
}

// Whoever has the two files needs no summary: every figure of it follows from them.
func TestSimulateFilesGiveTheSummary(t *testing.T) {
	for _, args := range [][]string{
		{"--rate", "70", "--requests", "3000"},
		{"--rate", "150", "--requests", "3000", "--replicas", "2", "--set", "workload.output_tokens={lognormal: [40, 1]}",
			"--set", "workload.prompt_tokens={uniform: [1, 900]}"},
		{"--scenario", "e5"},
		{"--scenario", "e1-uniform", "--requests", "500"},
	} {
		folder := t.TempDir()
		requests, steps := filepath.Join(folder, "r.csv"), filepath.Join(folder, "s.csv")
		leaves := flatten(t, simulated(t, append(args, "--format", "json", "--requests-out", requests, "--steps-out", steps)...))
		says := func(path string, got, tolerance float64) {
			t.Helper()
			if want := figureAt(t, leaves, path); !(math.Abs(got-want) <= tolerance) {
				t.Errorf("simulate %v: the files give %s = %v, the summary says %v", args, path, got, want)
			}
		}

		r := csvColumns(t, requests, headOfRequests)
		n := len(r["id"])
		lives := map[string][]int64{}
		for i := range n {
			if r["id"][i] != int64(i) || i > 0 && r["arrival_s"][i] < r["arrival_s"][i-1] {
				t.Fatalf("simulate %v: row %d is request %d, want order of arrival", args, i, r["id"][i])
			}
			arrival, start, first, last := r["arrival_s"][i], r["first_schedule_s"][i], r["first_token_s"][i], r["last_token_s"][i]
			if !(arrival <= start && start < first && first <= last) {
				t.Fatalf("simulate %v: request %d arrives %d, starts %d, first token %d, last %d, want that order", args, i, arrival, start, first, last)
			}
			lives["queue"] = append(lives["queue"], start-arrival)
			lives["ttft"] = append(lives["ttft"], first-arrival)
			lives["e2e"] = append(lives["e2e"], last-arrival)
			if gaps := r["output_tokens"][i] - 1; gaps > 0 {
				lives["tpot"] = append(lives["tpot"], (last-first+gaps/2)/gaps)
			}
		}
		const ns = 1e-6 // ms
		for metric, values := range lives {
			slices.Sort(values)
			says("latency_ms."+metric+".count", float64(len(values)), 0)
			says("latency_ms."+metric+".mean", float64(totalOf(values))/float64(len(values))*ns, ns)
			says("latency_ms."+metric+".p50", quantileOf(values, 0.5)*ns, ns)
			says("latency_ms."+metric+".p99", quantileOf(values, 0.99)*ns, ns)
			says("latency_ms."+metric+".max", float64(values[len(values)-1])*ns, ns/2)
		}
		span := float64(slices.Max(r["last_token_s"])-r["arrival_s"][0]) / 1e9
		says("requests.completed", float64(n), 0)
		says("throughput.completed_rps", float64(n)/span, 1e-6)
		says("throughput.input_tokens_per_s", float64(totalOf(r["input_tokens"]))/span, 1e-6)
		says("throughput.output_tokens_per_s", float64(totalOf(r["output_tokens"]))/span, 1e-6)
		if between := float64(r["arrival_s"][n-1]-r["arrival_s"][0]) / 1e9; between > 0 {
			says("throughput.offered_rps", float64(n-1)/between, 1e-6)
		}
		says("latency_ms.itl.count", float64(totalOf(r["output_tokens"])-int64(n)), 0)
		says("preemptions.total", float64(totalOf(r["preemptions"])), 0)
		says("preemptions.max_per_request", float64(slices.Max(r["preemptions"])), 0)

		s := csvColumns(t, steps, headOfSteps)
		count := len(s["step"])
		says("steps.count", float64(count), 0)
		says("steps.mean_batch", float64(totalOf(s["batch"]))/float64(count), 1e-6)
		says("steps.max_batch", float64(slices.Max(s["batch"])), 0)
		says("steps.mean_tokens", float64(totalOf(s["tokens"]))/float64(count), 1e-6)
		says("steps.mean_ms", float64(totalOf(s["end_s"])-totalOf(s["start_s"]))/float64(count)*ns, ns)
		says("virtual_s", float64(slices.Max(s["end_s"]))/1e9, 1e-9)
		says("preemptions.total", float64(totalOf(s["preempted"])), 0)

		// A token is computed once, and again only after a preemption.
		needed := totalOf(r["input_tokens"]) + totalOf(r["output_tokens"]) - int64(n)
		if computed := totalOf(s["tokens"]); computed < needed || computed > needed && totalOf(r["preemptions"]) == 0 {
			t.Errorf("simulate %v: the steps compute %d tokens, the requests need %d", args, computed, needed)
		}
		if prompts := totalOf(s["prefill_tokens"]); prompts < totalOf(r["input_tokens"]) {
			t.Errorf("simulate %v: the steps compute %d prompt tokens, the requests have %d", args, prompts, totalOf(r["input_tokens"]))
		}
		ends, next := map[int64]int64{}, map[int64]int64{}
		for i := range count {
			replica := s["replica"][i]
			if s["step"][i] != next[replica] || s["start_s"][i] < ends[replica] || s["end_s"][i] <= s["start_s"][i] ||
				s["batch"][i] > s["running"][i] || s["batch"][i] > s["tokens"][i] {
				t.Fatalf("simulate %v: row %d of the steps does not follow from those before it, or has more sequences than run or tokens", args, i+2)
			}
			next[replica]++
			ends[replica] = s["end_s"][i]
		}
	}
}

// A run that is interrupted says so, and leaves no file.
func TestSimulateInterrupted(t *testing.T) {
	folder := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	a := invoke(ctx, "simulate", "--requests-out", filepath.Join(folder, "r.csv"), "--steps-out", filepath.Join(folder, "s.csv"))
	if a.code != exitInterrupted || a.stdout != "" || a.errs != "llmsim: interrupted\n" {
		t.Errorf("interrupted: %v, want %d and one line", a, exitInterrupted)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("interrupted: files left = %v, %v, want none", left, err)
	}
}
