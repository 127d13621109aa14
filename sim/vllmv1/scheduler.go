package vllmv1

import (
	"fmt"
	"slices"
)

// A Scheduler decides step after step. Add and Abort may come at any moment; each Decision goes
// to Update once, in the order of decisions, and async ones may be decided before that.
//
// It knows no phases: in every step each request tries to raise the number of its computed tokens
// to that of its tokens.
type Scheduler struct {
	config Config
	rules  Rules
	cache  *cache

	requests map[string]*request // all that are not finished
	running  []*request          // in the order of their last admission
	waiting  queue
	skipped  queue // set aside until their output in flight has arrived

	steps    int
	departed bool // someone finished since the last decision
	prefix   PrefixStats
}

// New returns a scheduler with all blocks free.
func New(c Config, rules Rules) (*Scheduler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Scheduler{
		config: c, rules: rules, cache: newCache(c, rules),
		requests: map[string]*request{},
		waiting:  queue{order: c.Policy}, skipped: queue{order: c.Policy},
	}, nil
}

// Add queues a request. It keeps none of its slices.
func (s *Scheduler) Add(q Request) error {
	if err := q.validate(s.config); err != nil {
		return err
	}
	if s.requests[q.ID] != nil {
		return fmt.Errorf("request %q: is added twice", q.ID)
	}
	r := newRequest(q)
	s.cache.learn(r)
	s.requests[q.ID] = r
	s.waiting.pushBack(r)
	return nil
}

// Abort ends a request at once and frees its blocks; what it has in flight will be ignored. It
// reports whether the request was there.
func (s *Scheduler) Abort(id string) bool {
	r := s.requests[id]
	if r == nil {
		return false
	}
	s.finish(r)
	return true
}

// finish forgets a request, wherever it is.
func (s *Scheduler) finish(r *request) {
	if at := slices.Index(s.running, r); at >= 0 {
		s.running = slices.Delete(s.running, at, at+1)
	} else if !s.waiting.remove(r) {
		s.skipped.remove(r)
	}
	s.cache.release(r)
	r.status = Finished
	delete(s.requests, r.ID)
	s.departed = true
}

// HasRequests reports whether a step is due: someone is not finished, or the workers have yet to
// be told, by a step that may be empty, of someone who is.
func (s *Scheduler) HasRequests() bool { return len(s.requests) > 0 || s.departed }

// Look tells the state of a request that is not finished.
func (s *Scheduler) Look(id string) (State, bool) {
	r := s.requests[id]
	if r == nil {
		return State{}, false
	}
	return r.state(), true
}

// Free is the number of free blocks, those that are cached included.
func (s *Scheduler) Free() int { return s.cache.free }

// Usable is the number of all blocks that can be lent.
func (s *Scheduler) Usable() int { return s.cache.usable() }

// FreeList returns the ids of the free blocks in the order in which they will be lent.
func (s *Scheduler) FreeList() []int {
	var list []int
	for id := s.cache.blocks[0].next; id != 0; id = s.cache.blocks[id].next {
		list = append(list, id)
	}
	return list
}

// PrefixStats count what lookups found, in tokens. Queries of requests that had been preempted
// are kept apart.
type PrefixStats struct {
	Requests, Queries, Hits                            int
	PreemptedRequests, PreemptedQueries, PreemptedHits int
}

// PrefixStats returns the counts since the start.
func (s *Scheduler) PrefixStats() PrefixStats { return s.prefix }

func (p *PrefixStats) record(r *request, hit int) {
	if r.preemptions > 0 {
		p.PreemptedRequests++
		p.PreemptedQueries += len(r.tokens)
		p.PreemptedHits += hit
		return
	}
	p.Requests++
	p.Queries += len(r.tokens)
	p.Hits += hit
}
