package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"llmsim/sim/cost"
	"llmsim/sim/kv"
	"llmsim/sim/policy"
	"llmsim/sim/vllmv1"
)

// A case is a configuration with its requests, put into both the plain scheduler, which holds
// every token and every block, and the fast policy, which holds sums.
type twinCase struct {
	config   vllmv1.Config
	rules    vllmv1.Rules
	days     int64 // of the calendar
	requests []twinRequest
}

type twinRequest struct {
	iteration int // at which it arrives
	abort     int // at which it is aborted; 0: never
	prompt    int
	output    int
	priority  int
	arrived   int64
	piece     int // tokens
	pieces    []uint64
}

func (c twinCase) String() string {
	return fmt.Sprintf("%+v, %+v, %d requests", c.config, c.rules, len(c.requests))
}

func randomTwinCase(r *rand.Rand) twinCase {
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	block := pick(1, 2, 4, 4, 16)
	longest := pick(10, 40, 40, 150)
	c := twinCase{
		config: vllmv1.Config{
			MaxNumSeqs:                pick(1, 2, 3, 8, 8, 40),
			MaxNumBatchedTokens:       pick(1, 2, 5, 16, 64, 64, 512),
			LongPrefillTokenThreshold: pick(0, 0, 0, 1, 7, 32),
			EnableChunkedPrefill:      r.IntN(5) > 0,
			EnablePrefixCaching:       r.IntN(3) > 0,
			Policy:                    vllmv1.FCFS,
			SchedulerReserveFullISL:   r.IntN(3) > 0,
			Watermark:                 []float64{0, 0, 0, 0.05, 0.2}[r.IntN(5)],
			BlockSize:                 block,
			AsyncScheduling:           r.IntN(2) == 0,
		},
		days: int64(pick(1, 4, 16, 4096)),
	}
	pieceSizes := [2]int{pick(block, 2*block, 3*block, 5, 7), pick(block, 3, 11)}
	if r.IntN(3) == 0 {
		c.config.Policy = vllmv1.Priority
	}
	profile := vllmv1.Profiles()[pick(0, 0, 1, 2)]
	c.rules = profile.Rules
	if !c.rules.ChunkedOffBreaks {
		c.config.EnableChunkedPrefill = true // what comes of it otherwise is not modelled
	}
	c.config.SchedulerReserveFullISL = c.config.SchedulerReserveFullISL && c.rules.ReserveGate
	if !c.rules.Watermark {
		c.config.Watermark = 0
	}
	if !c.config.EnableChunkedPrefill {
		c.config.MaxNumBatchedTokens = max(c.config.MaxNumBatchedTokens, 2*longest+2)
	}
	c.config.NumGPUBlocks = 1 + (2*longest+block)/block*pick(1, 1, 1, 2, 3, 10)
	c.config.MaxModelLen = 2*longest + 1
	iteration := 0
	for range 1 + r.IntN(30) {
		iteration += r.IntN(pick(1, 3, 12))
		q := twinRequest{
			iteration: iteration,
			prompt:    1 + r.IntN(longest), output: 1 + r.IntN(pick(1, 6, longest)),
			priority: r.IntN(3), arrived: int64(iteration / 2),
		}
		if r.IntN(6) == 0 {
			q.abort = iteration + 1 + r.IntN(20)
		}
		if r.IntN(3) > 0 {
			q.piece = pieceSizes[r.IntN(5)/4]
			for i := 0; i*q.piece < q.prompt && r.IntN(8) > 0; i++ {
				q.pieces = append(q.pieces, uint64(r.IntN(2)))
			}
		}
		c.requests = append(c.requests, q)
	}
	return c
}

// tokens spells the prompt out: what the pieces name is the same for everyone with the same
// pieces so far, the rest is the request's own.
func (c twinCase) tokens(id int) []vllmv1.Token {
	q := c.requests[id]
	var all []vllmv1.Token
	path := vllmv1.Token(1) // names a sequence of pieces of one size
	for _, piece := range q.pieces {
		path = (path*2 + vllmv1.Token(piece)) % 1_000_000_007
		for k := range q.piece {
			all = append(all, (path*100+vllmv1.Token(q.piece))*1000+vllmv1.Token(k))
		}
	}
	for len(all) < q.prompt {
		all = append(all, -vllmv1.Token(id*1000+len(all)+1))
	}
	return all[:q.prompt]
}

