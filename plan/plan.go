package plan

import (
	"context"
	"errors"
	"math"
	"slices"

	"llmsim/report"
	"llmsim/scenarios"
)

// A plan under way.
type planning struct {
	pace
	q       Question
	rate    float64 // offered, requests per second; 0 when the workload has none
	answer  *Answer
	sat     *saturation
	under   estimate    // of one replica under the SLO, if sat
	edge    *edge       // nil: saturation breaks first
	speedup float64     // of a trace, that the answer's replicas keep up with
	alone   []Objective // that even requests alone on a replica miss; nil if it was not asked
	tried   map[int]*outcome
	steps   int // of all trials
}

type outcome struct {
	replicas int
	finding
	holds    bool
	slo      []Objective
	summary  report.Summary
	requests int64
}

// Ask answers a question. It runs for as long as the answer takes, or until ctx ends.
func Ask(ctx context.Context, q Question) (*Answer, error) {
	s := q.Scenario
	if s.Workload.InSessions() {
		return nil, errors.New("workload.sessions: a plan is asked about a rate of requests, and sessions send theirs when they have been answered: see llmsim simulate")
	}
	p := &planning{pace: pace{ctx: ctx, report: q.Progress}, q: q, answer: &Answer{Version: Version, Seed: s.Seed}, tried: map[int]*outcome{}}
	var err error
	p.answer.Scenario.Name = s.Name
	if p.answer.Scenario.Digest, err = s.Digest(); err != nil {
		return nil, err
	}
	p.answer.Memory = memoryOf(s)
	if s.Mixed() {
		p.answer.Pools = poolsOf(s)
	}
	if open(s) {
		p.rate = s.Workload.Arrivals.Rate
	}
	if open(s) && !s.Mixed() {
		if p.sat, err = saturate(&p.pace, *s, saturatedRuns); err != nil {
			return nil, err
		}
		if p.sat != nil {
			if p.under, err = underSLO(&p.pace, *s, p.sat, judgedSeeds); err != nil {
				return nil, err
			}
			if p.edge, err = beyondEdge(&p.pace, *s, p.under, p.sat); err != nil {
				return nil, err
			}
		}
	}
	var o *outcome
	if q.Fixed || s.Mixed() || !p.searchable() {
		o, err = p.try(s.Fleet.Replicas)
	} else {
		o, err = p.search()
	}
	if err != nil {
		return nil, err
	}
	if s.Workload.Arrivals.Process == "trace" && q.Sensitivity {
		fleet := *s
		fleet.Fleet.Replicas = o.replicas
		if p.speedup, err = speedup(&p.pace, fleet); err != nil {
			return nil, err
		}
	}
	if s.Mixed() && open(s) && q.Sensitivity && o.summary.Latency.E2E.Count > 0 {
		served := (o.summary.Latency.E2E.Mean - o.summary.Latency.Queue.Mean) / 1e3
		l := ceiling{pace: &p.pace, s: *s, service: served, seeds: fleetSeeds}
		if p.under, err = l.fleetRate(p.rate); err != nil {
			return nil, err
		}
	}
	if err := p.sensitivities(); err != nil {
		return nil, err
	}
	p.conclude(o)
	return p.answer, nil
}

// low is what one replica is sure to sustain, under the SLO if it can be held at all.
func (p *planning) low() float64 {
	if low := p.under.low(); low > 0 {
		return min(low, p.sat.low())
	}
	return p.sat.low()
}

// memoryOf is how a GPU's is used.
func memoryOf(s *scenarios.Scenario) Memory {
	blocks, m := s.KVBlocks()
	return Memory{
		HBM: whole(m.HBMBytes), Reserve: whole(m.ReserveBytes), Weights: whole(m.WeightsBytes),
		KV: whole(m.KVBytes), Free: whole(m.FreeBytes), KVBlocks: blocks, KVTokens: blocks * s.Engine.BlockSize,
		GPUs: s.Engine.GPUs(), Stage: m.Stage,
	}
}

