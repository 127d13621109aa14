// Package policy decides what a replica computes next.
//
// It knows sequences, blocks and token counts. It knows nothing of time: a step is decided, and
// later it has happened.
package policy

import "llmsim/sim/cost"

// A Handle names a sequence inside one policy, from Add until it is reported finished or was
// aborted; then the policy may give it to another.
type Handle int32

// A Policy is the scheduler of one replica. Schedule and Commit alternate, or, for a policy that
// decides ahead, Schedule comes up to two times before the Commit of the first; Add and Abort
// may come at any moment.
type Policy interface {
	// Add queues a request. It fits the cache when nothing else is there.
	Add(Request) Handle
	// Abort forgets a sequence and frees what it held. A step that computes it goes on without it.
	Abort(Handle)
	// Schedule decides the next step; false when there is nothing to compute, though someone may
	// have been preempted.
	Schedule(*Decision) bool
	// Commit applies the step that Schedule decided.
	Commit(*Outcome)
	// Quiet returns the shape of the next step when it is known to change nothing but contexts
	// and blocks: every running sequence decodes, none finishes, is admitted or preempted.
	Quiet() (cost.Shape, bool)
	// Coast decides the step that Quiet returned and applies a step: this one or, for a policy that
	// decides ahead, the one in flight. It returns how many sequences that one emits a token of.
	Coast() int
	// Load tells the present state.
	Load() Load
}

// A Request is what a policy must know of one.
type Request struct {
	Prompt int // tokens, at least one
	Output int // tokens, at least one; stops the sequence, and no decision may depend on it before

	Priority int   // the smaller goes first, where a policy goes by it
	Arrived  int64 // order of arrival among requests of one priority
	ID       int64 // order of admission among requests that are equal in both; else that of Add

	// Prefix names the leading pieces, of PrefixTokens tokens each, of the prompt: requests whose
	// first pieces are equal share these tokens. With more pieces than the prompt has, the others
	// name the answer, which can be found when its sequence has left the batch. The slice is kept.
	Prefix       []uint64
	PrefixTokens int
}

// Limits bound every step of a policy, under vLLM's names.
type Limits struct {
	MaxNumSeqs                int // sequences that run
	MaxNumBatchedTokens       int // tokens computed in a step
	LongPrefillTokenThreshold int // tokens of one sequence computed in a step; 0: no bound
}

// A Decision is what a step computes. Its slices are in running order, and valid until the next
// Schedule.
type Decision struct {
	Shape     cost.Shape
	Started   []Handle // computed for the first time in their life
	Stalled   []Handle // decoding until now, no token in this step
	Preempted []Handle // lost their blocks, in that order
}

// An Outcome is what a step emitted. Its slices are in running order, and valid until the policy
// decides or applies a step again.
type Outcome struct {
	Steady   int      // sequences that emitted a token in this step and in the one before
	Firsts   []Handle // emitted their first token
	Resumed  []Handle // emitted a token after having been preempted or stalled
	Finished []Handle // emitted their last token

	// Where decisions run ahead: emitted a token in this step, though the decision after it had
	// taken their blocks, or had no token for them.
	Preempted []Handle
	Stalled   []Handle
}

// Load is a replica's state between two decisions.
type Load struct {
	Running, Waiting int // sequences
	Free, Used       int // blocks
	Blocked          Blocked

	// Prompt tokens looked up in the prefix cache when their sequence was admitted, and of them
	// those found, since the start.
	CacheQueries, CacheHits int64
}

// Blocked names what kept a request from being admitted, or a running one from all its tokens.
type Blocked uint8

const (
	Unblocked Blocked = iota
	BySlots           // max_num_seqs sequences run
	ByKV              // the head of the queue does not fit the free blocks
	ByBudget          // max_num_batched_tokens is used up
	Reasons   = 4
)

var blockedNames = [Reasons]string{"none", "slots", "kv", "budget"}

func (b Blocked) String() string { return blockedNames[b] }
