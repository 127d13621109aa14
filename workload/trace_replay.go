package workload

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"llmsim/sim/rng"
)

// A Replay hands out the requests of a trace. IDs count from 0 in order of arrival.
// Once Next has returned false, Err tells whether that was the end.
type Replay struct {
	trace  *Trace
	reader *reader // nil: the rows are held
	index  int     // of the next held row
	last   int64   // instant of the row last read
	given  int
	done   bool
	err    error

	// With a grid to spread over, requests of one instant are collected first.
	stream *rng.Stream
	herd   []Request
	turn   int     // next of herd
	places []int64 // ns after the instant
	ahead  Request // the first one of a later instant
	more   bool    // ahead is set
}

// Source starts a replay. It fails on a trace without arrivals, and if a file that is
// read again cannot be opened.
func (t *Trace) Source() (*Replay, error) {
	if !t.HasArrivals {
		return nil, fmt.Errorf("%s: a %s trace has lengths only: give it an arrival process", t.Path, t.Format)
	}
	return t.replay()
}

func (t *Trace) replay() (*Replay, error) {
	p := &Replay{trace: t, last: t.base, stream: rng.New(t.options.Seed, "trace spread")}
	if t.rows == nil {
		r, err := openReader(t.Path, t.open)
		if err != nil {
			return nil, err
		}
		p.reader = r
	}
	return p, nil
}

// Lengths returns the tokens of every request's prompt and output, in order of arrival,
// for drawing lengths from; nil if the file had to be read again and was not as before.
func (t *Trace) Lengths() (prompts, outputs []int32) {
	p, err := t.replay()
	if err != nil {
		return nil, nil
	}
	defer p.Close()
	prompts, outputs = make([]int32, 0, t.Requests), make([]int32, 0, t.Requests)
	for len(prompts) < t.Requests {
		q, ok := p.fetch()
		if !ok {
			return nil, nil
		}
		prompts, outputs = append(prompts, int32(q.Prompt)), append(outputs, int32(q.Output))
	}
	return prompts, outputs
}

// Err is why the replay ended early: the file could no longer be read, or had changed.
func (p *Replay) Err() error { return p.err }

// Close ends a replay that is not read to its end.
func (p *Replay) Close() error {
	p.done = true
	return p.closeFile()
}

func (p *Replay) closeFile() error {
	if p.reader == nil {
		return nil
	}
	r := p.reader
	p.reader = nil
	return r.close()
}

// Next returns the next request. Its Prefix stays valid, and must not be written to.
func (p *Replay) Next() (Request, bool) {
	// A file that is read again is read to its very end, where its digest is compared.
	if limit := p.trace.options.Limit; limit > 0 && p.given == limit {
		_ = p.Close()
	}
	if p.done {
		return Request{}, false
	}
	q, ok := p.spread()
	if !ok {
		_ = p.Close()
		return Request{}, false
	}
	if by := p.trace.speedup(); by != 1 {
		q.Arrival = time.Duration(math.Round(float64(q.Arrival) / by))
	}
	q.ID = int64(p.given)
	p.given++
	return q, true
}

// fetch returns the next request at the instant that the file gives.
func (p *Replay) fetch() (Request, bool) {
	t := p.trace
	if t.rows != nil {
		if p.index == len(t.rows.packed) {
			return Request{}, false
		}
		p.index++
		return t.rows.request(p.index-1, t.base), true
	}
	if p.reader == nil {
		return Request{}, false
	}
	var r row
	if err := p.reader.next(&r); err != nil {
		p.end(err)
		return Request{}, false
	}
	if r.at < p.last {
		p.err = fmt.Errorf("%s:%d: the file changed since it was opened: it was sorted, and is not", t.Path, p.reader.number)
		_ = p.closeFile()
		return Request{}, false
	}
	p.last = r.at
	return Request{
		Arrival: time.Duration(r.at - t.base), Prompt: int(r.prompt), Output: int(r.output),
		Priority: int(r.priority), Session: r.session,
		Prefix: slices.Clone(r.prefix), PrefixBlock: int(r.block),
	}, true
}

// end closes the file, and sees that it was the one that was opened. A herd may still be to come.
func (p *Replay) end(err error) {
	switch sum := p.reader.sum(); {
	case err != io.EOF:
		p.err = err
	case sum != p.trace.Digest:
		p.err = fmt.Errorf("%s: the file changed since it was opened: its SHA-256 was %.12s, is %.12s", p.trace.Path, p.trace.Digest, sum)
	}
	if err := p.closeFile(); p.err == nil {
		p.err = err
	}
}

// spread returns the next request, moved within the grid if that was asked for.
func (p *Replay) spread() (Request, bool) {
	step := int64(p.trace.Grid.Step)
	if p.trace.options.Spread == "" || step == 0 {
		return p.fetch()
	}
	if p.turn == len(p.herd) {
		if !p.gather() {
			return Request{}, false
		}
		if p.more {
			// A clock's jitter can bring the next instant sooner than a step.
			step = min(step, int64(p.ahead.Arrival-p.herd[0].Arrival))
		}
		p.place(step)
	}
	q := p.herd[p.turn]
	q.Arrival += time.Duration(p.places[p.turn])
	p.turn++
	return q, true
}

// gather collects the requests of the next instant.
func (p *Replay) gather() bool {
	p.herd, p.turn = p.herd[:0], 0
	q, ok := p.ahead, p.more
	if !ok {
		q, ok = p.fetch()
	}
	for p.more = false; ok; q, ok = p.fetch() {
		if len(p.herd) > 0 && q.Arrival != p.herd[0].Arrival {
			p.ahead, p.more = q, true
			break
		}
		p.herd = append(p.herd, q)
	}
	return len(p.herd) > 0 && p.err == nil
}

// place chooses each request's distance from the herd's instant, in [0, step), ascending.
func (p *Replay) place(step int64) {
	n := uint64(len(p.herd))
	p.places = p.places[:0]
	for i := range n {
		var at int64
		if p.trace.options.Spread == SpreadPoisson {
			at = min(int64(float64(step)*p.stream.Float64()), step-1)
		} else {
			hi, lo := bits.Mul64(uint64(step), i)
			quotient, _ := bits.Div64(hi, lo, n)
			at = int64(quotient)
		}
		p.places = append(p.places, at)
	}
	slices.Sort(p.places)
}