type ownOutputs struct{}

func (ownOutputs) Sample(id string, k int) vllmv1.Token {
	n, _ := strconv.Atoi(id)
	return -vllmv1.Token(1e9 + n*1000 + k)
}

func (c twinCase) fast() policy.Policy {
	pool := kv.NewPool(c.config.NumGPUBlocks-1, c.config.BlockSize)
	if c.config.EnablePrefixCaching {
		pool = kv.NewCachingPool(c.config.NumGPUBlocks-1, c.config.BlockSize, c.rules.UnhashedFirst)
	}
	return policy.NewVLLMV1(pool, policy.Limits{
		MaxNumSeqs: c.config.MaxNumSeqs, MaxNumBatchedTokens: c.config.MaxNumBatchedTokens,
		LongPrefillTokenThreshold: c.config.LongPrefillTokenThreshold,
	}, policy.VLLMV1Options{
		NumGPUBlocks: c.config.NumGPUBlocks, Watermark: c.config.Watermark,
		EnableChunkedPrefill: c.config.EnableChunkedPrefill, SchedulerReserveFullISL: c.config.SchedulerReserveFullISL,
		Priority: c.config.Policy == vllmv1.Priority, AsyncScheduling: c.config.AsyncScheduling,
		DropStale: !c.rules.StaleDelivered, CursorSlips: !c.rules.CursorFollows,
	})
}

