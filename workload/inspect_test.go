package workload

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// inspectText inspects requests written in the llmsim format.
func inspectText(t *testing.T, options TraceOptions, requests ...Request) Inspection {
	t.Helper()
	var text strings.Builder
	src := list(requests)
	if _, err := WriteTrace(&text, &src); err != nil {
		t.Fatal(err)
	}
	trace, err := openText(text.String(), options, heldRows)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inspect(trace)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Percentiles are numpy's: rank p(n-1), linear between its neighbours.
func TestLengthPercentiles(t *testing.T) {
	values := []int{1, 5, 5, 40000, 7, 32767, 32768, 9, 3, 100000, 8}
	var c lengthCounts
	for _, v := range values {
		c.add(v)
	}
	slices.Sort(values)
	naive := func(p float64) float64 {
		rank := p * float64(len(values)-1)
		i := int(rank)
		return float64(values[i]) + (rank-float64(i))*float64(values[min(i+1, len(values)-1)]-values[i])
	}
	got := c.summary()
	for _, test := range []struct{ p, got float64 }{{0.5, got.P50}, {0.9, got.P90}, {0.95, got.P95}, {0.99, got.P99}} {
		if math.Abs(test.got-naive(test.p)) > 1e-9*naive(test.p) {
			t.Errorf("percentile %v of %v = %v, want %v", test.p, values, test.got, naive(test.p))
		}
	}
	if got.Max != 100000 || got.Total != 205573 {
		t.Errorf("summary(%v) = %+v, want max 100000, total 205573", values, got)
	}
	var one lengthCounts
	one.add(7)
	if got := one.summary(); got != (LengthSummary{7, 7, 7, 7, 7, 7, 7}) {
		t.Errorf("summary(7) = %+v, want 7 throughout", got)
	}
}

// A steady stream of arrivals has no dispersion, whatever the window; a window counts
// only once an arrival lies beyond it.
func TestSteadyArrivals(t *testing.T) {
	var steady []Request
	for i := range 1201 {
		steady = append(steady, Request{Arrival: time.Duration(i) * 100 * time.Millisecond, Prompt: 10, Output: 2})
	}
	in := inspectText(t, TraceOptions{}, steady...)
	if in.Rate != 10 || in.GapCV > 1e-9 || in.Peak != 10 || in.PeakRatio != 1 || in.Duration != 2*time.Minute || in.Herd != 1 || in.Distinct != 1201 {
		t.Errorf("Inspect(every 100 ms) = %+v, want rate 10, CV 0, peak 10", in)
	}
	want := []Dispersion{{time.Second, 120, 0}, {10 * time.Second, 12, 0}, {time.Minute, 2, 0}}
	if !slices.Equal(in.Dispersion, want) {
		t.Errorf("Dispersion = %+v, want %+v", in.Dispersion, want)
	}
	if !strings.Contains(in.Verdict[0], "more regular than Poisson") {
		t.Errorf("Verdict = %q, want regular", in.Verdict)
	}
}

// The ceiling counts tokens in blocks that some earlier prompt led with, in the same
// order: a block behind another predecessor is another block.
func TestPrefixCeiling(t *testing.T) {
	q := func(prompt int, ids ...uint64) Request {
		return Request{Prompt: prompt, Output: 1, Prefix: ids, PrefixBlock: 100}
	}
	in := inspectText(t, TraceOptions{},
		q(300, 1, 2, 3), // nothing seen
		q(250, 1, 2, 9), // 200 tokens
		q(300, 2, 1, 3), // none: other order
		q(300, 5, 2, 3), // none: other start
		q(250, 1, 2, 3)) // all 250, the last block in part
	if want := 450.0 / 1400; math.Abs(in.PrefixCeiling-want) > 1e-12 {
		t.Errorf("PrefixCeiling = %v, want %v", in.PrefixCeiling, want)
	}
}

// The verdict says in words whether a Poisson plan holds.
func TestVerdict(t *testing.T) {
	poisson := func(step func(i int) float64) (all []Request) {
		at, state := 0.0, uint64(7)
		for i := range 4000 {
			state = mix(state)
			at -= step(i) * math.Log(float64(state>>11|1)*0x1p-53)
			all = append(all, Request{Arrival: time.Duration(at * 1e9), Prompt: 100, Output: 10})
		}
		return all
	}
	for _, test := range []struct {
		name string
		in   Inspection
		want string
	}{
		{"poisson", inspectText(t, TraceOptions{}, poisson(func(int) float64 { return 0.1 })...), "arrivals are near Poisson: CV"},
		{"drift", inspectText(t, TraceOptions{}, poisson(func(i int) float64 { return 0.1 + 0.1*float64(i/1000%2) })...), "but the rate drifts"},
		{"bursts", inspectText(t, TraceOptions{}, poisson(func(i int) float64 { return 0.01 + 5*float64((i+1)%50/49) })...), "a Poisson plan for this traffic is wrong: CV"},
		{"at once", inspectText(t, TraceOptions{}, slices.Repeat([]Request{{Prompt: 1, Output: 1}}, 200)...), "all requests arrive at once"},
		{"few", inspectText(t, TraceOptions{}, poisson(func(int) float64 { return 1 })[:5]...), "too few requests (5)"},
	} {
		if !strings.Contains(test.in.Verdict[0], test.want) {
			t.Errorf("Verdict of %s = %q, want %q", test.name, test.in.Verdict, test.want)
		}
	}
	in, err := Inspect(openFixture(t, "mooncake.jsonl", TraceOptions{}))
	if err != nil || !strings.Contains(in.Verdict[0], "a grid of 3s with herds of up to 3") {
		t.Errorf("Verdict of mooncake.jsonl = %q, %v, want one about the grid", in.Verdict, err)
	}
	in, err = Inspect(openFixture(t, "vidur_lengths.csv", TraceOptions{}))
	if err != nil || !strings.Contains(in.Verdict[0], "lengths only") || in.Output.Max != 156 {
		t.Errorf("Inspect(vidur_lengths.csv) = %+v, %v, want lengths only", in, err)
	}
}

// A trace says of itself what was read, what it is like, and what to note.
func ExampleOpenTrace() {
	trace, err := OpenTrace(filepath.Join("testdata", "mooncake.jsonl"), TraceOptions{Spread: SpreadUniform, Limit: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := trace.Source()
	if err != nil {
		fmt.Println(err)
		return
	}
	for q, ok := source.Next(); ok; q, ok = source.Next() {
		fmt.Println(q.ID, q.Arrival, q.Prompt, q.Output, q.Prefix)
	}
	fmt.Println(trace.Format, trace.Account)
	fmt.Println(trace.Notes[1])
	// Output:
	// 0 0s 1100 500 [0 1 2]
	// 1 999.666666ms 513 4 [0 3]
	// 2 1.999333333s 1024 4 [0 1]
	// mooncake 7 rows: 7 kept
	// testdata/mooncake.jsonl: instants lie on a grid of 3s with up to 3 requests each; spread within it: uniform
}
