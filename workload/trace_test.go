package workload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func openFixture(t testing.TB, name string, options TraceOptions) *Trace {
	t.Helper()
	return mustOpen(t, filepath.Join("testdata", name), options)
}

func mustOpen(t testing.TB, path string, options TraceOptions) *Trace {
	t.Helper()
	trace, err := OpenTrace(path, options)
	if err != nil {
		t.Fatalf("OpenTrace(%q, %+v): %v", path, options, err)
	}
	return trace
}

// openText opens a trace that is held nowhere on disk; hold is how many rows it may keep in memory.
func openText(text string, options TraceOptions, hold int) (*Trace, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	return openTrace("x.csv", open, options, hold)
}

func replayAll(t testing.TB, trace *Trace) []Request {
	t.Helper()
	p, err := trace.Source()
	if err != nil {
		t.Fatal(err)
	}
	var all []Request
	for q, ok := p.Next(); ok; q, ok = p.Next() {
		all = append(all, q)
	}
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	return all
}

// Every format with its traps: units, CRLF, a last line without newline, a zero
// fraction left out, columns in another order, quotes, a byte order mark, .gz.
func TestOpenTraceReadsEveryFormat(t *testing.T) {
	const s, ms, us, ns = time.Second, time.Millisecond, time.Microsecond, time.Nanosecond
	lmm := []Request{{0, 0, 900, 120, 0, 0, nil, 0}, {1, s - 123456*us, 2100, 80, 0, 0, nil, 0}}
	one, two := nameSession([]byte("1722ac82-0a46")), nameSession([]byte("d5983bf9-4b48"))
	for _, test := range []struct {
		file, format string
		want         []Request
	}{
		{"llmsim.csv", "llmsim", []Request{{0, 12500 * us, 512, 64, 0, 0, nil, 0}, {1, 100*ms + 1, 100, 1, 0, 0, nil, 0}, {2, 7 * s, 30, 20, 0, 0, nil, 0}}},
		{"llmsim_optional.csv", "llmsim", []Request{
			{0, 500 * ms, 512, 64, 0, 1, []uint64{1<<64 - 1}, 512},
			{1, 500 * ms, 40, 5, -3, 0, []uint64{7, 8, 9}, 16},
			{2, 500 * ms, 50, 6, 1, 2, nil, 0}}},
		{"vllm_run.csv", "vllm-run", []Request{
			{0, 0, 50, 531, 0, 0, []uint64{0, 1, 2}, 16},
			{1, 265091 * us, 64, 769, 0, 0, []uint64{0, 1, 2, 5}, 16},
			{2, 396147 * us, 10, 769, 0, 0, nil, 0},
			{3, 500 * ms, 33, 7, 0, 0, []uint64{7, 1<<64 - 2, 1<<64 - 1}, 16}}},
		{"azure2023.csv", "azure", []Request{{0, 0, 4808, 10, 0, 0, nil, 0}, {1, 52 * ms, 3180, 8, 0, 0, nil, 0}, {2, 98189*us + 100*ns, 110, 27, 0, 0, nil, 0}}},
		{"azure2024.csv", "azure", []Request{{0, 0, 100, 10, 0, 0, nil, 0}, {1, us, 200, 20, 0, 0, nil, 0}, {2, 1500*ms + us, 300, 30, 0, 0, nil, 0}, {3, 24*time.Hour + us, 400, 40, 0, 0, nil, 0}}},
		{"azure_lmm.csv", "azure-lmm", lmm},
		{"azure_lmm.csv.gz", "azure-lmm", lmm},
		{"mooncake.jsonl", "mooncake", []Request{
			{0, 0, 1100, 500, 0, 0, []uint64{0, 1, 2}, 512}, {1, 0, 513, 4, 0, 0, []uint64{0, 3}, 512}, {2, 0, 1024, 4, 0, 0, []uint64{0, 1}, 512},
			{3, 2999 * ms, 512, 9, 0, 0, []uint64{1<<64 - 1}, 512}, {4, 5999 * ms, 600, 9, 0, 0, []uint64{0, 4}, 512},
			{5, 5999 * ms, 100, 9, 0, 0, nil, 0}, {6, 8999 * ms, 100, 9, 0, 0, nil, 0}}},
		{"burstgpt_v1.csv", "burstgpt", []Request{{0, 0, 472, 18, 0, 0, nil, 0}, {1, 40 * s, 1087, 230, 0, 0, nil, 0}, {2, 40 * s, 417, 276, 0, 0, nil, 0}}},
		{"burstgpt_v3.csv", "burstgpt-v3", []Request{{0, 0, 906, 446, 0, one, nil, 0}, {1, 51500 * ms, 36, 29, 0, two, nil, 0}, {2, 82250 * ms, 1779, 123, 0, one, nil, 0}}},
		{"vidur.csv", "vidur", []Request{{0, 0, 374, 44, 0, 0, nil, 0}, {1, 5 * us, 396, 109, 0, 0, nil, 0}, {2, 5892655 * us, 879, 55, 0, 0, nil, 0}}},
		{"llmservingsim.jsonl", "llmservingsim", []Request{{0, 0, 27369, 1626, 0, 0, nil, 0}, {1, 42833*us + 1, 3, 527, 0, 0, nil, 0}}},
	} {
		for _, hold := range []int{heldRows, 0} { // from memory, and read again
			path := filepath.Join("testdata", test.file)
			trace, err := openTrace(path, func() (io.ReadCloser, error) { return openRegular(path) }, TraceOptions{}, hold)
			if err != nil {
				t.Errorf("OpenTrace(%q): %v", path, err)
				continue
			}
			if trace.Format != test.format {
				t.Errorf("OpenTrace(%q).Format = %q, want %q", path, trace.Format, test.format)
			}
			if got := replayAll(t, trace); !reflect.DeepEqual(got, test.want) {
				t.Errorf("requests of %q, %d held, = %+v, want %+v", path, hold, got, test.want)
			}
		}
	}
}

