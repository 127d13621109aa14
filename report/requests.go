package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"

	"llmsim/sim"
)

const requestsHead = "id,arrival_s,input_tokens,output_tokens,first_schedule_s,first_token_s,last_token_s,preemptions,replica\n"

// A RequestLog writes one CSV row for every finished request, in the order of their IDs, which is that of
// arrival: a request that finishes early waits for those before it. The first error stays until Close.
type RequestLog struct {
	out  *bufio.Writer
	row  []byte
	err  error
	next int64 // every ID below is written or skipped

	// The window holds what is known of the IDs from next on: ID i at i modulo its length, a power of two.
	window []outcome
	beyond int64 // every ID from here on is unknown
}

type outcome struct {
	state
	finished sim.Finished
}

type state uint8

const (
	unknown state = iota
	skipped
	written // its row may be written
)

// NewRequestLog starts a log with its head. IDs count from 0 without gaps; each is told once, by Finished or
// by Skip.
func NewRequestLog(w io.Writer) *RequestLog {
	l := &RequestLog{out: bufio.NewWriterSize(w, 1<<16), window: make([]outcome, 64)}
	_, l.err = l.out.WriteString(requestsHead)
	return l
}

// Finished tells of a request that emitted its last token.
func (l *RequestLog) Finished(f *sim.Finished) {
	if f.ID == l.next && l.beyond <= f.ID { // nobody waits: the common case in a quiet run
		l.write(f)
		l.next++
		return
	}
	if o := l.place(f.ID); o != nil {
		*o = outcome{written, *f}
		l.settle()
	}
}

// Skip tells of a request that will not finish: refused or cancelled.
func (l *RequestLog) Skip(id int64) {
	if o := l.place(id); o != nil {
		o.state = skipped
		l.settle()
	}
}

// Close writes what still waits for requests that were never told of, in order, and returns the first error.
// It does not close the writer underneath.
func (l *RequestLog) Close() error {
	for ; l.next < l.beyond; l.next++ {
		if o := l.at(l.next); o.state == written {
			l.write(&o.finished)
		}
	}
	if l.err != nil {
		return l.err
	}
	return l.out.Flush()
}

func (l *RequestLog) at(id int64) *outcome { return &l.window[id&int64(len(l.window)-1)] }

// place finds room for an ID, nil after an error.
func (l *RequestLog) place(id int64) *outcome {
	if l.err == nil && id < l.next {
		l.err = fmt.Errorf("request log: request %d told twice", id)
	}
	if l.err != nil {
		return nil
	}
	if id-l.next >= int64(len(l.window)) {
		l.widen(id)
	}
	l.beyond = max(l.beyond, id+1)
	o := l.at(id)
	if o.state != unknown {
		l.err = fmt.Errorf("request log: request %d told twice", id)
		return nil
	}
	return o
}

func (l *RequestLog) widen(id int64) {
	old := *l
	size := int64(len(old.window))
	for size <= id-l.next {
		size *= 2
	}
	l.window = make([]outcome, size)
	for i := l.next; i < l.beyond; i++ {
		*l.at(i) = *old.at(i)
	}
}

// settle writes all that no unknown ID precedes.
func (l *RequestLog) settle() {
	for ; l.next < l.beyond; l.next++ {
		o := l.at(l.next)
		switch o.state {
		case unknown:
			return
		case written:
			l.write(&o.finished)
		}
		o.state = unknown
	}
}

func (l *RequestLog) write(f *sim.Finished) {
	if l.err != nil {
		return
	}
	b := append(strconv.AppendInt(l.row[:0], f.ID, 10), ',')
	b = append(appendSeconds(b, f.Arrival), ',')
	b = append(strconv.AppendInt(b, int64(f.Prompt), 10), ',')
	b = append(strconv.AppendInt(b, int64(f.Output), 10), ',')
	b = append(appendSeconds(b, f.FirstSchedule), ',')
	b = append(appendSeconds(b, f.FirstToken), ',')
	b = append(appendSeconds(b, f.LastToken), ',')
	b = append(strconv.AppendInt(b, int64(f.Preemptions), 10), ',')
	l.row = append(strconv.AppendInt(b, int64(f.Replica), 10), '\n')
	_, l.err = l.out.Write(l.row)
}

// appendSeconds writes a time in seconds with nine decimals, to the nanosecond.
func appendSeconds(b []byte, t time.Duration) []byte {
	n := uint64(t)
	if t < 0 {
		b, n = append(b, '-'), -n
	}
	b = append(strconv.AppendUint(b, n/1e9, 10), ".000000000"...)
	rest := uint32(n % 1e9)
	for i := len(b) - 1; rest > 0; i-- {
		b[i] = byte('0' + rest%10)
		rest /= 10
	}
	return b
}
