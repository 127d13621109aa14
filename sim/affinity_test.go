package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"llmsim/sim"
)

// plainAffinity is the same router over a list of beginnings, the last used at its end.
type plainAffinity struct {
	most  int
	known []plainKnown
}

type plainKnown struct {
	beginning string
	replica   int32
}

func (p *plainAffinity) find(beginning string) int {
	return slices.IndexFunc(p.known, func(k plainKnown) bool { return k.beginning == beginning })
}

func (p *plainAffinity) route(a sim.Arrival, loads []sim.Load) int {
	least := 0
	for i, l := range loads {
		if l.Requests < loads[least].Requests {
			least = i
		}
	}
	n := 0
	if a.PrefixBlock > 0 {
		n = min(len(a.Prefix), max(a.Prompt/a.PrefixBlock, 1))
	}
	var lengths []int
	for k := 1; k <= n && len(lengths) < p.most; k++ {
		if k <= 16 || k <= 32 && k%2 == 0 || k <= 64 && k%4 == 0 {
			lengths = append(lengths, k)
		}
	}
	slices.Reverse(lengths)
	name := func(k int) string { return fmt.Sprint(a.PrefixBlock, a.Prefix[:k]) }
	chosen := least
	for _, k := range lengths {
		if i := p.find(name(k)); i >= 0 {
			for at, l := range loads {
				if l.Replica == p.known[i].replica && l.Requests <= 2*loads[least].Requests+8 {
					chosen = at
				}
			}
			break
		}
	}
	for _, k := range lengths {
		if i := p.find(name(k)); i >= 0 {
			p.known = slices.Delete(p.known, i, i+1)
		}
		p.known = append(p.known, plainKnown{name(k), loads[chosen].Replica})
		if len(p.known) > p.most {
			p.known = p.known[1:]
		}
	}
	return chosen
}

// Prefixes that branch, memories that overflow, loads that lean, replicas that are missing.
func TestPrefixAffinityAgainstAPlainOne(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 13))
		most := 1 + r.IntN(60)
		router, plain := sim.NewPrefixAffinity(most), &plainAffinity{most: most}
		all := make([]sim.Load, 2+r.IntN(5))
		for i := range all {
			all[i].Replica = int32(3 * i)
		}
		for step := range 400 {
			for i := range all {
				all[i].Requests = max(0, all[i].Requests+r.IntN(7)-3)
			}
			a := sim.Arrival{Prompt: 1 + r.IntN(250), PrefixBlock: 4 * (1 + r.IntN(2))}
			for range r.IntN(60) {
				a.Prefix = append(a.Prefix, uint64(r.IntN(2)*r.IntN(2)*r.IntN(2)*r.IntN(2)))
			}
			loads := slices.DeleteFunc(slices.Clone(all), func(sim.Load) bool { return r.IntN(8) == 0 })
			if len(loads) == 0 {
				continue
			}
			if got, want := router.Route(a, loads), plain.route(a, loads); got != want {
				t.Fatalf("seed %d, request %d: Route(%+v, %+v) = %d, want %d", seed, step, a, loads, got, want)
			}
		}
	}
}

// A router that has learnt all it may costs no memory any more, however long it runs.
func TestRoutingAllocatesNothing(t *testing.T) {
	loads := make([]sim.Load, 8)
	for i := range loads {
		loads[i].Replica, loads[i].Weight = int32(i), float32(1+i%2)
	}
	prefix := make([]uint64, 100)
	next := uint64(0)
	for name, router := range map[string]sim.Router{
		"round-robin": &sim.RoundRobin{}, "least-loaded": sim.LeastLoaded{}, "shortest-queue": sim.ShortestQueue{},
		"prefix-affinity": sim.NewPrefixAffinity(1000),
	} {
		route := func() {
			next++
			prefix[next%100] = next
			loads[router.Route(sim.Arrival{Prompt: 1600, Prefix: prefix, PrefixBlock: 16}, loads)].Requests = int(next % 20)
		}
		for range 1000 {
			route()
		}
		// A map may grow once more to make room for what was deleted.
		if allocs := testing.AllocsPerRun(2000, route); allocs >= 0.5 {
			t.Errorf("%s: %v allocations a request, want none", name, allocs)
		}
	}
}

func BenchmarkPrefixAffinity(b *testing.B) {
	for _, pieces := range []int{1, 128, 2048} {
		b.Run(fmt.Sprint(pieces), func(b *testing.B) {
			router := sim.NewPrefixAffinity(sim.KnownBeginnings)
			loads := make([]sim.Load, 16)
			for i := range loads {
				loads[i].Replica = int32(i)
			}
			prefix := make([]uint64, pieces)
			b.ReportAllocs()
			for i := range b.N {
				prefix[pieces/2] = uint64(i)
				router.Route(sim.Arrival{Prompt: 16 * pieces, Prefix: prefix, PrefixBlock: 16}, loads)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pieces), "ns/piece")
		})
	}
}
