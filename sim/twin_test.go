package sim_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
	"llmsim/sim/policy"
	"llmsim/workload"
)

// The twin is the same system written the plain way: it visits every sequence in every step, and
// steps one event at a time. It shares no code with the core but the cost model and the router.

type setup struct {
	replicas      int
	blocks, block int
	slots, budget int
	watermark     float64
	maxModelLen   int
	cost          cost.Model
	router        func() sim.Router
	requests      []workload.Request // in order of arrival
	cancels       map[int64]time.Duration
}

type twinSequence struct {
	req                 workload.Request
	computed, generated int
	blocks              int
	started             bool
	last                time.Duration // of the previous token
	preemptedSince      bool
	scheduled           int
	emittedLastStep     bool
	record              sim.Finished
}

func (s *twinSequence) target() int { return s.req.Prompt + s.generated }

type twinReplica struct {
	waiting, running []*twinSequence
	free             int
	busy             bool
	step             sim.Step
	batch            []*twinSequence
	count            int64
}

type twin struct {
	setup
	replicas  []*twinReplica
	loads     []sim.Load
	where     map[int64]int
	steps     []sim.Step
	refused   []int64
	cancelled int
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func runTwin(s setup) *twin {
	t := &twin{setup: s, where: map[int64]int{}, loads: make([]sim.Load, s.replicas)}
	for range s.replicas {
		t.replicas = append(t.replicas, &twinReplica{free: s.blocks})
	}
	router := s.router()
	arrivals := slices.Clone(s.requests)
	type quit struct {
		id int64
		at time.Duration
	}
	var quits []quit
	for id, at := range s.cancels {
		quits = append(quits, quit{id, at})
	}
	slices.SortFunc(quits, func(a, b quit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
	for {
		now := time.Duration(math.MaxInt64)
		for _, r := range t.replicas {
			if r.busy {
				now = min(now, r.step.End)
			}
		}
		if len(arrivals) > 0 {
			now = min(now, arrivals[0].Arrival)
		}
		if len(quits) > 0 {
			now = min(now, quits[0].at)
		}
		if now == math.MaxInt64 {
			return t
		}
		for i, r := range t.replicas {
			if r.busy && r.step.End == now {
				t.end(i, r)
			}
		}
		for len(arrivals) > 0 && arrivals[0].Arrival == now {
			t.arrive(arrivals[0], router)
			arrivals = arrivals[1:]
		}
		for len(quits) > 0 && quits[0].at == now {
			t.quit(quits[0].id)
			quits = quits[1:]
		}
		for i, r := range t.replicas {
			if !r.busy {
				t.start(i, r, now)
			}
		}
	}
}

func (t *twin) arrive(r workload.Request, router sim.Router) {
	if r.Prompt+r.Output > t.maxModelLen || r.Prompt+r.Output > t.blocks*t.block {
		t.refused = append(t.refused, r.ID)
		return
	}
	i := 0
	if len(t.replicas) > 1 {
		i = router.Route(sim.Arrival{Prompt: r.Prompt}, t.loads)
	}
	t.where[r.ID] = i
	t.loads[i].Requests++
	t.loads[i].Tokens += r.Prompt
	t.replicas[i].waiting = append(t.replicas[i].waiting, &twinSequence{req: r})
}

func (t *twin) quit(id int64) {
	i, ok := t.where[id]
	if !ok {
		return
	}
	r := t.replicas[i]
	is := func(s *twinSequence) bool { return s.req.ID == id }
	for _, list := range []*[]*twinSequence{&r.waiting, &r.running, &r.batch} {
		for _, s := range *list {
			if is(s) {
				r.free += s.blocks
				s.blocks = 0
			}
		}
		*list = slices.DeleteFunc(*list, is)
	}
	t.leave(i, id)
	t.cancelled++
}

func (t *twin) leave(replica int, id int64) {
	delete(t.where, id)
	t.loads[replica].Requests--
	for _, r := range t.requests {
		if r.ID == id {
			t.loads[replica].Tokens -= r.Prompt
		}
	}
}

func (t *twin) start(index int, r *twinReplica, now time.Duration) {
	watermark := int(t.watermark * float64(t.blocks))
	blocked := policy.Unblocked
	for len(r.waiting) > 0 {
		head := r.waiting[0]
		if len(r.running) >= t.slots {
			blocked = policy.BySlots
			break
		}
		need := ceilDiv(head.target(), t.block)
		if len(r.running) > 0 && r.free-need < watermark || r.free < need {
			blocked = policy.ByKV
			break
		}
		r.free -= need
		head.blocks = need
		r.waiting = r.waiting[1:]
		r.running = append(r.running, head)
	}
	if len(r.running) == 0 {
		return
	}
	step := sim.Step{Replica: index, Index: r.count, Start: now}
	budget := t.budget
	r.batch = nil
	starved := false
walk:
	for i := 0; i < len(r.running); i++ {
		s := r.running[i]
		s.scheduled = 0
		n := min(s.target()-s.computed, budget)
		if n < s.target()-s.computed {
			starved = true
		}
		if n == 0 {
			s.emittedLastStep = false
			continue
		}
		for ceilDiv(s.computed+n, t.block) > s.blocks {
			if r.free > 0 {
				r.free--
				s.blocks++
				continue
			}
			victim := r.running[len(r.running)-1]
			r.running = r.running[:len(r.running)-1]
			r.free += victim.blocks
			victim.blocks, victim.computed, victim.scheduled = 0, 0, 0
			victim.emittedLastStep = false
			victim.record.Preemptions++
			if victim.generated > 0 {
				victim.preemptedSince = true
			}
			r.waiting = append([]*twinSequence{victim}, r.waiting...)
			step.Preempted = append(step.Preempted, victim.req.ID)
			if victim == s {
				break walk
			}
		}
		budget -= n
		s.scheduled = n
		if !s.started {
			s.started = true
			s.record.FirstSchedule = now
		}
		r.batch = append(r.batch, s)
		after := int64(s.computed + n)
		step.Shape.Sequences++
		step.Shape.Tokens += n
		step.Shape.Context += after
		if s.computed+n == s.target() {
			step.Shape.Sampled++
		}
		if n == 1 && s.computed > 0 && s.computed+1 == s.target() {
			step.Shape.Decodes++
			step.Shape.DecodeContext += after
		} else {
			for k := s.computed + 1; k <= s.computed+n; k++ {
				step.Shape.PrefillPairs += int64(k)
			}
		}
	}
	if len(step.Preempted) > 0 {
		blocked = policy.ByKV
	} else if starved && blocked == policy.Unblocked {
		blocked = policy.ByBudget
	}
	d, bound := t.cost.StepTime(step.Shape)
	step.End, step.Bound, step.Blocked = now+d, bound, blocked
	step.Running, step.Waiting = len(r.running), len(r.waiting)
	step.FreeBlocks, step.UsedBlocks = r.free, t.blocks-r.free
	r.step, r.busy = step, true
	r.count++
}

func (t *twin) end(index int, r *twinReplica) {
	r.busy = false
	step := r.step
	now := step.End
	for _, s := range r.batch {
		s.computed += s.scheduled
		if s.computed < s.target() {
			s.emittedLastStep = false
			continue
		}
		switch {
		case s.generated == 0:
			s.record.FirstToken = now
			step.Firsts = append(step.Firsts, s.req.ID)
		case s.emittedLastStep:
			step.Steady++
			if s.last != step.Start {
				panic("a steady token's predecessor is not the end of the step before")
			}
		default:
			step.Gaps = append(step.Gaps, sim.Gap{ID: s.req.ID, Time: now - s.last, Preempted: s.preemptedSince})
		}
		s.emittedLastStep, s.preemptedSince = true, false
		s.last = now
		s.generated++
		if s.generated == s.req.Output {
			r.free += s.blocks
			r.running = slices.DeleteFunc(r.running, func(x *twinSequence) bool { return x == s })
			f := s.record
			f.ID, f.Replica, f.Prompt, f.Output = s.req.ID, index, s.req.Prompt, s.req.Output
			f.Arrival, f.LastToken = s.req.Arrival, now
			step.Finished = append(step.Finished, f)
			t.leave(index, s.req.ID)
		}
	}
	r.batch = nil
	t.steps = append(t.steps, step)
}
