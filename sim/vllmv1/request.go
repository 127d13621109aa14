package vllmv1

import (
	"fmt"
	"slices"
)

// A Token is a token's id.
type Token int64

// A Request is what a client asks for.
type Request struct {
	ID           string
	Prompt       []Token
	MaxTokens    int
	MinTokens    int     // a stop token before so many outputs does not stop
	StopTokenIDs []Token // any of these ends the output, itself included
	Priority     int     // smaller is more urgent
	ArrivalTime  float64 // orders requests of equal priority; no clock is read
}

func (q Request) validate(c Config) error {
	switch {
	case len(q.Prompt) == 0:
		return fmt.Errorf("request %q: prompt: must have at least 1 token, has 0", q.ID)
	case len(q.Prompt) > c.MaxModelLen:
		return fmt.Errorf("request %q: prompt: must have at most max_model_len = %d tokens, has %d", q.ID, c.MaxModelLen, len(q.Prompt))
	case q.MaxTokens < 1:
		return fmt.Errorf("request %q: max_tokens: must be at least 1, is %d", q.ID, q.MaxTokens)
	case q.ArrivalTime != q.ArrivalTime:
		return fmt.Errorf("request %q: arrival_time: must be a number, is %v", q.ID, q.ArrivalTime)
	}
	return nil
}

// Status is where a request is in its life.
type Status uint8

const (
	Waiting Status = iota
	Running
	Preempted
	Finished
)

func (s Status) String() string { return [...]string{"waiting", "running", "preempted", "finished"}[s] }

// A State is what the scheduler knows of a request.
type State struct {
	Status                Status
	NumTokens             int // prompt and outputs
	NumPromptTokens       int
	NumOutputTokens       int
	NumComputedTokens     int // whose KV is computed, or scheduled to be
	NumOutputPlaceholders int // async: outputs in flight that a later step counts on
	NumInFlightTokens     int // scheduled in steps whose outcome is not known yet
	NumStaleOutputTokens  int // in flight since before a preemption
	NumPreemptions        int
	Blocks                []int
}

// A request is what the scheduler keeps. Its tokens only grow; a preemption takes the blocks and
// the computed tokens, never the tokens.
type request struct {
	Request
	status       Status
	tokens       []Token
	computed     int
	placeholders int
	inFlight     int
	stale        int
	preemptions  int

	blocks     []int
	keys       []key // of all full blocks of tokens, computed or not; nil without prefix caching
	registered int   // blocks[:registered] have their keys in the cache or share a cached block
}

func newRequest(q Request) *request {
	q.StopTokenIDs = slices.Clone(q.StopTokenIDs)
	r := &request{Request: q, tokens: slices.Clone(q.Prompt)}
	r.Prompt = r.tokens[:len(q.Prompt):len(q.Prompt)]
	return r
}

func (r *request) outputs() int { return len(r.tokens) - len(r.Prompt) }

func (r *request) state() State {
	return State{
		Status:                r.status,
		NumTokens:             len(r.tokens),
		NumPromptTokens:       len(r.Prompt),
		NumOutputTokens:       r.outputs(),
		NumComputedTokens:     r.computed,
		NumOutputPlaceholders: r.placeholders,
		NumInFlightTokens:     r.inFlight,
		NumStaleOutputTokens:  r.stale,
		NumPreemptions:        r.preemptions,
		Blocks:                slices.Clone(r.blocks),
	}
}

// ends tells whether the last token ends the output, and why.
func (r *request) ends(maxModelLen int) (Reason, bool) {
	if r.outputs() < r.MinTokens {
		return "", false
	}
	if slices.Contains(r.StopTokenIDs, r.tokens[len(r.tokens)-1]) {
		return Stop, true
	}
	if len(r.tokens) >= maxModelLen || r.outputs() >= r.MaxTokens {
		return Length, true
	}
	return "", false
}

// A Reason says why a request ended.
type Reason string

const (
	Stop   Reason = "stop"   // a stop token
	Length Reason = "length" // max_tokens, or max_model_len
	Abort  Reason = "abort"
)
