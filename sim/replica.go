package sim

import (
	"time"

	"llmsim/sim/cost"
	"llmsim/sim/policy"
)

// A life is a request from its submission to its end.
type life struct {
	id            int64
	arrival       time.Duration
	firstSchedule time.Duration
	firstToken    time.Duration // unset before
	interrupted   time.Duration // instant of the last token before an interruption that lasts; else unset
	more          *more         // until it is routed
	prompt        int32
	output        int32
	preemptions   int32
	replica       int32 // unrouted before its arrival
	handle        policy.Handle
	generation    uint32 // of the slot: tells its requests apart
	preempted     bool   // the interruption is a preemption
	set           int32  // of pools, one of whose replicas serves it
}

// more is what few requests have.
type more struct {
	priority     int
	prefix       []uint64
	prefixTokens int
}

const (
	unset    time.Duration = -1
	unrouted int32         = -1
)

func (c *Cluster) slot() int32 {
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s
	}
	c.lives = append(c.lives, life{})
	return int32(len(c.lives) - 1)
}

func (c *Cluster) release(slot int32) {
	c.lives[slot] = life{generation: c.lives[slot].generation + 1}
	c.free = append(c.free, slot)
}

// A replica is one engine: a policy, and the step under way. One that decides ahead holds the
// step after that, too.
type replica struct {
	index    int32
	policy   policy.Policy
	cost     cost.Model
	busy     bool // a step is under way
	awaited  bool // its end stands in the agenda
	woken    bool // stands among those that may decide
	count    int64
	under    decided // the step under way
	after    decided
	ahead    bool // after is decided
	decision policy.Decision
	outcome  policy.Outcome
	slots    []int32 // of the policy's handles
	losers   []int64 // preempted since the last decided step

	decidesAhead bool // a step before the one under way has ended

	queries, hits int64 // of the prefix cache, in steps decided so far
}

// A decided step waits for its start, or for its end.
type decided struct {
	step   Step
	took   time.Duration
	losers []int64 // preempted by it
}

// start decides what a replica may decide now: a step that starts, and with Ahead the one after
// it. A step that has started is awaited.
func (c *Cluster) start(r *replica) {
	r.woken = false
	if !r.busy {
		if !c.decide(r, &r.under) {
			return
		}
		c.begin(r)
	}
	if r.decidesAhead && !r.ahead {
		r.ahead = c.decide(r, &r.after)
	}
	if !r.awaited {
		r.awaited = true
		c.agenda.At(r.under.step.End, stepEnd, event{kind: stepEnd, who: r.index})
	}
}

// begin starts the decided step. When it was decided ahead, sequences may have left since.
func (c *Cluster) begin(r *replica) {
	r.busy, r.awaited = true, false
	s := &r.under.step
	s.Start, s.End = c.now, c.now+r.under.took
	if r.decidesAhead {
		s.count(r.policy.Load())
	}
}

// decide asks the policy for a step; false when there is none.
func (c *Cluster) decide(r *replica, to *decided) bool {
	d := &r.decision
	computes := r.policy.Schedule(d)
	for _, h := range d.Started {
		c.lives[r.slots[h]].firstSchedule = c.now
	}
	// Who decoded emitted its last token at this instant, unless it has one under way.
	for _, h := range d.Stalled {
		if l := &c.lives[r.slots[h]]; l.interrupted == unset {
			l.interrupted = c.now
		}
	}
	for _, h := range d.Preempted {
		l := &c.lives[r.slots[h]]
		l.preemptions++
		l.preempted = true
		if l.firstToken != unset && l.interrupted == unset {
			l.interrupted = c.now
		}
		r.losers = append(r.losers, l.id)
	}
	if !computes {
		return false // whom this preempted, the next step tells
	}
	to.losers, r.losers = r.losers, to.losers[:0]
	time, bound := r.cost.StepTime(d.Shape)
	if d.Shape.Tokens == 0 {
		time = 1 // nothing is computed, and the next decision differs
	}
	c.describe(to, r, d.Shape, time, bound)
	return true
}

// describe fills in a decided step of a shape, that takes a time.
func (c *Cluster) describe(to *decided, r *replica, shape cost.Shape, time time.Duration, bound cost.Bound) {
	load := r.policy.Load()
	to.took = time
	s := &to.step
	s.Replica, s.Index = int(r.index), r.count
	s.Shape, s.Bound = shape, bound
	s.count(load)
	s.Blocked = load.Blocked
	s.CacheQueries, s.CacheHits = load.CacheQueries-r.queries, load.CacheHits-r.hits
	r.queries, r.hits = load.CacheQueries, load.CacheHits
	r.count++
}

