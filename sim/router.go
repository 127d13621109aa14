package sim

import "llmsim/sim/rng"

// A Load is what a router sees of a replica.
type Load struct {
	Requests int // waiting or running
	Tokens   int // of their prompts
	// Weight is the replica's capacity beside that of others: one of weight 2 is as loaded as one of
	// weight 1 when it holds twice as much. Where all are 0, all are equal.
	Weight  float32
	Replica int32 // its number in the cluster; ascending
}

// An Arrival is what a router knows of a request: not how long its answer will be.
type Arrival struct {
	Prompt      int      // tokens
	Prefix      []uint64 // names of the prompt's pieces, as in workload.Request
	PrefixBlock int      // tokens of a piece
}

// A Router chooses a replica for each request, in order of arrival, from what the replicas hold
// at that instant. It returns the place of its load.
type Router interface {
	Route(a Arrival, loads []Load) int
}

// RoundRobin takes the replicas in turn.
type RoundRobin struct{ next int }

func (r *RoundRobin) Route(_ Arrival, loads []Load) int {
	i := r.next % len(loads)
	r.next = i + 1
	return i
}

// LeastLoaded takes the replica with the fewest requests, the arriving one included, by weight; of
// equals the first.
type LeastLoaded struct{}

func (LeastLoaded) Route(_ Arrival, loads []Load) int {
	best := 0
	for i := range loads {
		if loads[i].fewer(&loads[best]) {
			best = i
		}
	}
	return best
}

// fewer reports whether a replica with one request more is less loaded than another with one more.
func (l *Load) fewer(than *Load) bool {
	if l.Weight == than.Weight {
		return l.Requests < than.Requests
	}
	return float64(l.Requests+1)*float64(than.Weight) < float64(than.Requests+1)*float64(l.Weight)
}

// ShortestQueue takes the replica with the fewest prompt tokens in its requests, the arriving one
// included, by weight; of equals the one with the fewest requests, then the first. Answers don't
// count: their length is not known.
type ShortestQueue struct{}

func (ShortestQueue) Route(a Arrival, loads []Load) int {
	best := 0
	for i := range loads {
		l, than := &loads[i], &loads[best]
		if l.Weight != than.Weight {
			x := float64(l.Tokens+a.Prompt) * float64(than.Weight)
			y := float64(than.Tokens+a.Prompt) * float64(l.Weight)
			if x < y || x == y && l.fewer(than) {
				best = i
			}
			continue
		}
		if l.Tokens < than.Tokens || l.Tokens == than.Tokens && l.Requests < than.Requests {
			best = i
		}
	}
	return best
}

// PowerOfTwo takes the less loaded, by requests and weight, of two different replicas drawn from
// Stream; of equals the one drawn first.
type PowerOfTwo struct{ Stream *rng.Stream }

func (r PowerOfTwo) Route(_ Arrival, loads []Load) int {
	if len(loads) == 1 {
		return 0
	}
	a := r.Stream.IntN(len(loads))
	b := r.Stream.IntN(len(loads) - 1)
	if b >= a {
		b++
	}
	if loads[b].fewer(&loads[a]) {
		return b
	}
	return a
}
