package report

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"time"

	"llmsim/sim"
)

// A Timeline writes a run in the trace-event format, which ui.perfetto.dev and chrome://tracing open: a process
// per replica, in it a thread of steps, lanes of requests that are being worked on, those that wait as spans of
// their own, preemptions as instants, and counters. Times are microseconds since the start of the run, to the
// nanosecond. It holds a few numbers for every replica and lane, and none of the events. The first error stays
// until Close.
type Timeline struct {
	out      *bufio.Writer
	row      []byte
	err      error
	some     bool // an event was written
	replicas []track
}

// A track is one replica's.
type track struct {
	named                  bool
	running, waiting, used int    // as the counters were written last
	free                   []lane // by the end of its last request
	lanes                  int
}

// A lane holds requests one after the other.
type lane struct {
	end time.Duration
	tid int64
}

// stepsThread is that of a replica's steps; lanes count on from there.
const stepsThread = 0

// NewTimeline starts a trace.
func NewTimeline(w io.Writer) *Timeline {
	t := &Timeline{out: bufio.NewWriterSize(w, 1<<16)}
	_, t.err = t.out.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`)
	return t
}

// Take writes a stretch of a run.
func (t *Timeline) Take(p *sim.Progress) {
	for i := range p.Refused {
		q := p.Refused[i].Request
		t.begin("refused", 'i', 0, stepsThread, q.Arrival)
		t.text(`,"s":"g"`)
		t.args(arg{name: "request", value: q.ID}, arg{name: "input_tokens", value: int64(q.Prompt)}, arg{name: "output_tokens", value: int64(q.Output)})
	}
	for i := range p.Steps {
		t.step(&p.Steps[i])
	}
}

func (t *Timeline) step(s *sim.Step) {
	for s.Replica >= len(t.replicas) {
		t.replicas = append(t.replicas, track{})
	}
	r, pid := &t.replicas[s.Replica], int64(s.Replica)+1
	if !r.named {
		r.named, r.running, r.waiting, r.used = true, -1, -1, -1
		t.name("process_name", pid, stepsThread, "replica "+strconv.Itoa(s.Replica))
		t.name("thread_name", pid, stepsThread, "steps")
	}
	if s.Running != r.running || s.Waiting != r.waiting {
		r.running, r.waiting = s.Running, s.Waiting
		t.begin("sequences", 'C', pid, stepsThread, s.Start)
		t.args(arg{name: "running", value: int64(s.Running)}, arg{name: "waiting", value: int64(s.Waiting)})
	}
	if s.UsedBlocks != r.used {
		r.used = s.UsedBlocks
		t.begin("KV blocks", 'C', pid, stepsThread, s.Start)
		t.args(arg{name: "used", value: int64(s.UsedBlocks)})
	}
	kind := "decode"
	switch prefill := s.Shape.PrefillTokens(); {
	case prefill > 0 && s.Shape.Decodes > 0:
		kind = "prefill + decode"
	case prefill > 0:
		kind = "prefill"
	}
	t.begin(kind, 'X', pid, stepsThread, s.Start)
	t.lasting(s.End - s.Start)
	t.text(`,"cat":"` + s.Bound.String() + `"`)
	t.args(arg{name: "step", value: s.Index}, arg{name: "batch", value: int64(s.Shape.Sequences)}, arg{name: "tokens", value: int64(s.Shape.Tokens)},
		arg{name: "prefill_tokens", value: int64(s.Shape.PrefillTokens())}, arg{name: "waiting", value: int64(s.Waiting)}, arg{name: "bound", word: s.Bound.String()})
	for _, id := range s.Preempted {
		t.begin("preemption", 'i', pid, stepsThread, s.Start)
		t.text(`,"s":"t"`)
		t.args(arg{name: "request", value: id})
	}
	for i := range s.Finished {
		t.finished(r, pid, &s.Finished[i])
	}
}

// finished writes the life of a request: its wait as an asynchronous span, its work in a lane.
func (t *Timeline) finished(r *track, pid int64, f *sim.Finished) {
	if f.FirstSchedule > f.Arrival {
		t.begin("queue", 'b', pid, stepsThread, f.Arrival)
		t.wait(f.ID)
		t.args(arg{name: "request", value: f.ID}, arg{name: "input_tokens", value: int64(f.Prompt)})
		t.begin("queue", 'e', pid, stepsThread, f.FirstSchedule)
		t.wait(f.ID)
		t.text("}")
	}
	tid := t.lane(r, pid, f)
	t.begin("request "+strconv.FormatInt(f.ID, 10), 'X', pid, tid, f.FirstSchedule)
	t.lasting(f.LastToken - f.FirstSchedule)
	t.args(arg{name: "input_tokens", value: int64(f.Prompt)}, arg{name: "output_tokens", value: int64(f.Output)}, arg{name: "preemptions", value: int64(f.Preemptions)})
	t.begin("prefill", 'X', pid, tid, f.FirstSchedule)
	t.lasting(f.FirstToken - f.FirstSchedule)
	t.text("}")
	if f.LastToken > f.FirstToken {
		t.begin("decode", 'X', pid, tid, f.FirstToken)
		t.lasting(f.LastToken - f.FirstToken)
		t.text("}")
	}
}

// lane finds one that is free since the request was first scheduled, of several the one that was free for the
// shortest time. Requests come by their ends, so that the lane it takes is then the last by its end.
func (t *Timeline) lane(r *track, pid int64, f *sim.Finished) int64 {
	at, _ := slices.BinarySearchFunc(r.free, f.FirstSchedule, func(l lane, start time.Duration) int {
		if l.end <= start {
			return -1
		}
		return 1
	})
	l := lane{f.LastToken, 0}
	if at == 0 {
		r.lanes++
		l.tid = int64(stepsThread + r.lanes)
		t.name("thread_name", pid, l.tid, "requests, lane "+strconv.Itoa(r.lanes))
	} else {
		l.tid = r.free[at-1].tid
		r.free = slices.Delete(r.free, at-1, at)
	}
	r.free = append(r.free, l)
	return l.tid
}

// name gives a process or a thread its name.
func (t *Timeline) name(what string, pid, tid int64, name string) {
	t.begin(what, 'M', pid, tid, 0)
	t.text(`,"args":{"name":"` + name + `"}}`)
}

// begin opens an event. Names are plain text that needs no escaping.
func (t *Timeline) begin(name string, phase byte, pid, tid int64, at time.Duration) {
	b := t.row[:0]
	if t.some {
		b = append(b, ',')
	}
	t.some = true
	b = append(b, "\n{\"name\":\""...)
	b = append(b, name...)
	b = append(b, `","ph":"`...)
	b = append(b, phase)
	b = strconv.AppendInt(append(b, `","pid":`...), pid, 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), tid, 10)
	t.row = appendMicroseconds(append(b, `,"ts":`...), at)
	t.flush()
}

