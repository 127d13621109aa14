package vllmv1

import (
	"cmp"
	"slices"
)

// A queue is requests in the order in which they are to be admitted.
type queue struct {
	order Order
	list  []*request
}

// compare orders requests by urgency; equal only for the same id.
func compare(a, b *request) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ArrivalTime, b.ArrivalTime), cmp.Compare(a.ID, b.ID))
}

func (q *queue) front() *request {
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

// pushBack queues a request that came last.
func (q *queue) pushBack(r *request) {
	if q.order == Priority {
		q.insert(r)
		return
	}
	q.list = append(q.list, r)
}

// pushFront queues requests, in their order, before all others. Priority knows no such favour.
func (q *queue) pushFront(rs ...*request) {
	if q.order == Priority {
		for _, r := range rs {
			q.insert(r)
		}
		return
	}
	q.list = slices.Insert(q.list, 0, rs...)
}

func (q *queue) insert(r *request) {
	at, _ := slices.BinarySearchFunc(q.list, r, compare)
	q.list = slices.Insert(q.list, at, r)
}

func (q *queue) pop() { q.list = q.list[1:] }

// remove reports whether the request was queued.
func (q *queue) remove(r *request) bool {
	at := slices.Index(q.list, r)
	if at < 0 {
		return false
	}
	q.list = slices.Delete(q.list, at, at+1)
	return true
}

func ids(rs []*request) []string {
	names := make([]string, len(rs))
	for i, r := range rs {
		names[i] = r.ID
	}
	return names
}
