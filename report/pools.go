package report

import (
	"fmt"
	"strconv"
)

// A PoolIdentity says which replicas of a fleet a pool is.
type PoolIdentity struct {
	Name            string
	Model, Hardware string // names; may be empty
	Policy, Models  string
	Defaults        []string
	Replicas        int
	GPUs            int    // of all replicas
	Accepts         [2]int // the shortest and the longest prompt in tokens; 0: without a bound
	Blocks          int    // KV blocks of one replica
	BlockSize       int    // tokens
}

// A Pool is what the replicas of one kind came to.
type Pool struct {
	Name     string `json:"name"`
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	Engine   struct {
		Policy   string   `json:"policy"`
		Models   string   `json:"models"`
		Defaults []string `json:"defaults,omitempty"`
	} `json:"engine"`
	Replicas int `json:"replicas"`
	GPUs     int `json:"gpus"` // of all replicas
	Accepts  struct {
		PromptTokens [2]int `json:"prompt_tokens"` // 0: without a bound
	} `json:"accepts"`
	KV       KV `json:"kv"`
	Requests struct {
		Completed int64 `json:"completed"`
	} `json:"requests"`
	Latency     Latencies      `json:"latency_ms"`
	Throughput  PoolThroughput `json:"throughput"`
	Steps       Steps          `json:"steps"`
	Preemptions Preemptions    `json:"preemptions"`
	Bound       Bounds         `json:"bound"`
	Blocked     Blocked        `json:"blocked"`
	PrefixCache Prefix         `json:"prefix_cache"`
	Queue       Level          `json:"queue_length"`
	Running     Level          `json:"running"`
}

// PoolThroughput is per second, over the same time as that of the fleet: pools add up to it.
type PoolThroughput struct {
	Completed float64 `json:"completed_rps"`
	Input     float64 `json:"input_tokens_per_s"`
	Output    float64 `json:"output_tokens_per_s"`
}

// inPools says what each pool came to.
func (r *Recorder) inPools(ids []PoolIdentity) (all []Pool) {
	for i, id := range ids {
		var of Recorder
		if i < len(r.pools) {
			of = r.pools[i]
		}
		s := of.Summary(Identity{Blocks: id.Blocks, BlockSize: id.BlockSize})
		p := Pool{
			Name: id.Name, Model: id.Model, Hardware: id.Hardware, Replicas: id.Replicas, GPUs: id.GPUs,
			KV: s.KV, Latency: s.Latency, Steps: s.Steps, Preemptions: s.Preemptions, Bound: s.Bound,
			Blocked: s.Blocked, PrefixCache: s.PrefixCache, Queue: s.Queue, Running: s.Running,
		}
		p.Engine.Policy, p.Engine.Models, p.Engine.Defaults = id.Policy, id.Models, id.Defaults
		p.Accepts.PromptTokens = id.Accepts
		p.Requests.Completed = of.completed
		if of.completed > 0 {
			window := r.lastToken - r.firstArrival
			p.Throughput = PoolThroughput{
				perSecond(of.completed, window), perSecond(of.inputTokens, window), perSecond(of.outputTokens, window),
			}
		}
		all = append(all, p)
	}
	return all
}

// line says which replicas the pool is.
func (p Pool) line() string {
	text := fmt.Sprintf("pool %s: %s", p.Name, counted(int64(p.Replicas), "replica"))
	if p.Model != "" {
		text += " of " + p.Model
	}
	if p.Hardware != "" {
		text += " on " + p.Hardware
	}
	if p.GPUs > p.Replicas && p.Replicas > 0 {
		text += fmt.Sprintf(" x %d", p.GPUs/p.Replicas)
	}
	switch lo, hi := p.Accepts.PromptTokens[0], p.Accepts.PromptTokens[1]; {
	case lo > 1 && hi > 0:
		text += fmt.Sprintf(", prompts of %s to %s tokens", Count(int64(lo)), Count(int64(hi)))
	case hi > 0:
		text += fmt.Sprintf(", prompts of up to %s tokens", Count(int64(hi)))
	case lo > 1:
		text += fmt.Sprintf(", prompts from %s tokens on", Count(int64(lo)))
	}
	text += fmt.Sprintf("; policy %s, models %s", p.Engine.Policy, p.Engine.Models)
	return text + fmt.Sprintf("; %s KV blocks of %d tokens per replica", Count(int64(p.KV.Blocks)), p.KV.BlockSize)
}

// pools compares the pools.
func (s Summary) pools() Table {
	t := Table{Head: []string{"pool", "GPUs", "requests", "req/s", "tokens/s", "TTFT p99 ms", "ITL p99 ms", "KV (%)"}}
	for _, p := range s.Pools {
		row := []string{p.Name, strconv.Itoa(p.GPUs), Count(p.Requests.Completed)}
		if p.Requests.Completed == 0 {
			t.Rows = append(t.Rows, append(row, "", "", "", "", ""))
			continue
		}
		t.Rows = append(t.Rows, append(row, Figure(p.Throughput.Completed), Figure(p.Throughput.Output),
			Figure(p.Latency.TTFT.P99), Figure(p.Latency.ITL.P99), Percent(p.KV.UseMean)))
	}
	return t
}
