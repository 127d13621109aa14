package conformance

import (
	"cmp"
	"slices"

	"llmsim/sim/vllmv1"
)

// A Mismatch is the first difference of a case.
type Mismatch struct {
	Case     string `json:"case"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Step     int    `json:"step"`  // the last decided, from 1; 0 before the first
	Event    int    `json:"event"` // in the case's list, from 0
	Field    string `json:"field"`
	Expected string `json:"expected"` // recorded
	Got      string `json:"got"`      // by the replay
}

// Replay decides a case anew and holds every event against the recorded one, up to the first that
// differs. steps is how many decisions were compared. The error, if any, names the file and line
// of a case that cannot be replayed.
func Replay(k *Case, rules vllmv1.Rules) (steps int, m *Mismatch, err error) {
	p, err := newReplay(k, rules)
	if err != nil {
		return 0, nil, err
	}
	p.run()
	return p.steps, p.mismatch, p.err
}

// A replay is a case under way. Each turn of the engine is compared before the next, so a replay
// is never longer than its recording, but for idle turns, which are bounded.
type replay struct {
	*Case
	engine   *vllmv1.Engine
	due      []int // indices of the requests that have not arrived, the next first
	event    int
	step     int
	steps    int
	mismatch *Mismatch
	err      error
}

// bases are the first outputs of requests.
type bases map[string]vllmv1.Token

func (b bases) Sample(id string, k int) vllmv1.Token { return b[id] + vllmv1.Token(k) }

func newReplay(k *Case, rules vllmv1.Rules) (*replay, error) {
	fault := func(field, text string) error { return &Fault{File: k.File, Line: k.Line, Field: field, Text: text} }
	for key, decides := range map[string]bool{"scheduler_reserve_full_isl": rules.ReserveGate, "watermark": rules.Watermark} {
		if decides && k.lacks[key] {
			return nil, fault("config."+key, "is missing; only versions without it may leave it out")
		}
	}
	s, err := vllmv1.New(k.Config, rules)
	if err != nil {
		return nil, fault("config", err.Error())
	}
	from := make(bases, len(k.Requests))
	for _, q := range k.Requests {
		from[q.ID] = q.GenBase
	}
	due := make([]int, len(k.Requests))
	for i := range due {
		due[i] = i
	}
	slices.SortStableFunc(due, func(a, b int) int { return cmp.Compare(k.Requests[a].ArriveIter, k.Requests[b].ArriveIter) })
	return &replay{Case: k, engine: vllmv1.NewEngine(s, from), due: due}, nil
}

func (p *replay) run() {
	turns := 0
	for ; turns < p.Iterations && !p.over(); turns++ {
		p.arrive(turns)
		if p.stopped() {
			return
		}
		turn := p.engine.Iterate()
		if d := turn.Decision; d != nil {
			p.decided(d)
		}
		if o := turn.Outcome; o != nil && !p.stopped() {
			p.applied(o)
		}
		if p.stopped() {
			return
		}
	}
	switch over := p.over(); {
	case p.event < len(p.Events):
		p.differ("event", string(p.Events[p.event].Kind), "none")
	case turns < p.Iterations:
		p.differ("iterations", itoa(p.Iterations), itoa(turns))
	case !over && !p.Truncated:
		p.differ("iterations", itoa(p.Iterations), "more than "+itoa(turns))
	}
}

func (p *replay) stopped() bool { return p.mismatch != nil || p.err != nil }

func (p *replay) over() bool { return len(p.due) == 0 && p.engine.Idle() }

// arrive adds what is due in a turn; of one turn, in the order of the list.
func (p *replay) arrive(turn int) {
	for len(p.due) > 0 {
		i := p.due[0]
		q := p.Requests[i]
		if q.ArriveIter > turn {
			return
		}
		p.due = p.due[1:]
		if err := p.engine.Add(q.Request); err != nil {
			p.err = &Fault{File: p.File, Line: p.Line, Field: "requests" + index(i), Text: err.Error()}
			return
		}
		if e := p.expect(Add); e != nil {
			p.same("id", e.ID, q.ID)
		}
		if p.stopped() {
			return
		}
	}
}

// expect takes the next recorded event, or finds that it is of another kind.
func (p *replay) expect(kind Kind) *Event {
	if p.event == len(p.Events) {
		p.differ("event", "none", string(kind))
		return nil
	}
	e := &p.Events[p.event]
	if e.Kind != kind {
		p.differ("event", string(e.Kind), string(kind))
		return nil
	}
	p.event++
	return e
}

func (p *replay) decided(d *vllmv1.Decision) {
	p.step = d.Step
	e := p.expect(Schedule)
	if e == nil {
		return
	}
	p.steps++
	p.same("step", itoa(e.Step), itoa(d.Step))
	sched := make([]Sched, len(d.Scheduled))
	for i, s := range d.Scheduled {
		sched[i] = Sched{s.ID, s.NumTokens, s.NumComputedTokens, string(s.Origin)}
	}
	compare(p, "sched", e.Sched, sched)
	compare(p, "preempted", e.Preempted, d.Preempted)
	compare(p, "running", e.Running, d.Running)
	compare(p, "waiting", e.Waiting, d.Waiting)
	compare(p, "skipped", e.Skipped, d.Skipped)
	p.same("free", itoa(e.Free), itoa(d.Free))
	for i, id := range d.Running {
		table, ok := e.Blocks[id]
		if !ok {
			p.same("blocks."+name(id), "none", show(d.Blocks[i]))
		}
		compare(p, "blocks."+name(id), table, d.Blocks[i])
	}
	// Here all of the running are in the table; what is more in it has no blocks by right.
	if p.mismatch == nil && len(e.Blocks) != len(d.Running) {
		compare(p, "blocks", keysOf(e.Blocks), sorted(d.Running))
	}
}

func (p *replay) applied(o *vllmv1.Outcome) {
	e := p.expect(Update)
	if e == nil {
		return
	}
	outputs := make([]Count, len(o.Outputs))
	for i, x := range o.Outputs {
		outputs[i] = Count{x.ID, 1}
	}
	finished := make([]Ended, len(o.Finished))
	for i, x := range o.Finished {
		finished[i] = Ended{x.ID, string(x.Reason)}
	}
	compare(p, "outputs", e.Outputs, outputs)
	compare(p, "finished", e.Finished, finished)
	p.same("free", itoa(e.Free), itoa(o.Free))
	compare(p, "running", e.Running, o.Running)
}

func (p *replay) differ(field, expected, got string) {
	if p.mismatch != nil {
		return
	}
	at := p.event
	if field != "event" && field != "iterations" && at > 0 {
		at-- // expect has passed it
	}
	p.mismatch = &Mismatch{
		Case: p.Name, File: p.File, Line: p.Line, Step: p.step, Event: at,
		Field: clip(field), Expected: expected, Got: got,
	}
}

func (p *replay) same(field, expected, got string) {
	if expected != got {
		p.differ(field, clip(expected), clip(got))
	}
}
