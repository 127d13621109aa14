package sim

import (
	"cmp"
	"math/bits"
	"slices"
)

// KnownBeginnings is how many beginnings of prompts a PrefixAffinity of a scenario remembers: those
// of at least 4,000 prompts of 15,000 tokens in pieces of 16, and of many more that begin alike.
const KnownBeginnings = 1 << 18

// A PrefixAffinity takes the replica that last was given the longest known beginning of a prompt:
// its prefix cache may still have it. When that one has more than twice the requests of the least
// loaded and 8 more, by weight, and for a prompt of which nothing is known, it takes the least
// loaded, and the prompt's beginnings are then known to be there.
//
// The beginnings of a prompt are its first 1 to 16 pieces, from there on every second to 32, every
// fourth to 64, and so on: 72 of a prompt of 2,048 pieces. It remembers those last used; a short one
// counts as used after the longer ones of the same prompt, and so is remembered longer.
type PrefixAffinity struct {
	most       int
	at         map[uint64]int32 // places of known beginnings
	known      []known          // a ring by use, from the head on: known[0] is the head alone
	beginnings []uint64         // of the prompt being routed, shortest first
}

// A known beginning of prompts stands in the ring between one used later and one used earlier.
type known struct {
	beginning      uint64
	later, earlier int32
	replica        int32
}

// NewPrefixAffinity remembers so many beginnings, at least one.
func NewPrefixAffinity(most int) *PrefixAffinity {
	return &PrefixAffinity{most: max(most, 1), at: map[uint64]int32{}, known: make([]known, 1)}
}

func (p *PrefixAffinity) Route(a Arrival, loads []Load) int {
	least := LeastLoaded{}.Route(a, loads)
	p.begin(a)
	chosen := least
	// Whoever knows a beginning knows all shorter ones.
	if n, _ := slices.BinarySearchFunc(p.beginnings, true, func(beginning uint64, _ bool) int {
		if _, ok := p.at[beginning]; ok {
			return -1
		}
		return 0
	}); n > 0 {
		replica := p.known[p.at[p.beginnings[n-1]]].replica
		i, ok := slices.BinarySearchFunc(loads, replica, func(l Load, r int32) int { return cmp.Compare(l.Replica, r) })
		if ok && !overloaded(&loads[i], &loads[least]) {
			chosen = i
		}
	}
	for _, beginning := range slices.Backward(p.beginnings) {
		p.use(beginning, loads[chosen].Replica)
	}
	return chosen
}

func overloaded(l, least *Load) bool {
	if l.Weight == least.Weight {
		return l.Requests > 2*least.Requests+8
	}
	return float64(l.Requests)/float64(l.Weight) > 2*float64(least.Requests)/float64(least.Weight)+8
}

// begin lists the beginnings of a prompt, each a hash of its pieces. A piece that the prompt only
// starts may hold tokens of the answer, and counts only if there is no other.
func (p *PrefixAffinity) begin(a Arrival) {
	p.beginnings = p.beginnings[:0]
	if len(a.Prefix) == 0 || a.PrefixBlock < 1 {
		return
	}
	n := min(len(a.Prefix), max(a.Prompt/a.PrefixBlock, 1))
	hash := uint64(a.PrefixBlock)
	for i, piece := range a.Prefix[:n] {
		// The finalizer of SplitMix64, a bijection.
		hash = (hash ^ piece) + 0x9e3779b97f4a7c15
		hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
		hash = (hash ^ hash>>27) * 0x94d049bb133111eb
		hash ^= hash >> 31
		if length := i + 1; length&(1<<max(bits.Len(uint(length))-4, 0)-1) == 0 && len(p.beginnings) < p.most {
			p.beginnings = append(p.beginnings, hash)
		}
	}
}

// use notes that a replica gets a beginning.
func (p *PrefixAffinity) use(beginning uint64, replica int32) {
	i, ok := p.at[beginning]
	switch {
	case ok:
		p.leave(i)
	case len(p.known) <= p.most:
		i = int32(len(p.known))
		p.known = append(p.known, known{})
	default:
		i = p.known[0].later // around the ring: the one used first
		p.leave(i)
		delete(p.at, p.known[i].beginning)
	}
	p.at[beginning] = i
	next := p.known[0].earlier
	p.known[i] = known{beginning: beginning, later: 0, earlier: next, replica: replica}
	p.known[next].later = i
	p.known[0].earlier = i
}

func (p *PrefixAffinity) leave(i int32) {
	k := p.known[i]
	p.known[k.later].earlier = k.earlier
	p.known[k.earlier].later = k.later
}
