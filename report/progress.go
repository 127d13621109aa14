package report

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	patience = time.Second            // a run this short shows nothing
	refresh  = 100 * time.Millisecond // between two pictures of the line
	maxSkip  = 1 << 10                // calls between two looks at the clock
)

// A Progress is a line on a terminal that tells how far a long run has come. A nil Progress shows nothing.
type Progress struct {
	out         io.Writer
	now         func() time.Time
	total       int64
	start, next time.Time // next: when the line may be drawn
	looked      time.Time // when the clock was read last
	calls, skip int       // calls since then, and how many to let pass
	shown       bool
}

// NewProgress returns a progress line on f, nil when f is no terminal. A total of 0 is unknown.
func NewProgress(f *os.File, total int64) *Progress {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return newProgress(f, total, time.Now)
}

func newProgress(out io.Writer, total int64, now func() time.Time) *Progress {
	start := now()
	return &Progress{out: out, now: now, total: total, start: start, looked: start, next: start.Add(patience)}
}

// Set tells how much of the total is done. It is nearly free however often it is called, and looks at the
// clock each time when it is called rarely.
func (p *Progress) Set(done int64) {
	if p == nil {
		return
	}
	if p.calls++; p.calls > p.skip {
		p.look(done)
	}
}

func (p *Progress) look(done int64) {
	now := p.now()
	// Let twice as many calls pass as long as that many take far less time than a refresh.
	if since := now.Sub(p.looked); since > refresh/4 {
		p.skip /= 8
	} else if since < refresh/100 {
		p.skip = min(2*p.skip+1, maxSkip)
	}
	p.looked, p.calls = now, 0
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(refresh)
	p.shown = true
	fmt.Fprint(p.out, "\r", p.line(done, now.Sub(p.start)), eraseRest)
}

const eraseRest = "\x1b[K"

func (p *Progress) line(done int64, took time.Duration) string {
	if p.total <= 0 {
		return fmt.Sprintf("%s done, %s", Count(done), took.Round(time.Second))
	}
	done = min(done, p.total)
	line := fmt.Sprintf("%3d%%  %s of %s", int64(100*float64(done)/float64(p.total)), Count(done), Count(p.total))
	if done > 0 {
		left := time.Duration(float64(took) * (float64(p.total)/float64(done) - 1))
		line += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return line
}

// Done erases the line.
func (p *Progress) Done() {
	if p != nil && p.shown {
		fmt.Fprint(p.out, "\r", eraseRest)
		p.shown = false
	}
}
