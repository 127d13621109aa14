package vllmv1

// A Sampler says what a request emits.
type Sampler interface {
	// Sample returns output k, counted from 0, of a request.
	Sample(id string, k int) Token
}

// An Outcome is what a step brought, and the state after it.
type Outcome struct {
	Step     int
	Outputs  []Output // in the order of the decision
	Finished []Ended  // likewise
	Free     int      // blocks
	Running  []string // in the order of admission
}

// An Output is one emitted token.
type Output struct {
	ID    string
	Token Token
}

// An Ended is a request that got its last token.
type Ended struct {
	ID     string
	Reason Reason
}

// Update applies a step that has run.
func (s *Scheduler) Update(d *Decision, from Sampler) *Outcome {
	o := &Outcome{Step: d.Step}
	for _, e := range d.Scheduled {
		r := e.request
		r.inFlight -= e.NumTokens
		if r.status == Finished {
			continue // computed for nothing
		}
		stale := r.stale > 0
		if stale {
			r.stale -= e.NumTokens
		}
		if !e.Samples || stale && !s.rules.StaleDelivered {
			continue
		}
		token := from.Sample(r.ID, r.outputs())
		r.tokens = append(r.tokens, token)
		s.cache.learn(r)
		o.Outputs = append(o.Outputs, Output{r.ID, token})
		if s.config.AsyncScheduling && r.status == Running {
			// Only now is the token known that may have filled a block.
			r.placeholders--
			s.cache.register(r, r.computed-r.placeholders)
		}
		if reason, ends := r.ends(s.config.MaxModelLen); ends {
			s.finish(r)
			o.Finished = append(o.Finished, Ended{r.ID, reason})
		}
	}
	o.Free, o.Running = s.cache.free, ids(s.running)
	return o
}
