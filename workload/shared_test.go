package workload

import (
	"reflect"
	"testing"
	"time"

	"llmsim/sim/rng"
)

func groups(count, tokens int) Groups { return Groups{count, tokens, rng.New(3, ForGroups)} }

// Requests differ in nothing but what they share, groups are equally likely, and every one of a
// group names the same text.
func TestSharedNamesOneOfItsGroups(t *testing.T) {
	const n = 30_000
	open := func() Source {
		return Open(NewPoisson(80, rng.New(1, ForArrivals)), Independent(Fixed(50), Fixed(5)), n)
	}
	plain, all := take(open(), n+1), take(Shared(open(), groups(3, 64)), n+1)
	count := map[uint64]int{}
	for i, r := range all {
		if len(r.Prefix) != 1 || r.PrefixBlock != 64 {
			t.Fatalf("request %d has prefix %v of %d tokens, want one of 64", i, r.Prefix, r.PrefixBlock)
		}
		count[r.Prefix[0]]++
		if r.Prefix, r.PrefixBlock = nil, 0; !reflect.DeepEqual(r, plain[i]) {
			t.Fatalf("request %d = %+v, want %+v", i, r, plain[i])
		}
	}
	if len(all) != n || len(count) != 3 {
		t.Fatalf("%d requests of %d groups, want %d of 3", len(all), len(count), n)
	}
	for name, k := range count {
		if k < n/3-350 || k > n/3+350 { // over four standard deviations
			t.Errorf("group %x has %d requests of %d, want about a third", name, k, n)
		}
	}
	if again := take(Shared(open(), groups(3, 64)), n); !reflect.DeepEqual(again, all) {
		t.Error("Shared gives other requests the second time")
	}
}

// A closed loop with system prompts still waits for its answers.
func TestSharedKeepsFeedback(t *testing.T) {
	if _, ok := Shared(Open(NewAllAtOnce(), Independent(Fixed(1), Fixed(1)), 1), groups(1, 16)).(Feedback); ok {
		t.Error("Shared(Open(...)) is a Feedback source")
	}
	s := Shared(Closed(1, time.Second, Independent(Fixed(9), Fixed(1)), 2), groups(2, 16)).(Feedback)
	first, ok := s.Next()
	if _, more := s.Next(); !ok || more {
		t.Fatalf("Next() gives %v, then %v before the answer, want one request", ok, more)
	}
	s.Done(first.ID, 3*time.Second)
	if r, ok := s.Next(); !ok || r.Arrival != 4*time.Second || len(r.Prefix) != 1 {
		t.Errorf("Next() after an answer at 3s = %+v, %v, want one with a prefix at 4s", r, ok)
	}
}
