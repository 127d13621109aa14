// Package conformance replays recorded decisions of vLLM's scheduler and finds the first that differs.
//
// It knows recordings, one case a line. It knows no rule by which decisions are made.
package conformance

import (
	"fmt"

	"llmsim/sim/vllmv1"
)

// A Case is one recorded run of a scheduler.
type Case struct {
	Name       string
	Config     vllmv1.Config
	Requests   []Request
	Events     []Event
	Truncated  bool // stopped while there was work
	Iterations int  // turns of the engine loop, idle ones included

	File string
	Line int

	lacks map[string]bool // settings that versions without them do not record
}

// A Request is a request and when it arrives: before the decision of a turn, counted from 0.
type Request struct {
	vllmv1.Request
	ArriveIter int
	GenBase    vllmv1.Token // output k is GenBase + k
}

// Kind says what an event is.
type Kind string

const (
	Add      Kind = "add"
	Schedule Kind = "schedule"
	Update   Kind = "update"
)

// An Event is something that was recorded; its kind says which fields it has.
type Event struct {
	Kind Kind

	ID string // add

	Step      int // schedule, and so down to Blocks
	Sched     []Sched
	Preempted []string
	Waiting   []string
	Skipped   []string
	Blocks    map[string][]int

	Outputs  []Count // update
	Finished []Ended

	Free    int // schedule and update
	Running []string
}

// Sched is a request's part in a step.
type Sched struct {
	ID       string
	N        int // tokens
	Computed int // before the step
	Origin   string
}

// Count is how many tokens a request emitted.
type Count struct {
	ID string
	N  int
}

// Ended is a request that finished.
type Ended struct{ ID, Reason string }

func (s Sched) String() string {
	return fmt.Sprintf("%s n=%d C=%d %s", s.ID, s.N, s.Computed, s.Origin)
}
func (c Count) String() string { return fmt.Sprintf("%s %d", c.ID, c.N) }
func (e Ended) String() string { return e.ID + " " + e.Reason }

// A Fault is something in a file that cannot be replayed.
type Fault struct {
	File  string
	Line  int    // from 1; 0 for the file as a whole
	Field string // as in events[3].free; "" for the line as a whole
	Text  string
}

func (f *Fault) Error() string {
	place := f.File
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Line)
	}
	if f.Field != "" {
		place += ": " + f.Field
	}
	return place + ": " + f.Text
}
