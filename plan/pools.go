package plan

import (
	"fmt"
	"strings"

	"llmsim/report"
	"llmsim/scenarios"
)

// A fleet of pools is asked whether it holds as it is. What one replica serves when saturated says
// nothing of it, since the router decides what each pool gets: its backlog does, and its SLO.

func poolsOf(s *scenarios.Scenario) (all []Pool) {
	for i, one := range s.Pools() {
		all = append(all, Pool{
			Name: s.Fleet.Pools[i].Name, Replicas: one.Fleet.Replicas,
			GPUs: one.Fleet.Replicas * one.Engine.GPUs(), Memory: memoryOf(one),
		})
	}
	return all
}

// starting reports whether a trial is too short to tell a backlog that grows from requests under
// way that are not yet as many as they will be.
func (p *planning) starting(t *trial) bool {
	r := t.recorder
	if r.E2E.Count() == 0 {
		return true
	}
	return float64(t.arrived) < services*(r.E2E.Mean()-r.Queue.Mean())/1e9*p.rate
}

// fleet names the pools.
func fleet(s *scenarios.Scenario) string {
	var parts []string
	for i, one := range s.Pools() {
		part := fmt.Sprintf("%s (%s of %s on %s", s.Fleet.Pools[i].Name, plural(one.Fleet.Replicas, "replica"),
			name(one.Model.Name, "the model"), name(one.Hardware.Name, "the GPU"))
		if gpus := one.Engine.GPUs(); gpus > 1 {
			part += fmt.Sprintf(" x %d", gpus)
		}
		parts = append(parts, part+")")
	}
	return "the pools " + strings.Join(parts, " and ")
}

// poolBottleneck names the pool whose requests are held back most, and by what.
func poolBottleneck(p *planning, s report.Summary) string {
	most, at := -1.0, 0
	for i, pool := range s.Pools {
		if held := max(pool.Blocked.Slots, pool.Blocked.KV, pool.Blocked.Budget); held > most && pool.Steps.Count > 0 {
			most, at = held, i
		}
	}
	if most < 0 {
		return "no pool served anything"
	}
	pool := s.Pools[at]
	return "in pool " + pool.Name + " " + bottleneckOf(p.q.Scenario.Fleet.Pools[at].Engine, pool.KV.Blocks, pool.Blocked, pool.Bound)
}

// pools is the memory of a GPU of each pool.
func (a *Answer) pools() report.Table {
	gib := func(bytes float64) string { return report.Figure(bytes / (1 << 30)) }
	t := report.Table{Head: []string{"memory of a GPU (GiB)", "GPUs", "weights", "KV cache", "reserve", "free", "KV tokens"}}
	for _, p := range a.Pools {
		m := p.Memory
		t.Rows = append(t.Rows, []string{"pool " + p.Name, fmt.Sprint(p.GPUs), gib(m.Weights), gib(m.KV), gib(m.Reserve), gib(m.Free),
			report.Count(int64(m.KVTokens))})
	}
	return t
}
