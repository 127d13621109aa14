// Package workload describes requests and when they arrive, and reads and writes traces of them.
//
// It knows lengths and instants. It knows nothing of replicas, of schedulers, or of what a step costs.
package workload

import "time"

// A Request is one call to a serving system, as its client sees it.
type Request struct {
	ID      int64         // position in the workload, from 0
	Arrival time.Duration // since the start of the run
	Prompt  int           // tokens
	Output  int           // tokens the answer will have; a scheduler may use it only to stop

	Priority int   // smaller is more urgent, as in vLLM
	Session  int64 // requests of one conversation share it; 0: none

	// Prefix names the leading blocks, of PrefixBlock tokens each, of the prompt: prompts whose
	// first k entries are equal share their first k*PrefixBlock tokens. With more entries than the
	// prompt has blocks, the others name the answer. Empty: shares nothing.
	Prefix      []uint64
	PrefixBlock int
}

// A Source hands out requests in the order of their arrival; false when it has none to give now.
type Source interface {
	Next() (Request, bool)
}

// A Feedback source waits for answers: after Done it may have requests again.
type Feedback interface {
	Source
	// Done tells that request id was answered, or refused, at an instant; instants never decrease.
	Done(id int64, at time.Duration)
}
