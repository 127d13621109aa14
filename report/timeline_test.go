package report

import (
	"strings"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/workload"
)

// A short run, event by event: one request waits for a step and then takes over the lane of the one before it.
func TestTimeline(t *testing.T) {
	ms := func(n float64) time.Duration { return time.Duration(n * 1e6) }
	var out strings.Builder
	l := NewTimeline(&out)
	l.Take(&sim.Progress{
		Refused: []sim.Refusal{{Request: workload.Request{ID: 9, Arrival: ms(0.5), Prompt: 7, Output: 1}}},
		Steps: []sim.Step{
			{Replica: 1, Start: 0, End: ms(2), Shape: cost.Shape{Sequences: 1, Tokens: 10}, Running: 1, UsedBlocks: 1,
				Finished: []sim.Finished{{ID: 0, Replica: 1, Prompt: 10, Output: 1, FirstToken: ms(2), LastToken: ms(2)}}},
			{Replica: 1, Index: 1, Start: ms(2), End: ms(3.0001), Shape: cost.Shape{Sequences: 1, Tokens: 1, Decodes: 1}, Bound: cost.KVReads, Running: 1, UsedBlocks: 1,
				Preempted: []int64{4},
				Finished:  []sim.Finished{{ID: 1, Replica: 1, Prompt: 10, Output: 2, Arrival: ms(1), FirstSchedule: ms(2), FirstToken: ms(2.5), LastToken: ms(3.0001)}}},
		},
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := `{"displayTimeUnit":"ms","traceEvents":[
{"name":"refused","ph":"i","pid":0,"tid":0,"ts":500,"s":"g","args":{"request":9,"input_tokens":7,"output_tokens":1}},
{"name":"process_name","ph":"M","pid":2,"tid":0,"ts":0,"args":{"name":"replica 1"}},
{"name":"thread_name","ph":"M","pid":2,"tid":0,"ts":0,"args":{"name":"steps"}},
{"name":"sequences","ph":"C","pid":2,"tid":0,"ts":0,"args":{"running":1,"waiting":0}},
{"name":"KV blocks","ph":"C","pid":2,"tid":0,"ts":0,"args":{"used":1}},
{"name":"prefill","ph":"X","pid":2,"tid":0,"ts":0,"dur":2000,"cat":"compute","args":{"step":0,"batch":1,"tokens":10,"prefill_tokens":10,"waiting":0,"bound":"compute"}},
{"name":"thread_name","ph":"M","pid":2,"tid":1,"ts":0,"args":{"name":"requests, lane 1"}},
{"name":"request 0","ph":"X","pid":2,"tid":1,"ts":0,"dur":2000,"args":{"input_tokens":10,"output_tokens":1,"preemptions":0}},
{"name":"prefill","ph":"X","pid":2,"tid":1,"ts":0,"dur":2000},
{"name":"decode","ph":"X","pid":2,"tid":0,"ts":2000,"dur":1000.100,"cat":"kv","args":{"step":1,"batch":1,"tokens":1,"prefill_tokens":0,"waiting":0,"bound":"kv"}},
{"name":"preemption","ph":"i","pid":2,"tid":0,"ts":2000,"s":"t","args":{"request":4}},
{"name":"queue","ph":"b","pid":2,"tid":0,"ts":1000,"cat":"queue","id":"1","args":{"request":1,"input_tokens":10}},
{"name":"queue","ph":"e","pid":2,"tid":0,"ts":2000,"cat":"queue","id":"1"},
{"name":"request 1","ph":"X","pid":2,"tid":1,"ts":2000,"dur":1000.100,"args":{"input_tokens":10,"output_tokens":2,"preemptions":0}},
{"name":"prefill","ph":"X","pid":2,"tid":1,"ts":2000,"dur":500},
{"name":"decode","ph":"X","pid":2,"tid":1,"ts":2500,"dur":500.100}
]}
`
	if out.String() != want {
		t.Errorf("Timeline wrote\n%s\nwant\n%s", &out, want)
	}
}

// What lies at or below a limit is counted, to the width of a bucket.
func TestAtMost(t *testing.T) {
	var d Dist
	d.AddN(5, 3)
	d.Add(1000)
	d.AddN(1_000_000, 6)
	got := d.AtMost(0, 4, 5, 999, 1000, 990_000, 1_010_000, time.Hour)
	for i, want := range []float64{0, 0, 3, 3, 4, 4, 10, 10} {
		if got[i] != want {
			t.Errorf("AtMost = %v, want %v at %d", got, want, i)
		}
	}
	if got := new(Dist).AtMost(1, 2); got[0] != 0 || got[1] != 0 {
		t.Errorf("AtMost of nothing = %v, want zeros", got)
	}
}
