package vllmv1

import "slices"

// An Origin says where a scheduled request was before the step.
type Origin string

const (
	FromNew       Origin = "new"     // waiting, never admitted before
	FromPreempted Origin = "resumed" // waiting, since it was preempted
	FromRunning   Origin = "running"
)

// A Scheduled is a request's part in a step.
type Scheduled struct {
	ID                string
	NumTokens         int // computed in this step, at least 1
	NumComputedTokens int // before it; for an admission, what the prefix cache held
	Origin            Origin
	Samples           bool // the step emits a token of it: it is no prefill chunk

	request *request
}

// A Decision is what a step computes, and the state after it was decided.
type Decision struct {
	Step      int         // counted from 1
	Scheduled []Scheduled // running order, then admissions
	Preempted []string    // in the order of being chosen
	Running   []string    // in the order of admission
	Waiting   []string    // in the order of the queue
	Skipped   []string    // likewise
	Free      int         // blocks
	Blocks    [][]int     // block ids of Running
}

// Tokens is what the step computes in all.
func (d *Decision) Tokens() int {
	n := 0
	for _, e := range d.Scheduled {
		n += e.NumTokens
	}
	return n
}

// A step is a decision being made.
type step struct {
	budget    int // tokens
	scheduled []Scheduled
	preempted []string
}

// record makes a request compute n tokens on those it has.
func (t *step) record(r *request, n int, from Origin) {
	t.scheduled = append(t.scheduled, Scheduled{ID: r.ID, NumTokens: n, NumComputedTokens: r.computed, Origin: from, request: r})
	t.budget -= n
}

// withdraw takes back what record did, and reports whether there was anything to.
func (t *step) withdraw(r *request) bool {
	at := slices.IndexFunc(t.scheduled, func(e Scheduled) bool { return e.request == r })
	if at < 0 {
		return false
	}
	t.budget += t.scheduled[at].NumTokens
	t.scheduled = slices.Delete(t.scheduled, at, at+1)
	return true
}

// Schedule decides the next step, which may compute nothing.
func (s *Scheduler) Schedule() *Decision {
	s.steps++
	s.departed = false
	t := &step{budget: s.config.MaxNumBatchedTokens}
	s.advance(t)
	if len(t.preempted) == 0 {
		s.admit(t)
	}
	// Computed tokens move when they are scheduled, so the next step can be decided before this
	// one has run.
	for i := range t.scheduled {
		e := &t.scheduled[i]
		r := e.request
		r.computed += e.NumTokens
		r.inFlight += e.NumTokens
		e.Samples = r.computed >= len(r.tokens)+r.placeholders
		if e.Samples && s.config.AsyncScheduling {
			r.placeholders++
		}
	}
	d := &Decision{
		Step: s.steps, Scheduled: t.scheduled, Preempted: t.preempted,
		Running: ids(s.running), Waiting: ids(s.waiting.list), Skipped: ids(s.skipped.list), Free: s.cache.free,
	}
	for _, r := range s.running {
		d.Blocks = append(d.Blocks, slices.Clone(r.blocks))
	}
	return d
}

// advance gives the running requests, in the order of their admission, what they ask for. Decodes
// do not come first: only order does.
func (s *Scheduler) advance(t *step) {
	for i := 0; i < len(s.running) && t.budget > 0; {
		r := s.running[i]
		n := min(s.wants(r), t.budget)
		if n <= 0 {
			i++
			continue
		}
		for !s.cache.grow(r, n) {
			at := s.victim()
			v := s.running[at]
			s.running = slices.Delete(s.running, at, at+1)
			withdrawn := t.withdraw(v)
			if at < i && (withdrawn || s.rules.CursorFollows) {
				i--
			}
			s.preempt(v)
			t.preempted = append(t.preempted, v.ID)
			if v == r {
				// Those behind it get nothing in this step, though they might fit.
				return
			}
		}
		t.record(r, n, FromRunning)
		i++
	}
}

// wants is the number of tokens that a running request would compute in a step of its own.
func (s *Scheduler) wants(r *request) int {
	if s.config.AsyncScheduling && r.placeholders > 0 && r.computed+2-r.placeholders >= len(r.Prompt)+r.MaxTokens {
		return 0 // its last token is in flight
	}
	n := s.chunk(len(r.tokens) + r.placeholders - r.computed)
	return min(n, s.config.MaxModelLen-r.computed-1)
}

// chunk cuts a prefill to long_prefill_token_threshold.
func (s *Scheduler) chunk(n int) int {
	if limit := s.config.LongPrefillTokenThreshold; 0 < limit && limit < n {
		return limit
	}
	return n
}

// victim is the index of the running request that is preempted next.
func (s *Scheduler) victim() int {
	last := len(s.running) - 1
	if s.config.Policy == FCFS {
		return last
	}
	worst := 0
	for i, r := range s.running {
		w := s.running[worst]
		// Of equals the first: ids do not decide here, as they do in the queue.
		if r.Priority > w.Priority || r.Priority == w.Priority && r.ArrivalTime > w.ArrivalTime {
			worst = i
		}
	}
	return worst
}

// preempt sends a request that is no longer among the running back to the queue. It keeps its
// tokens and computes them again; there is no swapping.
func (s *Scheduler) preempt(r *request) {
	s.cache.release(r)
	r.status = Preempted
	r.computed, r.placeholders = 0, 0
	r.stale = r.inFlight
	r.preemptions++
	s.waiting.pushFront(r)
}

// admit lets waiting requests in, as long as the one in front fits: none passes another, and none
// is preempted for them.
func (s *Scheduler) admit(t *step) {
	var aside, passed []*request
	for t.budget > 0 && len(s.running) < s.config.MaxNumSeqs {
		q := s.next()
		r := q.front()
		if r == nil {
			break
		}
		if r.stale > 0 {
			// Admitted now, it could not tell a late token from a new one.
			q.pop()
			aside = append(aside, r)
			continue
		}
		hits := s.cache.lookup(r)
		if !s.rules.StatsAtAdmission {
			s.look(r, hits)
		}
		hit := len(hits) * s.config.BlockSize
		n := s.chunk(len(r.tokens) - hit)
		if !s.config.EnableChunkedPrefill && n > t.budget {
			if s.rules.ChunkedOffBreaks {
				break
			}
			q.pop()
			passed = append(passed, r)
			continue
		}
		n = min(n, t.budget)
		if !s.cache.admit(r, hits, n, len(s.running) > 0) {
			break
		}
		if s.rules.StatsAtAdmission {
			s.look(r, hits)
		}
		q.pop()
		from := FromNew
		if r.status == Preempted {
			from = FromPreempted
		}
		r.status, r.computed = Running, hit
		s.running = append(s.running, r)
		t.record(r, n, from)
	}
	s.waiting.pushFront(passed...)
	s.skipped.pushFront(aside...)
}

// next is the queue whose front is admitted next.
func (s *Scheduler) next() *queue {
	w, k := s.waiting.front(), s.skipped.front()
	if k != nil && (w == nil || s.config.Policy == FCFS || compare(k, w) < 0) {
		return &s.skipped
	}
	return &s.waiting
}

func (s *Scheduler) look(r *request, hits []int) {
	if s.config.EnablePrefixCaching {
		s.prefix.record(r, len(hits)*s.config.BlockSize)
	}
}
