package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the program itself when a test starts it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("LLMSIM_AS_PROCESS") != "" {
		main()
	}
	os.Exit(m.Run())
}

const (
	fewRequests = "arrival_s,input_tokens,output_tokens\n0,10,5\n1,10,5\n"
	fewChat     = "workload: {requests: 5}\n"
)

// An output never takes the place of what is read for it.
func TestOutputsSpareInputs(t *testing.T) {
	files := map[string]string{
		"x.csv": fewRequests, "chat.yaml": fewChat, "list.txt": "10\n20\n",
		"drawn.yaml":  "workload: {requests: 5, prompt_tokens: {empirical: list.txt}, output_tokens: {empirical: ./list.txt}}\n",
		"priced.yaml": "model: {name: llama-3.1-8b}\nhardware: {name: h100-sxm}\ncost: {parameter_file: mine.yaml}\n",
		"mine.yaml":   "parameters: {kv_efficiency: 0.8}\n",
		"traced.yaml": "workload: {arrivals: {process: trace, file: x.csv}}\n",
	}
	inFolder(t, files)
	if err := os.Symlink("x.csv", "link.csv"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link("x.csv", "second.csv"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--trace", "x.csv", "--requests-out", "x.csv"}, "--requests-out x.csv, --trace x.csv"},
		{[]string{"--trace", "x.csv", "--requests-out", "new.csv", "--steps-out", "./x.csv"}, "--steps-out ./x.csv, --trace x.csv"},
		{[]string{"--trace", "x.csv", "--requests-out", "link.csv"}, "--requests-out link.csv, --trace x.csv"},
		{[]string{"--trace", "link.csv", "--steps-out", "second.csv"}, "--steps-out second.csv, --trace link.csv"},
		{[]string{"--scenario", "traced.yaml", "--requests-out", "x.csv"}, "--requests-out x.csv, workload.arrivals.file x.csv"},
		{[]string{"--scenario", "priced.yaml", "--requests-out", "mine.yaml"}, "--requests-out mine.yaml, cost.parameter_file mine.yaml"},
		{[]string{"--scenario", "chat.yaml", "--requests-out", "chat.yaml"}, "--requests-out chat.yaml, --scenario chat.yaml"},
		{[]string{"--scenario", "drawn.yaml", "--requests-out", "list.txt"}, "--requests-out list.txt, workload.prompt_tokens.empirical list.txt"},
		{[]string{"--scenario", "sessions", "--set", "workload.output_tokens={empirical: list.txt}", "--steps-out", "list.txt"},
			"--steps-out list.txt, workload.output_tokens.empirical list.txt"},
	} {
		refused(t, c.want+": must be two files, are one\n", append([]string{"simulate"}, c.args...)...)
	}
	for _, out := range []string{"x.csv", "link.csv", "second.csv"} {
		refused(t, "x.csv, --output "+out+": must be two files, are one\n", "trace", "convert", "x.csv", "-o", out)
	}
	for name, text := range files {
		if got := readText(t, name); got != text {
			t.Errorf("%s = %q after refused runs, want it untouched", name, got)
		}
	}
	// A name that is a built-in scenario's is no file.
	simulated(t, "--scenario", "e5", "--requests", "5", "--requests-out", "e5")
}

// A link stays what it is, also one to a file that is yet to come; and two that lead to it are one.
func TestOutputsFollowLinks(t *testing.T) {
	inFolder(t, nil)
	// Behind the linked folder, .. is the folder's own parent: there is no file at ./r.csv.
	if err := os.MkdirAll(filepath.Join("folder", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"deep": "folder/deep", "a.csv": "folder/r.csv", "b.csv": "deep/../r.csv"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	target := filepath.Join("folder", "r.csv")
	refused(t, "--requests-out a.csv, --steps-out b.csv: must be two files, are one\n",
		"simulate", "--requests-out", "a.csv", "--steps-out", "b.csv")
	for i, link := range []string{"b.csv", "a.csv"} {
		simulated(t, "--requests", fmt.Sprint(5+i), "--requests-out", link)
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s = %v, %v after a run, want the link it was", link, info, err)
		}
		if text := readText(t, target); strings.Count(text, "\n") != 6+i {
			t.Errorf("%s = %q, want a head and %d requests", target, text, 5+i)
		}
	}
}

// A terminal that goes away ends a run as any signal does: nothing half-written is left.
func TestHangUpLeavesNothing(t *testing.T) {
	inFolder(t, nil)
	c := exec.CommandContext(t.Context(), os.Args[0], "simulate", "--rate", "20", "--requests", "100000000", "--requests-out", "r.csv")
	c.Env = append(os.Environ(), "LLMSIM_AS_PROCESS=1")
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); len(filesHere(t)) == 0 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	if code := c.ProcessState.ExitCode(); code != exitInterrupted || len(filesHere(t)) != 0 {
		t.Errorf("after SIGHUP: exit code %d (%v), files %v, stderr %q; want %d and no files", code, err, filesHere(t), errs.String(), exitInterrupted)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// An answer that could not be written is not given, whatever it was.
func TestAnswersThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{
		{"scenarios"}, {"scenarios", "--format", "md"}, {"--help"}, {"--version"}, {"help", "simulate"}, {"simulate", "--help"}, {},
		{"trace"}, {"simulate", "--requests", "5"}, {"plan", "--rate", "1000", "--replicas", "1", "--requests", "300"},
		{"trace", "convert", traces + "azure2023.csv"}, {"sweep", "--over", "rate=1,2", "--requests", "5"},
	} {
		var errs bytes.Buffer
		code := run(t.Context(), args, full{}, &errs)
		if code != exitBadInput || !strings.HasSuffix(errs.String(), "llmsim: no space left\n") {
			t.Errorf("llmsim %v on a full disk = %d, %q, want %d and why", args, code, errs.String(), exitBadInput)
		}
	}
}

// Every verb has the same formats.
func TestEveryVerbHasFormats(t *testing.T) {
	_, example, _ := strings.Cut(readText(t, "../../docs/conformance.md"), "# pair.json\n")
	example, _, _ = strings.Cut(example, "```")
	inFolder(t, map[string]string{"pair.jsonl": strings.ReplaceAll(example, "\n", "")})
	for _, verb := range [][]string{{"scenarios"}, {"conformance", "pair.jsonl"}} {
		for format, want := range map[string]string{"table": "", "json": `": `, "csv": "key,value\n", "md": "|--"} {
			a := invoke(t.Context(), append(verb, "--format", format)...)
			if a.code != exitYes || a.stdout == "" || !strings.Contains(a.stdout, want) {
				t.Errorf("%v, want 0 and %q", a, want)
			}
		}
		refused(t, `--format: must be one of table, json, csv, md, is "xml"`, append(verb, "--format", "xml")...)
	}
	for format, want := range map[string]string{
		"table": "blocks.a  [1, 2, 3]  [1, 2, 4]\n", "json": `"field": "blocks.a"`, "csv": "first_mismatches.0.got,\"[1, 2, 4]\"\n",
		"md": "| pair |    2 | blocks.a | [1, 2, 3] | [1, 2, 4] |\n",
	} {
		a := invoke(t.Context(), "conformance", "pair.jsonl", "--models", "vllm-0.19", "--format", format)
		if a.code != exitNo || a.errs != "" || !strings.Contains(a.stdout, want) {
			t.Errorf("%v, want %d and %q", a, exitNo, want)
		}
	}
	piped := strings.Replace(readText(t, "pair.jsonl"), `"pair"`, `"a|b"`, 1)
	if err := os.WriteFile("piped.jsonl", []byte(piped), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := invoke(t.Context(), "conformance", "piped.jsonl", "--models", "vllm-0.19", "--format", "md"); !strings.Contains(a.stdout, `| a\|b |`) {
		t.Errorf("%v, want the name of the case in one cell", a)
	}
	var list []struct{ Name, Question string }
	a := invoke(t.Context(), "scenarios", "--format", "json")
	if err := json.Unmarshal([]byte(a.stdout), &list); err != nil || len(list) < 10 || list[0].Name != "base" || list[0].Question == "" {
		t.Errorf("%v: %v, want a list of names and questions", a, err)
	}
}

// Help names what a flag takes, not the type of a variable.
func TestHelpNamesValues(t *testing.T) {
	for verb, want := range map[string][]string{
		"convert": {"--output FILE", "--spread HOW", "--speedup FACTOR", "--requests N", "--seed N"},
		"inspect": {"--format FORMAT", "--spread HOW", "--speedup FACTOR", "--requests N", "--seed N"},
	} {
		a := invoke(t.Context(), "trace", verb, "--help")
		for _, flag := range want {
			if !strings.Contains(a.stdout, flag) {
				t.Errorf("%v, want %q", a, flag)
			}
		}
		for _, kind := range []string{" string", " float"} {
			if strings.Contains(a.stdout, kind) {
				t.Errorf("%v, want no %q", a, kind)
			}
		}
	}
}

// One is no plural.
func TestOneRequest(t *testing.T) {
	if out := simulated(t, "--requests", "1"); !strings.Contains(out, "\n1 request arrived, 1 completed,") || !strings.Contains(out, " of 1 request and ") {
		t.Errorf("simulate --requests 1 = %s, want 1 request", out)
	}
}
