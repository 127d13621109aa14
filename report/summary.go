package report

import (
	"time"

	"llmsim/sim/cost"
	"llmsim/sim/policy"
)

// An Identity says which run a summary is of; it comes from whoever composed the run.
type Identity struct {
	Version     string // of the program
	Scenario    string
	Digest      string // of the scenario, "sha256:..."
	Seed        uint64
	Policy      string   // what schedules, as a scenario names it
	Models      string   // the engine and version that the policy models
	Defaults    []string // settings that the engine's version chose
	Blocks      int      // KV blocks of one replica
	BlockSize   int      // tokens
	Workload    string   // a note for people; may be empty
	Assumptions []string // what the reader should know the numbers rest on

	Pools []PoolIdentity // of a fleet whose replicas differ, in the order of Recorder.PoolOf
}

// A Summary is what one run came to. Its JSON keys are a contract; every number in it is a whole number of
// millionths (of milliseconds, requests per second, shares), virtual_s of billionths.
type Summary struct {
	Version  string `json:"llmsim"`
	Scenario struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	} `json:"scenario"`
	Seed   uint64 `json:"seed"`
	Engine struct {
		Policy string `json:"policy"`
		Models string `json:"models"`
		// Defaults are settings that nobody gave.
		Defaults []string `json:"defaults,omitempty"`
	} `json:"engine"`
	KV          KV          `json:"kv"`
	Requests    Requests    `json:"requests"`
	Latency     Latencies   `json:"latency_ms"`
	Throughput  Throughput  `json:"throughput"`
	Steps       Steps       `json:"steps"`
	Preemptions Preemptions `json:"preemptions"`
	VirtualS    float64     `json:"virtual_s"` // end of the last step

	Percentiles string   `json:"percentiles"` // "exact" or "within 0.1%"
	Bound       Bounds   `json:"bound"`
	Blocked     Blocked  `json:"blocked"`
	PrefixCache Prefix   `json:"prefix_cache"`
	Queue       Level    `json:"queue_length"`
	Running     Level    `json:"running"`
	WarmupS     float64  `json:"warmup_s,omitempty"` // what arrived or started before is left out
	Workload    string   `json:"workload,omitempty"`
	Assumptions []string `json:"assumptions,omitempty"`

	Pools   []Pool       `json:"pools,omitempty"`   // if there are several kinds of replicas
	Explain *Explanation `json:"explain,omitempty"` // if it was asked for
}

// A KV describes one replica's cache and how full the caches were while steps ran. Of a fleet of
// pools Blocks, BlockSize and Tokens are 0: each pool has its own.
type KV struct {
	Blocks    int     `json:"blocks"`
	BlockSize int     `json:"block_size"`
	Tokens    int     `json:"tokens"`
	UseMean   float64 `json:"use_mean"` // of all blocks, over step time
	UseMax    float64 `json:"use_max"`
}

// Requests counts requests that arrived after the warm-up.
type Requests struct {
	Arrived   int64 `json:"arrived"`
	Completed int64 `json:"completed"`
	Refused   int64 `json:"refused"`
	Cancelled int64 `json:"cancelled"`
	Warmup    int64 `json:"warmup"` // arrived before its end, counted nowhere else
}

// Latencies are distributions in milliseconds.
type Latencies struct {
	TTFT  Latency `json:"ttft"`
	ITL   Latency `json:"itl"`
	TPOT  Latency `json:"tpot"`
	E2E   Latency `json:"e2e"`
	Queue Latency `json:"queue"`
}

// A Latency is one distribution in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Throughput is per second: offered from the first arrival to the last, the others of completed requests from
// the first arrival to the last token.
type Throughput struct {
	Offered   float64 `json:"offered_rps"`
	Completed float64 `json:"completed_rps"`
	Input     float64 `json:"input_tokens_per_s"`
	Output    float64 `json:"output_tokens_per_s"`
}

// Steps describes the steps of all replicas.
type Steps struct {
	Count      int64   `json:"count"`
	MeanMS     float64 `json:"mean_ms"`
	MeanBatch  float64 `json:"mean_batch"` // sequences
	MaxBatch   int     `json:"max_batch"`
	MeanTokens float64 `json:"mean_tokens"`
}

// Preemptions counts, in Total, those in counted steps; the others speak of counted requests.
type Preemptions struct {
	Total         int64   `json:"total"`
	Requests      int64   `json:"requests"`
	MaxPerRequest int     `json:"max_per_request"`
	LongestFreeze float64 `json:"longest_freeze_ms"`
}

// Bounds says what steps spent their time on: the share bound by each.
type Bounds struct {
	Time  BoundShares `json:"time"`  // of step time
	Steps BoundShares `json:"steps"` // of steps
}

