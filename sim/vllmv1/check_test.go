package vllmv1

import (
	"fmt"
	"slices"
)

// check returns the first thing that must always hold and does not.
func (s *Scheduler) check() error {
	p := s.cache.pool
	refs := make([]int, len(p.blocks))
	var known []*request
	for _, rs := range [][]*request{s.running, s.waiting.list, s.skipped.list} {
		known = append(known, rs...)
	}
	if len(known) != len(s.requests) {
		return fmt.Errorf("%d run or wait, want %d", len(known), len(s.requests))
	}
	for _, r := range known {
		running := slices.Contains(s.running, r)
		if running != (r.status == Running) {
			return fmt.Errorf("%s is %v, and among the running: %t", r.ID, r.status, running)
		}
		if !running && (len(r.blocks) > 0 || r.computed > 0 || r.placeholders > 0) {
			return fmt.Errorf("%s waits with %d blocks, %d computed, %d placeholders", r.ID, len(r.blocks), r.computed, r.placeholders)
		}
		if held := len(r.blocks) * s.config.BlockSize; running && (held < r.computed || r.computed > len(r.tokens)+r.placeholders) {
			return fmt.Errorf("%s computed %d of %d+%d tokens on blocks for %d", r.ID, r.computed, len(r.tokens), r.placeholders, held)
		}
		if r.placeholders < 0 || r.inFlight < 0 || r.stale < 0 {
			return fmt.Errorf("%s has %d placeholders, %d in flight, %d stale", r.ID, r.placeholders, r.inFlight, r.stale)
		}
		for _, id := range r.blocks {
			refs[id]++
		}
	}
	used, cached := 0, 0
	for id, b := range p.blocks[1:] {
		id++
		if b.ref != refs[id] {
			return fmt.Errorf("block %d is held %d times, counted %d", id, refs[id], b.ref)
		}
		if b.ref > 0 {
			used++
		}
		if b.key != 0 {
			cached++
		}
	}
	if refs[0] != 0 || p.blocks[0].ref != 0 || p.blocks[0].key != 0 {
		return fmt.Errorf("the null block is lent")
	}
	list := s.FreeList()
	seen := map[int]bool{}
	for _, id := range list {
		if seen[id] || p.blocks[id].ref != 0 {
			return fmt.Errorf("block %d is free with %d owners, listed before: %t", id, p.blocks[id].ref, seen[id])
		}
		seen[id] = true
	}
	if len(list) != p.free || used+p.free != p.usable() {
		return fmt.Errorf("%d blocks used, %d listed, %d free, of %d", used, len(list), p.free, p.usable())
	}
	for k, t := range p.cached {
		last := 0
		for id := t.oldest; id != 0; id = p.blocks[id].newer {
			if p.blocks[id].key != k || p.blocks[id].older != last {
				return fmt.Errorf("block %d is listed under key %d after %d, and has key %d after %d", id, k, last, p.blocks[id].key, p.blocks[id].older)
			}
			last = id
			cached--
		}
		if last == 0 || last != t.newest {
			return fmt.Errorf("key %d ends at block %d, want %d", k, last, t.newest)
		}
	}
	if cached != 0 {
		return fmt.Errorf("%d blocks have a key under which they are not found", cached)
	}
	return nil
}
