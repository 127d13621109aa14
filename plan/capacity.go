package plan

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/sim"
	"llmsim/sim/rng"
)

// An estimate is a mean of independent runs.
type estimate struct {
	mean, half float64 // and half the width of its 95% confidence interval
	spread     float64 // standard deviation of the runs
	runs       int
}

// low is what all but few runs reach: fourteen of fifteen, if they are spread normally.
func (e estimate) low() float64 { return max(e.mean-float64(1.5*e.spread), 0) }

// student is the 97.5% point of Student's distribution by the number of runs, one more than its
// degrees of freedom.
var student = map[int]float64{2: 12.71, 3: 4.303, 4: 3.182, 6: 2.571, 8: 2.365, 16: 2.131, 32: 2.040}

func estimated(values []float64) (e estimate) {
	e.runs = len(values)
	for _, x := range values {
		e.mean += float64(x / float64(e.runs))
	}
	if e.runs < 2 {
		return e
	}
	variance := 0.0
	for _, x := range values {
		variance += float64((x-e.mean)*(x-e.mean)) / float64(e.runs-1)
	}
	e.spread = math.Sqrt(variance)
	e.half = student[e.runs] * math.Sqrt(variance/float64(e.runs))
	return e
}

// each calls do for 0 to n-1 on all cores, and returns the first error by number. What is done must
// not depend on the order.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A ceiling is a scenario of which the highest rate is sought that some replicas sustain under its SLO.
type ceiling struct {
	pace    *pace
	s       scenarios.Scenario // open arrivals; Fleet.Replicas as judged
	service float64            // seconds that a request is worked on when replicas are full
	seeds   int
	// Requests of a run, and the lowest share of what is served when saturated that is tried; 0:
	// leastJudged, mostJudged and leastShare.
	least, most int
	share       float64
}

// Runs that judge a rate: so many requests at least and at most, of which a fifth come before
// anything is counted, and so many steps.
const (
	leastJudged = 3_000
	judgedSeeds = 8
	fleetSeeds  = 4
	mostJudged  = 20_000
	judgedSteps = 1_500_000
	// A rate is found to this factor.
	resolution = 1.01
	// The lowest rate that is tried, as a share of what is served when saturated.
	leastShare = 1.0 / 64
)

// sustains says whether a rate is sustained under the SLO in one run.
func (l *ceiling) sustains(rate float64, seed int) (bool, error) {
	s := l.s
	s.Workload.Arrivals.Rate = rate
	if seed > 0 {
		s.Seed = rng.New(s.Seed, fmt.Sprintf("judged run %d", seed)).Uint64() >> 1
	}
	t, err := newTrial(l.pace, s)
	if err != nil {
		return false, err
	}
	// Each of many replicas needs requests of its own.
	least := cmp.Or(l.least, leastJudged) * max(1, s.Fleet.Replicas/4)
	requests := clamp(int(math.Ceil(float64(services*l.service)*rate)), min(least, cmp.Or(l.most, mostJudged)), cmp.Or(l.most, mostJudged))
	t.most = judgedSteps
	t.warm(time.Duration(float64(requests)/rate/5*1e9), s.SLO)
	if err := t.extend(int64(requests)); err != nil {
		return false, err
	}
	if t.judge(rate).state == fallsBehind || t.recorder.E2E.Count() == 0 {
		return false, nil
	}
	for _, o := range s.SLO {
		if !o.Each && !t.fare(o).Met {
			return false, nil
		}
	}
	return true, nil
}

