package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"llmsim/scenarios"
)

// small is a sweep of twelve short runs.
func small(t *testing.T, parallel int, shard Shard, over ...string) Question {
	t.Helper()
	if over == nil {
		over = []string{"workload.arrivals.rate=20..60:20", "engine.max_num_seqs=8,64"}
	}
	q := Question{Seeds: 2, Measure: Simulate, Shard: shard, Parallel: parallel}
	var fields []string
	for _, text := range over {
		a, err := ParseAxis(text)
		if err != nil {
			t.Fatal(err)
		}
		q.Axes = append(q.Axes, a)
		fields = append(fields, a.Fields...)
	}
	q.Load = func(values []string) (*scenarios.Scenario, error) {
		edits := []scenarios.Edit{{Path: "workload.requests", Value: "60"}}
		for i, f := range fields {
			edits = append(edits, scenarios.Edit{Path: f, Value: values[i]})
		}
		return scenarios.Load("base", edits)
	}
	return q
}

func newSweep(t *testing.T, q Question) *Sweep {
	t.Helper()
	s, err := New(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func measured(t *testing.T, q Question, j *Journal) Part {
	t.Helper()
	p, err := newSweep(t, q).Run(t.Context(), j, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// written is all that a part says, and a result in each format.
func written(t *testing.T, p Part) string {
	t.Helper()
	var b bytes.Buffer
	err := p.Write(&b)
	for _, format := range []string{"table", "csv", "json", "md"} {
		err = errors.Join(err, p.Result(Simulate, nil).Write(&b, format))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestParallelRunsGiveTheSameBytes(t *testing.T) {
	want := written(t, measured(t, small(t, 1, Whole), nil))
	for _, parallel := range []int{0, 2, 5, 100} {
		if got := written(t, measured(t, small(t, parallel, Whole), nil)); got != want {
			t.Errorf("%d runs at once give\n%s\none gives\n%s", parallel, got, want)
		}
	}
}

// However many shards there are, and in whichever order they are given, they merge to the same bytes.
func TestShardsGiveTheSameBytes(t *testing.T) {
	want := written(t, measured(t, small(t, 2, Whole), nil))
	folder := t.TempDir()
	for _, of := range []int{1, 2, 3, 5, 8} { // of eight, two have no point
		var parts []Part
		for i := of - 1; i >= 0; i-- {
			p := measured(t, small(t, 2, Shard{i, of}), nil)
			path := Shard{i, of}.Path(filepath.Join(folder, "r.csv"))
			parts = append(parts, reread(t, path, p))
		}
		whole, err := Merge(parts)
		if err != nil {
			t.Fatal(err)
		}
		if got := written(t, whole); got != want {
			t.Errorf("%d shards give\n%s\none process gives\n%s", of, got, want)
		}
	}
}

func reread(t *testing.T, path string, p Part) Part {
	t.Helper()
	var b bytes.Buffer
	err := p.Write(&b)
	err = errors.Join(err, os.WriteFile(path, b.Bytes(), 0o600))
	p, bad := ReadPart(path)
	if err = errors.Join(err, bad); err != nil {
		t.Fatal(err)
	}
	return p
}

// Wherever a sweep is stopped, and whatever it had written of its last line, going on gives the same bytes.
func TestStoppedSweepsGoOn(t *testing.T) {
	want := written(t, measured(t, small(t, 1, Whole), nil))
	path := filepath.Join(t.TempDir(), "r.csv.partial")
	for stop := range 13 {
		ctx, cancel := context.WithCancel(t.Context())
		s := newSweep(t, small(t, 1+stop%3, Whole))
		j, err := OpenJournal(path, s.Header)
		if err != nil {
			t.Fatal(err)
		}
		if stop == 0 {
			cancel()
		}
		_, err = s.Run(ctx, j, func(done int) {
			if done == stop {
				cancel()
			}
		})
		cancel()
		if stop < 10 && !errors.Is(err, context.Canceled) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Run stopped after %d = %v, want it cancelled", stop, err) // the last may have been under way
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(text, []byte("\n"))
		for _, torn := range []int{0, 1, 30, len(text)} {
			if err := os.WriteFile(path, text[:len(text)-min(torn, len(text))], 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := OpenJournal(path, s.Header)
			if err != nil {
				t.Fatalf("after %d runs and %d bytes less: %v", stop, torn, err)
			}
			if torn == 0 && len(j.Lines) != lines-1 {
				t.Errorf("after %d runs the journal holds %d, want %d", stop, len(j.Lines), lines-1)
			}
			held, ran := len(j.Lines), 0
			p, err := newSweep(t, small(t, 2, Whole)).Run(t.Context(), j, func(int) { ran++ })
			if err != nil || held+ran != 12 {
				t.Errorf("after %d runs and %d bytes less: %d held and %d run (%v), want 12", stop, torn, held, ran, err)
			}
			if got := written(t, p); got != want {
				t.Errorf("after %d runs and %d bytes less:\n%s\nat once:\n%s", stop, torn, got, want)
			}
			if err := j.Remove(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What is not this sweep's stays as it is.
func TestJournalsOfOthersAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.csv.partial")
	s := newSweep(t, small(t, 1, Whole))
	other := newSweep(t, small(t, 1, Whole, "seed=1,2"))
	head := func(h Header) string {
		var b strings.Builder
		if err := (Part{Header: h}).Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	older, renamed := s.Header, s.Header
	older.Version, renamed.Scenario = "0.0.1", "chat"
	for text, want := range map[string]string{
		head(other.Header):                       "is of sweep sha256:",
		head(older):                              "must be of llmsim 0.1.0, is of llmsim 0.0.1: remove it",
		head(renamed):                            "is of scenario chat and shard 0/1, must be of base and 0/1",
		"rate,tokens\n1,2\n":                     `r.csv.partial:1: must be a line of a sweep, is "rate,tokens"`,
		"mine":                                   `r.csv.partial:1: the line is cut off: remove it`,
		"{}\n":                                   "has no sweep or shard",
		"{\"llmsim\": \"0.1.0\", \"more\": 1}\n": `unknown field "more"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJournal(path, s.Header); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("OpenJournal of %.40q = %v, want %q", text, err, want)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("OpenJournal leaves %q of %q", got, text)
		}
	}
	if s.Sweep == other.Sweep {
		t.Errorf("two sweeps have the digest %s", s.Sweep)
	}
}

func TestMergeRefuses(t *testing.T) {
	folder := t.TempDir()
	part := func(name string, shard Shard, over ...string) Part {
		return reread(t, filepath.Join(folder, name), measured(t, small(t, 2, shard, over...), nil))
	}
	a, b, c := part("a", Shard{0, 3}), part("b", Shard{1, 3}), part("c", Shard{2, 3})
	half, other := part("half", Shard{0, 2}), part("other", Shard{1, 3}, "seed=1..6:1")
	cut, twice := c, c
	cut.path, cut.Lines = "cut", c.Lines[:1]
	twice.path, twice.Lines = "twice", append(c.Lines[:1:1], c.Lines...)
	for _, test := range []struct {
		parts []Part
		want  []string
	}{
		{nil, []string{"there must be parts, are none"}},
		{[]Part{a, c}, []string{"of shards 0 to 2 there must be a part each, missing: 1"}},
		{[]Part{b}, []string{"missing: 0, 2"}},
		{[]Part{a, b, b, c}, []string{"b: is shard 1/3, as " + b.path + " is"}},
		{[]Part{a, other, c}, []string{"other: is of sweep sha256:", "missing: 1"}},
		{[]Part{a, half, b, c}, []string{"half: is shard 0/2, must be of 3 as " + a.path + " is"}},
		{[]Part{a, b, cut}, []string{"cut: is unfinished, has 1 of 4 runs"}},
		{[]Part{a, b, twice}, []string{"twice: has run 0 of point 2 twice"}},
	} {
		_, err := Merge(test.parts)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Merge(%d parts) = %v, want %q", len(test.parts), err, want)
			}
		}
	}
}

func TestReadPartRefuses(t *testing.T) {
	folder := t.TempDir()
	var whole bytes.Buffer
	if err := measured(t, small(t, 2, Shard{1, 2}), nil).Write(&whole); err != nil {
		t.Fatal(err)
	}
	text := whole.String()
	for name, c := range map[string]struct{ text, want string }{
		"empty":  {"", "empty: must be what a shard wrote, is empty"},
		"csv":    {"a,b\n", "csv:1: must be a line of a sweep"},
		"torn":   {text[:len(text)-9], ":7: the line is cut off"},
		"long":   {text[:len(text)-1] + strings.Repeat(" ", maxLine) + "\n", ":7: a line must have at most 1048576 bytes, has more"},
		"two":    {text + "{}{}\n", ":8: must be one line of a sweep"},
		"point":  {strings.Replace(text, `"point":3`, `"point":2`, 1), "point 2 is none of shard 1/2 of 6 points"},
		"digest": {strings.Replace(text, `"digest":"sha256:`, `"digest":"","x":"`, 1), "unknown field"},
		"blank":  {regexp.MustCompile(`"digest":"[^"]*"`).ReplaceAllString(text, `"digest":""`), "point 1 must have a digest, has none"},
		"run":    {strings.Replace(text, `"run":1`, `"run":2`, 1), "point 1 has 2 runs, not one numbered 2"},
		"values": {strings.Replace(text, `"at":["20",`, `"at":[`, 1), "must have 2 values and"},
		"seeds":  {strings.Replace(text, `"seeds":2`, `"seeds":0`, 1), "must have 1 to 1000000 runs, has 6 points of 0 seeds"},
		"points": {strings.Replace(text, `"points":6`, `"points":9999999`, 1), "has 9999999 points"},
		"shard":  {strings.Replace(text, `"shard":"1/2"`, `"shard":"2/2"`, 1), "the first of 2 shards is 0/2"},
	} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPart(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("ReadPart of %s = %v, want %q", name, err, c.want)
		}
	}
	if _, err := ReadPart(filepath.Join(folder, "nowhere")); err == nil || !strings.HasSuffix(err.Error(), "nowhere: no such file or directory") {
		t.Errorf("ReadPart(nowhere) = %v", err)
	}
}

// Nothing runs before all points are right, and all that is wrong is told.
func TestFaultsOfAllPoints(t *testing.T) {
	_, err := New(t.Context(), small(t, 3, Shard{0, 4}, "workload.arrivals.rate=0,10,-1", "engine.max_num_seqs=8,0"), nil)
	const want = `--set workload.arrivals.rate=0: must be positive, is 0 (2 of 6 points, first workload.arrivals.rate=0 engine.max_num_seqs=8)
--set engine.max_num_seqs=0: must be positive, is 0 (3 of 6 points, first workload.arrivals.rate=0 engine.max_num_seqs=0)
--set workload.arrivals.rate=-1: must be positive, is -1 (2 of 6 points, first workload.arrivals.rate=-1 engine.max_num_seqs=8)`
	if err == nil || err.Error() != want {
		t.Errorf("New = %v, want\n%s", err, want)
	}
	_, err = New(t.Context(), small(t, 3, Whole, "workload.arrivals.rate=-100..-1:1"), nil)
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "\nand 80 more") {
		t.Errorf("New of a hundred faults = %v, want twenty of them", err)
	}
	q := small(t, 1, Whole, "seed=1,2", "seed=3")
	q.Seeds = 1001
	if _, err = New(t.Context(), q, nil); err == nil || err.Error() != "seed: is swept twice\nthere must be 1 to 1000 seeds, are 1001" {
		t.Errorf("New of an axis twice = %v", err)
	}
	q = small(t, 1, Whole, "seed=1..1000:1", "workload.arrivals.rate=1..501:1")
	if _, err = New(t.Context(), q, nil); err == nil || err.Error() != "a sweep must have at most 1000000 runs, has 1000 x 501 x 2 seeds" {
		t.Errorf("New of too many points = %v", err)
	}
}

// A run that fails ends the sweep and says where; what others had done is kept.
func TestFailedRunsSayWhere(t *testing.T) {
	q := small(t, 2, Whole)
	of := q.Measure.Of
	q.Measure.Of = func(ctx context.Context, s *scenarios.Scenario) ([]float64, error) {
		if s.Workload.Arrivals.Rate == 40 && s.Engine.MaxNumSeqs == 8 {
			return nil, errors.New("out of luck")
		}
		return of(ctx, s)
	}
	_, err := newSweep(t, q).Run(t.Context(), nil, nil)
	if err == nil || err.Error() != "workload.arrivals.rate=40 engine.max_num_seqs=8: out of luck" {
		t.Errorf("Run = %v, want where it failed", err)
	}
}

// A file that is another one when its point is run is noticed.
func TestChangedFilesAreNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	write := func(rows string) {
		if err := os.WriteFile(path, []byte("arrival_s,input_tokens,output_tokens\n"+rows), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("0,10,5\n1,10,5\n")
	q := small(t, 1, Whole, "engine.max_num_seqs=8,64")
	q.Load = func(values []string) (*scenarios.Scenario, error) {
		return scenarios.Load("base", []scenarios.Edit{scenarios.TraceEdit(path), {Path: "engine.max_num_seqs", Value: values[0]}})
	}
	s := newSweep(t, q)
	s.files = sharedFiles{}
	write("0,10,5\n1,20,5\n")
	if _, err := s.Run(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "its files changed while the sweep ran") {
		t.Errorf("Run = %v, want that the trace changed", err)
	}
}

// The first seed is the scenario's own, so that a point is what simulate says; others are its own, too, of
// every point the same.
func TestSeeds(t *testing.T) {
	if Seed(42, 0) != 42 {
		t.Errorf("Seed(42, 0) = %d, want 42", Seed(42, 0))
	}
	seen := map[uint64]bool{}
	for run := range MaxSeeds {
		s := Seed(42, run)
		if seen[s] || s > math.MaxInt64 {
			t.Fatalf("Seed(42, %d) = %d, twice or too large", run, s)
		}
		seen[s] = true
	}
	p := measured(t, small(t, 2, Whole), nil)
	p.Lines = p.Lines[:2]
	at := 4
	a, b := float64(p.Lines[0].Figures[at]), float64(p.Lines[1].Figures[at])
	mean, stderr := row(p.Lines).average(at)
	if a == b || math.Abs(float64(mean)-(a+b)/2) > 1e-6 || math.Abs(float64(stderr)-math.Abs(a-b)/2) > 1e-6 {
		t.Errorf("average of %v and %v = %v +/- %v", a, b, mean, stderr)
	}
}

// What a point has no figure of is empty, and in a table left out.
func TestMissingFigures(t *testing.T) {
	q := small(t, 1, Whole, "seed=1,2")
	q.Seeds = 1
	p := measured(t, q, nil)
	columns, err := Simulate.Columns("completed, slo_met")
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"csv":   "seed,completed,slo_met,base_seed,digest,llmsim\n1,60,,1,sha256:",
		"json":  `"figures":{"completed":60,"slo_met":null}`,
		"table": "seed  completed  SLO (%)\n1            60        -\n",
		"md":    "| seed | completed | SLO (%) |",
	} {
		var b strings.Builder
		if err := p.Result(Simulate, columns).Write(&b, format); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("as %s: %v\n%s\nwant %q", format, err, &b, want)
		}
	}
	if text := written(t, p); strings.Contains(text, "SLO (") {
		t.Errorf("a table without an SLO:\n%s", text)
	}
	if _, err := Simulate.Columns("completed,ttft_p9_ms,completed,foo"); err == nil ||
		!strings.Contains(err.Error(), `"ttft_p9_ms" is not known, did you mean ttft_p`) || !strings.Contains(err.Error(), "completed is given twice") {
		t.Errorf("Columns = %v", err)
	}
}

// With an SLO, a point says whether it is met.
func TestSLO(t *testing.T) {
	p := measured(t, small(t, 2, Whole, "slo={ttft-p99: 1h},{ttft-p99: 1us}"), nil)
	last := len(p.Figures) - 1
	if p.Figures[last] != "slo_met" || p.Lines[0].Figures[last] != 1 || p.Lines[2].Figures[last] != 0 {
		t.Errorf("slo_met = %v and %v, want 1 and 0", p.Lines[0].Figures[last], p.Lines[2].Figures[last])
	}
}

func ExampleParseAxis() {
	a, err := ParseAxis("workload.arrivals.rate=0.5..2:0.5,10")
	fmt.Println(a.Fields, a.Stops, err)
	// Output: [workload.arrivals.rate] [[0.5] [1] [1.5] [2] [10]] <nil>
}
