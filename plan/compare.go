package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"llmsim/report"
	"llmsim/scenarios"
)

// A Comparison is the same question asked of several GPUs, the cheapest that holds first.
type Comparison struct {
	Version string  `json:"llmsim"`
	Rate    float64 `json:"rate_rps"`
	Verdict Verdict `json:"verdict"`
	Best    string  `json:"best"` // empty: none holds
	// Choices hold; of each GPU the tensor parallelism that is cheapest, then by price.
	Choices []Choice `json:"choices"`
	// Others don't, and why.
	Others []Other  `json:"others"`
	Notes  []string `json:"notes,omitempty"`
}

// A Choice is a fleet of one kind of GPU that holds the SLO at the rate.
type Choice struct {
	GPU      string `json:"gpu"`
	TP       int    `json:"tensor_parallel_size"`
	Replicas int    `json:"replicas"`
	GPUs     int    `json:"gpus"`
	Price    *Price `json:"price,omitempty"`
	// PerReplica is what one replica sustains under the SLO.
	PerReplica float64 `json:"per_replica_rps"`
	// Output tokens per second of each GPU, and that a user sees (1 / TPOT), at the rate.
	PerGPU  float64 `json:"output_tokens_per_s_per_gpu"`
	PerUser float64 `json:"output_tokens_per_s_per_user"`
	Pareto  bool    `json:"pareto"`  // no other has more of both
	Checked bool    `json:"checked"` // the whole fleet was simulated, and holds
	Basis   string  `json:"basis"`   // of the GPU's step times: measured, or defaults
}

// An Other is a GPU with which it does not work.
type Other struct {
	GPU    string `json:"gpu"`
	Reason string `json:"reason"`
}

// A Candidate is one GPU of a comparison, with the tensor parallelism asked for or, without,
// scenarios of several.
type Candidate struct {
	GPU       string
	Scenarios []*scenarios.Scenario
	Reason    string // why there are none
}

// How far a comparison looks.
const (
	comparedRuns     = 4
	comparedSeeds    = 2
	comparedRequests = 1_500 // of a run that judges
	// mostChecked of the cheapest are simulated as a whole, unless they have more replicas than this.
	mostChecked = 4
	mostFleet   = 64
)

