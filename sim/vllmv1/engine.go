package vllmv1

// An Engine alternates decisions and outcomes as an engine core does. Synchronous, a step is
// applied before the next is decided. Asynchronous, the next is decided while one runs.
type Engine struct {
	*Scheduler
	sampler Sampler
	flight  []*Decision // decided and not applied, the oldest first
}

// depth is how many steps an engine without pipeline stages holds in flight at most.
const depth = 2

// NewEngine returns an engine with nothing in flight.
func NewEngine(s *Scheduler, from Sampler) *Engine { return &Engine{Scheduler: s, sampler: from} }

// An Iteration is one turn of an engine: a step decided, a step applied, both, or, when there is
// nothing to do, neither.
type Iteration struct {
	Decision *Decision
	Outcome  *Outcome
}

// Idle reports whether nothing is left to do until a request is added.
func (e *Engine) Idle() bool { return !e.HasRequests() && len(e.flight) == 0 }

// Iterate takes one turn. What is added before it is seen by it.
func (e *Engine) Iterate() (i Iteration) {
	if e.HasRequests() {
		i.Decision = e.Schedule()
		e.flight = append(e.flight, i.Decision)
		if e.config.AsyncScheduling && len(i.Decision.Scheduled) > 0 && len(e.flight) < depth {
			return i
		}
	}
	if len(e.flight) > 0 {
		i.Outcome = e.Update(e.flight[0], e.sampler)
		e.flight = e.flight[1:]
	}
	return i
}
