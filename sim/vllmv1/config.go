// Package vllmv1 decides, block by block, what vLLM's V1 scheduler and its KV-cache manager would decide.
//
// It knows token ids, blocks, and the order of queues. It knows nothing of time, of step prices, or of being fast.
package vllmv1

import (
	"errors"
	"fmt"
	"strings"
)

// An Order says who waits in front of whom, and who is preempted.
type Order string

const (
	FCFS     Order = "fcfs"     // as they came; the last admitted is preempted
	Priority Order = "priority" // smaller Request.Priority first, then earlier arrival; the last of these is preempted
)

// A Config has vLLM's names and meanings. Lengths are in tokens.
type Config struct {
	MaxNumSeqs                int
	MaxNumBatchedTokens       int
	MaxModelLen               int
	LongPrefillTokenThreshold int // longest chunk of a prefill; 0 for no such limit
	EnableChunkedPrefill      bool
	EnablePrefixCaching       bool
	Policy                    Order
	SchedulerReserveFullISL   bool    // admit only what would fit whole, though nothing is reserved
	Watermark                 float64 // share of all blocks that an admission leaves free, unless nothing runs
	NumGPUBlocks              int     // with block 0, which is never lent
	BlockSize                 int
	AsyncScheduling           bool
}

// Validate joins all faults.
//
// That max_num_batched_tokens reaches max_num_seqs, or max_model_len without chunked prefill, or
// that the blocks hold max_model_len, is for an engine's start-up to ask: decisions are defined
// without it.
func (c Config) Validate() error {
	var errs []error
	least := func(name string, value, least int) {
		if value < least {
			errs = append(errs, fmt.Errorf("%s: must be at least %d, is %d", name, least, value))
		}
	}
	least("max_num_seqs", c.MaxNumSeqs, 1)
	least("max_num_batched_tokens", c.MaxNumBatchedTokens, 1)
	least("max_model_len", c.MaxModelLen, 1)
	least("long_prefill_token_threshold", c.LongPrefillTokenThreshold, 0)
	least("num_gpu_blocks", c.NumGPUBlocks, 2)
	least("block_size", c.BlockSize, 1)
	if c.NumGPUBlocks > MaxBlocks {
		errs = append(errs, fmt.Errorf("num_gpu_blocks: must be at most %d, is %d", MaxBlocks, c.NumGPUBlocks))
	}
	if !(c.Watermark >= 0 && c.Watermark < 1) {
		errs = append(errs, fmt.Errorf("watermark: must be at least 0 and below 1, is %v", c.Watermark))
	}
	if c.Policy != FCFS && c.Policy != Priority {
		errs = append(errs, fmt.Errorf("policy: must be %s or %s, is %q", FCFS, Priority, string(c.Policy)))
	}
	return errors.Join(errs...)
}

// MaxBlocks bounds a pool, which holds every block as a value of its own.
const MaxBlocks = 1 << 20

// Rules are the decisions that differ between versions.
type Rules struct {
	// ReserveGate: scheduler_reserve_full_isl exists.
	ReserveGate bool
	// Watermark: the setting exists.
	Watermark bool
	// UnhashedFirst: freed blocks without a hash go to the front of the free list. Otherwise all go to its end.
	UnhashedFirst bool
	// ChunkedOffBreaks: a prompt beyond the step's budget, when prompts may not be cut, ends the
	// admissions of the step. Otherwise the next in the queue may pass it.
	ChunkedOffBreaks bool
	// StatsAtAdmission: a lookup counts when its request is admitted. Otherwise each lookup counts.
	StatsAtAdmission bool
	// StaleDelivered: a request preempted while a token of it is in flight still gets that token.
	// Otherwise the token is dropped and sampled again.
	StaleDelivered bool
	// CursorFollows: when a victim is taken out in front of the request that needs room, the
	// running loop stays at that request's successor. Otherwise it does so only for victims that
	// the step had scheduled, and passes over one request after any other.
	CursorFollows bool
}

// A Profile is the rules of a range of versions.
type Profile struct {
	Name     string
	Versions string // of vLLM, for people
	Rules    Rules
	Async    bool // async_scheduling where a configuration does not say
}

// Profiles lists all profiles, the newest first.
func Profiles() []Profile {
	now := Rules{
		ReserveGate: true, Watermark: true, UnhashedFirst: true, ChunkedOffBreaks: true,
		StatsAtAdmission: true, StaleDelivered: true, CursorFollows: true,
	}
	return []Profile{
		{Name: "vllm-0.28", Versions: "v0.28.0 (main at 7cfb97e33791)", Rules: now, Async: true},
		{Name: "vllm-0.19", Versions: "v0.19", Rules: Rules{ReserveGate: true, ChunkedOffBreaks: true}, Async: true},
		{Name: "vllm-classic-v1", Versions: "v0.9 to v0.13; without chunked prefill, to v0.11", Rules: Rules{}},
	}
}

// DefaultProfile is the profile modelled where none is named.
const DefaultProfile = "vllm-0.28"

// FindProfile returns the profile of that name.
func FindProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("must be one of %s, is %q", strings.Join(names, ", "), name)
}
