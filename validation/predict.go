package validation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/workload"
)

// Bands of utilisation: of what a replica has most of in use, sequence slots or KV blocks.
const (
	Light    = "below 50%"
	Busy     = "50-90%"
	Full     = "above 90%"
	busyFrom = 0.5
	fullFrom = 0.9
)

var bands = []string{Light, Busy, Full}

func band(use float64) string {
	switch {
	case use < busyFrom:
		return Light
	case use <= fullFrom:
		return Busy
	}
	return Full
}

// An Item is one thing that was measured and simulated: a request of a run, or a row of a table.
type Item struct {
	Source   string // the file it is from
	ID       string
	Model    string // of the catalogue
	GPU      string
	TP       int
	InSample bool
	// Band is how full the simulated replica was: of a request, when it arrived, by slots or KV blocks
	// in use, and Full whenever somebody waited; of a row, by KV blocks in use on average over its
	// steps, since a closed loop always has its slots in use.
	Band                string
	Measured, Simulated Times
	// OtherSetup: by its own figures the row was not measured as its table says (Row.otherSetup).
	OtherSetup bool

	recordedModel, recordedGPU, engine string
	throughput                         pair // output tokens per second, of rows
	notes                              []string
}

// A Skip is a measurement that can't be simulated, and why.
type Skip struct{ Place, Reason string }

// SkipLines tells all skips, those of one reason together.
func SkipLines(predictions []Prediction) (lines []string) {
	count := map[string]int{}
	var first []Skip
	for _, p := range predictions {
		for _, s := range p.Skips {
			if count[s.Reason]++; count[s.Reason] == 1 {
				first = append(first, s)
			}
		}
	}
	for _, s := range first {
		more := ""
		if n := count[s.Reason]; n > 1 {
			more = fmt.Sprintf(" and %d more", n-1)
		}
		lines = append(lines, fmt.Sprintf("%s%s: skipped: %s", s.Place, more, s.Reason))
	}
	return lines
}

// A Prediction is what a source came to.
type Prediction struct {
	Source     Source
	Items      []Item
	Skips      []Skip
	throughput pair // output tokens per second, of the whole run
}

