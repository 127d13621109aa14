package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"strings"
	"testing"
)

// got calls the program, which must end with a code and say nothing on stderr.
func got(t *testing.T, code int, args ...string) string {
	t.Helper()
	a := invoke(t.Context(), args...)
	if a.code != code || a.errs != "" || a.stdout == "" {
		t.Fatalf("%v, want %d, a result and an empty stderr", a, code)
	}
	return a.stdout
}

func TestExperimentFromListToJudge(t *testing.T) {
	inFolder(t, nil)
	list := got(t, exitYes, "experiment", "list")
	for _, name := range []string{"e1: ", "e7b: ", "- budget-2048: engine.max_num_batched_tokens from 8192 to 2048"} {
		if !strings.Contains(list, name) {
			t.Errorf("list prints\n%s\nwant %q", list, name)
		}
	}
	refused(t, "e3: there is no prediction predictions/e3.json: llmsim experiment predict comes first\n", "experiment", "measure", "--virtual", "e3")
	refused(t, "e3: there is no prediction", "experiment", "judge", "e3")
	got(t, exitYes, "experiment", "predict", "e1", "e3")
	refused(t, "there is no measurement measurements/e3.json", "experiment", "judge", "e3")
	got(t, exitYes, "experiment", "measure", "--virtual", "e1", "e3")
	refused(t, "e3: measured already", "experiment", "predict", "e3")
	judged := got(t, exitYes, "experiment", "judge", "e1", "e3")
	for _, want := range []string{"confirmed by unequal: the time to first token is phase-lock", "go on: no figure of "} {
		if !strings.Contains(judged, want) {
			t.Errorf("judge prints\n%s\nwant %q", judged, want)
		}
	}
	for line := range strings.Lines(judged) {
		if len(line) > 81 {
			t.Errorf("judge prints a line of %d columns: %s", len(line)-1, line)
		}
	}
	var data struct {
		Verdict     string
		Experiments []struct{ Explanations []struct{ Status string } }
	}
	if err := json.Unmarshal([]byte(got(t, exitYes, "experiment", "judge", "e1", "--format", "json")), &data); err != nil ||
		data.Verdict != "go on" || data.Experiments[0].Explanations[0].Status != "confirmed by unequal" {
		t.Errorf("judge --format json: %+v, %v", data, err)
	}
}

// The page of a judgement says what the judgement says, and stands alone.
func TestExperimentPage(t *testing.T) {
	e3 := readText(t, "../../scenarios/experiments/e3.yaml")
	inFolder(t, map[string]string{"e3.yaml": e3})
	refused(t, "--html ./e3.yaml, e3.yaml: must be two files, are one", "experiment", "judge", "e3.yaml", "--html", "./e3.yaml")
	got(t, exitYes, "experiment", "predict", "e1", "e3", "--value", "longest stall, 2048 (ms)=56")
	got(t, exitYes, "experiment", "measure", "--virtual", "e1", "e3")
	plain := got(t, exitNo, "experiment", "judge", "e1", "e3")
	if drawn := got(t, exitNo, "experiment", "judge", "e1", "e3", "--html", "j.html"); drawn != plain {
		t.Errorf("judge --html prints\n%s\nwant\n%s", drawn, plain)
	}
	page := readText(t, "j.html")
	for _, want := range []string{"Stop:", "figures are off", "<h2>e1</h2>", "confirmed by unequal: ", "<th>predicted</th><th>measured</th><th>difference</th><th>tolerance</th><th>verdict</th>", "<td>FAILS</td>", "<td>holds</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("j.html lacks %q", want)
		}
	}
	for _, m := range asks.FindAllString(page, -1) {
		t.Errorf("j.html asks for something: %s", m)
	}
	for want, name := range map[string]string{
		"--html: needs a file name, is empty":                            "",
		"--html: absent/j.html: no such file or directory":               "absent/j.html",
		"--html measurements/e1.json, measurements/e1.json: must be two": "measurements/e1.json",
	} {
		refused(t, want, "experiment", "judge", "e1", "--html", name)
	}
}

func TestAWrongPredictionStops(t *testing.T) {
	inFolder(t, nil)
	got(t, exitYes, "experiment", "predict", "e3", "--value", "longest stall, 2048 (ms)=56")
	got(t, exitYes, "experiment", "measure", "--virtual", "e3")
	if out := got(t, exitNo, "experiment", "judge", "e3"); !strings.Contains(out, "FAILS") || !strings.Contains(out, "stop: 1 of 6 figures are off") {
		t.Errorf("judge prints\n%s\nwant stop", out)
	}
}

