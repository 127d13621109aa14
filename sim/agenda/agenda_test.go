package agenda

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// However entries are put in and taken out in turn, they come in the order of (instant, rank,
// sequence) among those present.
func TestTotalOrder(t *testing.T) {
	type item struct {
		at   time.Duration
		rank Rank
		seq  int
	}
	order := func(a, b item) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var a Agenda[item]
		var twin []item
		for seq := range 300 {
			if r.IntN(3) > 0 || len(twin) == 0 {
				it := item{time.Duration(r.IntN(20)), Rank(r.IntN(3)), seq}
				a.At(it.at, it.rank, it)
				twin = append(twin, it)
				slices.SortFunc(twin, order)
				continue
			}
			want := twin[0]
			twin = twin[1:]
			if at, ok := a.Next(); !ok || at != want.at {
				t.Fatalf("Next() = %v, %v, want %v", at, ok, want.at)
			}
			if a.Due(want.at-1, 255) || want.rank > 0 && a.Due(want.at, want.rank-1) || !a.Due(want.at, want.rank) {
				t.Fatalf("Due around %+v is wrong", want)
			}
			if got := a.Take(); got != want {
				t.Fatalf("Take() = %+v, want %+v", got, want)
			}
		}
	}
}

func ExampleAgenda() {
	var a Agenda[string]
	a.At(2*time.Second, 0, "a step ends")
	a.At(time.Second, 1, "a request arrives")
	a.At(time.Second, 0, "another step ends")
	for a.Len() > 0 {
		at, _ := a.Next()
		fmt.Println(at, a.Take())
	}
	// Output:
	// 1s another step ends
	// 1s a request arrives
	// 2s a step ends
}
