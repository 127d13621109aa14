package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/policy"
	"llmsim/workload"
)

var update = flag.Bool("update", false, "rewrite testdata")

var identity = Identity{
	Version: "1.0.0", Scenario: "base", Digest: "sha256:00112233445566778899aabbccddeeff", Seed: 42,
	Policy: "classic", Models: "article", Blocks: 7609, BlockSize: 16,
	Workload: "poisson arrivals at 80/s, prompts of 512 and answers of 64 tokens",
	Assumptions: []string{
		"Step times come from a roofline without any overhead, which no GPU reaches: latencies are lower bounds.",
		"Clients never give up."},
}

const second = time.Second

// told is a small run that can be followed by hand: four requests, of which one is refused; two steps of 1 s,
// one of 2 s. Request 1 is preempted for 3 s.
func told(from time.Duration) *Recorder {
	r := &Recorder{From: from}
	for id, at := range []time.Duration{0, second, second, 2 * second} {
		r.Arrived(workload.Request{ID: int64(id), Arrival: at})
	}
	r.Refused(workload.Request{ID: 3, Arrival: 2 * second})
	r.Step(&sim.Step{Start: 1 * second, End: 2 * second, Shape: cost.Shape{Sequences: 2, Tokens: 100},
		Bound: cost.Compute, Running: 2, Waiting: 1, UsedBlocks: 60, FreeBlocks: 40, Firsts: []int64{0, 1},
		Blocked: policy.BySlots})
	r.Step(&sim.Step{Index: 1, Start: 3 * second, End: 4 * second, Shape: cost.Shape{Sequences: 2, Tokens: 50, Decodes: 1},
		Bound: cost.Weights, Running: 1, Waiting: 1, UsedBlocks: 100, Steady: 1, Preempted: []int64{1},
		Firsts: []int64{2}, Blocked: policy.ByKV,
		Finished: []sim.Finished{{ID: 2, Prompt: 30, Output: 1, Arrival: 1 * second, FirstSchedule: 3 * second,
			FirstToken: 4 * second, LastToken: 4 * second}}})
	r.Step(&sim.Step{Index: 2, Start: 4 * second, End: 6 * second, Shape: cost.Shape{Sequences: 2, Tokens: 2, Decodes: 2},
		Bound: cost.Weights, Running: 2, UsedBlocks: 20, FreeBlocks: 80, Steady: 1,
		Gaps: []sim.Gap{{ID: 1, Time: 4 * second, Preempted: true}},
		Finished: []sim.Finished{
			{ID: 0, Prompt: 50, Output: 3, Arrival: 0, FirstSchedule: 1 * second, FirstToken: 2 * second, LastToken: 6 * second},
			{ID: 1, Prompt: 50, Output: 2, Arrival: 1 * second, FirstSchedule: 1 * second, FirstToken: 2 * second,
				LastToken: 6 * second, Preemptions: 1}}})
	return r
}

func TestSummaryByHand(t *testing.T) {
	got := told(0).Summary(identity)
	want := Summary{
		Version: "1.0.0", Seed: 42, Workload: identity.Workload, Percentiles: "exact", VirtualS: 6,
		KV:       KV{Blocks: 7609, BlockSize: 16, Tokens: 121744, UseMean: 0.5, UseMax: 1}, // (60+100+2*20)/400
		Requests: Requests{Arrived: 4, Completed: 3, Refused: 1},
		Latency: Latencies{
			TTFT:  Latency{3, 2000, 2000, 2800, 2900, 2980, 3000},        // 1, 2, 3 s
			ITL:   Latency{3, 2333.333333, 2000, 3600, 3800, 3960, 4000}, // 1, 2, 4 s
			TPOT:  Latency{2, 3000, 3000, 3800, 3900, 3980, 4000},        // 4/2, 4/1 s
			E2E:   Latency{3, 4666.666667, 5000, 5800, 5900, 5980, 6000}, // 6, 5, 3 s
			Queue: Latency{3, 1000, 1000, 1800, 1900, 1980, 2000},        // 1, 0, 2 s
		},
		Throughput:  Throughput{1.5, 0.5, 21.666667, 1}, // 3 in 2 s; 3, 130 and 6 in 6 s
		Steps:       Steps{3, 1333.333333, 2, 2, 50.666667},
		Preemptions: Preemptions{1, 1, 1, 4000},
		Bound:       Bounds{BoundShares{Compute: 0.25, Weights: 0.75}, BoundShares{Compute: 0.333333, Weights: 0.666667}},
		Blocked:     Blocked{Slots: 0.25, KV: 0.25},
		Queue:       Level{0.5, 1}, Running: Level{1.75, 2},
	}
	want.Scenario.Name, want.Scenario.Digest = "base", identity.Digest
	want.Engine.Policy, want.Engine.Models = "classic", "article"
	want.Assumptions = identity.Assumptions
	compare(t, "Summary", got, want)
}

