package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmsim/report"
	"llmsim/scenarios"
)

// conclude puts the outcome into words.
func (p *planning) conclude(o *outcome) {
	a := p.answer
	s := p.q.Scenario
	a.Replicas, a.GPUs = o.replicas, o.replicas*s.Engine.GPUs()
	if s.Mixed() {
		a.GPUs = s.GPUs()
	}
	a.Run, a.SLO = o.summary, o.slo
	a.Verdict.Holds = o.holds
	of := o.summary
	a.Bottleneck.Of = "this run"
	if p.sat != nil {
		between := func(e estimate) [2]float64 {
			return [2]float64{millionths(max(e.mean-e.half, 0)), millionths(e.mean + e.half)}
		}
		a.Capacity = &Capacity{
			PerReplica: millionths(p.under.mean), CI: between(p.under), Spread: millionths(p.under.spread), Runs: p.under.runs,
			PerGPU:     millionths(p.under.mean / float64(s.Engine.GPUs())),
			Headroom:   millionths(p.under.mean*float64(o.replicas)/p.rate - 1),
			Saturation: millionths(p.sat.mean), SaturationCI: between(p.sat.estimate), Requests: int(p.sat.requests),
		}
		of = p.sat.summary
		a.Bottleneck.Of = "one replica, saturated"
	}
	if p.speedup > 0 {
		each := o.summary.Throughput.Offered * p.speedup / float64(o.replicas)
		a.Capacity = &Capacity{
			Speedup: millionths(p.speedup), Headroom: millionths(p.speedup - 1),
			PerReplica: millionths(each), CI: [2]float64{millionths(each), millionths(each * speedResolution)},
			PerGPU: millionths(each / float64(s.Engine.GPUs())), Runs: 1,
		}
	}
	if s.Mixed() && p.under.mean > 0 {
		a.Capacity = &Capacity{
			Fleet: millionths(p.under.mean), PerReplica: millionths(p.under.mean / float64(o.replicas)), Runs: p.under.runs,
			PerGPU: millionths(p.under.mean / float64(a.GPUs)), Headroom: millionths(p.under.mean/p.rate - 1),
			CI:     [2]float64{millionths(max(p.under.mean-p.under.half, 0) / float64(o.replicas)), millionths((p.under.mean + p.under.half) / float64(o.replicas))},
			Spread: millionths(p.under.spread / float64(o.replicas)),
		}
	}
	a.Price = pricedFleet(s, a.GPUs, o.summary.Throughput)
	if a.Sensitivity == nil {
		a.Sensitivity = []Sensitivity{}
	}
	slices.SortStableFunc(a.Sensitivity, func(x, y Sensitivity) int { return cmp.Compare(y.Change, x.Change) })
	if p.edge != nil {
		of = p.edge.summary
		a.Bottleneck.Of = fmt.Sprintf("one replica at %s req/s", report.Figure(p.edge.rate))
	}
	a.Bottleneck.Blocked, a.Bottleneck.Bound = of.Blocked, of.Bound
	a.Bottleneck.What = bottleneck(p, of)
	if p.edge != nil {
		var missed []string
		for _, o := range p.edge.missed {
			missed = append(missed, o.Name)
		}
		a.Bottleneck.Breaks = missed
		if p.edge.blame != "" {
			a.Bottleneck.What = p.edge.blame + "; " + a.Bottleneck.What
		}
		a.Bottleneck.What = fmt.Sprintf("%s, long before the replica is saturated; %s", strings.Join(missed, " and "), a.Bottleneck.What)
		if p.edge.rate > 0.85*p.sat.mean {
			a.Bottleneck.What = strings.Replace(a.Bottleneck.What, ", long before", ", before", 1)
		}
	}
	a.Verdict.Reason = p.reason(o)
	for _, objective := range p.alone {
		if objective.empty() {
			continue // the sentence has said so
		}
		a.Verdict.Reason += fmt.Sprintf("; no number of replicas helps: %s of requests that have a replica to themselves is %s%s",
			objective.Name, report.Figure(objective.Value), cmp.Or(objective.Unit, " ms"))
	}
	if r := o.summary.Requests; r.Refused > 0 {
		why := "too long for max_model_len or for the KV cache"
		if s.Mixed() {
			why = "that no pool accepts and holds"
		}
		a.Verdict.Reason += fmt.Sprintf("; %s of %s requests are refused, %s", report.Count(r.Refused), report.Count(r.Arrived), why)
	}
	if p.sat != nil {
		low := p.sat.mean - float64(significance*p.sat.spread)
		if o.holds && p.rate > low*float64(o.replicas) {
			a.Verdict.Margin = fmt.Sprintf("what a saturated replica serves differs from run to run, by %s req/s (standard deviation): below %s req/s a burst that fills it is sure to drain",
				report.Figure(p.sat.spread), report.Figure(low*float64(o.replicas)))
		}
	}
}

