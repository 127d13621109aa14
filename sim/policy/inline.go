package policy

import "llmsim/sim/kv"

// inLine is what policies share that admit in strict order of arrival and decide one step at a
// time: the batch, and a queue that whoever is preempted goes to the front of.
type inLine struct {
	batch
	queue  list
	reason Blocked // what the last step had to refuse
}

func newInLine(pool *kv.Pool, limits Limits) inLine {
	return inLine{batch: newBatch(pool, limits), queue: newList()}
}

func (l *inLine) Add(r Request) Handle {
	h := l.take()
	l.seqs[h] = sequence{prompt: int32(r.Prompt), output: int32(r.Output), state: waiting}
	l.queue.pushBack(l.seqs, h)
	return h
}

func (l *inLine) Abort(h Handle) {
	if l.seqs[h].state == waiting {
		l.queue.remove(l.seqs, h)
		l.give(h)
		return
	}
	l.abort(h)
}

func (l *inLine) Commit(o *Outcome) {
	l.settle(&l.flight[0])
	l.emit(&l.flight[0], o)
}

func (l *inLine) Coast() int {
	l.coast()
	return l.decodes
}

func (l *inLine) Load() Load {
	return Load{
		Running: l.running.len, Waiting: l.queue.len,
		Free: l.pool.Free(), Used: l.pool.Used(),
		Blocked: l.reason,
	}
}
