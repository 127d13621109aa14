package report

import (
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// A Recorder takes in what a run tells and keeps what a summary needs, whose size does not depend on the number
// of requests but for the records of its distributions.
//
// Requests that arrived before From are left out of every count and distribution of requests; steps that
// started before From are left out of everything said of steps, gaps between tokens among it.
type Recorder struct {
	From time.Duration
	// PoolOf tells of each replica in which of several pools it is, each then with figures of its own;
	// nil: there is one.
	PoolOf []int

	// TTFT, E2E and Queue count from arrival; TPOT is (last - first) / (outputs - 1) and needs two outputs.
	// ITL pools the gaps between successive tokens of all requests. To be read, not added to.
	TTFT, ITL, TPOT, E2E, Queue Dist

	warmup                                 int64 // requests that arrived before From
	arrived, completed, refused, cancelled int64
	inputTokens, outputTokens              int64 // of completed requests
	firstArrival, lastArrival, lastToken   time.Duration
	end                                    time.Duration // of the last step, counted or not

	preempted    int64 // requests
	mostPreempts int
	preemptions  int64 // in counted steps
	freeze       time.Duration

	steps    int64
	busy     time.Duration // the sum of the steps' times; two replicas are busy twice as long as one
	batches  int64         // the sum of Shape.Sequences
	maxBatch int
	tokens   int64
	bound    [cost.Bounds]share
	blocked  [policy.Reasons]share

	cacheQueries, cacheHits int64 // tokens

	used, blocks           area // KV blocks in use, and in all
	maxUsed, ofBlocks      int  // the fullest cache seen
	running, waiting       area
	maxRunning, maxWaiting int

	pools []Recorder // with PoolOf, when there was a step; they are not told of arrivals
}

type share struct {
	steps int64
	time  time.Duration
}

// Arrived tells of a request that was submitted, whatever becomes of it.
func (r *Recorder) Arrived(q workload.Request) {
	if q.Arrival < r.From {
		r.warmup++
		return
	}
	if r.arrived == 0 || q.Arrival < r.firstArrival {
		r.firstArrival = q.Arrival
	}
	r.lastArrival = max(r.lastArrival, q.Arrival)
	r.arrived++
}

// Refused tells of a request that arrived and can never be served.
func (r *Recorder) Refused(q workload.Request) {
	if q.Arrival >= r.From {
		r.refused++
	}
}

// Cancelled tells of a request that arrived and was withdrawn before its last token.
func (r *Recorder) Cancelled(q workload.Request) {
	if q.Arrival >= r.From {
		r.cancelled++
	}
}

// Step tells of a step that ended, and of the requests that ended with it.
func (r *Recorder) Step(s *sim.Step) {
	if r.PoolOf != nil {
		r.inPool(s)
	}
	r.end = max(r.end, s.End)
	if s.Start >= r.From {
		r.step(s)
	}
	for i := range s.Finished {
		if f := &s.Finished[i]; f.Arrival >= r.From {
			r.finished(f)
		}
	}
}

// inPool tells the step's pool of it.
func (r *Recorder) inPool(s *sim.Step) {
	for at := r.PoolOf[s.Replica]; len(r.pools) <= at; {
		r.pools = append(r.pools, Recorder{From: r.From})
	}
	r.pools[r.PoolOf[s.Replica]].Step(s)
}

func (r *Recorder) step(s *sim.Step) {
	took := s.End - s.Start
	r.steps++
	r.busy += took
	r.batches += int64(s.Shape.Sequences)
	r.maxBatch = max(r.maxBatch, s.Shape.Sequences)
	r.tokens += int64(s.Shape.Tokens)
	r.cacheQueries += s.CacheQueries
	r.cacheHits += s.CacheHits
	r.bound[s.Bound].steps++
	r.bound[s.Bound].time += took
	r.blocked[s.Blocked].steps++
	r.blocked[s.Blocked].time += took

	total := s.UsedBlocks + s.FreeBlocks
	r.used.add(took, s.UsedBlocks)
	r.blocks.add(took, total)
	if int64(s.UsedBlocks)*int64(r.ofBlocks) > int64(r.maxUsed)*int64(total) || r.ofBlocks == 0 {
		r.maxUsed, r.ofBlocks = s.UsedBlocks, total
	}
	r.running.add(took, s.Running)
	r.waiting.add(took, s.Waiting)
	r.maxRunning = max(r.maxRunning, s.Running)
	r.maxWaiting = max(r.maxWaiting, s.Waiting)

	if s.Steady > 0 {
		r.ITL.AddN(took, s.Steady)
	}
	for _, g := range s.Gaps {
		r.ITL.Add(g.Time)
		if g.Preempted {
			r.freeze = max(r.freeze, g.Time)
		}
	}
	r.preemptions += int64(len(s.Preempted))
}

func (r *Recorder) finished(f *sim.Finished) {
	r.completed++
	r.inputTokens += int64(f.Prompt)
	r.outputTokens += int64(f.Output)
	r.lastToken = max(r.lastToken, f.LastToken)
	r.TTFT.Add(f.FirstToken - f.Arrival)
	r.E2E.Add(f.LastToken - f.Arrival)
	r.Queue.Add(f.FirstSchedule - f.Arrival)
	if n := time.Duration(f.Output - 1); n > 0 {
		r.TPOT.Add((f.LastToken - f.FirstToken + n/2) / n) // the nearest nanosecond, half up
	}
	if f.Preemptions > 0 {
		r.preempted++
		r.mostPreempts = max(r.mostPreempts, f.Preemptions)
	}
}