// searchable reports whether more replicas could change the answer: a closed loop offers no more
// than is served, and what comes all at once is served sooner or later.
func (p *planning) searchable() bool {
	switch p.q.Scenario.Workload.Arrivals.Process {
	case "closed", "all-at-once":
		return false
	}
	return true
}

// Where a search gives up.
const (
	mostReplicas = 4096 // or data-parallel ranks of them
	mostTrials   = 20
	searchSteps  = 60_000_000 // of all trials
)

// How long a trial is: from so many requests, and so many times what one is worked on, it is
// doubled until it is clear what it shows, as long as it stays below these bounds.
const (
	leastRequests = 5_000
	services      = 10
	trialSteps    = 10_000_000
	trialRequests = 400_000
)

// most is how many replicas a search may try: so many that their ranks can be simulated.
func (p *planning) most() int { return max(mostReplicas/p.q.Scenario.Engine.DataParallelSize, 1) }

// light reports whether the load is far below what a number of replicas serve when saturated.
func (p *planning) light(replicas int) bool {
	return p.sat != nil && p.rate < 0.8*p.sat.low()*float64(replicas)
}

// tired reports whether the search has done enough.
func (p *planning) tired() bool { return len(p.answer.Trials) >= mostTrials || p.steps > searchSteps }

// search finds the smallest number of replicas that holds: from an estimate up until one does,
// then down to one that does not.
func (p *planning) search() (*outcome, error) {
	n, fails := 1, 0
	if p.sat != nil {
		if p.rate > p.sat.low()*float64(p.most()) {
			return p.beyond(), nil
		}
		n = clamp(int(math.Ceil(p.rate/p.low())), 1, p.most())
	}
	holds, err := p.try(n)
	for err == nil && !holds.holds {
		if n == p.most() || p.tired() || p.served(holds) == 0 {
			return holds, nil
		}
		if hopeless, err := p.hopeless(holds); hopeless || err != nil {
			return holds, err
		}
		fails, n = n, min(p.more(holds), p.most())
		holds, err = p.try(n)
	}
	// The estimate is mostly right, so the one below it is tried before the middle.
	for next := n - 1; err == nil && next > fails && !p.tired(); next = (fails + n) / 2 {
		var o *outcome
		if o, err = p.try(next); err == nil && o.holds {
			holds, n = o, next
		} else {
			fails = next
		}
	}
	return holds, err
}

// served is how many requests a number of replicas completed.
func (p *planning) served(o *outcome) int64 { return o.summary.Requests.Completed }

// beyond is the outcome of a rate that more replicas would be needed for than are simulated: it is
// known from one.
func (p *planning) beyond() *outcome {
	return &outcome{
		replicas: int(math.Ceil(p.rate / p.sat.low())), finding: finding{state: beyond},
		summary: p.sat.summary,
	}
}

// more guesses how many replicas to try after too few.
func (p *planning) more(o *outcome) int {
	n := o.replicas + max(1, o.replicas/4)
	if t := o.summary.Throughput; o.state == fallsBehind && t.Completed > 0 {
		n = max(n, int(0.9*float64(o.replicas)*t.Offered/t.Completed))
	}
	return n
}

// hopeless reports whether more replicas won't help: they keep up, and the SLO that they miss is
// missed even by requests that have a replica to themselves, one after the other.
func (p *planning) hopeless(o *outcome) (bool, error) {
	const requests = 500
	if o.state != keepsUp || p.sat == nil || p.alone != nil {
		return false, nil
	}
	s := *p.q.Scenario
	s.Fleet.Replicas = 1
	s.Workload.Arrivals = scenarios.Arrivals{Process: "closed", Concurrency: 1}
	s.Workload.Requests = requests
	t, err := newTrial(&p.pace, s)
	if err != nil {
		return false, err
	}
	t.warm(0, s.SLO)
	if err := t.extend(requests + 1); err != nil {
		return false, err
	}
	p.alone = []Objective{}
	for _, objective := range s.SLO {
		if fared := t.fare(objective); !objective.Each && !fared.Met {
			p.alone = append(p.alone, fared)
		}
	}
	return len(p.alone) > 0, nil
}

