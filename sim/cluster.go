// Package sim predicts what a group of replicas would do with the requests it is given, and when.
//
// It knows virtual time only. It knows nothing of clocks, of files, of chance other than a
// router's own, or of who asks: it is told of requests, moved forward, and returns what happened.
package sim

import (
	"fmt"
	"slices"
	"time"

	"llmsim/sim/agenda"
	"llmsim/sim/cost"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// Ranks of what is due at one instant. A request that arrives when a step ends is routed after
// that end: so an answer that triggers the next request and a recording of both give the same
// run. Whoever gives up at that instant still gets what the step emitted. Arrivals and cancels
// are applied when the clock leaves their instant, in this order whoever was submitted first.
const (
	stepEnd agenda.Rank = iota
	arrival
	cancel
)

// Config describes a cluster: of equal replicas, or of pools of them.
type Config struct {
	Replicas    int
	Policy      func() policy.Policy // makes the scheduler of one replica
	Cost        cost.Model
	Router      Router
	MaxModelLen int  // tokens of prompt and output together
	KVTokens    int  // tokens that the cache of one replica holds
	Ahead       bool // replicas decide a step before the one under way has ended, as their policies do
	// Delay is how long a request is on its way to the router after its arrival: it counts as queued.
	Delay time.Duration

	// Pools, if there are any, take the place of all the above.
	Pools []Pool
	// Routers makes the router of a set of pools, of which bit i stands for Pools[i]. A request is
	// routed among the replicas of all pools that accept and hold it, by the router of just these.
	Routers func(set uint64) Router
}

// A Ticket names a submitted request, to cancel it.
type Ticket struct {
	slot       int32
	generation uint32
}

// A Refusal says why a request can never be served.
type Refusal struct {
	Request workload.Request
	What    string // is too small for it
	Limit   int    // tokens that What holds
	// Unaccepted: Limit is the bound of What, a pool, that is nearest to the prompt's length.
	Unaccepted bool
}

func (r *Refusal) Error() string {
	if r.Unaccepted {
		bound := "up to"
		if r.Request.Prompt < r.Limit {
			bound = "from"
		}
		return fmt.Sprintf("request %d: no pool accepts a prompt of %d tokens: %s does %s %d",
			r.Request.ID, r.Request.Prompt, r.What, bound, r.Limit)
	}
	return fmt.Sprintf("request %d: %d prompt and %d output tokens do not fit %s of %d tokens",
		r.Request.ID, r.Request.Prompt, r.Request.Output, r.What, r.Limit)
}

type event struct {
	kind agenda.Rank
	who  int32 // a replica for the end of a step, else a slot
	gen  uint32
}

// A Cluster is a router with its replicas. Several runs of one configuration with the same
// submissions at the same instants are equal, however the caller slices time.
type Cluster struct {
	pools    []Pool
	routers  func(set uint64) Router
	sets     []poolSet
	setOf    map[uint64]int32 // their places by their pools
	now      time.Duration
	agenda   agenda.Agenda[event]
	replicas []replica
	idle     []int32 // replicas that may decide a step at now
	loads    []Load
	lives    []life
	free     []int32
	counts   Counts
	ended    bool // a step would end beyond the clock

	steps    []Step
	gaps     []Gap
	firsts   []int64
	losers   []int64
	finished []Finished
}

// Counts says where the requests are. Arrived = Completed + Refused + Cancelled + Queued +
// Running; a request submitted ahead of its arrival has not arrived.
type Counts struct {
	Arrived, Completed, Refused, Cancelled int
	Queued, Running                        int
}

// New returns a cluster at instant 0. Of several pools there are at most MostPools.
func New(config Config) *Cluster {
	c := &Cluster{pools: config.Pools, routers: config.Routers}
	if len(c.pools) == 0 {
		c.pools = []Pool{{
			Replicas: config.Replicas, Policy: config.Policy, Cost: config.Cost, MaxModelLen: config.MaxModelLen,
			KVTokens: config.KVTokens, Ahead: config.Ahead, Delay: config.Delay,
		}}
		c.routers = func(uint64) Router { return config.Router }
	}
	n := 0
	for i := range c.pools {
		n += c.pools[i].Replicas
	}
	c.replicas, c.loads = make([]replica, 0, n), make([]Load, n)
	for i := range c.pools {
		p := &c.pools[i]
		for range p.Replicas {
			index := len(c.replicas)
			c.loads[index] = Load{Weight: p.Weight, Replica: int32(index)}
			c.replicas = append(c.replicas, replica{index: int32(index), policy: p.Policy(), cost: p.Cost, decidesAhead: p.Ahead})
		}
	}
	if len(c.pools) == 1 {
		c.set(1)
	}
	return c
}

// Clock is the last instant that a cluster gets to: some 200 years.
const Clock time.Duration = 200 * 365 * 24 * time.Hour

// Ended reports whether the clock has run out: nothing happens any more.
func (c *Cluster) Ended() bool { return c.ended }

// Now is how far the cluster has come.
func (c *Cluster) Now() time.Duration { return c.now }

// Counts tells where the requests are.
func (c *Cluster) Counts() Counts {
	n := c.counts
	for i := range c.replicas {
		load := c.replicas[i].policy.Load()
		n.Queued += load.Waiting
		n.Running += load.Running
	}
	return n
}

// Submit takes a request that arrives now, later, or has arrived before: then it joins its queue
// now. Its error is a *Refusal. Submitting early or just in time changes nothing.
func (c *Cluster) Submit(r workload.Request) (Ticket, error) {
	set, err := c.candidates(&r)
	if err != nil {
		c.counts.Arrived++
		c.counts.Refused++
		return Ticket{}, err
	}
	slot := c.slot()
	l := &c.lives[slot]
	l.id, l.arrival = r.ID, r.Arrival
	l.prompt, l.output = int32(r.Prompt), int32(r.Output)
	if len(r.Prefix) > 0 || r.Priority != 0 {
		l.more = &more{priority: r.Priority, prefix: slices.Clone(r.Prefix), prefixTokens: r.PrefixBlock}
	}
	l.firstToken, l.interrupted = unset, unset
	l.replica, l.set = unrouted, set
	c.agenda.At(max(r.Arrival+c.sets[set].delay, c.now), arrival, event{arrival, slot, l.generation})
	return Ticket{slot, l.generation}, nil
}

// Cancel takes a request back at an instant, at the earliest now. It frees what the request
// held; one that has finished, or was cancelled, stays as it is.
func (c *Cluster) Cancel(t Ticket, at time.Duration) {
	c.agenda.At(max(at, c.now), cancel, event{cancel, t.slot, t.generation})
}

// Next starts what can start now and returns the instant at which something happens next; false
// when nothing does unless something is submitted. What is submitted afterwards for the present
// instant comes too late for the steps that start at it.
func (c *Cluster) Next() (time.Duration, bool) {
	c.apply(cancel)
	c.settle()
	return c.next()
}

// next is the instant of the earliest entry that means something. The arrival of a request that
// was cancelled before it, and the cancelling of one that has left, mean nothing, and must not
// move the clock.
func (c *Cluster) next() (time.Duration, bool) {
	for !c.ended {
		e := c.agenda.First()
		if e == nil {
			return 0, false
		}
		if e.kind == stepEnd || c.lives[e.who].generation == e.gen {
			return c.agenda.Next()
		}
		c.agenda.Take()
	}
	return 0, false
}

// Advance moves towards an instant and applies all that is due on the way, that instant
// included. It stops early, and Now says where, after an instant at which a request finished, or
// when many steps have gathered. Steps come in the order of their ends, of one instant in the
// order of their starts; they are valid until the next call.
//
// At the instant at which it stops only steps have ended: what arrives or is cancelled then, and
// what can start, waits until the clock moves on, so that whatever is submitted for that instant
// is still in time.
func (c *Cluster) Advance(to time.Duration) []Step {
	c.steps = c.steps[:0]
	c.gaps, c.firsts, c.losers, c.finished = c.gaps[:0], c.firsts[:0], c.losers[:0], c.finished[:0]
	for c.now < to && len(c.finished) == 0 && len(c.steps) < fullSteps && !c.ended {
		c.apply(cancel)
		if len(c.idle) == 1 && c.coast(&c.replicas[c.idle[0]], to) {
			break
		}
		c.settle()
		at, ok := c.next()
		if !ok || at > to {
			c.now = to
			break
		}
		if at > Clock {
			c.ended = true
			break
		}
		c.now = at
		c.apply(stepEnd)
	}
	return c.steps
}

// fullSteps is how many steps make Advance stop.
const fullSteps = 256

// apply takes what is due now, up to a rank, off the agenda.
func (c *Cluster) apply(last agenda.Rank) {
	for c.agenda.Due(c.now, last) {
		switch e := c.agenda.Take(); e.kind {
		case stepEnd:
			c.end(&c.replicas[e.who])
		case arrival:
			if c.lives[e.who].generation == e.gen {
				c.route(e.who)
			}
		case cancel:
			c.cancel(e.who, e.gen)
		}
	}
}

// settle starts every idle replica that has work: the one place where steps are decided.
func (c *Cluster) settle() {
	for _, i := range c.idle {
		c.start(&c.replicas[i])
	}
	c.idle = c.idle[:0]
}

// wake notes that a replica may have something to decide.
func (c *Cluster) wake(r *replica) {
	if !r.woken {
		r.woken = true
		c.idle = append(c.idle, r.index)
	}
}

func (c *Cluster) route(slot int32) {
	c.counts.Arrived++
	l := &c.lives[slot]
	i := c.choose(l)
	l.replica = i
	c.loads[i].Requests++
	c.loads[i].Tokens += int(l.prompt)
	r := &c.replicas[i]
	// Real clocks tell any two arrivals apart. With ties vLLM's priority rules may take two requests'
	// blocks from each other for ever.
	q := policy.Request{Prompt: int(l.prompt), Output: int(l.output), Arrived: int64(c.counts.Arrived), ID: l.id}
	if m := l.more; m != nil {
		q.Priority, q.Prefix, q.PrefixTokens = m.priority, m.prefix, m.prefixTokens
		l.more = nil
	}
	l.handle = r.policy.Add(q)
	for int(l.handle) >= len(r.slots) {
		r.slots = append(r.slots, 0)
	}
	r.slots[l.handle] = slot
	if !r.busy {
		c.wake(r)
	}
}

func (c *Cluster) cancel(slot int32, generation uint32) {
	l := &c.lives[slot]
	if l.generation != generation {
		return
	}
	if l.replica == unrouted {
		// It gave up before it arrived, and counts as both.
		c.counts.Arrived++
	} else {
		r := &c.replicas[l.replica]
		r.policy.Abort(l.handle)
		c.unload(l)
		if !r.busy {
			c.wake(r)
		}
	}
	c.counts.Cancelled++
	c.release(slot)
}

func (c *Cluster) unload(l *life) {
	load := &c.loads[l.replica]
	load.Requests--
	load.Tokens -= int(l.prompt)
}
