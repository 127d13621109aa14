package plan

import (
	"context"
	"fmt"
	"sync"
	"time"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/workload"
)

// mostSteps bounds a trial whatever its lengths: some seconds of a core.
const mostSteps = 30_000_000

// A pace is kept by all trials of a plan: they stop when it ends, and tell how far they are.
type pace struct {
	ctx      context.Context
	report   func(requests int64) // or nil
	mu       sync.Mutex           // trials run side by side
	requests int64
}

func (p *pace) keep(requests int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests += int64(requests)
	if p.report != nil {
		p.report(p.requests)
	}
	return p.ctx.Err()
}

// A trial is one run of a scenario that can be made longer.
type trial struct {
	pace     *pace
	source   workload.Source
	run      *sim.Run
	series   *series
	recorder *report.Recorder // nil: only the series is wanted
	good     *goodput         // nil: not asked for
	stalls   stalls
	arrived  int64

	firstArrival, lastArrival time.Duration

	most int // steps

	steps int
	now   time.Duration
	ended bool // the workload has no more requests, and all have left
	notes []string
}

// newTrial starts a scenario. Open arrivals go on for as long as the trial does.
func newTrial(p *pace, s scenarios.Scenario) (*trial, error) {
	if open(&s) {
		s.Workload.Requests = 0
	}
	source, notes, err := s.Source()
	if err != nil {
		return nil, err
	}
	return &trial{pace: p, source: source, run: sim.NewRun(s.Cluster(), source), series: newSeries(), notes: notes, most: mostSteps}, nil
}

// stalls are the steps in which prompts were computed while others decoded, and of those in which
// nobody's was.
type stalls struct {
	mixed, plain   time.Duration
	nMixed, nPlain int64
	longest        time.Duration
}

func (s *stalls) take(p *sim.Progress) {
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.Shape.Decodes == 0 {
			continue
		}
		took := step.End - step.Start
		if prompts := step.Shape.PrefillTokens(); prompts > 0 {
			s.mixed += took
			s.nMixed++
			s.longest = max(s.longest, took)
		} else {
			s.plain += took
			s.nPlain++
		}
	}
}

// blame says in words how much longer decodes take beside prompts; empty: not much.
func (s *stalls) blame() string {
	if s.nMixed == 0 || s.nPlain == 0 {
		return ""
	}
	mixed, plain := s.mixed/time.Duration(s.nMixed), s.plain/time.Duration(s.nPlain)
	if mixed < 2*plain {
		return ""
	}
	milli := func(d time.Duration) string { return report.Figure(float64(d) / 1e6) }
	return fmt.Sprintf("whoever decodes waits while prompts are computed: such steps take %s ms on average and %s at most, others %s; a smaller max_num_batched_tokens bounds that, at the cost of TTFT",
		milli(mixed), milli(s.longest), milli(plain))
}

// warm records what comes after an instant.
func (t *trial) warm(from time.Duration, slo []scenarios.Objective) {
	t.recorder, t.good = &report.Recorder{From: from}, newGoodput(slo)
}

// fare is how an objective fared in what was recorded.
func (t *trial) fare(o scenarios.Objective) Objective { return fareOf(o, t.recorder, t.good) }

// open reports whether requests arrive at a rate, without end and whatever becomes of them.
func open(s *scenarios.Scenario) bool {
	switch s.Workload.Arrivals.Process {
	case "poisson", "gamma", "constant":
		return true
	}
	return false
}

// extend runs on until so many requests have arrived since the start, or the workload ends, or
// the trial has become too long.
func (t *trial) extend(requests int64) error {
	reported := t.arrived
	for rounds := 0; t.arrived < requests && t.steps < t.most; rounds++ {
		p, more := t.run.Advance()
		if !more {
			t.ended = true
			break
		}
		for i := range p.Arrived {
			if t.arrived == 0 {
				t.firstArrival = p.Arrived[i].Arrival
			}
			t.lastArrival = p.Arrived[i].Arrival
			t.arrived++
		}
		t.steps += len(p.Steps)
		if n := len(p.Steps); n > 0 {
			t.now = p.Steps[n-1].End
		}
		t.series.take(p)
		t.stalls.take(p)
		if t.recorder != nil {
			t.recorder.Take(p)
		}
		if t.good != nil {
			t.good.take(p, t.recorder.From)
		}
		if rounds%1024 == 0 {
			if err := t.pace.keep(int(t.arrived - reported)); err != nil {
				return err
			}
			reported = t.arrived
		}
	}
	if replay, ok := t.source.(*workload.Replay); ok && replay.Err() != nil {
		return replay.Err()
	}
	return t.run.Err()
}

// A state says whether a trial's cluster keeps up.
type state int

const (
	unclear state = iota
	keepsUp
	fallsBehind
	beyond // what can be simulated
)

// Growth below this share of the rate is no growth, if it is clear that it is not more.
const tolerance = 0.01

// A finding is what a trial shows of its cluster's balance.
type finding struct {
	state  state
	warmup time.Duration
	drift  drift
}

// judge weighs the backlog after the warm-up: it falls behind when the growth is clearly above
// zero and not negligible, and keeps up when it is clearly below one percent of the rate.
func (t *trial) judge(rate float64) finding {
	levels := t.series.levels()
	cut, converged := mser(levels)
	f := finding{
		warmup: time.Duration(cut) * t.series.width,
		drift:  growth(levels[cut:], t.series.width),
	}
	d := f.drift
	switch {
	case d.perSecond-float64(significance*d.stderr) > 0 && d.perSecond > float64(tolerance/5*rate):
		f.state = fallsBehind
	case t.unhindered():
		f.state = keepsUp
	case converged && d.perSecond+float64(significance*d.stderr) < float64(tolerance*rate):
		f.state = keepsUp
	}
	return f
}

// unhindered reports whether nobody waited beyond a decision in the second half of the series.
func (t *trial) unhindered() bool {
	bins := t.series.bins
	for _, b := range bins[len(bins)/2:] {
		if b.waits {
			return false
		}
	}
	return len(bins) > mostBins/4
}

// drains reports whether, in the last tenth of the time in which requests arrived, nobody waited
// for a while.
func (t *trial) drains() bool {
	bins := t.series.bins
	last := len(bins) - 1
	for last > 0 && bins[last].arrived == 0 {
		last--
	}
	for i := last - (last+1)/10; i <= last; i++ {
		if bins[i].idle {
			return true
		}
	}
	return false
}

// atOnce reports whether all requests arrived at one instant.
func (t *trial) atOnce() bool { return t.lastArrival == t.firstArrival }

// throughput is the rate of completions in the second half of the series, and whether somebody
// waited all the time then.
func (t *trial) throughput() (perSecond float64, standing bool) {
	bins := t.series.bins[:len(t.series.bins)-1]
	half := len(bins) / 2
	var left int64
	standing = true
	for _, b := range bins[half:] {
		left += b.left
		standing = standing && !b.idle
	}
	seconds := (time.Duration(len(bins)-half) * t.series.width).Seconds()
	if seconds == 0 {
		return 0, false
	}
	return float64(left) / seconds, standing
}
