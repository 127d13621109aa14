package experiment

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmsim/scenarios"
)

// small is an experiment of two runs, the second of which keeps requests from sharing a step.
const small = `question: What does a second slot save?
scenario: base
workload: {arrivals: {process: closed, concurrency: 2}, prompt_tokens: 100, output_tokens: 10, requests: 20}
models:
  one-slot: {set: engine.max_num_seqs=1}
metrics:
  rate: {value: throughput.completed_rps, tolerance: {relative: 1%}}
  gain: {value: throughput.completed_rps, over: one-slot, tolerance: {relative: 1%}}
explanations:
  - {claim: the queue is for a slot, effect: latency_ms.queue.p50, model: one-slot}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func smallExperiment(t *testing.T) *Experiment { return load(t, write(t, "small.yaml", small)) }

// refused is an error that must have every one of some texts.
func refused(t *testing.T, what string, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is not refused, want %q", what, wants)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is refused with\n%v\nwant %q in it", what, err, want)
		}
	}
}

func TestAWrongPredictionFails(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	f.predict(t, Given{"gain": 1.5}, e)
	f.measure(t, e)
	j := f.judged(t, e)
	if j.Holds() || j.Verdict != "stop" {
		t.Errorf("verdict %q, want stop", j.Verdict)
	}
	m := j.Experiments[0].Metrics
	if m[0].Verdict != holds || m[0].By != "simulator" || m[1].Verdict != fails || m[1].By != "given" || m[1].Predicted != 1.5 {
		t.Errorf("metrics %+v, want rate to hold by the simulator and gain, given as 1.5, to fail", m)
	}
	var out strings.Builder
	if err := j.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAILS", "stop: 1 of 2 figures are off", "inferred: the queue is for a slot"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table is\n%s\nwant %q in it", out.String(), want)
		}
	}
}

// Lengths that are fixed in a closed loop leave nothing to a seed.
func TestWithoutChanceMeasuredIsPredicted(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	p, m := f.predict(t, nil, e), f.measure(t, e)
	if p[0].Seed != 42 || m[0].Seed != 43 {
		t.Errorf("seeds %d and %d, want 42 and 43", p[0].Seed, m[0].Seed)
	}
	for i, v := range p[0].Values {
		if got := m[0].Values[i].Value; got != v.Value {
			t.Errorf("%s = %v measured, want %v as predicted", v.Metric, got, v.Value)
		}
	}
}

func TestAMeasuredExperimentIsNotPredictedAgain(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	f.predict(t, nil, e)
	f.predict(t, Given{"rate": 3}, e) // nothing was measured yet
	f.measure(t, e)
	before, _ := os.ReadFile(f.prediction("small"))
	_, err := f.Predict(t.Context(), []*Experiment{e}, nil, quiet)
	refused(t, "a prediction after its measurement", err, "small: measured already", f.measurement("small"))
	if after, _ := os.ReadFile(f.prediction("small")); string(after) != string(before) {
		t.Errorf("a refused prediction leaves\n%s\nwant\n%s", after, before)
	}
	// Also where the prediction has gone.
	os.Remove(f.prediction("small"))
	_, err = f.Predict(t.Context(), []*Experiment{e}, nil, quiet)
	refused(t, "a prediction after a measurement that lost its own", err, "measured already")
}

func TestJudgeKeepsTheOrder(t *testing.T) {
	edit := func(t *testing.T, path, from, to string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("%s: no %q in %s (%v)", path, from, text, err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what string
		do   func(*testing.T, Folder)
		want []string
	}{
		{"a prediction changed after its measurement",
			func(t *testing.T, f Folder) { edit(t, f.prediction("small"), `"seed": 42`, `"seed": 41`) },
			[]string{"must follow the prediction as it is, sha256:", "a prediction is not changed after its measurement"}},
		{"a measurement before its prediction",
			func(t *testing.T, f Folder) {
				edit(t, f.measurement("small"), `"started": "2026-01-02T03:04:07Z"`, `"started": "2026-01-02T03:04:06Z"`)
			},
			[]string{"must start after its prediction was written, 2026-01-02T03:04:06Z, started 2026-01-02T03:04:06Z"}},
		{"a measurement of a lower id",
			func(t *testing.T, f Folder) { edit(t, f.measurement("small"), `"id": 2`, `"id": 1`) },
			[]string{"id: must be above its prediction's, 1, is 1"}},
		{"a measurement of another experiment",
			func(t *testing.T, f Folder) {
				edit(t, f.measurement("small"), `"experiment": "small"`, `"experiment": "big"`)
			},
			[]string{`must be of experiment small, is of "big"`}},
		{"a missing measurement", func(t *testing.T, f Folder) { os.Remove(f.measurement("small")) },
			[]string{"small: there is no measurement"}},
		{"a missing prediction", func(t *testing.T, f Folder) { os.Remove(f.prediction("small")) },
			[]string{"small: there is no prediction"}},
		{"a record with an unknown key",
			func(t *testing.T, f Folder) { edit(t, f.measurement("small"), `"by"`, `"from"`) },
			[]string{"measurements/small.json: unknown field \"from\""}},
		{"a record cut short",
			func(t *testing.T, f Folder) { os.WriteFile(f.prediction("small"), []byte("{"), 0o600) },
			[]string{"predictions/small.json: unexpected EOF"}},
		{"values that are missing",
			func(t *testing.T, f Folder) { edit(t, f.measurement("small"), `"metric": "gain"`, `"metric": "loss"`) },
			[]string{`values[1]: must be of metric gain, is of "loss"`}},
	} {
		f, e := newFolder(t), smallExperiment(t)
		f.predict(t, nil, e)
		f.measure(t, e)
		c.do(t, f)
		_, err := f.Judge([]*Experiment{e})
		refused(t, c.what, err, c.want...)
	}
}

// What was predicted is no prediction of an experiment that has changed since.
func TestAnotherDigestIsRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"requests: 20", "requests: 21", "(changed since: model base, one-slot)"},
		{"engine.max_num_seqs=1", "engine.max_num_seqs=3", "(changed since: model one-slot)"},
		{"relative: 1%", "relative: 90%", "(metrics or tolerances have changed since)"},
	} {
		f, e := newFolder(t), smallExperiment(t)
		f.predict(t, nil, e)
		other := load(t, write(t, "small.yaml", strings.Replace(small, c.from, c.to, 1)))
		_, err := f.Measure(t.Context(), []*Experiment{other}, Measuring{Target: Virtual{}}, quiet)
		refused(t, "measuring another experiment", err, "predictions/small.json: must be of the experiment as it is", c.want)
		f.measure(t, e)
		_, err = f.Judge([]*Experiment{other})
		refused(t, "judging another experiment", err, "predictions/small.json: must be of the experiment", c.want, "measurements/small.json: must be of the experiment")
	}
	// Words change nothing.
	f, e := newFolder(t), smallExperiment(t)
	f.predict(t, nil, e)
	f.measure(t, load(t, write(t, "small.yaml", strings.Replace(small, "a second slot", "another slot", 1))))
}

func TestMeasureTakesOtherSeeds(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	f.predict(t, nil, e)
	seed := uint64(42)
	_, err := f.Measure(t.Context(), []*Experiment{e}, Measuring{Target: Virtual{}, Seed: &seed}, quiet)
	refused(t, "measuring under the prediction's seed", err, "small: seeds 42: must be others than the prediction's, 42")
	if exists(f.measurement("small")) {
		t.Error("a refused measurement is there")
	}
}

// The same clock gives the same bytes.
func TestRecordsAreReproducible(t *testing.T) {
	var texts []string
	for range 2 {
		f, e := newFolder(t), smallExperiment(t)
		f.predict(t, nil, e)
		f.measure(t, e)
		p, _ := os.ReadFile(f.prediction("small"))
		m, _ := os.ReadFile(f.measurement("small"))
		texts = append(texts, string(p)+string(m))
	}
	if texts[0] != texts[1] || texts[0] == "" {
		t.Errorf("two folders have\n%s\nand\n%s", texts[0], texts[1])
	}
}

// doubtful measures in virtual time and does not trust it.
type doubtful struct{ Virtual }

func (d doubtful) Measure(ctx context.Context, s *scenarios.Scenario) (Observed, error) {
	o, err := d.Virtual.Measure(ctx, s)
	o.Distrust = []string{"the clock was late"}
	return o, err
}

func TestDistrustIsKept(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	f.predict(t, nil, e)
	m, err := f.Measure(t.Context(), []*Experiment{e}, Measuring{Target: doubtful{}}, quiet)
	if err != nil || Measurements(m).Trusted() {
		t.Errorf("Measure by a doubtful target: trusted, %v", err)
	}
	j := f.judged(t, e)
	if j.Trusted() || j.Experiments[0].Distrust[0] != "model base, seed 43: the clock was late" {
		t.Errorf("judged %+v, want it not to be trusted, and why", j.Experiments[0])
	}
}

func TestVersionsAreNoted(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	f.predict(t, nil, e)
	f.Version = "1.2.4"
	f.measure(t, e)
	if notes := f.judged(t, e).Experiments[0].Notes; len(notes) != 1 || !strings.Contains(notes[0], "1.2.3, measured by 1.2.4") {
		t.Errorf("notes %q, want both versions", notes)
	}
}

// A control under which the effect stays rules the explanation out.
func TestExplanationsAreRuledOut(t *testing.T) {
	text := strings.Replace(small, "models:\n", "controls:\n  more-blocks: {of: one-slot, set: engine.num_gpu_blocks=9000}\nmodels:\n", 1)
	text = strings.Replace(text, "model: one-slot}\n", "model: one-slot, control: more-blocks, confirmed: {below: 0.5}}\n", 1)
	f, e := newFolder(t), load(t, write(t, "small.yaml", text))
	f.predict(t, nil, e)
	f.measure(t, e)
	if x := f.judged(t, e).Experiments[0].Explanations[0]; x.Status != "ruled out by more-blocks" {
		t.Errorf("%q is %s, want ruled out by more-blocks", x.Claim, x.Status)
	}
}

// An interrupted call writes nothing.
func TestInterrupted(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := f.Predict(ctx, []*Experiment{e}, nil, quiet); err != context.Canceled && !strings.Contains(err.Error(), "canceled") || exists(f.prediction("small")) {
		t.Errorf("Predict = %v, want canceled and no file", err)
	}
}

// A folder that can't be written to is told of before the work.
func TestUnwritableFolder(t *testing.T) {
	f, e := newFolder(t), smallExperiment(t)
	if err := os.WriteFile(filepath.Join(f.Path, "predictions"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.Predict(t.Context(), []*Experiment{e}, nil, func(int64) { t.Error("a run is made whose result can't be written") })
	refused(t, "a file in the place of a folder", err, "predictions")
}
