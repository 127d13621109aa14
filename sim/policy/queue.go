package policy

// A queue holds the waiting sequences in the order in which they are admitted.
type queue interface {
	add(Handle)      // a new one
	putBack(Handle)  // one that was preempted
	head() Handle    // none when it is empty
	remove(h Handle) // any of them
	size() int
}

// A fifo goes by order of arrival; whoever was preempted goes first.
type fifo struct {
	slab *slab
	list
}

func (q *fifo) add(h Handle)     { q.pushBack(q.slab.seqs, h) }
func (q *fifo) putBack(h Handle) { q.pushFront(q.slab.seqs, h) }
func (q *fifo) head() Handle     { return q.list.head }
func (q *fifo) remove(h Handle)  { q.list.remove(q.slab.seqs, h) }
func (q *fifo) size() int        { return q.list.len }

// byPriority goes by priority, then arrival, then id, then the order in which sequences were added;
// having been preempted is no advantage. It is a binary heap.
type byPriority struct {
	heap  []Handle
	ranks []rank // by handle
	added int64
}

// A rank is where a sequence stands among others that wait, or that may be preempted.
type rank struct {
	priority int32 // the smaller goes first
	place    int32 // in the heap
	arrived  int64
	id       int64
	added    int64
}

// enter ranks a new sequence.
func (q *byPriority) enter(h Handle, r Request) {
	for int(h) >= len(q.ranks) {
		q.ranks = append(q.ranks, rank{})
	}
	q.ranks[h] = rank{priority: int32(r.Priority), arrived: r.Arrived, id: r.ID, added: q.added}
	q.added++
}

func (q *byPriority) before(a, b Handle) bool {
	x, y := &q.ranks[a], &q.ranks[b]
	if x.priority != y.priority {
		return x.priority < y.priority
	}
	if x.arrived != y.arrived {
		return x.arrived < y.arrived
	}
	if x.id != y.id {
		return x.id < y.id
	}
	return x.added < y.added
}

// leastUrgent is who has the highest priority value, of equals the last to arrive, and of equals
// in that the first in running order.
func (q *byPriority) leastUrgent(b *batch) Handle {
	worst := b.running.head
	for h := b.seqs[worst].next; h != none; h = b.seqs[h].next {
		x, w := &q.ranks[h], &q.ranks[worst]
		if x.priority > w.priority || x.priority == w.priority && x.arrived > w.arrived {
			worst = h
		}
	}
	return worst
}

func (q *byPriority) size() int { return len(q.heap) }

func (q *byPriority) head() Handle {
	if len(q.heap) == 0 {
		return none
	}
	return q.heap[0]
}

func (q *byPriority) add(h Handle) {
	q.heap = append(q.heap, h)
	q.ranks[h].place = int32(len(q.heap) - 1)
	q.up(len(q.heap) - 1)
}

func (q *byPriority) putBack(h Handle) { q.add(h) }

func (q *byPriority) remove(h Handle) {
	i := int(q.ranks[h].place)
	last := len(q.heap) - 1
	q.swap(i, last)
	q.heap = q.heap[:last]
	if i < last {
		q.down(i)
		q.up(i)
	}
}

func (q *byPriority) swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.ranks[q.heap[i]].place = int32(i)
	q.ranks[q.heap[j]].place = int32(j)
}

func (q *byPriority) up(i int) {
	for i > 0 && q.before(q.heap[i], q.heap[(i-1)/2]) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (q *byPriority) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.heap); child++ {
			if q.before(q.heap[child], q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}