// Predict simulates sources, as many at a time as there are processors. The predictions are in the
// order of the sources, and the same however many run at once. Told, if not nil, is called one call
// at a time with the number of simulations done so far, of Simulations in all.
func Predict(ctx context.Context, sources []Source, o Options, told func(done int)) ([]Prediction, error) {
	type job struct{ source, row int } // row -1: a run
	predictions := make([]Prediction, len(sources))
	var jobs []job
	rows := make([][]outcome, len(sources))
	for i, s := range sources {
		predictions[i].Source = s
		if s.Run != nil {
			jobs = append(jobs, job{i, -1})
		}
		rows[i] = make([]outcome, max(len(s.Rows), 1))
		for row := range s.Rows {
			jobs = append(jobs, job{i, row})
		}
	}
	queue := make(chan job)
	var mu sync.Mutex
	done := 0
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), max(len(jobs), 1)) {
		workers.Go(func() {
			for j := range queue {
				s := sources[j.source]
				if j.row < 0 {
					rows[j.source][0] = s.predictRun(ctx, o)
				} else {
					rows[j.source][j.row] = s.predictRow(ctx, s.Rows[j.row], o)
				}
				mu.Lock()
				done++
				if told != nil {
					told(done)
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		queue <- j
	}
	close(queue)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for i := range predictions {
		p := &predictions[i]
		for _, one := range rows[i] {
			if one.skip.Reason != "" {
				p.Skips = append(p.Skips, one.skip)
			}
			p.Items = append(p.Items, one.items...)
			p.throughput = one.throughput
		}
	}
	return predictions, nil
}

// Simulations is how many runs of the simulator sources take.
func Simulations(sources []Source) (n int) {
	for _, s := range sources {
		if n += len(s.Rows); s.Run != nil {
			n++
		}
	}
	return n
}

func appendNew(list []string, more ...string) []string {
	for _, text := range more {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// An outcome is what one simulation came to.
type outcome struct {
	items      []Item
	skip       Skip
	throughput pair
}

func skipped(place string, err error) outcome {
	reason := err.Error()
	if faults, ok := errors.AsType[scenarios.Faults](err); ok {
		reason = strings.ReplaceAll(faults.Error(), "\n", "; ")
	}
	return outcome{skip: Skip{place, reason}}
}

// item is an item without its times.
func item(s *scenarios.Scenario, set *Setup, source, id string, inSample bool) Item {
	return Item{
		Source: source, ID: id, Model: s.Model.Name, GPU: s.Hardware.Name, TP: s.Engine.TensorParallelSize, InSample: inSample,
		Measured: unmeasured, Simulated: unmeasured, recordedModel: set.Model, recordedGPU: set.GPU, engine: s.Engine.Models,
	}
}

func (s Source) predictRun(ctx context.Context, o Options) outcome {
	r := s.Run
	scenario, err := r.Scenario(o)
	if err != nil {
		return skipped(r.Place, err)
	}
	o = o.with(scenario)
	items := make([]Item, len(r.Requests))
	for i, q := range r.Requests {
		items[i] = item(scenario, &r.Setup, s.Path, q.ID, o.InSample(s))
		items[i].Measured = q.Measured
	}
	var watch watch
	var simulated, measured flow
	finished := 0
	err = simulate(ctx, scenario, func(p *sim.Progress) error {
		for _, q := range p.Arrived {
			watch.arrived(q.ID, q.Arrival)
		}
		for i := range p.Steps {
			step := &p.Steps[i]
			watch.step(step, scenario.Engine.MaxNumSeqs, func(id int64, band string) {
				if id < int64(len(items)) {
					items[id].Band = band
				}
			})
			for _, f := range step.Finished {
				if f.ID >= int64(len(items)) || r.Requests[f.ID].Input != f.Prompt || r.Requests[f.ID].Output != f.Output {
					return fmt.Errorf("%s: request %d was read in two ways: do other tools change the file, or has it rows that are no requests?", r.File, f.ID)
				}
				q := r.Requests[f.ID]
				finished++
				items[f.ID].Simulated = timesOf(f)
				if !math.IsNaN(q.Last) {
					simulated.add(f.Arrival.Seconds(), f.LastToken.Seconds(), f.Output)
					measured.add(q.Arrival, q.Last, q.Output)
				}
			}
		}
		return nil
	})
	if err != nil {
		return skipped(r.Place, err)
	}
	notes := slices.Clone(r.notes)
	if refused := len(items) - finished; refused > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d requests can never fit the simulated engine and are not compared", refused, len(items)))
	}
	items[0].notes = notes // which are the run's
	return outcome{items: items, throughput: pair{measured.rate(), simulated.rate()}}
}

func (s Source) predictRow(ctx context.Context, r Row, o Options) outcome {
	scenario, err := r.Scenario(o)
	if err != nil {
		return skipped(r.Place, err)
	}
	one := item(scenario, &r.Setup, s.Path, r.ID, o.with(scenario).RowInSample(s, r))
	var ttft, tpot mean64
	var use, took float64
	refused := 0
	err = simulate(ctx, scenario, func(p *sim.Progress) error {
		refused += len(p.Refused)
		for i := range p.Steps {
			step := &p.Steps[i]
			t := (step.End - step.Start).Seconds()
			took += t
			use += float64(t * kvUse(step))
			for _, f := range step.Finished {
				times := timesOf(f)
				ttft.add(times.TTFT)
				tpot.add(times.TPOT)
			}
		}
		return nil
	})
	if err != nil {
		return skipped(r.Place, err)
	}
	if refused > 0 {
		return skipped(r.Place, fmt.Errorf("%d requests can never fit the simulated engine", refused))
	}
	one.Measured = r.Measured()
	one.OtherSetup = r.otherSetup(scenario.UsableBlocks() * scenario.Engine.BlockSize * scenario.Engine.DataParallelSize)
	one.Simulated = r.times(ttft.value(), tpot.value())
	one.Band = band(use / took)
	one.throughput = pair{r.throughput(one.Measured), r.throughput(one.Simulated)}
	one.notes = slices.Clone(r.notes)
	if _, note := r.engineModelled(); note != "" {
		one.notes = append(one.notes, note)
	}
	return outcome{items: []Item{one}}
}

// simulate runs a scenario to its end and hands each stretch to take.
func simulate(ctx context.Context, s *scenarios.Scenario, take func(*sim.Progress) error) error {
	source, _, err := s.Source()
	if err != nil {
		return err
	}
	if replay, ok := source.(*workload.Replay); ok {
		defer replay.Close()
	}
	run := sim.NewRun(s.Cluster(), source)
	for rounds := 0; ; rounds++ {
		p, more := run.Advance()
		if !more {
			break
		}
		if err := take(p); err != nil {
			return err
		}
		if rounds%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if replay, ok := source.(*workload.Replay); ok && replay.Err() != nil {
		return replay.Err()
	}
	return run.Err()
}

func timesOf(f sim.Finished) Times {
	ms := func(t time.Duration) float64 { return float64(t) / 1e6 }
	t := Times{ms(f.FirstToken - f.Arrival), math.NaN(), ms(f.LastToken - f.Arrival)}
	if f.Output > 1 {
		t.TPOT = ms(f.LastToken-f.FirstToken) / float64(f.Output-1)
	}
	return t
}

func kvUse(step *sim.Step) float64 {
	return float64(step.UsedBlocks) / float64(max(step.UsedBlocks+step.FreeBlocks, 1))
}

// A watch tells how full the replica was when requests arrived: as the last step that had started
// before left it, and empty after that step's end.
type watch struct {
	waiting []struct {
		id int64
		at time.Duration
	}
	end  time.Duration // of the last step
	last string        // its band
}

func (w *watch) arrived(id int64, at time.Duration) {
	w.waiting = append(w.waiting, struct {
		id int64
		at time.Duration
	}{id, at})
}

// step tells the band of all who arrived until the step started.
func (w *watch) step(s *sim.Step, slots int, tell func(id int64, band string)) {
	n := 0
	for ; n < len(w.waiting) && w.waiting[n].at <= s.Start; n++ {
		if w.last == "" || w.waiting[n].at > w.end {
			tell(w.waiting[n].id, Light)
		} else {
			tell(w.waiting[n].id, w.last)
		}
	}
	w.waiting = append(w.waiting[:0], w.waiting[n:]...)
	w.end = s.End
	if w.last = band(max(kvUse(s), float64(s.Running)/float64(slots))); s.Waiting > 0 {
		w.last = Full
	}
}

// A flow is tokens over time.
type flow struct {
	from, to float64 // seconds
	tokens   int64
	any      bool
}

func (f *flow) add(from, to float64, tokens int) {
	if !f.any {
		f.from, f.to, f.any = from, to, true
	}
	f.from, f.to = min(f.from, from), max(f.to, to)
	f.tokens += int64(tokens)
}

// rate is tokens per second; NaN: there were none.
func (f *flow) rate() float64 {
	if !(f.to > f.from) {
		return math.NaN()
	}
	return float64(f.tokens) / (f.to - f.from)
}

// A mean64 is a mean in the making; what is NaN is left out.
type mean64 struct{ sum, n float64 }

func (m *mean64) add(x float64) {
	if !math.IsNaN(x) {
		m.sum += x
		m.n++
	}
}

func (m *mean64) value() float64 { return m.sum / m.n }
