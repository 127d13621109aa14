// Package cost prices a step from its shape.
//
// It knows sums over a batch. It knows nothing of sequences, of blocks, or of the clock.
package cost

import "time"

// A Shape is all that a step's price depends on: sums over its batch, so that pricing a step
// costs the same whatever its size.
type Shape struct {
	Sequences     int   // scheduled in this step
	Tokens        int   // computed in this step
	Sampled       int   // rows that reach the lm_head: sequences that emit a token
	Context       int64 // tokens of KV read: the sum of every sequence's context after the step
	Decodes       int   // sequences that compute the one token they lack
	DecodeContext int64 // their part of Context
	PrefillPairs  int64 // causal query-key pairs of the others: the sum of new*past + new*(new+1)/2
}

// PrefillTokens is the part of Tokens that is not decode.
func (s Shape) PrefillTokens() int { return s.Tokens - s.Decodes }

// A Bound names what a step's time is mostly spent on.
type Bound uint8

const (
	Compute  Bound = iota // arithmetic
	Weights               // reading weights
	KVReads               // reading the KV cache
	Overhead              // fixed time per step
	Bounds   = 4
)

var boundNames = [Bounds]string{"compute", "weights", "kv", "overhead"}

func (b Bound) String() string { return boundNames[b] }

// Longest is the price of a step that takes longer than anything that could be meant: a bit more
// than a year.
const Longest time.Duration = 1 << 55

// A Model prices one forward pass. A price is at least one nanosecond, and at most Longest.
type Model interface {
	StepTime(Shape) (time.Duration, Bound)
}
