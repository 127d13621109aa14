package workload

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A list is a source of given requests.
type list []Request

func (l *list) Next() (Request, bool) {
	if len(*l) == 0 {
		return Request{}, false
	}
	q := (*l)[0]
	*l = (*l)[1:]
	return q, true
}

func rewrite(t *testing.T, src Source) (string, []Request) {
	t.Helper()
	var out bytes.Buffer
	n, err := WriteTrace(&out, src)
	if err != nil {
		t.Fatalf("WriteTrace: %v", err)
	}
	trace, err := openText(out.String(), TraceOptions{Strict: true}, heldRows)
	if err != nil {
		t.Fatalf("reading back %q: %v", out.String(), err)
	}
	all := replayAll(t, trace)
	if len(all) != n {
		t.Fatalf("WriteTrace = %d, read back %d requests", n, len(all))
	}
	return out.String(), all
}

// A run's arrivals written and read back are the same to the nanosecond, so that a
// replay of a run is that run.
func TestWriteTraceRoundTrip(t *testing.T) {
	plain := []Request{{0, 12345678901 * time.Nanosecond, 512, 64, 0, 0, nil, 0}, {1, 12345678902 * time.Nanosecond, 1, 1, 0, 0, nil, 0}}
	full := []Request{
		{0, 1, 512, 64, 0, 0, nil, 0},
		{1, 1, 1000, 64, -5, 1 << 62, []uint64{1, 1<<64 - 1}, 512},
		{2, time.Hour, 1000, maxTokens, 7, -1, []uint64{5}, 16},
		{3, 100000 * time.Hour, 1, 64, 0, 0, nil, 256},
	}
	for _, want := range [][]Request{plain, full} {
		src := list(want)
		if _, got := rewrite(t, &src); !reflect.DeepEqual(got, want) {
			t.Errorf("requests read back = %+v, want %+v", got, want)
		}
	}
	src := list(plain)
	if text, _ := rewrite(t, &src); text != "arrival_s,input_tokens,output_tokens\n12.345678901,512,64\n12.345678902,1,1\n" {
		t.Errorf("WriteTrace = %q, want three columns and nine decimals", text)
	}
	src = nil
	var out bytes.Buffer
	if n, err := WriteTrace(&out, &src); n != 0 || err != nil || out.String() != "arrival_s,input_tokens,output_tokens\n" {
		t.Errorf("WriteTrace of nothing = %d, %v, %q, want the header", n, err, out.String())
	}
}

// Every format survives being converted.
func TestWriteTraceOfAReplay(t *testing.T) {
	for _, file := range []string{"llmsim_optional.csv", "azure2023.csv", "azure_lmm.csv.gz", "mooncake.jsonl", "burstgpt_v3.csv", "vidur.csv", "llmservingsim.jsonl", "unsorted.csv"} {
		options := TraceOptions{Spread: SpreadPoisson, Seed: 3, Speedup: 1.7}
		want := replayAll(t, openFixture(t, file, options))
		p, err := openFixture(t, file, options).Source()
		if err != nil {
			t.Fatal(err)
		}
		if _, got := rewrite(t, p); !reflect.DeepEqual(got, want) {
			t.Errorf("%s converted = %+v, want %+v", file, got, want)
		}
	}
}

// What the format cannot hold is refused rather than written wrong.
func TestWriteTraceRefuses(t *testing.T) {
	ok := Request{Arrival: time.Second, Prompt: 1, Output: 1}
	for _, test := range []struct {
		change func(*Request)
		want   string
	}{
		{func(q *Request) { q.Arrival = -1 }, "request 1: Arrival: must be from 0"},
		{func(q *Request) { q.Arrival = 0 }, "request 1: Arrival: must not be before the last one's 1s, is 0s"},
		{func(q *Request) { q.Prompt = 0 }, "request 1: Prompt: must be from 1 to 100000000, is 0"},
		{func(q *Request) { q.Output = 1 << 40 }, "request 1: Output: must be from 1"},
		{func(q *Request) { q.Priority = 1 << 40 }, "request 1: Priority"},
		{func(q *Request) { q.Prefix = []uint64{1} }, "request 1: PrefixBlock: must be from 1"},
	} {
		bad := ok
		test.change(&bad)
		src := list{ok, bad}
		if _, err := WriteTrace(io.Discard, &src); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("WriteTrace(%+v) = %v, want %q", bad, err, test.want)
		}
	}
	src := list{ok}
	if _, err := WriteTrace(fullDisk{}, &src); !errors.Is(err, errFull) {
		t.Errorf("WriteTrace to a full disk = %v, want %v", err, errFull)
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
