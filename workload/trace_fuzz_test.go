package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// hostile checks what holds of any file: a clear refusal, or a trace whose account adds
// up, whose requests are possible and in order, and which reads the same from memory
// and from the file.
func hostile(t *testing.T, text []byte, options TraceOptions) {
	trace, err := openText(string(text), options, heldRows)
	again, errAgain := openText(string(text), options, 2)
	if (err == nil) != (errAgain == nil) {
		t.Fatalf("OpenTrace = %v held, %v read again", err, errAgain)
	}
	if err != nil {
		return
	}
	skipped := 0
	for _, s := range trace.Account.Skipped {
		skipped += s.Count
		if s.Count < len(s.First) || len(s.First) == 0 {
			t.Errorf("Skip = %+v, want the first few of its count", s)
		}
	}
	if a := trace.Account; a.Rows != a.Kept+skipped || a.Kept == 0 {
		t.Errorf("Account = %+v, want rows = kept + skipped and some kept", a)
	}
	if !reflect.DeepEqual(trace.Account, again.Account) || trace.Grid != again.Grid {
		t.Errorf("held %+v %+v, read again %+v %+v", trace.Account, trace.Grid, again.Account, again.Grid)
	}
	if !trace.HasArrivals {
		if prompts, _ := trace.Lengths(); len(prompts) != trace.Requests {
			t.Errorf("Lengths() gives %d, want %d", len(prompts), trace.Requests)
		}
		return
	}
	all := replayAll(t, trace)
	if len(all) != trace.Requests {
		t.Errorf("%d requests, want %d", len(all), trace.Requests)
	}
	last := time.Duration(0)
	for i, q := range all {
		if q.ID != int64(i) || q.Arrival < last || q.Prompt < 1 || q.Prompt > maxTokens || q.Output < 1 || q.Output > maxTokens || len(q.Prefix) > 0 && q.PrefixBlock < 1 {
			t.Fatalf("request %d after %v = %+v", i, last, q)
		}
		last = q.Arrival
	}
	if other := replayAll(t, again); !reflect.DeepEqual(all, other) {
		t.Errorf("held %+v, read again %+v", all, other)
	}
	if _, err := Inspect(trace); err != nil {
		t.Errorf("Inspect: %v", err)
	}
	var out bytes.Buffer
	src := list(all)
	if _, err := WriteTrace(&out, &src); err != nil {
		t.Fatalf("WriteTrace: %v", err)
	}
	back, err := openText(out.String(), TraceOptions{Strict: true}, heldRows)
	if err != nil {
		t.Fatalf("reading back %q: %v", out.String(), err)
	}
	if got := replayAll(t, back); !reflect.DeepEqual(all, got) {
		t.Errorf("read back %+v, want %+v", got, all)
	}
}

func seeds(f *testing.F, pattern string) {
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("Glob(%q) = %v, %v", pattern, paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(0))
		f.Add(text, uint8(5))
	}
}

// options makes every combination reachable by one byte.
func hostileOptions(b uint8) TraceOptions {
	return TraceOptions{
		Spread:  [...]string{"", SpreadUniform, SpreadPoisson}[b%3],
		Speedup: [...]float64{0, 2.5, 1e-3}[b/3%3],
		Limit:   [...]int{0, 1}[b/9%2],
		Seed:    uint64(b),
	}
}

func FuzzTraceCSV(f *testing.F) {
	seeds(f, "*.csv")
	f.Fuzz(func(t *testing.T, text []byte, b uint8) { hostile(t, text, hostileOptions(b)) })
}

func FuzzTraceJSONL(f *testing.F) {
	seeds(f, "*.jsonl")
	f.Fuzz(func(t *testing.T, text []byte, b uint8) { hostile(t, text, hostileOptions(b)) })
}

func FuzzTraceGzip(f *testing.F) {
	seeds(f, "*.gz")
	f.Fuzz(func(t *testing.T, text []byte, b uint8) { hostile(t, text, hostileOptions(b)) })
}