// lasting gives a complete event its time.
func (t *Timeline) lasting(d time.Duration) {
	t.row = appendMicroseconds(append(t.row[:0], `,"dur":`...), d)
	t.flush()
}

// wait gives an asynchronous event what it is known by.
func (t *Timeline) wait(id int64) {
	t.row = append(strconv.AppendInt(append(t.row[:0], `,"cat":"queue","id":"`...), id, 10), '"')
	t.flush()
}

// An arg is a number or word that a viewer shows beside an event.
type arg struct {
	name  string
	value int64
	word  string // in the place of the number, unless it is empty
}

// args writes an event's args, and closes it.
func (t *Timeline) args(all ...arg) {
	b := append(t.row[:0], `,"args":{`...)
	for i, a := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), a.name...), `":`...)
		if a.word != "" {
			b = append(append(append(b, '"'), a.word...), '"')
		} else {
			b = strconv.AppendInt(b, a.value, 10)
		}
	}
	t.row = append(b, "}}"...)
	t.flush()
}

func (t *Timeline) text(s string) {
	t.row = append(t.row[:0], s...)
	t.flush()
}

func (t *Timeline) flush() {
	if t.err == nil {
		_, t.err = t.out.Write(t.row)
	}
}

// appendMicroseconds writes a time in microseconds, with decimals where it has any.
func appendMicroseconds(b []byte, t time.Duration) []byte {
	b = strconv.AppendInt(b, int64(t/1000), 10)
	if rest := int64(t % 1000); rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return b
}

// Close ends the trace, writes what is buffered and returns the first error. It does not close the writer
// underneath.
func (t *Timeline) Close() error {
	t.text("\n]}\n")
	if t.err != nil {
		return t.err
	}
	return t.out.Flush()
}
