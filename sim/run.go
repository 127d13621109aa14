package sim

import (
	"fmt"
	"math"
	"time"

	"llmsim/workload"
)

// A Run feeds a workload to a cluster: each request at its arrival, and answers back to a source
// that waits for them.
type Run struct {
	cluster  *Cluster
	source   workload.Source
	feedback workload.Feedback // the same source, when it waits for answers
	peeker   workload.Peeker   // the same, when they may change what comes next
	next     workload.Request
	pending  bool
	progress Progress
}

// Progress is what happened in one stretch of a run. Its slices are valid until the next.
type Progress struct {
	Arrived []workload.Request // refused ones included
	Refused []Refusal
	Steps   []Step
}

// NewRun joins a cluster and its workload.
func NewRun(c *Cluster, source workload.Source) *Run {
	feedback, _ := source.(workload.Feedback)
	peeker, _ := source.(workload.Peeker)
	return &Run{cluster: c, source: source, feedback: feedback, peeker: peeker}
}

// Advance runs a stretch, as long as nobody needs to look; false at the end of the run, when all
// requests have left. A source may end and later have requests again: Advance may then go on.
func (r *Run) Advance() (*Progress, bool) {
	p := &r.progress
	p.Arrived, p.Refused, p.Steps = p.Arrived[:0], p.Refused[:0], nil
	to := time.Duration(math.MaxInt64)
	for {
		at, ok := r.coming()
		if ok && at > Clock {
			r.cluster.ended = true
		}
		if r.cluster.ended {
			return p, len(p.Arrived) > 0
		}
		if ok && at > r.cluster.now {
			to = at
			break
		}
		if !ok {
			if _, ok := r.cluster.Next(); !ok {
				return p, len(p.Arrived) > 0
			}
			break
		}
		if len(p.Arrived) == fullSteps {
			return p, true
		}
		r.submit()
	}
	p.Steps = r.cluster.Advance(to)
	if r.feedback != nil {
		for i := range p.Steps {
			for _, f := range p.Steps[i].Finished {
				r.feedback.Done(f.ID, f.LastToken)
			}
		}
	}
	return p, true
}

// Err tells why a run ended before its workload did; nil otherwise.
func (r *Run) Err() error {
	if r.cluster.ended {
		return fmt.Errorf("the run would take longer than %d years of virtual time", Clock/(365*24*time.Hour))
	}
	return nil
}

// coming tells when the next request arrives; false if the source has none now.
func (r *Run) coming() (time.Duration, bool) {
	if r.peeker != nil {
		return r.peeker.Peek()
	}
	if !r.pending {
		r.next, r.pending = r.source.Next()
	}
	return r.next.Arrival, r.pending
}

func (r *Run) submit() {
	if r.peeker != nil {
		r.next, _ = r.peeker.Next()
	}
	r.pending = false
	r.progress.Arrived = append(r.progress.Arrived, r.next)
	if _, err := r.cluster.Submit(r.next); err != nil {
		r.progress.Refused = append(r.progress.Refused, *err.(*Refusal))
		if r.feedback != nil {
			r.feedback.Done(r.next.ID, r.cluster.now)
		}
	}
}