// Compare asks how many of each candidate sustain the rate under the SLO, and what that costs.
func Compare(ctx context.Context, candidates []Candidate, progress func(int64)) (*Comparison, error) {
	c := &Comparison{Version: Version, Choices: []Choice{}, Others: []Other{}}
	type entry struct {
		s      *scenarios.Scenario
		choice *Choice
		reason string
	}
	for _, k := range candidates {
		if len(k.Scenarios) == 0 {
			c.Others = append(c.Others, Other{k.GPU, k.Reason})
		}
		for _, s := range k.Scenarios {
			if !open(s) {
				return nil, errors.New("workload.arrivals: GPUs are compared at a rate: needs poisson, gamma or constant arrivals")
			}
			c.Rate = s.Workload.Arrivals.Rate
		}
	}
	p := &pace{ctx: ctx, report: progress}
	tried := make([][]entry, len(candidates))
	ask := func(e *entry) error {
		sat, err := saturate(p, *e.s, comparedRuns)
		if err != nil {
			return err
		}
		if sat == nil {
			e.reason = "no rate saturates it"
			return nil
		}
		under := sat.estimate
		if judged(e.s) {
			one := *e.s
			one.Fleet.Replicas = 1
			l := ceiling{pace: p, s: one, service: sat.service(), seeds: comparedSeeds, least: comparedRequests, share: 1.0 / 8}
			if under, err = l.highest(sat.low()); err != nil {
				return err
			}
		}
		if under.mean == 0 {
			e.reason = "misses the SLO even at an eighth of what it serves"
			return nil
		}
		replicas := int(math.Ceil(c.Rate / under.mean))
		if replicas > mostReplicas/e.s.Engine.DataParallelSize {
			e.reason = fmt.Sprintf("would take %s replicas", report.Count(int64(replicas)))
			return nil
		}
		basis := "measured"
		if slices.ContainsFunc(e.s.Cost.Sources, scenarios.Unmeasured) || e.s.Cost.Model != "operators" {
			basis = "defaults"
		}
		e.choice = &Choice{
			GPU: e.s.Hardware.Name, TP: e.s.Engine.TensorParallelSize, Replicas: replicas, GPUs: replicas * e.s.Engine.GPUs(),
			PerReplica: millionths(under.mean), Basis: basis,
		}
		return e.choice.load(p, e.s, replicas, c.Rate)
	}
	err := each(len(candidates), func(i int) error {
		most := 0.0 // requests per second and GPU
		for _, s := range candidates[i].Scenarios {
			e := entry{s: s}
			if err := ask(&e); err != nil {
				return err
			}
			tried[i] = append(tried[i], e)
			if e.choice == nil {
				continue
			}
			// Where twice as many GPUs serve less than twice as much, more of them won't be cheaper.
			per := e.choice.PerReplica / float64(s.Engine.GPUs())
			if per < most {
				break
			}
			most = per
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(tried...)
	best := map[string]*entry{}
	var order []string
	for i := range all {
		e := &all[i]
		gpu := e.s.Hardware.Name
		old := best[gpu]
		if old == nil {
			order = append(order, gpu)
		}
		if old == nil || e.choice != nil && (old.choice == nil || e.choice.cheaper(old.choice) < 0) {
			best[gpu] = e
		}
	}
	var chosen []*entry
	for _, gpu := range order {
		if e := best[gpu]; e.choice == nil {
			c.Others = append(c.Others, Other{gpu, e.reason})
		} else {
			chosen = append(chosen, e)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *entry) int { return a.choice.cheaper(b.choice) })
	// The cheapest are asked in earnest; that may move them.
	few := chosen[:min(mostChecked, len(chosen))]
	if err := each(len(few), func(i int) error {
		e := few[i]
		s := *e.s
		s.Fleet.Replicas = e.choice.Replicas
		for range 4 {
			if s.Fleet.Replicas > mostFleet {
				return nil
			}
			o, err := checkFleet(p, s)
			if err != nil || o {
				e.choice.Checked = o
				e.choice.Replicas = s.Fleet.Replicas
				e.choice.GPUs = s.Fleet.Replicas * s.Engine.GPUs()
				if err == nil {
					err = e.choice.load(p, &s, s.Fleet.Replicas, c.Rate)
				}
				return err
			}
			s.Fleet.Replicas++
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(few, func(a, b *entry) int { return a.choice.cheaper(b.choice) })
	for _, e := range chosen {
		x := *e.choice
		x.Pareto = !slices.ContainsFunc(chosen, func(o *entry) bool {
			return o.choice.PerGPU >= x.PerGPU && o.choice.PerUser >= x.PerUser && (o.choice.PerGPU > x.PerGPU || o.choice.PerUser > x.PerUser)
		})
		c.Choices = append(c.Choices, x)
	}
	c.conclude()
	return c, nil
}

// cheaper orders choices by their price per hour, those without one last, then by GPUs.
func (c *Choice) cheaper(o *Choice) int {
	price := func(c *Choice) float64 {
		if c.Price == nil {
			return math.Inf(1)
		}
		return c.Price.PerHour
	}
	return cmp.Or(cmp.Compare(price(c), price(o)), cmp.Compare(c.GPUs, o.GPUs), cmp.Compare(c.GPU, o.GPU), cmp.Compare(c.TP, o.TP))
}

// load measures one replica at its share of the rate.
func (c *Choice) load(p *pace, s *scenarios.Scenario, replicas int, rate float64) error {
	one := *s
	one.Fleet.Replicas = 1
	one.Workload.Arrivals.Rate = rate / float64(replicas)
	t, err := newTrial(p, one)
	if err != nil {
		return err
	}
	t.warm(0, one.SLO)
	t.most = judgedSteps
	if err := t.extend(leastJudged); err != nil {
		return err
	}
	r := t.recorder.Summary(report.Identity{})
	perRequest := 0.0
	if r.Throughput.Completed > 0 {
		perRequest = r.Throughput.Output / r.Throughput.Completed
	}
	tokens := rate * perRequest
	c.PerGPU = millionths(tokens / float64(c.GPUs))
	if r.Latency.TPOT.Mean > 0 {
		c.PerUser = millionths(1e3 / r.Latency.TPOT.Mean)
	}
	c.Price = priced(s.Hardware.Price, s.Hardware.PriceSource, c.GPUs, rate, tokens)
	return nil
}

// checkFleet says whether a whole fleet sustains its rate under the SLO.
func checkFleet(p *pace, s scenarios.Scenario) (bool, error) {
	l := ceiling{pace: p, s: s, seeds: 1, most: 2 * mostJudged}
	return l.sustains(s.Workload.Arrivals.Rate, 0)
}

func (c *Comparison) conclude() {
	if len(c.Choices) == 0 {
		c.Verdict.Reason = fmt.Sprintf("no GPU sustains %g req/s under what is asked", c.Rate)
		return
	}
	b := c.Choices[0]
	c.Best, c.Verdict.Holds = b.GPU, true
	who := fmt.Sprintf("%s of %s", plural(b.Replicas, "replica"), b.GPU)
	if b.TP > 1 {
		who += fmt.Sprintf(" x %d", b.TP)
	}
	c.Verdict.Reason = fmt.Sprintf("%s sustain%s %g req/s", who, third(b.Replicas), c.Rate)
	if b.Price != nil {
		c.Verdict.Reason += fmt.Sprintf(" at the lowest price, $%.2f per hour, $%s per million output tokens", b.Price.PerHour, dollars(b.Price.PerMillionOutput))
	}
	if !b.Checked {
		c.Verdict.Margin = "the whole fleet was not simulated, one of its replicas was"
	}
	if b.Basis != "measured" {
		c.Notes = append(c.Notes, fmt.Sprintf("nothing was measured on %s: its step times are 5-20%% off", b.GPU))
	}
	c.Notes = append(c.Notes, "prices are what one page said at one time: set hardware.price_per_hour, or a catalogue of your own, to yours")
}