// reason says in one sentence what was found.
func (p *planning) reason(o *outcome) string {
	s := p.q.Scenario
	who := fmt.Sprintf("%s of %s on %s", plural(o.replicas, "replica"), name(s.Model.Name, "the model"), name(s.Hardware.Name, "the GPU"))
	if gpus := s.Engine.GPUs(); gpus > 1 {
		who += fmt.Sprintf(" x %d", gpus)
	}
	alone := o.replicas // whose verbs the sentence has
	if s.Mixed() {
		who, alone = fleet(s), len(s.Fleet.Pools)+1
	}
	switch s.Workload.Arrivals.Process {
	case "closed":
		return p.withSLO(o, alone, fmt.Sprintf("%s served the %s at %s req/s; it offers no more than is served, so nothing is said about a rate",
			who, s.Workload, report.Figure(o.summary.Throughput.Completed)))
	case "all-at-once":
		return p.withSLO(o, alone, fmt.Sprintf("%s served all %s requests in %s s; nothing is said about a rate",
			who, report.Count(o.summary.Requests.Completed), report.Figure(o.summary.VirtualS)))
	}
	load := fmt.Sprintf("%g req/s", p.rate)
	if p.sat == nil && !(s.Mixed() && open(s)) {
		load = "the " + s.Workload.String()
	}
	growth := fmt.Sprintf("backlog growth %.2f +/- %.2f req/s over %s requests",
		o.drift.perSecond, significance*o.drift.stderr, report.Count(o.requests))
	saturates := ""
	if p.sat != nil {
		saturates = fmt.Sprintf("saturates at %s req/s", interval(p.sat.mean*float64(o.replicas), p.sat.half*float64(o.replicas)))
	}
	switch {
	case o.state == beyond:
		return fmt.Sprintf("%s needs about %s replicas, and more than %s are not simulated; one saturates at %s req/s",
			load, report.Count(int64(o.replicas)), report.Count(int64(p.most())), interval(p.sat.mean, p.sat.half))
	case o.summary.Requests.Completed == 0:
		return fmt.Sprintf("%s completed none of %s requests", who, report.Count(o.summary.Requests.Arrived))
	case o.state == keepsUp && p.sat == nil:
		return p.withSLO(o, alone, fmt.Sprintf("%s keep%s up with %s", who, third(alone), load))
	case o.state == keepsUp && p.rate < p.sat.low()*float64(o.replicas):
		return p.withSLO(o, alone, fmt.Sprintf("%s sustain%s %s, %s%% below saturation at %s req/s", who, third(o.replicas), load,
			report.Percent(1-p.rate/(p.sat.mean*float64(o.replicas))),
			interval(p.sat.mean*float64(o.replicas), p.sat.half*float64(o.replicas))))
	case o.state == keepsUp:
		return fmt.Sprintf("%s kept up with %s for %s simulated seconds, but %s, and now and then below %s: a burst that fills them may never drain",
			who, load, report.Figure(o.summary.VirtualS), saturates, report.Figure(p.sat.low()*float64(o.replicas)))
	case o.state == fallsBehind && s.Mixed() && open(s):
		return fmt.Sprintf("overload: with %s the queue of %s grows without bound (%s)", load, who, growth)
	case s.Mixed() && open(s):
		return fmt.Sprintf("too close to saturation to tell: %s at %s: %s", who, load, growth)
	case o.state == fallsBehind && p.sat == nil:
		return fmt.Sprintf("overload: %s fall%s behind %s: requests still wait when it ends", who, third(alone), load)
	case o.state == fallsBehind:
		return fmt.Sprintf("overload: %s %s; at %s the queue grows without bound (%s)", who, saturates, load, growth)
	case saturates != "":
		return fmt.Sprintf("too close to saturation to tell: %s %s; at %s %s", who, saturates, load, growth)
	}
	return fmt.Sprintf("%s did not finish %s within %s steps", who, load, report.Count(mostSteps))
}

