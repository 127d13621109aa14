package kv

import (
	"fmt"
	"testing"
)

// A twin keeps every block by its number.
type twinPool struct {
	block int
	free  map[int]bool
	held  []map[int]bool
}

func (t *twinPool) grow(owner, tokens int) bool {
	need := 0
	for (len(t.held[owner])+need)*t.block < tokens {
		need++
	}
	if need > len(t.free) {
		return false
	}
	for ; need > 0; need-- {
		for id := range t.free {
			delete(t.free, id)
			t.held[owner][id] = true
			break
		}
	}
	return true
}

func (t *twinPool) release(owner int) {
	for id := range t.held[owner] {
		if t.free[id] {
			panic("a block is free and held")
		}
		t.free[id] = true
		delete(t.held[owner], id)
	}
}

// The pool counts; the twin names every block. Both must agree after every operation, and used
// and free blocks must always make up the total.
func FuzzPool(f *testing.F) {
	f.Add([]byte{8, 4, 0, 5, 1, 9, 2, 40, 0, 9, 128, 0, 1, 12})
	f.Add([]byte{1, 1, 0, 1, 1, 1, 128, 0, 1, 1})
	f.Add([]byte{200, 16, 0, 255, 64, 3, 1, 16, 2, 16, 64, 2, 129, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) < 2 || ops[0] == 0 || ops[1] == 0 {
			return
		}
		const owners = 4
		p := NewPool(int(ops[0]), int(ops[1]))
		twin := &twinPool{block: int(ops[1]), free: map[int]bool{}}
		for id := range int(ops[0]) {
			twin.free[id] = true
		}
		var leases [owners]Lease
		for range owners {
			twin.held = append(twin.held, map[int]bool{})
		}
		for i := 2; i+1 < len(ops); i += 2 {
			owner, tokens := int(ops[i])%owners, int(ops[i+1])*3
			what := fmt.Sprintf("op %d: ", i)
			switch {
			case ops[i] >= 128:
				what += fmt.Sprintf("Release(%d)", owner)
				p.Release(&leases[owner], 0, false)
				twin.release(owner)
			case ops[i] >= 64:
				// Everyone gains one block at once, and is settled at the end of it.
				what += "GrowEach"
				got := p.GrowEach(owners)
				if want := len(twin.free) >= owners; got != want {
					t.Fatalf("%s = %v, want %v", what, got, want)
				}
				for o := range owners {
					if got {
						full := (leases[o].Blocks() + 1) * p.BlockSize()
						p.Settle(&leases[o], full)
						twin.grow(o, full)
					}
				}
			default:
				what += fmt.Sprintf("Grow(%d, %d)", owner, tokens)
				if got, want := p.Grow(&leases[owner], tokens), twin.grow(owner, tokens); got != want {
					t.Fatalf("%s = %v, want %v", what, got, want)
				}
			}
			if p.Free() != len(twin.free) || p.Used()+p.Free() != p.Total() {
				t.Fatalf("%s: free %d used %d of %d, want free %d", what, p.Free(), p.Used(), p.Total(), len(twin.free))
			}
			for o := range owners {
				if leases[o].Blocks() != len(twin.held[o]) {
					t.Fatalf("%s: owner %d holds %d, want %d", what, o, leases[o].Blocks(), len(twin.held[o]))
				}
			}
		}
		for o := range owners {
			p.Release(&leases[o], 0, false)
		}
		if p.Used() != 0 {
			t.Fatalf("used %d at the end, want 0", p.Used())
		}
	})
}

func ExamplePool() {
	p := NewPool(4, 16) // 4 blocks of 16 tokens
	var a, b Lease
	fmt.Println(p.Grow(&a, 17), a.Blocks(), p.Free())
	fmt.Println(p.Grow(&b, 48), b.Blocks(), p.Free())
	p.Release(&a, 0, false)
	fmt.Println(p.Grow(&b, 48), b.Blocks(), p.Free())
	// Output:
	// true 2 2
	// false 0 2
	// true 3 1
}