// After a warm-up of 1 s request 0 is gone; after one of 4 s only the last step's gaps are left.
func TestWarmup(t *testing.T) {
	s := told(second).Summary(identity)
	if s.Requests != (Requests{Arrived: 3, Completed: 2, Refused: 1, Warmup: 1}) {
		t.Errorf("From 1s: Requests = %+v", s.Requests)
	}
	if s.Latency.E2E.Count != 2 || s.Latency.E2E.Max != 5000 || s.Latency.ITL.Count != 3 || s.Steps.Count != 3 {
		t.Errorf("From 1s: E2E %+v, ITL %+v, steps %+v", s.Latency.E2E, s.Latency.ITL, s.Steps)
	}
	if s.Throughput.Completed != 0.4 { // 2 from 1 s to 6 s
		t.Errorf("From 1s: completed_rps = %v, want 0.4", s.Throughput.Completed)
	}
	s = told(4 * second).Summary(identity)
	if s.Steps.Count != 1 || s.Latency.ITL.Count != 2 || s.Latency.E2E.Count != 0 || s.Preemptions.Total != 0 {
		t.Errorf("From 4s: steps %+v, ITL %+v, E2E %+v, preemptions %+v", s.Steps, s.Latency.ITL, s.Latency.E2E, s.Preemptions)
	}
}

