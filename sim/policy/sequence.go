package policy

import "llmsim/sim/kv"

const none Handle = -1

type state uint8

const (
	unused   state = iota
	waiting        // in the queue, nothing computed
	partial        // running, lacks more than it got so far; counted explicitly
	decoding       // running, gets one token every step; counted by the calendar
	leaving        // running, its last token is under way
)

// A sequence's counts are explicit except while it decodes: then it has computed base+step
// tokens before a step, and emits its last token in step due.
type sequence struct {
	base, due  int64
	joined     int64  // first step in which it decodes
	order      int64  // rank of its admission among all admissions
	visit      uint32 // the walk that last gave it tokens
	prompt     int32
	output     int32
	generated  int32 // tokens emitted; stale while decoding
	computed   int32 // tokens in the cache; stale while decoding
	scheduled  int32 // tokens of the step under way; partial only
	lease      kv.Lease
	next, prev Handle // in the queue, or among the running
	later      Handle // in its day of the calendar
	earlier    Handle
	state      state
	started    bool // was computed before, perhaps in a life that preemption ended
}

func (s *sequence) target() int { return int(s.prompt) + int(s.generated) }

// Sequences are held in one slab and linked by index, so that a list costs no allocation.
type slab struct {
	seqs []sequence
	free []Handle
}

func (s *slab) take() Handle {
	if n := len(s.free); n > 0 {
		h := s.free[n-1]
		s.free = s.free[:n-1]
		return h
	}
	s.seqs = append(s.seqs, sequence{})
	return Handle(len(s.seqs) - 1)
}

func (s *slab) give(h Handle) {
	s.seqs[h] = sequence{}
	s.free = append(s.free, h)
}

// A list is a doubly linked list of sequences.
type list struct {
	head, tail Handle
	len        int
}

func newList() list { return list{head: none, tail: none} }

func (l *list) pushBack(s []sequence, h Handle) {
	s[h].prev, s[h].next = l.tail, none
	if l.tail == none {
		l.head = h
	} else {
		s[l.tail].next = h
	}
	l.tail = h
	l.len++
}

func (l *list) pushFront(s []sequence, h Handle) {
	s[h].prev, s[h].next = none, l.head
	if l.head == none {
		l.tail = h
	} else {
		s[l.head].prev = h
	}
	l.head = h
	l.len++
}

func (l *list) remove(s []sequence, h Handle) {
	prev, next := s[h].prev, s[h].next
	if prev == none {
		l.head = next
	} else {
		s[prev].next = next
	}
	if next == none {
		l.tail = prev
	} else {
		s[next].prev = prev
	}
	l.len--
}
