// Package agenda keeps virtual time: what is due, in a total order.
//
// It knows instants and ranks. It knows nothing of what its entries mean.
package agenda

import "time"

// A Rank orders entries that are due at one instant: the lower first.
type Rank uint8

type entry[E any] struct {
	at   time.Duration
	rank Rank
	seq  uint64
	what E
}

func (a *entry[E]) before(b *entry[E]) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.seq < b.seq
}

// An Agenda hands out entries by instant, then rank, then the order in which they were put in,
// so that two runs never disagree. The zero value is empty and ready.
type Agenda[E any] struct {
	heap []entry[E]
	seq  uint64
}

// At puts what down for an instant.
func (a *Agenda[E]) At(at time.Duration, rank Rank, what E) {
	a.heap = append(a.heap, entry[E]{at, rank, a.seq, what})
	a.seq++
	i := len(a.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !a.heap[i].before(&a.heap[up]) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

// Len counts the entries.
func (a *Agenda[E]) Len() int { return len(a.heap) }

// Next is the instant of the earliest entry; false when there is none.
func (a *Agenda[E]) Next() (time.Duration, bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

// First is the earliest entry, nil when there is none. It is valid until the agenda changes.
func (a *Agenda[E]) First() *E {
	if len(a.heap) == 0 {
		return nil
	}
	return &a.heap[0].what
}

// Due reports whether an entry of at most a rank is due by an instant.
func (a *Agenda[E]) Due(at time.Duration, rank Rank) bool {
	return len(a.heap) > 0 && a.heap[0].at <= at && (a.heap[0].at < at || a.heap[0].rank <= rank)
}

// Take removes and returns the earliest entry. It panics when the agenda is empty.
func (a *Agenda[E]) Take() E {
	top := a.heap[0].what
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last] = entry[E]{}
	a.heap = a.heap[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && a.heap[right].before(&a.heap[child]) {
			child = right
		}
		if !a.heap[child].before(&a.heap[i]) {
			break
		}
		a.heap[i], a.heap[child] = a.heap[child], a.heap[i]
		i = child
	}
	return top
}