// highest finds the highest rate below most that is sustained, for each seed, by halving; the same
// seeds give every configuration the same arrivals. Zero: not even the lowest is.
func (l *ceiling) highest(most float64) (estimate, error) {
	rates := make([]float64, l.seeds)
	search := func(seed int, lo, hi float64) error {
		for hi > lo*resolution {
			middle := math.Sqrt(lo * hi)
			ok, err := l.sustains(middle, seed)
			if err != nil {
				return err
			}
			if ok {
				lo = middle
			} else {
				hi = middle
			}
		}
		rates[seed] = math.Sqrt(lo * hi)
		return nil
	}
	least := most * cmp.Or(l.share, leastShare)
	switch ok, err := l.sustains(most/resolution, 0); {
	case err != nil:
		return estimate{}, err
	case ok:
		rates[0] = most
	default:
		// Mostly it is not far below.
		lo, hi := most/1.2, most
		for {
			ok, err := l.sustains(lo, 0)
			if err != nil {
				return estimate{}, err
			}
			if ok {
				break
			}
			if lo <= least {
				return estimate{runs: l.seeds}, nil
			}
			lo, hi = max(lo/2, least), lo
		}
		if err := search(0, lo, hi); err != nil {
			return estimate{}, err
		}
	}
	// The other seeds start around the first one's.
	err := each(l.seeds-1, func(i int) error {
		seed := i + 1
		lo, hi := rates[0]/1.06, min(rates[0]*1.06, most)
		for lo > least {
			ok, err := l.sustains(lo, seed)
			if err != nil {
				return err
			}
			if ok {
				break
			}
			lo, hi = lo/1.2, lo
		}
		for hi < most {
			ok, err := l.sustains(hi, seed)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			lo, hi = hi, min(hi*1.2, most)
		}
		if hi >= most {
			if ok, err := l.sustains(most/resolution, seed); err != nil || ok {
				rates[seed] = most
				return err
			}
		}
		return search(seed, lo, hi)
	})
	if err != nil {
		return estimate{}, err
	}
	return estimated(rates), nil
}

// An edge is one replica just above the highest rate that it sustains under the SLO.
type edge struct {
	rate    float64
	missed  []Objective
	summary report.Summary
	blame   string // if gaps between tokens are missed: what makes them long
}

// beyondEdge tells what breaks there; nil where nothing but saturation does.
func beyondEdge(p *pace, s scenarios.Scenario, under estimate, sat *saturation) (*edge, error) {
	if !judged(&s) || under.mean == 0 || under.mean > 0.98*sat.low() {
		return nil, nil
	}
	s.Fleet.Replicas = 1
	for _, over := range []float64{1.05, 1.15, 1.3} {
		e := &edge{rate: over * under.mean}
		s.Workload.Arrivals.Rate = e.rate
		t, err := newTrial(p, s)
		if err != nil {
			return nil, err
		}
		t.most = judgedSteps
		t.warm(time.Duration(leastJudged/e.rate/5*1e9), s.SLO)
		if err := t.extend(leastJudged); err != nil {
			return nil, err
		}
		for _, o := range s.SLO {
			if fared := t.fare(o); !o.Each && !fared.Met {
				e.missed = append(e.missed, fared)
			}
		}
		if len(e.missed) > 0 {
			e.summary = t.recorder.Summary(report.Identity{})
			if slices.ContainsFunc(e.missed, func(o Objective) bool {
				return strings.HasPrefix(o.Name, "itl") || strings.HasPrefix(o.Name, "tpot")
			}) {
				e.blame = t.stalls.blame()
			}
			return e, nil
		}
	}
	return nil, nil
}

// judged says whether a scenario has an SLO.
func judged(s *scenarios.Scenario) bool { return len(s.SLO) > 0 }

// fleetRate is the highest rate that a fleet sustains under its SLO, looked for from a rate up and
// down; the mean of some seeds.
func (l *ceiling) fleetRate(from float64) (estimate, error) {
	lo := from
	for range 12 {
		ok, err := l.sustains(lo, 0)
		if err != nil {
			return estimate{}, err
		}
		if ok {
			break
		}
		lo /= 1.5
	}
	hi := lo
	for range 12 {
		hi *= 1.5
		ok, err := l.sustains(hi, 0)
		if err != nil {
			return estimate{}, err
		}
		if !ok {
			return l.highest(hi)
		}
	}
	return estimate{}, nil
}

// underSLO is the highest rate of one replica; saturation where nothing more is asked for.
func underSLO(p *pace, s scenarios.Scenario, sat *saturation, seeds int) (estimate, error) {
	if !judged(&s) {
		return sat.estimate, nil
	}
	s.Fleet.Replicas = 1
	l := ceiling{pace: p, s: s, service: sat.service(), seeds: seeds}
	// What a burst may keep from draining is not sustained, however long it went well.
	e, err := l.highest(sat.low())
	if e.mean >= sat.low() {
		e.half, e.spread = sat.half, 0
	}
	return e, err
}