// A digest names the contents, so that a compressed copy is the same workload.
func TestDigestIsOfTheContents(t *testing.T) {
	plain, packed := openFixture(t, "azure_lmm.csv", TraceOptions{}), openFixture(t, "azure_lmm.csv.gz", TraceOptions{})
	if len(plain.Digest) != 64 || plain.Digest != packed.Digest {
		t.Errorf("Digest = %q plain, %q packed, want the same 64 digits", plain.Digest, packed.Digest)
	}
}

// Without arrivals a trace still gives lengths; replaying it would be an invention.
func TestLengthsOnly(t *testing.T) {
	trace := openFixture(t, "vidur_lengths.csv", TraceOptions{})
	if _, err := trace.Source(); err == nil || trace.HasArrivals {
		t.Errorf("Source() = %v with HasArrivals %v, want an error and false", err, trace.HasArrivals)
	}
	prompts, outputs := trace.Lengths()
	if want := []int32{3772, 2015}; !reflect.DeepEqual(prompts, want) {
		t.Errorf("Lengths() prompts = %v, want %v", prompts, want)
	}
	if want := []int32{54, 156}; !reflect.DeepEqual(outputs, want) {
		t.Errorf("Lengths() outputs = %v, want %v", outputs, want)
	}
}

// Every row is accounted for, by reason and line.
func TestAccount(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"azure2023.csv", "3 rows: 3 kept"},
		{"burstgpt_v3.csv", "4 rows: 3 kept, 1 skipped (1 zero output, first line 3)"},
		{"faults.csv", `10 rows: 2 kept, 8 skipped (1 zero output, first line 5; 1 zero input, first line 6; 6 unparsable, first line 4: ContextTokens: must be a whole number, is "abc")`},
	} {
		trace := openFixture(t, test.file, TraceOptions{})
		if got := trace.Account.String(); got != test.want {
			t.Errorf("Account of %s = %q, want %q", test.file, got, test.want)
		}
	}
}

// A strict reading names every malformed row at once, with place and both values.
func TestStrictRefusesMalformedRows(t *testing.T) {
	_, err := OpenTrace("testdata/faults.csv", TraceOptions{Strict: true})
	want := `testdata/faults.csv:4: ContextTokens: must be a whole number, is "abc"
testdata/faults.csv:7: TIMESTAMP: must be a date and time as 2023-11-16 18:17:03.9799600, with or without a zone, is "2023-02-29 18:17:06"
testdata/faults.csv:8: ContextTokens: must not be negative, is "-5"
testdata/faults.csv:9: must have 3 columns as the header, has 2
testdata/faults.csv:10: GeneratedTokens: must be at most 100000000, is "100000001"
testdata/faults.csv:11: column 2: a quoted field must end on its line`
	if err == nil || err.Error() != want {
		t.Errorf("OpenTrace(faults.csv, strict) = %v, want %v", err, want)
	}
	var many strings.Builder
	many.WriteString("arrival_s,input_tokens,output_tokens\n0,1,1\n")
	for range 50 {
		many.WriteString("0,x,1\n")
	}
	_, err = openText(many.String(), TraceOptions{Strict: true}, heldRows)
	if got := strings.Count(fmt.Sprint(err), "\n"); got != 20 || !strings.HasSuffix(err.Error(), "and 30 more malformed rows") {
		t.Errorf("a strict reading of 50 malformed rows gives %d lines: %v, want 20 and a count of the rest", got+1, err)
	}
}