func compare(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := Flatten(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Flatten(want)
	if err != nil {
		t.Fatal(err)
	}
	if len(g) != len(w) {
		t.Fatalf("%s has %d fields, want %d", what, len(g), len(w))
	}
	for i := range w {
		if g[i] != w[i] {
			t.Errorf("%s.%s = %s, want %s.%s = %s", what, g[i].Key, g[i].Value, what, w[i].Key, w[i].Value)
		}
	}
}

// The keys that scripts rely on, first and in this order.
const contract = `llmsim scenario.name scenario.digest seed engine.policy engine.models kv.blocks kv.block_size kv.tokens
requests.arrived requests.completed requests.refused
latency_ms.ttft.count latency_ms.ttft.mean latency_ms.ttft.p50 latency_ms.ttft.p90 latency_ms.ttft.p95 latency_ms.ttft.p99 latency_ms.ttft.max
latency_ms.itl.count latency_ms.itl.mean latency_ms.itl.p50 latency_ms.itl.p90 latency_ms.itl.p95 latency_ms.itl.p99 latency_ms.itl.max
latency_ms.tpot.count latency_ms.tpot.mean latency_ms.tpot.p50 latency_ms.tpot.p90 latency_ms.tpot.p95 latency_ms.tpot.p99 latency_ms.tpot.max
latency_ms.e2e.count latency_ms.e2e.mean latency_ms.e2e.p50 latency_ms.e2e.p90 latency_ms.e2e.p95 latency_ms.e2e.p99 latency_ms.e2e.max
latency_ms.queue.count latency_ms.queue.mean latency_ms.queue.p50 latency_ms.queue.p90 latency_ms.queue.p95 latency_ms.queue.p99 latency_ms.queue.max
throughput.offered_rps throughput.completed_rps throughput.input_tokens_per_s throughput.output_tokens_per_s
steps.count steps.mean_ms steps.mean_batch steps.max_batch steps.mean_tokens
preemptions.total preemptions.requests preemptions.max_per_request preemptions.longest_freeze_ms virtual_s`

// An empty run has every key, and numbers that JSON can say.
func TestContractKeys(t *testing.T) {
	for name, r := range map[string]*Recorder{"empty": {}, "told": told(0)} {
		fields, err := Flatten(r.Summary(Identity{}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		at := 0
		for _, key := range strings.Fields(contract) {
			for at < len(fields) && fields[at].Key != key {
				at++
			}
		}
		if at == len(fields) {
			t.Errorf("%s: keys are not the contract's in its order: %v", name, fields)
		}
	}
}

func TestOneRequestHasNoRate(t *testing.T) {
	var r Recorder
	r.Arrived(workload.Request{Arrival: second})
	if s := r.Summary(Identity{}); s.Throughput != (Throughput{}) {
		t.Errorf("Throughput of one unfinished request = %+v, want zeros", s.Throughput)
	}
}

func TestFormatsGolden(t *testing.T) {
	s := told(0).Summary(identity)
	for _, f := range []struct {
		file  string
		write func(*bytes.Buffer) error
	}{
		{"summary.json", func(b *bytes.Buffer) error { return WriteJSON(b, s) }},
		{"summary.csv", func(b *bytes.Buffer) error { return WriteCSV(b, s) }},
		{"summary.md", func(b *bytes.Buffer) error { return s.WriteMarkdown(b) }},
		{"summary.txt", func(b *bytes.Buffer) error { return s.WriteTable(b) }},
		{"busy.txt", func(b *bytes.Buffer) error { return busy().Summary(identity).WriteTable(b) }},
		{"empty.txt", func(b *bytes.Buffer) error { return new(Recorder).Summary(Identity{}).WriteTable(b) }},
	} {
		var got bytes.Buffer
		if err := f.write(&got); err != nil {
			t.Fatalf("%s: %v", f.file, err)
		}
		path := filepath.Join("testdata", f.file)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s is now\n%s\nwant\n%s", f.file, &got, want)
		}
		for line := range strings.Lines(got.String()) {
			if filepath.Ext(f.file) == ".txt" && utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("%s: wider than %d columns: %s", f.file, width, line)
			}
		}
	}
}

// busy is an overloaded run with large and small numbers side by side.
func busy() *Recorder {
	r := &Recorder{From: 10 * second}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range int64(200_000) {
		r.Arrived(workload.Request{ID: i, Arrival: time.Duration(i) * 5 * time.Millisecond})
	}
	now := time.Duration(0)
	for i := range 150_000 {
		took := 7*time.Millisecond + time.Duration(rng.IntN(1_000_000))
		if i%1000 == 0 {
			took += 90 * time.Millisecond
		}
		s := sim.Step{Start: now, End: now + took, Shape: cost.Shape{Sequences: 256, Tokens: 1280}, Bound: cost.Bound(rng.IntN(3)),
			Running: 256, Waiting: i / 3, UsedBlocks: 7000 + rng.IntN(609), Steady: 255, Blocked: policy.BySlots}
		s.FreeBlocks = 7609 - s.UsedBlocks
		now += took
		arrival := time.Duration(i) * 5 * time.Millisecond
		s.Finished = []sim.Finished{{ID: int64(i), Prompt: 1024, Output: 256, Arrival: min(arrival, now-took),
			FirstSchedule: now - took, FirstToken: now, LastToken: now + 256*took}}
		r.Step(&s)
	}
	return r
}

// The CSV is two columns all the way and says as much as the JSON.
func TestCSVIsComplete(t *testing.T) {
	var out, text bytes.Buffer
	s := told(0).Summary(identity)
	if err := WriteCSV(&out, s); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	fields, _ := Flatten(s)
	if len(rows) != len(fields)+1 {
		t.Errorf("CSV has %d rows, want %d", len(rows), len(fields)+1)
	}
	if err := WriteJSON(&text, s); err != nil {
		t.Fatal(err)
	}
	var back Summary
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	compare(t, "JSON read back", back, s)
}

func TestRoundingIsDecimal(t *testing.T) {
	for _, c := range []struct {
		a, b int64
		want float64
	}{{1, 3, 0.333333}, {2, 3, 0.666667}, {1, 2_000_000, 0.000001}, {1, 2_000_001, 0}, {7, 0, 0}, {0, 5, 0}} {
		if got := quotient(integer(c.a), integer(c.b)); got != c.want {
			t.Errorf("quotient(%d, %d) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
	if got := perSecond(1, 3*second); got != 0.333333 {
		t.Errorf("perSecond(1, 3s) = %v, want 0.333333", got)
	}
	if got := nearestMS(1_234_567.5); got != 1.234568 {
		t.Errorf("nearestMS(1234567.5) = %v, want 1.234568", got)
	}
	var a area
	for range 4 {
		a.add(math.MaxInt64, 1<<40)
	}
	if got := quotient(a.int(), integer(int64(math.MaxInt64))); got != 1<<42 {
		t.Errorf("an area beyond 64 bits over its time = %v, want %v", got, float64(1<<42))
	}
}

func TestFigure(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.00049: "<0.001", 0.0005: "0.001", 0.1234: "0.123", 1.23456: "1.235", 9.99951: "10.00",
		12.3456: "12.35", 99.996: "100.0", 123.456: "123.5", 999.96: "1,000", 66012.4: "66,012", 1234567: "1,234,567", -2.5: "-2.500",
	} {
		if got := Figure(x); got != want {
			t.Errorf("Figure(%v) = %q, want %q", x, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -123456: "-123,456"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

// A step and its share of requests cost little, and nothing per request is kept but samples.
func BenchmarkRecorder(b *testing.B) {
	s := sim.Step{Shape: cost.Shape{Sequences: 61, Tokens: 600}, Running: 61, UsedBlocks: 3000, FreeBlocks: 4609, Steady: 60,
		Finished: []sim.Finished{{Prompt: 512, Output: 64}}}
	var r Recorder
	b.ReportAllocs()
	for b.Loop() {
		if r.steps == ExactRecords {
			r = Recorder{}
		}
		s.Start = s.End
		s.End += 13 * time.Millisecond
		f := &s.Finished[0]
		f.Arrival, f.FirstSchedule, f.FirstToken, f.LastToken = s.Start-2*second, s.Start-second, s.Start-second+1, s.End
		r.Arrived(workload.Request{Arrival: s.Start})
		r.Step(&s)
	}
}