// How far a trace's speed is looked for, and what a replay may take.
const (
	speedResolution = 1.03
	mostSpeedup     = 1024
	speedSteps      = 1_500_000
)

// speedup finds the most times as fast as which a trace's requests may come so that the scenario's
// replicas keep up under the SLO; 0: none that was tried, or a replay takes too many steps.
func speedup(p *pace, s scenarios.Scenario) (float64, error) {
	written := max(s.Workload.Arrivals.Speedup, 1e-9)
	tooLong := false
	holds := func(factor float64) (bool, error) {
		s := s
		s.Workload.Arrivals.Speedup = written * factor
		t, err := newTrial(p, s)
		if err != nil {
			return false, err
		}
		t.warm(0, s.SLO)
		t.most = speedSteps
		if err := t.extend(math.MaxInt64); err != nil {
			return false, err
		}
		if !t.ended {
			tooLong = true
			return false, nil
		}
		if t.atOnce() || !t.drains() || t.recorder.E2E.Count() == 0 {
			return false, nil
		}
		for _, o := range s.SLO {
			if !o.Each && !t.fare(o).Met {
				return false, nil
			}
		}
		return true, nil
	}
	lo, hi := 1.0, 1.0
	for {
		ok, err := holds(lo)
		if err != nil || tooLong {
			return 0, err
		}
		if ok {
			break
		}
		if lo < 1.0/mostSpeedup {
			return 0, nil
		}
		lo, hi = lo/2, lo
	}
	for hi == lo {
		if hi *= 2; hi > mostSpeedup {
			return lo, nil
		}
		ok, err := holds(hi)
		if err != nil || tooLong {
			return 0, err
		}
		if ok {
			lo = hi
		}
	}
	for hi > lo*speedResolution {
		middle := math.Sqrt(lo * hi)
		ok, err := holds(middle)
		if err != nil || tooLong {
			return 0, err
		}
		if ok {
			lo = middle
		} else {
			hi = middle
		}
	}
	return lo, nil
}

// Goodput is the share of requests that each keep the bounds of the SLO without a statistic.
type goodput struct {
	bounds       []scenarios.Objective
	kept, served int64
}

func newGoodput(slo []scenarios.Objective) *goodput {
	g := new(goodput)
	for _, o := range slo {
		if o.Each {
			g.bounds = append(g.bounds, o)
		}
	}
	if len(g.bounds) == 0 {
		return nil
	}
	return g
}

// take counts who finished of those that arrived after an instant; refused ones keep nothing.
func (g *goodput) take(p *sim.Progress, from time.Duration) {
	for i := range p.Refused {
		if p.Refused[i].Request.Arrival >= from {
			g.served++
		}
	}
	for i := range p.Steps {
		for j := range p.Steps[i].Finished {
			f := &p.Steps[i].Finished[j]
			if f.Arrival < from {
				continue
			}
			g.served++
			kept := true
			for _, o := range g.bounds {
				kept = kept && o.Limit >= timeOf(o.Metric, f)
			}
			if kept {
				g.kept++
			}
		}
	}
}

// timeOf is a finished request's figure; the TPOT of a single token is none.
func timeOf(metric string, f *sim.Finished) time.Duration {
	switch metric {
	case "ttft":
		return f.FirstToken - f.Arrival
	case "tpot":
		return (f.LastToken - f.FirstToken) / time.Duration(max(f.Output-1, 1))
	}
	return f.LastToken - f.Arrival
}

func (g *goodput) share() float64 {
	if g.served == 0 {
		return 0
	}
	return float64(g.kept) / float64(g.served)
}

func fareOf(o scenarios.Objective, r *report.Recorder, g *goodput) Objective {
	if o.Metric == "goodput" {
		return Objective{Name: o.Name, Limit: 100 * o.Share, Value: millionths(100 * g.share()), Unit: "%", Met: g.share() >= o.Share}
	}
	return fare(o, r)
}
