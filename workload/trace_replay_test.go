package workload

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func arrivalsOf(all []Request) (at []time.Duration) {
	for _, q := range all {
		at = append(at, q.Arrival)
	}
	return at
}

// Requests that a coarse clock put on one instant are spread until its next one, and
// jitter of the clock never lets one herd run into the next.
func TestSpreadStaysWithinTheGrid(t *testing.T) {
	const ms = time.Millisecond
	trace := openFixture(t, "mooncake.jsonl", TraceOptions{Spread: SpreadUniform})
	if want := (Grid{3000 * ms, 4, 3}); trace.Grid != want {
		t.Errorf("Grid = %+v, want %+v", trace.Grid, want)
	}
	// The first slot is 2999 ms wide, the second one 3000.
	want := []time.Duration{0, 999666666, 1999333333, 2999 * ms, 5999 * ms, 7499 * ms, 8999 * ms}
	if got := arrivalsOf(replayAll(t, trace)); !reflect.DeepEqual(got, want) {
		t.Errorf("uniform arrivals = %v, want %v", got, want)
	}

	literal := replayAll(t, openFixture(t, "mooncake.jsonl", TraceOptions{}))
	for seed := range uint64(50) {
		trace := openFixture(t, "mooncake.jsonl", TraceOptions{Spread: SpreadPoisson, Seed: seed})
		got := replayAll(t, trace)
		if !slices.IsSorted(arrivalsOf(got)) {
			t.Fatalf("seed %d: arrivals = %v, want them ascending", seed, arrivalsOf(got))
		}
		for i, q := range got {
			late := q.Arrival - literal[i].Arrival
			if q.Arrival = literal[i].Arrival; late < 0 || late >= 3000*ms || !reflect.DeepEqual(q, literal[i]) {
				t.Fatalf("seed %d: request %d = %+v, %v late, want %+v within a slot", seed, i, q, late, literal[i])
			}
		}
		if again := replayAll(t, trace); !reflect.DeepEqual(arrivalsOf(got), arrivalsOf(again)) {
			t.Fatalf("seed %d: two replays differ: %v and %v", seed, arrivalsOf(got), arrivalsOf(again))
		}
	}
}

// What was done about a grid is always said: a literal replay makes a false p99.
func TestGridIsNoted(t *testing.T) {
	for _, test := range []struct {
		options TraceOptions
		want    string
	}{
		{TraceOptions{}, "grid of 3s: replayed as written they arrive in herds of up to 3"},
		{TraceOptions{Spread: SpreadUniform}, "spread within it: uniform"},
		{TraceOptions{Spread: SpreadPoisson}, "spread within it: poisson"},
	} {
		trace := openFixture(t, "mooncake.jsonl", test.options)
		if notes := strings.Join(trace.Notes, "\n"); !strings.Contains(notes, test.want) {
			t.Errorf("Notes with %+v = %q, want %q in it", test.options, notes, test.want)
		}
	}
	trace := openFixture(t, "azure2023.csv", TraceOptions{Spread: SpreadUniform})
	if notes := strings.Join(trace.Notes, "\n"); !strings.Contains(notes, "nothing was spread") {
		t.Errorf("Notes without a grid = %q, want that nothing was spread", notes)
	}
}

// What is assumed or left out is said once, by name.
func TestNotesSayWhatIsAssumed(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"azure2023.csv", "testdata/azure2023.csv: no prefix identity: the prefix hit rate is assumed to be 0"},
		{"azure_lmm.csv", "NumImages is not simulated"},
		{"mooncake.jsonl", "rows with another number of prefix ids than ceil(input/512): 1, first line 5"},
		{"vidur_lengths.csv", "no arrivals"},
		{"burstgpt_v3.csv", "4 rows: 3 kept"},
	} {
		if notes := strings.Join(openFixture(t, test.file, TraceOptions{}).Notes, "\n"); !strings.Contains(notes, test.want) {
			t.Errorf("Notes of %s = %q, want %q in it", test.file, notes, test.want)
		}
	}
	if trace := openFixture(t, "mooncake.jsonl", TraceOptions{}); !trace.HasPrefix {
		t.Error("HasPrefix of mooncake.jsonl = false, want true")
	}
}

// Speedup divides instants and rounds them once; a limit cuts requests, not the account.
func TestSpeedupAndLimit(t *testing.T) {
	trace := openFixture(t, "llmsim.csv", TraceOptions{Speedup: 3, Limit: 2})
	want := []time.Duration{4166667, 33333334}
	if got := arrivalsOf(replayAll(t, trace)); !reflect.DeepEqual(got, want) {
		t.Errorf("arrivals at 3 times the speed = %v, want %v", got, want)
	}
	if trace.Requests != 2 || trace.Account.Kept != 3 {
		t.Errorf("Requests, Kept = %d, %d, want 2, 3", trace.Requests, trace.Account.Kept)
	}
	if prompts, _ := trace.Lengths(); len(prompts) != 2 {
		t.Errorf("Lengths() gives %d prompts, want 2", len(prompts))
	}
}

// A file that is read again must be the one that was opened.
func TestReplayNoticesAChangedFile(t *testing.T) {
	const header = "arrival_s,input_tokens,output_tokens\n"
	path := filepath.Join(t.TempDir(), "x.csv")
	for _, test := range []struct{ before, after, want string }{
		{"1,1,1\n2,2,2\n", "1,1,1\n2,2,3\n", "changed since it was opened"},
		{"1,1,1\n2,2,2\n", "1,1,1\n2,2,2\n3,3,3\n", "changed since it was opened"},
		{"1,1,1\n2,2,2\n", "2,1,1\n1,2,2\n", "it was sorted"},
	} {
		if err := os.WriteFile(path, []byte(header+test.before), 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := openTrace(path, func() (io.ReadCloser, error) { return openRegular(path) }, TraceOptions{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(header+test.after), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := trace.Source()
		if err != nil {
			t.Fatal(err)
		}
		for _, ok := p.Next(); ok; _, ok = p.Next() {
		}
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Err() after %q became %q = %v, want %q", test.before, test.after, err, test.want)
		}
	}
}

// Prefixes of a replayed file outlive the row they came with, also when it is read again.
func TestPrefixesOutliveTheirRow(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 1024, "output_length": 1, "hash_ids": [%d, %d]}`+"\n", i, i, 1000+i)
	}
	for _, hold := range []int{heldRows, 0} {
		trace, err := openText(text.String(), TraceOptions{}, hold)
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range replayAll(t, trace) {
			if want := []uint64{uint64(i), uint64(1000 + i)}; !reflect.DeepEqual(q.Prefix, want) {
				t.Fatalf("Prefix of request %d, %d held, = %v, want %v", i, hold, q.Prefix, want)
			}
		}
	}
}