// Every decision of the fast policy is the plain scheduler's: what is computed, who is admitted,
// preempted, finished, in which order, and what is free afterwards.
func TestVLLMV1AgainstPlainScheduler(t *testing.T) {
	defer func(days int64) { *policy.CalendarDays = days }(*policy.CalendarDays)
	n := 3000
	if testing.Short() {
		n = 300
	}
	var saw struct{ steps, preempted, hits, coasted, aborted, empty int }
	for seed := range uint64(n) {
		c := randomTwinCase(rand.New(rand.NewPCG(seed, 9)))
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, %v:\n%s", seed, c, fmt.Sprintf(format, args...))
		}
		plain, err := vllmv1.New(c.config, c.rules)
		if err != nil {
			fail("%v", err)
		}
		*policy.CalendarDays = c.days
		fast := c.fast()
		handles, ids := map[int]policy.Handle{}, map[policy.Handle]int{}
		names := func(hs []policy.Handle) (all []string) {
			for _, h := range hs {
				all = append(all, name(ids[h]))
			}
			return all
		}
		type flying struct {
			decision *vllmv1.Decision
			fast     bool
		}
		var flight []flying
		var d policy.Decision
		var o policy.Outcome
		endless := false
		for iteration := 0; ; iteration++ {
			if iteration > 20_000 {
				if c.config.Policy == vllmv1.FCFS {
					fail("no end")
				}
				// Two requests of one priority and arrival can take each other's blocks for ever: by
				// the rules, and so by both.
				endless = true
				break
			}
			waits := false
			for id, q := range c.requests {
				waits = waits || q.iteration > iteration
				if q.iteration == iteration {
					if err := plain.Add(vllmv1.Request{ID: name(id), Prompt: c.tokens(id), MaxTokens: q.output, Priority: q.priority, ArrivalTime: float64(q.arrived)}); err != nil {
						fail("%v", err)
					}
					handles[id] = fast.Add(policy.Request{Prompt: q.prompt, Output: q.output, Priority: q.priority, Arrived: q.arrived, Prefix: q.pieces, PrefixTokens: q.piece})
					ids[handles[id]] = id
				}
				if h, ok := handles[id]; ok && q.abort == iteration {
					if !plain.Abort(name(id)) {
						fail("plain does not know %d", id)
					}
					fast.Abort(h)
					delete(handles, id)
					saw.aborted++
				}
			}
			if !waits && len(handles) == 0 && !slices.ContainsFunc(flight, func(f flying) bool { return f.fast }) {
				break
			}
			quiet, isQuiet := fast.Quiet()
			want := plain.Schedule()
			ok := fast.Schedule(&d)
			shape, started := shapeOf(want)
			what := fmt.Sprintf("iteration %d: plain %+v\nfast %v %+v", iteration, *want, ok, d)
			load := fast.Load()
			if ok && d.Shape != shape || !ok && shape != (cost.Shape{}) {
				fail("%s\nshape %+v, want %+v", what, d.Shape, shape)
			}
			if ok && !slices.Equal(names(d.Started), started) {
				fail("%s\nstarted %v, want %v", what, names(d.Started), started)
			}
			if !slices.Equal(names(d.Preempted), want.Preempted) {
				fail("%s\npreempted %v, want %v", what, names(d.Preempted), want.Preempted)
			}
			if load.Running != len(want.Running) || load.Waiting != len(want.Waiting)+len(want.Skipped) || load.Free != want.Free ||
				load.Free+load.Used != c.config.NumGPUBlocks-1 {
				fail("%s\nload %+v, want %d running, %d waiting, %d free", what, load, len(want.Running), len(want.Waiting)+len(want.Skipped), want.Free)
			}
			if isQuiet {
				saw.coasted++
				if !ok || quiet != d.Shape || len(d.Started)+len(d.Preempted)+len(d.Stalled) > 0 {
					fail("%s\nwas foretold to be quiet with %+v", what, quiet)
				}
			}
			stats := plain.PrefixStats()
			if c.config.EnablePrefixCaching && c.rules.StatsAtAdmission && (load.CacheQueries != int64(stats.Queries) || load.CacheHits != int64(stats.Hits)) {
				fail("%s\nhits %d of %d, want %d of %d", what, load.CacheHits, load.CacheQueries, stats.Hits, stats.Queries)
			}
			saw.steps++
			saw.preempted += len(want.Preempted)
			if len(want.Scheduled) == 0 {
				saw.empty++
			}
			flight = append(flight, flying{want, ok})
			if c.config.AsyncScheduling && len(want.Scheduled) > 0 && len(flight) < 2 {
				continue
			}
			first := flight[0]
			flight = flight[1:]
			out := plain.Update(first.decision, ownOutputs{})
			if !first.fast {
				continue
			}
			fast.Commit(&o)
			what = fmt.Sprintf("iteration %d: plain %+v\nfast %+v", iteration, *out, o)
			if got := o.Steady + len(o.Firsts) + len(o.Resumed); got != len(out.Outputs) {
				fail("%s\n%d outputs, want %d", what, got, len(out.Outputs))
			}
			var finished []string
			for _, f := range out.Finished {
				finished = append(finished, f.ID)
			}
			if !slices.Equal(names(o.Finished), finished) {
				fail("%s\nfinished %v, want %v", what, names(o.Finished), finished)
			}
			if load := fast.Load(); load.Free != out.Free || load.Running != len(out.Running) {
				fail("%s\nload %+v, want %d free", what, load, out.Free)
			}
			for _, h := range o.Finished {
				delete(handles, ids[h])
			}
		}
		if endless {
			continue
		}
		saw.hits += plain.PrefixStats().Hits
		if load := fast.Load(); load.Used != 0 {
			fail("%d blocks used at the end", load.Used)
		}
	}
	t.Logf("%+v", saw)
	if min(saw.preempted, saw.hits, saw.coasted, saw.aborted, saw.empty) < n/20 {
		t.Errorf("too quiet: %+v", saw)
	}
}

// shapeOf sums a plain decision up.
func shapeOf(d *vllmv1.Decision) (s cost.Shape, started []string) {
	for _, e := range d.Scheduled {
		after := int64(e.NumComputedTokens + e.NumTokens)
		s.Sequences++
		s.Tokens += e.NumTokens
		s.Context += after
		if e.Samples {
			s.Sampled++
		}
		if e.NumTokens == 1 && e.NumComputedTokens > 0 && e.Samples {
			s.Decodes++
			s.DecodeContext += after
		} else {
			for k := e.NumComputedTokens + 1; k <= e.NumComputedTokens+e.NumTokens; k++ {
				s.PrefillPairs += int64(k)
			}
		}
		if e.Origin == vllmv1.FromNew {
			started = append(started, e.ID)
		}
	}
	return s, started
}

// name pads ids, for vLLM breaks ties between them as strings.
func name(id int) string { return fmt.Sprintf("%04d", id) }