// withSLO appends to a sentence about so many how the objectives fared.
func (p *planning) withSLO(o *outcome, who int, text string) string {
	var met, missed []string
	for _, s := range o.slo {
		if s.empty() {
			missed = append(missed, s.Name+" has nothing to measure")
		} else if !s.Met && s.Unit != "" { // goodput, a share
			missed = append(missed, fmt.Sprintf("%s is %s%s, below %s%s", s.Name, report.Figure(s.Value), s.Unit, report.Figure(s.Limit), s.Unit))
		} else if s.Met {
			met = append(met, s.Name)
		} else {
			missed = append(missed, fmt.Sprintf("%s is %s ms, over %s ms", s.Name, report.Figure(s.Value), report.Figure(s.Limit)))
		}
	}
	switch {
	case len(missed) > 0:
		return fmt.Sprintf("%s, but miss%s the SLO: %s", text, map[bool]string{true: "es"}[who == 1], strings.Join(missed, ", "))
	case len(met) > 0:
		return fmt.Sprintf("%s, and meet%s %s", text, third(who), strings.Join(met, ", "))
	}
	return text
}

// bottleneck names what holds requests back, and what the steps' time goes to.
func bottleneck(p *planning, s report.Summary) string {
	if p.q.Scenario.Mixed() {
		return poolBottleneck(p, s)
	}
	return bottleneckOf(p.q.Scenario.Engine, p.answer.Memory.KVBlocks, s.Blocked, s.Bound)
}

// bottleneckOf does so for equal replicas with so many KV blocks each.
func bottleneckOf(e scenarios.Engine, blocks int, blocked report.Blocked, bounds report.Bounds) string {
	what, share := "", 0.0
	for _, b := range []struct {
		what  string
		share float64
	}{
		{fmt.Sprintf("sequence slots (max_num_seqs %d)", e.MaxNumSeqs), blocked.Slots},
		{fmt.Sprintf("KV blocks (%s)", report.Count(int64(blocks))), blocked.KV},
		{fmt.Sprintf("the token budget (max_num_batched_tokens %d)", e.MaxNumBatchedTokens), blocked.Budget},
	} {
		if b.share > share {
			what, share = b.what, b.share
		}
	}
	if share < 0.01 {
		what = "nothing keeps requests waiting"
	} else {
		what = fmt.Sprintf("%s: requests were held back by it %s%% of the time", what, report.Percent(share))
	}
	bound, most := "", 0.0
	t := bounds.Time
	for _, b := range []struct {
		what  string
		share float64
	}{{"compute", t.Compute}, {"weight reads", t.Weights}, {"KV reads", t.KV}, {"overhead", t.Overhead}} {
		if b.share > most {
			bound, most = b.what, b.share
		}
	}
	if bound == "" {
		return what
	}
	return fmt.Sprintf("%s; %s%% of step time is bound by %s", what, report.Percent(most), bound)
}

// interval writes a figure to the digits that its uncertainty leaves it.
func interval(mean, half float64) string {
	decimals := 0
	for limit := 10.0; decimals < 3 && half < limit; limit /= 10 {
		decimals++
	}
	return fmt.Sprintf("%.*f +/- %.*f", decimals, mean, decimals, half)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return report.Count(int64(n)) + " " + what + "s"
}

// third is the ending of a verb whose subject is n of something.
func third(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

func name(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return given
}
