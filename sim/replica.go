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
	prompt        int32
	output        int32
	preemptions   int32
	replica       int32 // unrouted before its arrival
	handle        policy.Handle
	generation    uint32 // of the slot: tells its requests apart
	preempted     bool   // the interruption is a preemption
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

// A replica is one engine: a policy, and the step under way.
type replica struct {
	index    int32
	policy   policy.Policy
	busy     bool // a step is under way
	woken    bool // stands among the idle ones that may start
	count    int64
	step     Step    // under way
	losers   []int64 // preempted at its start
	decision policy.Decision
	outcome  policy.Outcome
	slots    []int32 // of the policy's handles
}

// start decides a step and puts its end down.
func (c *Cluster) start(r *replica) {
	r.woken = false
	d := &r.decision
	if !r.policy.Schedule(d) {
		return
	}
	for _, h := range d.Started {
		c.lives[r.slots[h]].firstSchedule = c.now
	}
	// A sequence that decoded emitted its last token when this step could start.
	for _, h := range d.Stalled {
		if l := &c.lives[r.slots[h]]; l.interrupted == unset {
			l.interrupted, l.preempted = c.now, false
		}
	}
	r.losers = r.losers[:0]
	for _, h := range d.Preempted {
		l := &c.lives[r.slots[h]]
		l.preemptions++
		if l.firstToken != unset {
			if l.interrupted == unset {
				l.interrupted = c.now
			}
			l.preempted = true
		}
		r.losers = append(r.losers, l.id)
	}
	time, bound := c.config.Cost.StepTime(d.Shape)
	c.describe(&r.step, r, d.Shape, time, bound)
	r.busy = true
	c.agenda.At(r.step.End, stepEnd, event{kind: stepEnd, who: r.index})
}

// describe fills in a step of a shape that starts now and takes a time.
func (c *Cluster) describe(s *Step, r *replica, shape cost.Shape, time time.Duration, bound cost.Bound) {
	load := r.policy.Load()
	s.Replica, s.Index = int(r.index), r.count
	s.Start, s.End = c.now, c.now+time
	s.Shape, s.Bound = shape, bound
	s.Running, s.Waiting = load.Running, load.Waiting
	s.FreeBlocks, s.UsedBlocks = load.Free, load.Used
	s.Blocked = load.Blocked
	r.count++
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

// end applies the step under way and records it.
func (c *Cluster) end(r *replica) {
	r.busy = false
	o := &r.outcome
	r.policy.Commit(o)
	s := c.newStep()
	*s = r.step
	s.Steady = o.Steady

	from := len(c.firsts)
	for _, h := range o.Firsts {
		l := &c.lives[r.slots[h]]
		l.firstToken = c.now
		c.firsts = append(c.firsts, l.id)
	}
	s.Firsts = c.firsts[from:len(c.firsts):len(c.firsts)]

	from = len(c.gaps)
	for _, h := range o.Resumed {
		l := &c.lives[r.slots[h]]
		c.gaps = append(c.gaps, Gap{ID: l.id, Time: c.now - l.interrupted, Preempted: l.preempted})
		l.interrupted = unset
	}
	s.Gaps = c.gaps[from:len(c.gaps):len(c.gaps)]

	from = len(c.losers)
	c.losers = append(c.losers, r.losers...)
	s.Preempted = c.losers[from:len(c.losers):len(c.losers)]

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
	c.wake(r)
}

// coast runs steps of the only idle replica in which nothing changes but contexts, as long as
// they end before horizon and before anything else is due; so the clock goes along. It reports
// whether it stopped because many steps have gathered.
func (c *Cluster) coast(r *replica, horizon time.Duration) bool {
	if next, ok := c.agenda.Next(); ok {
		horizon = min(horizon, next)
	}
	for len(c.steps) < fullSteps {
		shape, quiet := r.policy.Quiet()
		if !quiet {
			return false
		}
		time, bound := c.config.Cost.StepTime(shape)
		end := c.now + time
		if end >= horizon {
			return false
		}
		r.policy.Coast()
		s := c.newStep()
		c.describe(s, r, shape, time, bound)
		s.Steady = shape.Decodes
		s.Gaps, s.Firsts, s.Preempted, s.Finished = nil, nil, nil, nil
		c.now = end
	}
	return true
}
