package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A pool remembers a name only as long as someone holds it, or its blocks are still there: what
// went by leaves nothing behind, however many different prompts there were.
func TestNamesAreForgotten(t *testing.T) {
	p := NewCachingPool(100, 16, true)
	r := rand.New(rand.NewPCG(1, 1))
	most := 0
	for i := range 20_000 {
		pieces := []uint64{uint64(r.IntN(3))}
		for range r.IntN(8) {
			pieces = append(pieces, uint64(i))
		}
		size := []int{16, 24, 64}[r.IntN(3)]
		tokens := len(pieces) * size
		var l Lease
		p.Share(&l, pieces, size, tokens)
		h := p.Match(&l, p.Full(tokens-1))
		p.Claim(&l, h)
		if !p.Grow(&l, tokens) {
			t.Fatalf("Grow(%d) = false with %d free", tokens, p.Free())
		}
		p.Register(&l, p.Full(tokens))
		p.Release(&l, p.Full(tokens), false)
		most = max(most, len(p.known))
	}
	// A hundred blocks have at most a hundred chains that end in them, each behind at most eight.
	if most > 900 || len(p.chains) > 900 || len(p.oldest) > 4*900 || len(p.items) > 1000 {
		t.Errorf("%d names, %d chains, %d keys, %d items at most, want no more than the blocks need", most, len(p.chains), len(p.oldest), len(p.items))
	}
	p.GrowEach(100)
	if len(p.known) != 0 {
		t.Errorf("%d names are left of blocks that were taken", len(p.known))
	}
}

// Pieces of different sizes never name the same block, and blocks need not end where pieces do.
func TestKeysFollowPieces(t *testing.T) {
	p := NewCachingPool(1000, 16, true)
	keys := func(pieces []uint64, size, tokens int) string {
		var l Lease
		p.Share(&l, pieces, size, tokens)
		if l.prefix == nil {
			return "none"
		}
		return fmt.Sprint(l.prefix.keys)
	}
	for _, c := range []struct {
		a, b       []uint64
		sizeA, len int
		sizeB      int
		same       bool
	}{
		{[]uint64{1, 2}, []uint64{1, 2}, 32, 64, 32, true},
		{[]uint64{1, 2}, []uint64{1, 3}, 32, 64, 32, false},
		{[]uint64{1, 2}, []uint64{1, 2}, 32, 64, 16, false},
		{[]uint64{7}, []uint64{7}, 10, 10, 10, true}, // no block is full
	} {
		a, b := keys(c.a, c.sizeA, c.len), keys(c.b, c.sizeB, c.len)
		if (a == b) != c.same {
			t.Errorf("keys of %v by %d = %s, of %v by %d = %s, want the same: %v", c.a, c.sizeA, a, c.b, c.sizeB, b, c.same)
		}
	}
	// Two pieces of 24 tokens hold three blocks of 16; the second block needs both.
	if a, b := keys([]uint64{1, 2}, 24, 48), keys([]uint64{1, 3}, 24, 48); a[:2] != b[:2] || a == b {
		t.Errorf("keys = %s and %s, want only the first the same", a, b)
	}
}

func ExamplePool_Match() {
	p := NewCachingPool(8, 16, true)
	var a, b Lease
	p.Share(&a, []uint64{1, 2}, 32, 64) // two pieces of 32 tokens: four blocks
	p.Grow(&a, 64)
	p.Register(&a, 4)
	p.Release(&a, 4, false)
	p.Share(&b, []uint64{1, 3}, 32, 64) // the same first piece
	fmt.Printf("%+v of %d free\n", p.Match(&b, 4), p.Free())
	// Output: {Blocks:2 Idle:2} of 8 free
}