// count takes over who runs and waits, and what is free.
func (s *Step) count(l policy.Load) {
	s.Running, s.Waiting = l.Running, l.Waiting
	s.FreeBlocks, s.UsedBlocks = l.Free, l.Used
}

// newStep makes room for a step.
func (c *Cluster) newStep() *Step {
	if len(c.steps) == cap(c.steps) {
		c.steps = append(c.steps, Step{})
	} else {
		c.steps = c.steps[:len(c.steps)+1]
	}
	return &c.steps[len(c.steps)-1]
}

// end applies the step under way and records it; one decided ahead starts.
func (c *Cluster) end(r *replica) {
	o := &r.outcome
	r.policy.Commit(o)
	s := c.newStep()
	*s = r.under.step
	s.Steady = o.Steady

	from := len(c.firsts)
	for _, h := range o.Firsts {
		l := &c.lives[r.slots[h]]
		l.firstToken, l.preempted = c.now, false
		c.firsts = append(c.firsts, l.id)
	}
	s.Firsts = c.firsts[from:len(c.firsts):len(c.firsts)]

	from = len(c.gaps)
	for _, h := range o.Resumed {
		l := &c.lives[r.slots[h]]
		c.gaps = append(c.gaps, Gap{ID: l.id, Time: c.now - l.interrupted, Preempted: l.preempted})
		l.interrupted, l.preempted = unset, false
	}
	s.Gaps = c.gaps[from:len(c.gaps):len(c.gaps)]

	from = len(c.losers)
	c.losers = append(c.losers, r.under.losers...)
	s.Preempted = c.losers[from:len(c.losers):len(c.losers)]

	for _, h := range o.Stalled {
		c.lives[r.slots[h]].interrupted = c.now
	}
	for _, h := range o.Preempted {
		l := &c.lives[r.slots[h]]
		l.interrupted, l.preempted = c.now, true
	}

	from = len(c.finished)
	for _, h := range o.Finished {
		slot := r.slots[h]
		l := &c.lives[slot]
		c.finished = append(c.finished, Finished{
			ID: l.id, Replica: int(r.index), Prompt: int(l.prompt), Output: int(l.output),
			Arrival: l.arrival, FirstSchedule: l.firstSchedule, FirstToken: l.firstToken, LastToken: c.now,
			Preemptions: int(l.preemptions),
		})
		c.counts.Completed++
		c.unload(l)
		c.release(slot)
	}
	s.Finished = c.finished[from:len(c.finished):len(c.finished)]
	r.busy = false
	if r.ahead {
		r.under, r.after = r.after, r.under
		r.ahead = false
		c.begin(r)
	}
	c.wake(r)
}

// coast runs steps of the only replica that may decide, in which nothing changes but contexts, as
// long as they end before horizon and before anything else is due; so the clock goes along. It
// reports whether it stopped because many steps have gathered.
func (c *Cluster) coast(r *replica, horizon time.Duration) bool {
	if len(r.losers) > 0 || r.busy && len(r.under.losers) > 0 {
		return false // there is more to tell of the next step
	}
	horizon = min(horizon, Clock)
	if next, ok := c.next(); ok {
		horizon = min(horizon, next)
	}
	for len(c.steps) < fullSteps {
		shape, quiet := r.policy.Quiet()
		if !quiet {
			return false
		}
		time, bound := r.cost.StepTime(shape)
		if r.busy {
			// The step under way ends, and the quiet one is decided while it runs.
			if r.under.step.End >= horizon {
				return false
			}
			steady := r.policy.Coast()
			c.describe(&r.after, r, shape, time, bound)
			c.coasted(&r.under.step, steady)
			r.under, r.after = r.after, r.under
			r.under.losers = r.under.losers[:0]
			c.begin(r)
			continue
		}
		if c.now+time >= horizon {
			return false
		}
		steady := r.policy.Coast()
		c.describe(&r.under, r, shape, time, bound)
		c.begin(r)
		r.busy = false
		c.coasted(&r.under.step, steady)
	}
	return true
}

// coasted records a step that emitted nothing but steady tokens, and moves to its end.
func (c *Cluster) coasted(step *Step, steady int) {
	s := c.newStep()
	*s = *step
	s.Steady = steady
	s.Gaps, s.Firsts, s.Preempted, s.Finished = nil, nil, nil, nil
	c.now = s.End
}