// try simulates a number of replicas until it is clear whether it holds.
func (p *planning) try(replicas int) (*outcome, error) {
	if o := p.tried[replicas]; o != nil {
		return o, nil
	}
	s := *p.q.Scenario
	s.Fleet.Replicas = replicas
	o := &outcome{replicas: replicas}
	p.tried[replicas] = o

	t, err := newTrial(&p.pace, s)
	if err != nil {
		return nil, err
	}
	t.warm(0, s.SLO)
	t.recorder.PoolOf = s.PoolOf()
	requests := int64(math.MaxInt64)
	if open(&s) {
		requests = max(leastRequests, int64(s.Workload.Requests))
		if p.sat != nil {
			requests = max(requests, int64(services*p.sat.service()*p.rate))
		}
		for ; ; requests *= 2 {
			if err := t.extend(requests); err != nil {
				return nil, err
			}
			o.finding = t.judge(p.rate)
			last := 2*t.steps > trialSteps || 2*t.arrived > trialRequests
			if p.light(replicas) && o.state != keepsUp {
				// Bursts make the backlog swing. What a saturated replica serves tells more.
				if o.state = unclear; last {
					o.state = keepsUp
				}
			}
			if (o.state != unclear && !(s.Mixed() && p.starting(t))) || last {
				break
			}
		}
		p.steps += t.steps
	} else {
		if err := t.extend(requests); err != nil {
			return nil, err
		}
		o.finding = finding{state: keepsUp, drift: t.judge(p.rate).drift}
		if !t.ended {
			o.state = unclear
		} else if p.searchable() && !t.drains() && !t.atOnce() {
			o.state = fallsBehind
		}
	}

	if o.state != keepsUp {
		o.warmup = 0
	}
	if o.warmup > 0 {
		// Again, without the warm-up.
		again, err := newTrial(&p.pace, s)
		if err != nil {
			return nil, err
		}
		again.warm(o.warmup, s.SLO)
		again.recorder.PoolOf = s.PoolOf()
		if err := again.extend(t.arrived); err != nil {
			return nil, err
		}
		t = again
	}
	id, err := Identify(&s, t.notes)
	if err != nil {
		return nil, err
	}
	o.requests = t.arrived
	o.summary = t.recorder.Summary(id)
	o.holds = o.state == keepsUp && o.summary.Requests.Completed > 0 && (p.sat == nil || p.rate < p.sat.low()*float64(replicas))
	for _, objective := range s.SLO {
		if objective.Each {
			continue // goodput tells of it
		}
		fared := t.fare(objective)
		o.slo = append(o.slo, fared)
		o.holds = o.holds && fared.Met
	}
	p.answer.Trials = append(p.answer.Trials, Trial{
		MissesSLO: slices.ContainsFunc(o.slo, func(f Objective) bool { return !f.Met }),
		Replicas:  replicas, State: o.state.String(), Requests: o.requests,
		VirtualS: o.summary.VirtualS, WarmupS: o.warmup.Seconds(),
		Growth: millionths(o.drift.perSecond), StdErr: millionths(o.drift.stderr),
	})
	return o, nil
}

func fare(o scenarios.Objective, r *report.Recorder) Objective {
	dist := map[string]*report.Dist{"ttft": &r.TTFT, "itl": &r.ITL, "tpot": &r.TPOT, "e2e": &r.E2E, "queue": &r.Queue}[o.Metric]
	var ns float64
	switch o.P {
	case 0:
		ns = dist.Mean()
	case 100:
		ns = float64(dist.Max())
	default:
		ns = dist.Quantiles(o.P / 100)[0]
	}
	return Objective{
		Name: o.Name, Limit: millionths(float64(o.Limit) / 1e6), Value: millionths(ns / 1e6),
		Met: dist.Count() > 0 && ns <= float64(o.Limit),
	}
}

func (s state) String() string {
	return [...]string{"unclear", "keeps up", "falls behind", "beyond"}[s]
}

func clamp(x, lo, hi int) int { return max(lo, min(x, hi)) }

// whole and millionths round to what is shown. Infinity, of an error that could not be
// estimated, becomes zero.
func whole(x float64) float64 { return math.Round(x) }

func millionths(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return math.Round(x*1e6) / 1e6
}
