package sim

import "llmsim/sim/rng"

// A Load is what a router sees of a replica.
type Load struct {
	Requests int // waiting or running
	Tokens   int // of their prompts
}

// A Router chooses a replica for each request, in order of arrival, from what the replicas hold
// at that instant.
type Router interface {
	Route(loads []Load) int
}

// RoundRobin takes the replicas in turn.
type RoundRobin struct{ next int }

func (r *RoundRobin) Route(loads []Load) int {
	i := r.next % len(loads)
	r.next = i + 1
	return i
}

// LeastLoaded takes the replica with the fewest requests; of equals the first.
type LeastLoaded struct{}

func (LeastLoaded) Route(loads []Load) int {
	best := 0
	for i := range loads {
		if loads[i].Requests < loads[best].Requests {
			best = i
		}
	}
	return best
}

// ShortestQueue takes the replica with the fewest prompt tokens in its requests; of equals the
// one with the fewest requests, then the first. Answers don't count: their length is not known.
type ShortestQueue struct{}

func (ShortestQueue) Route(loads []Load) int {
	best := 0
	for i := range loads {
		if a, b := loads[i], loads[best]; a.Tokens < b.Tokens || a.Tokens == b.Tokens && a.Requests < b.Requests {
			best = i
		}
	}
	return best
}

// PowerOfTwo takes the less loaded, by requests, of two different replicas drawn from Stream; of
// equals the one drawn first.
type PowerOfTwo struct{ Stream *rng.Stream }

func (r PowerOfTwo) Route(loads []Load) int {
	if len(loads) == 1 {
		return 0
	}
	a := r.Stream.IntN(len(loads))
	b := r.Stream.IntN(len(loads) - 1)
	if b >= a {
		b++
	}
	if loads[b].Requests < loads[a].Requests {
		return b
	}
	return a
}
