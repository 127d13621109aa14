package sim

import (
	"time"

	"llmsim/sim/cost"
	"llmsim/sim/policy"
)

// A Step is one forward pass of one replica, reported when it ends. Its slices are valid until
// the next call of Advance.
type Step struct {
	Replica    int
	Index      int64 // counts the replica's steps from 0
	Start, End time.Duration
	Shape      cost.Shape
	Bound      cost.Bound

	// When the step started, as scheduling had left them.
	Running, Waiting int // sequences
	FreeBlocks       int
	UsedBlocks       int
	Blocked          policy.Blocked // what kept a request from being admitted, or from its tokens

	// Prompt tokens looked up in the prefix cache for the requests that this step admitted for the
	// first time, and of them those found.
	CacheQueries, CacheHits int64

	// Steady sequences emitted a token at End and one at Start: their gap is End-Start.
	Steady int
	// Gaps holds the time since the previous token of every sequence that emitted one at End
	// after an interruption.
	Gaps []Gap
	// Firsts and Preempted name requests: those that emitted their first token at End, and those
	// whose blocks were taken when the step was decided, in the order in which that happened.
	Firsts    []int64
	Preempted []int64
	// Finished requests emitted their last token at End.
	Finished []Finished
}

// A Gap is the time between two tokens of a request that was interrupted between them.
type Gap struct {
	ID        int64
	Time      time.Duration
	Preempted bool // by preemption, not only for want of budget
}

// A Finished request, with its life.
type Finished struct {
	ID             int64
	Replica        int
	Prompt, Output int // tokens
	Arrival        time.Duration
	FirstSchedule  time.Duration // when the first step that computed any of it was decided
	FirstToken     time.Duration
	LastToken      time.Duration
	Preemptions    int
}
