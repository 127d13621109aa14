package policy

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
