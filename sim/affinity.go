package sim

import (
	"cmp"
	"slices"
)

// KnownPieces is how many pieces of prompts a PrefixAffinity remembers: 4.2 million tokens in
// pieces of 16.
const KnownPieces = 1 << 18

// A PrefixAffinity takes the replica that last was given the longest known beginning of a prompt:
// its prefix cache may still have it. When that one has more than twice the requests of the least
// loaded and 8 more, by weight, and for a prompt of which nothing is known, it takes the least
// loaded, and the prompt's pieces are then known to be there.
//
// Of the pieces of all prompts it remembers the Pieces last used; the first piece of a prompt
// counts as used after those behind it, and so is remembered longer.
type PrefixAffinity struct {
	Pieces int // at least 1

	at      map[uint64]int32 // places of known beginnings
	known   []known          // a ring by use, from the head on: known[0] is the head alone
	lengths []uint64         // the beginnings of the prompt being routed, shortest first
}

// A known beginning of prompts stands in the ring between one used later and one used earlier.
type known struct {
	beginning      uint64
	later, earlier int32
	replica        int32
}

// NewPrefixAffinity remembers so many pieces.
func NewPrefixAffinity(pieces int) *PrefixAffinity {
	return &PrefixAffinity{Pieces: pieces, at: map[uint64]int32{}, known: make([]known, 1)}
}

func (p *PrefixAffinity) Route(a Arrival, loads []Load) int {
	least := LeastLoaded{}.Route(a, loads)
	p.begin(a)
	chosen := least
	// Whoever knows a beginning knows all shorter ones.
	if n, _ := slices.BinarySearchFunc(p.lengths, true, func(beginning uint64, _ bool) int {
		if _, ok := p.at[beginning]; ok {
			return -1
		}
		return 0
	}); n > 0 {
		replica := p.known[p.at[p.lengths[n-1]]].replica
		i, ok := slices.BinarySearchFunc(loads, replica, func(l Load, r int32) int { return cmp.Compare(l.Replica, r) })
		if ok && !overloaded(&loads[i], &loads[least]) {
			chosen = i
		}
	}
	for _, beginning := range slices.Backward(p.lengths) {
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
	p.lengths = p.lengths[:0]
	if len(a.Prefix) == 0 || a.PrefixBlock < 1 {
		return
	}
	n := min(len(a.Prefix), max(a.Prompt/a.PrefixBlock, 1), p.Pieces)
	hash := uint64(a.PrefixBlock)
	for _, piece := range a.Prefix[:n] {
		// The finalizer of SplitMix64, a bijection.
		hash = (hash ^ piece) + 0x9e3779b97f4a7c15
		hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
		hash = (hash ^ hash>>27) * 0x94d049bb133111eb
		hash ^= hash >> 31
		p.lengths = append(p.lengths, hash)
	}
}

// use notes that a replica gets a beginning.
func (p *PrefixAffinity) use(beginning uint64, replica int32) {
	i, ok := p.at[beginning]
	switch {
	case ok:
		p.leave(i)
	case len(p.known) <= p.Pieces:
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