// Rows out of order are sorted, those of one instant in the file's order, with a note;
// a strict reading names the line and both instants.
func TestUnsortedRows(t *testing.T) {
	path := "testdata/unsorted.csv"
	for _, hold := range []int{heldRows, 2, 0} {
		trace, err := openTrace(path, func() (io.ReadCloser, error) { return openRegular(path) }, TraceOptions{}, hold)
		if err != nil {
			t.Fatal(err)
		}
		var prompts []int
		for _, q := range replayAll(t, trace) {
			prompts = append(prompts, q.Prompt)
		}
		if want := []int{10, 20, 30, 31}; !reflect.DeepEqual(prompts, want) {
			t.Errorf("prompts of %s, %d held, = %v, want %v", path, hold, prompts, want)
		}
		if notes := strings.Join(trace.Notes, "\n"); !strings.Contains(notes, "have been sorted: line 3 is at 2023-11-16 18:17:03, line 2 before it at 2023-11-16 18:17:05.5") {
			t.Errorf("Notes of %s = %q, want one about the sort", path, notes)
		}
	}
	_, err := OpenTrace(path, TraceOptions{Strict: true})
	want := path + ":3: rows must be in order of arrival: line 3 is at 2023-11-16 18:17:03, line 2 before it at 2023-11-16 18:17:05.5"
	if err == nil || err.Error() != want {
		t.Errorf("OpenTrace(%q, strict) = %v, want %v", path, err, want)
	}
}

// What is no trace is refused, saying what it is and what would be one.
func TestOpenTraceRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, contents string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	packed, err := os.ReadFile("testdata/azure_lmm.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, want string }{
		{dir, "is a directory"},
		{os.DevNull, "must be a regular file"},
		{filepath.Join(dir, "absent.csv"), "no such file"},
		{file("empty.csv", ""), "empty trace"},
		{file("blank.csv", "\n \r\n\n"), "empty trace"},
		{file("header.csv", "arrival_s,input_tokens,output_tokens\n"), "empty trace: 0 rows"},
		{file("failed.csv", "arrival_s,input_tokens,output_tokens\n1,2,0\n"), "1 zero output, first line 2"},
		{file("near.csv", "TIMESTAMP,ContextTokens,Generated\n"), `:1: unknown format: header "TIMESTAMP,ContextTokens,Generated"; nearest is azure, which also needs "GeneratedTokens"; known are vllm-run arrival_s`},
		{file("twice.csv", "arrival_s,input_tokens,output_tokens,input_tokens\n"), `column "input_tokens" must appear once`},
		{file("headless.csv", "5,ChatGPT,472,18\n"), `must be a header, starts with the number "5"`},
		{file("keys.jsonl", `{"timestamp": 1, "input_length": 2}`), `nearest is mooncake, which also needs "output_length"`},
		{file("cut.gz", string(packed[:len(packed)/2])), "truncated"},
		{file("cut8.gz", string(packed[:len(packed)-4])), "truncated"},
		{file("cut3.gz", string(packed[:3])), "truncated"},
		{file("tail.gz", string(packed)+"x"), "truncated"},
		{file("chunk-1-trace.csv", "0,2.5,1.0,Gamma,0.99,0.39\n"), "not read yet"},
		{file("chunk-2-trace.csv", "0,0,0,,0,0\r\n"), "not read yet"},
		{file("chunk-1-dataset.json", "{\n  \"0\": {\n"), "not read yet"},
		{file("sharegpt.json", "[{\"conversations\": []}]"), "not read yet"},
		{file("rates.csv", "window_start_s,total_rate_rps\n0,1\n"), "not read yet"},
		{file("late.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00,1,1\n"+strings.Repeat("x", maxLine+1)), ":3: line must be at most 16 MiB"},
		{file("wide.csv", strings.Repeat("a,", 300)), "at most 256 columns"},
	} {
		_, err := OpenTrace(test.path, TraceOptions{})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) {
			t.Errorf("OpenTrace(%q) = %v, want an error with the path and %q", test.path, err, test.want)
		}
	}
	for _, options := range []TraceOptions{{Spread: "even"}, {Speedup: -1}, {Speedup: 1e-300}, {Limit: -1}} {
		if _, err := OpenTrace("testdata/azure2023.csv", options); err == nil {
			t.Errorf("OpenTrace(azure2023.csv, %+v) = nil, want an error", options)
		}
	}
}

// A line longer than the buffer is still one line, and its neighbours are untouched.
func TestLongLines(t *testing.T) {
	var text bytes.Buffer
	pack := gzip.NewWriter(&text)
	for i := range 3 {
		fmt.Fprintf(pack, `{"input_toks": 5, "input_tok_ids": [%s1], "output_toks": %d, "arrival_time_ns": %d}`+"\n", strings.Repeat("128000, ", 50_000*i), i+1, i)
	}
	pack.Close()
	trace, err := openText(text.String(), TraceOptions{}, heldRows)
	if err != nil {
		t.Fatal(err)
	}
	if got := trace.Account.String(); got != "3 rows: 3 kept" {
		t.Errorf("Account = %q, want 3 rows: 3 kept", got)
	}
	if _, outputs := trace.Lengths(); !reflect.DeepEqual(outputs, []int32{1, 2, 3}) {
		t.Errorf("outputs = %v, want [1 2 3]", outputs)
	}
}
