package scenarios

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"llmsim/sim"
	"llmsim/workload"
)

// Each turn follows its answer by the think time, also where another session begins later than it;
// the requests of a run, written as a trace, are the same run again.
func TestSessionRunsReplay(t *testing.T) {
	s := load(t, write(t, vllm+"workload: {arrivals: {rate: 0.5}, sessions: {turns: {uniform: [1, 6]}, think_time: 300ms}, prompt_tokens: {uniform: [1, 300]}, output_tokens: {uniform: [1, 60]}, requests: 500}"))
	o := play(t, s)
	if again := play(t, s); !reflect.DeepEqual(o, again) {
		t.Error("the same scenario runs otherwise the second time")
	}
	if len(o.finished) != 500 {
		t.Fatalf("%d requests finished, want 500", len(o.finished))
	}
	answered := map[int64]sim.Finished{}
	for _, f := range o.finished {
		answered[f.ID] = f
	}
	last := map[int64]int64{}
	for i, r := range o.arrived {
		if i > 0 && r.Arrival < o.arrived[i-1].Arrival {
			t.Fatalf("%+v arrives after %+v", r, o.arrived[i-1])
		}
		before, later := last[r.Session]
		if f := answered[before]; later && r.Arrival != f.LastToken+s.Workload.Sessions.ThinkTime {
			t.Fatalf("turn %+v after an answer at %v", r, f.LastToken)
		}
		last[r.Session] = r.ID
	}
	folder := t.TempDir()
	file, err := os.Create(filepath.Join(folder, "sessions.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workload.WriteTrace(file, &given{o.arrived}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(folder, "trace.yaml")
	if err := os.WriteFile(trace, []byte(vllm+"workload: {arrivals: {process: trace, file: sessions.csv}}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if replayed := play(t, load(t, trace)); !reflect.DeepEqual(replayed, o) {
		t.Errorf("replayed: %d finished, %d hits, want as recorded %d and %d", len(replayed.finished), replayed.hits, len(o.finished), o.hits)
	}
}

type given struct{ all []workload.Request }

func (g *given) Next() (r workload.Request, ok bool) {
	if len(g.all) > 0 {
		r, ok, g.all = g.all[0], true, g.all[1:]
	}
	return r, ok
}

// A trace takes the place of sessions and system prompts; other turns take the place of turns.
func TestOverlaysOfSharing(t *testing.T) {
	s := load(t, "sessions", TraceEdit(filepath.Join(filepath.Dir(write(t, "")), "trace.csv")))
	if w := s.Workload; w.InSessions() || w.Prefix.Groups != 0 {
		t.Errorf("a trace over sessions leaves %+v", w)
	}
	s = load(t, "sessions", Edit{Path: "workload.sessions.turns", Value: "{normal: [5, 2]}"})
	if want := (Sessions{Tokens{Kind: "normal", A: 5, B: 2}, 5e9}); s.Workload.Sessions != want {
		t.Errorf("other turns over sessions give %+v, want %+v", s.Workload.Sessions, want)
	}
}