// BoundShares add up to 1.
type BoundShares struct {
	Compute  float64 `json:"compute"`
	Weights  float64 `json:"weights"`
	KV       float64 `json:"kv"`
	Overhead float64 `json:"overhead"`
}

// Blocked is the share of step time during which something kept requests waiting, or short of tokens.
type Blocked struct {
	Slots  float64 `json:"slots"`
	KV     float64 `json:"kv"`
	Budget float64 `json:"budget"`
}

// A Prefix is what the prefix caches were asked for and had, in tokens of the requests admitted in
// counted steps, each at its first admission.
type Prefix struct {
	Queries int64   `json:"query_tokens"`
	Hits    int64   `json:"hit_tokens"`
	HitRate float64 `json:"hit_rate"`
}

// A Level is a number of sequences on a replica, over step time.
type Level struct {
	Mean float64 `json:"mean"`
	Max  int     `json:"max"`
}

// Summary says what the run came to so far.
func (r *Recorder) Summary(id Identity) Summary {
	s := Summary{
		Version: id.Version, Seed: id.Seed, Workload: id.Workload, Assumptions: id.Assumptions,
		KV: KV{
			Blocks: id.Blocks, BlockSize: id.BlockSize, Tokens: id.Blocks * id.BlockSize,
			UseMean: quotient(r.used.int(), r.blocks.int()),
			UseMax:  quotient(integer(r.maxUsed), integer(r.ofBlocks)),
		},
		Requests: Requests{r.arrived, r.completed, r.refused, r.cancelled, r.warmup},
		Latency:  Latencies{latency(&r.TTFT), latency(&r.ITL), latency(&r.TPOT), latency(&r.E2E), latency(&r.Queue)},
		Steps: Steps{
			Count:      r.steps,
			MeanMS:     scaled(integer(r.busy), integer(r.steps*millionth), 1),
			MeanBatch:  quotient(integer(r.batches), integer(r.steps)),
			MaxBatch:   r.maxBatch,
			MeanTokens: quotient(integer(r.tokens), integer(r.steps)),
		},
		Preemptions: Preemptions{r.preemptions, r.preempted, r.mostPreempts, ms(r.freeze)},
		VirtualS:    seconds(r.end),
		Percentiles: "exact",
		PrefixCache: Prefix{r.cacheQueries, r.cacheHits, quotient(integer(r.cacheHits), integer(r.cacheQueries))},
		Queue:       Level{r.mean(r.waiting), r.maxWaiting},
		Running:     Level{r.mean(r.running), r.maxRunning},
		WarmupS:     seconds(r.From),
	}
	s.Scenario.Name, s.Scenario.Digest = id.Scenario, id.Digest
	s.Engine.Policy, s.Engine.Models = id.Policy, id.Models
	s.Engine.Defaults = id.Defaults
	s.Pools = r.inPools(id.Pools)
	for _, d := range []*Dist{&r.TTFT, &r.ITL, &r.TPOT, &r.E2E, &r.Queue} {
		if !d.Exact() {
			s.Percentiles = "within 0.1%"
		}
	}
	if r.arrived > 1 {
		s.Throughput.Offered = perSecond(r.arrived-1, r.lastArrival-r.firstArrival)
	}
	if r.completed > 0 {
		window := r.lastToken - r.firstArrival
		s.Throughput.Completed = perSecond(r.completed, window)
		s.Throughput.Input = perSecond(r.inputTokens, window)
		s.Throughput.Output = perSecond(r.outputTokens, window)
	}
	s.Bound.Time = boundShares(func(b cost.Bound) float64 { return r.ofTime(r.bound[b].time) })
	s.Bound.Steps = boundShares(func(b cost.Bound) float64 {
		return quotient(integer(r.bound[b].steps), integer(r.steps))
	})
	s.Blocked = Blocked{
		Slots:  r.ofTime(r.blocked[policy.BySlots].time),
		KV:     r.ofTime(r.blocked[policy.ByKV].time),
		Budget: r.ofTime(r.blocked[policy.ByBudget].time),
	}
	return s
}

func (r *Recorder) ofTime(t time.Duration) float64 { return quotient(integer(t), integer(r.busy)) }

func (r *Recorder) mean(level area) float64 { return quotient(level.int(), integer(r.busy)) }

func boundShares(of func(cost.Bound) float64) BoundShares {
	return BoundShares{of(cost.Compute), of(cost.Weights), of(cost.KVReads), of(cost.Overhead)}
}

func latency(d *Dist) Latency {
	q := d.Quantiles(0.50, 0.90, 0.95, 0.99)
	return Latency{
		Count: d.Count(), Mean: nearestMS(d.Mean()),
		P50: nearestMS(q[0]), P90: nearestMS(q[1]), P95: nearestMS(q[2]), P99: nearestMS(q[3]),
		Max: ms(d.Max()),
	}
}