// A run that refuses requests measures another workload than the one that was asked for.
func TestWhatIsNotToBeTrusted(t *testing.T) {
	inFolder(t, map[string]string{"long.yaml": "question: q\nscenario: base\n" +
		"workload: {prompt_tokens: {lognormal: [2000, 1.5]}, arrivals: {rate: 2}, requests: 2000}\n" +
		"metrics:\n  x: {value: throughput.completed_rps, tolerance: {relative: 50%}}\n"})
	got(t, exitYes, "experiment", "predict", "long.yaml")
	for _, verb := range [][]string{{"measure", "--virtual"}, {"judge"}} {
		out := got(t, exitUntrusted, append(append([]string{"experiment"}, verb...), "long.yaml")...)
		if !strings.Contains(out, "requests were refused") || strings.Contains(out, "go on") {
			t.Errorf("%s prints\n%s\nwant why it is not to be trusted", verb, out)
		}
	}
}

func TestExperimentRefusals(t *testing.T) {
	inFolder(t, map[string]string{"two.yaml": "question: q\nscenario: e3\nmodels:\n  m: {set: [engine.max_num_seqs=3, engine.block_size=32]}\n" +
		"metrics:\n  x: {value: virtual_s, tolerance: {relative: 1%}}\n"})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"predct"}, `"predct" is not a command of llmsim experiment, did you mean predict?`},
		{[]string{"predict", "two.yaml"}, "two.yaml:4: models.m.set: must differ from base in one field, differs in 2"},
		{[]string{"predict", "e99"}, "e99: no such experiment"},
		{[]string{"predict", "e3", "e3"}, "e3: is named twice"},
		{[]string{"predict", "e3", "--value", "x=1"}, `"x" is no metric, there is `},
		{[]string{"predict", "e3", "--value", "x"}, `--value: must be METRIC=NUMBER, is "x"`},
		{[]string{"predict", "e3", "--dir", ""}, "--dir: needs a folder's name, is empty"},
		{[]string{"measure", "e3"}, "give one of --virtual and --target URL"},
		{[]string{"measure", "--virtual", "--target", "http://x", "e3"}, "give one of --virtual and --target URL"},
		{[]string{"measure", "--target", "http://x", "e3"}, "--target http://x: this version has no load generator: use --virtual"},
		{[]string{"measure", "--virtual", "--seed", "-1", "e3"}, "--seed -1: must be a whole number from 0 to"},
		{[]string{"list", "--format", "xml"}, "--format: must be one of"},
	} {
		refused(t, c.want, append([]string{"experiment"}, c.args...)...)
	}
}

func TestCheckFromTheCommandLine(t *testing.T) {
	inFolder(t, nil)
	if out := got(t, exitYes, "check"); !strings.HasPrefix(out, "no drift: ") {
		t.Errorf("check prints\n%s\nwant no drift", out)
	}
	if out := got(t, exitYes, "check", "--update", "--scenario", "e5", "e5.yaml"); !strings.Contains(out, "e5.yaml (e5): new") {
		t.Errorf("check --update prints\n%s", out)
	}
	got(t, exitYes, "check", "e5.yaml")
	slow := []string{"check", "e5.yaml", "--set", "hardware.memory_bandwidth_gbps=2970"}
	if out := got(t, exitNo, slow...); !strings.Contains(out, "the memory term moved most") {
		t.Errorf("check prints\n%s\nwant the memory term", out)
	}
	var suites struct {
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal([]byte(got(t, exitNo, append(slow, "--format", "junit")...)), &suites); err != nil || suites.Failures != 1 {
		t.Errorf("JUnit: %+v, %v", suites, err)
	}
	if out := got(t, exitNo, append(slow, "--format", "github")...); !strings.HasPrefix(out, "::error file=e5.yaml,line=") {
		t.Errorf("annotations: %s", out)
	}

	text := readText(t, "e5.yaml")
	if err := os.WriteFile("e5.yaml", []byte(strings.Replace(text, "preemptions.total: {value: 139}", "preemptions.total: {value: 1}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	got(t, exitNo, "check", "e5.yaml")
	if out := got(t, exitYes, "check", "--update", "e5.yaml"); !strings.Contains(out, "preemptions.total") {
		t.Errorf("check --update prints\n%s\nwant what changes", out)
	}
	if again := readText(t, "e5.yaml"); again != text {
		t.Errorf("updated to\n%s\nwant\n%s", again, text)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--update"}, "--update: needs a FILE"}, {[]string{"--scenario", "e5"}, "--scenario: starts a new file, with --update"},
		{[]string{"--update", "--scenario", "e5", "e5.yaml"}, "e5.yaml is there already"},
		{[]string{"--update", "--set", "seed=1", "e5.yaml"}, "--set: with --update, only for a new file"},
		{[]string{"--update", "--format", "junit", "e5.yaml"}, "must be one of table, json, md with --update"},
		{[]string{"--format", "csv"}, "--format: must be one of table, json, md, junit, github"},
		{[]string{"none.yaml"}, "none.yaml: no such file"}, {[]string{"--set", "seed"}, "must be PATH=VALUE"},
	} {
		refused(t, c.want, append([]string{"check"}, c.args...)...)
	}
}
