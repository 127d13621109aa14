package sim

import (
	"time"

	"llmsim/sim/cost"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// MostPools bounds the pools of a cluster.
const MostPools = 64

// A Pool is equal replicas of a cluster whose replicas differ. Replicas are numbered through all
// pools, in their order.
type Pool struct {
	Name        string // of refusals
	Replicas    int
	Policy      func() policy.Policy // makes the scheduler of one replica
	Cost        cost.Model
	MaxModelLen int           // tokens of prompt and output together
	KVTokens    int           // tokens that the cache of one replica holds
	Ahead       bool          // replicas decide a step before the one under way has ended
	Delay       time.Duration // from arrival to router; of several candidates the longest holds
	Accepts     Range         // the prompts that it takes
	Weight      float32       // of each replica, see Load
}

// A Range is lengths in tokens, both bounds included; Hi 0: without an upper bound.
type Range struct{ Lo, Hi int }

// Has reports whether a length lies in the range.
func (r Range) Has(tokens int) bool { return tokens >= r.Lo && (r.Hi == 0 || tokens <= r.Hi) }

// nearest is the bound that is nearest to a length outside, and how far it is.
func (r Range) nearest(tokens int) (bound, far int) {
	if tokens < r.Lo {
		return r.Lo, r.Lo - tokens
	}
	return r.Hi, tokens - r.Hi
}

// holds is the longest request, prompt and output, that a replica can serve.
func (p *Pool) holds() int { return min(p.MaxModelLen, p.KVTokens) }

// A poolSet is the pools among whose replicas some requests are routed.
type poolSet struct {
	router Router
	delay  time.Duration
	first  int // replica
	loads  []Load
	// members are the replicas, when they don't follow each other: loads then are a copy of theirs.
	members []int32
}

// candidates finds the set of pools that accept and hold a request; the error is a *Refusal. It
// tells the limit of the pool that comes nearest.
func (c *Cluster) candidates(r *workload.Request) (set int32, err error) {
	total := r.Prompt + r.Output
	if len(c.pools) == 1 {
		if p := &c.pools[0]; total <= p.holds() && p.Accepts.Has(r.Prompt) {
			return 0, nil
		}
		return 0, c.refusal(r)
	}
	pools := uint64(0)
	for i := range c.pools {
		if p := &c.pools[i]; p.Accepts.Has(r.Prompt) && total <= p.holds() {
			pools |= 1 << i
		}
	}
	if pools == 0 {
		return 0, c.refusal(r)
	}
	return c.set(pools), nil
}

// refusal says why a request has no candidates.
func (c *Cluster) refusal(r *workload.Request) *Refusal {
	var roomiest, nearest *Pool
	least := 0
	for i := range c.pools {
		p := &c.pools[i]
		if p.Accepts.Has(r.Prompt) {
			if roomiest == nil || p.holds() > roomiest.holds() {
				roomiest = p
			}
		} else if _, far := p.Accepts.nearest(r.Prompt); nearest == nil || far < least {
			nearest, least = p, far
		}
	}
	of := func(p *Pool, what, alone string) string {
		if p.Name == "" {
			return alone
		}
		return "pool " + p.Name + what
	}
	switch {
	case roomiest == nil:
		bound, _ := nearest.Accepts.nearest(r.Prompt)
		return &Refusal{Request: *r, What: of(nearest, "", "the only one"), Limit: bound, Unaccepted: true}
	case r.Prompt+r.Output > roomiest.MaxModelLen:
		return &Refusal{Request: *r, What: of(roomiest, "'s max_model_len", "max_model_len"), Limit: roomiest.MaxModelLen}
	}
	return &Refusal{Request: *r, What: of(roomiest, "'s KV cache", "the KV cache"), Limit: roomiest.KVTokens}
}

// set returns the place of a set of pools, made when the first request needs it.
func (c *Cluster) set(pools uint64) int32 {
	if at, ok := c.setOf[pools]; ok {
		return at
	}
	s := poolSet{router: c.routers(pools), first: -1}
	first, consecutive := 0, true
	for i := range c.pools {
		p := &c.pools[i]
		if pools&(1<<i) != 0 {
			s.delay = max(s.delay, p.Delay)
			if s.first < 0 {
				s.first = first
			}
			consecutive = consecutive && first == s.first+len(s.members)
			for k := range p.Replicas {
				s.members = append(s.members, int32(first+k))
			}
		}
		first += p.Replicas
	}
	if consecutive {
		s.loads, s.members = c.loads[s.first:s.first+len(s.members)], nil
	} else {
		s.loads = make([]Load, len(s.members))
	}
	at := int32(len(c.sets))
	c.sets = append(c.sets, s)
	if c.setOf == nil {
		c.setOf = map[uint64]int32{}
	}
	c.setOf[pools] = at
	return at
}

// choose has the router of a request's candidates pick the replica.
func (c *Cluster) choose(l *life) int32 {
	s := &c.sets[l.set]
	if len(s.loads) == 1 {
		return int32(s.first)
	}
	for i, m := range s.members {
		s.loads[i] = c.loads[m]
	}
	a := Arrival{Prompt: int(l.prompt)}
	if m := l.more; m != nil {
		a.Prefix, a.PrefixBlock = m.prefix, m.prefixTokens
	}
	return s.loads[s.router.Route(a, s.loads)].Replica
}
