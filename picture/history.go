package picture

import (
	"time"

	"llmsim/sim"
)

// mostMoments is how many moments a History holds at most; even.
const mostMoments = 480

// A History follows a run of any length in a bounded number of moments of equal time: when they run out,
// neighbours are joined, and each stands for twice the time. Its levels are sums over all replicas and means
// over time, in which a replica without a step counts as empty.
type History struct {
	replicas int
	width    time.Duration
	moments  []moment
	end      time.Duration // of the last step
}

// A moment's areas are numbers times seconds.
type moment struct {
	running, waiting float64
	used, blocks     float64
	prefill, decode  float64 // tokens, not an area
	busy             float64 // seconds of all replicas' steps
	waited           int     // the most that waited at one replica
	preempted        int
}

func (m *moment) join(o moment) {
	m.running += o.running
	m.waiting += o.waiting
	m.used += o.used
	m.blocks += o.blocks
	m.prefill += o.prefill
	m.decode += o.decode
	m.busy += o.busy
	m.waited = max(m.waited, o.waited)
	m.preempted += o.preempted
}

// NewHistory starts a history of so many replicas.
func NewHistory(replicas int) *History {
	return &History{replicas: replicas, width: time.Millisecond, moments: make([]moment, 0, mostMoments)}
}

// Take takes in a stretch of a run.
func (h *History) Take(p *sim.Progress) {
	for i := range p.Steps {
		h.step(&p.Steps[i])
	}
}

func (h *History) step(s *sim.Step) {
	h.end = max(h.end, s.End)
	h.reach(s.End)
	first := int(s.Start / h.width)
	m := &h.moments[first]
	m.waited = max(m.waited, s.Waiting)
	m.preempted += len(s.Preempted)
	took := (s.End - s.Start).Seconds()
	for i := first; ; i++ {
		from, to := max(s.Start, time.Duration(i)*h.width), min(s.End, time.Duration(i+1)*h.width)
		if to <= from {
			break
		}
		dt := (to - from).Seconds()
		m := &h.moments[i]
		m.busy += dt
		m.running += float64(dt * float64(s.Running))
		m.waiting += float64(dt * float64(s.Waiting))
		m.used += float64(dt * float64(s.UsedBlocks))
		m.blocks += float64(dt * float64(s.UsedBlocks+s.FreeBlocks))
		m.prefill += float64(dt / took * float64(s.Shape.PrefillTokens()))
		m.decode += float64(dt / took * float64(s.Shape.Decodes))
	}
}

// reach makes moments up to an instant.
func (h *History) reach(t time.Duration) {
	for int(t/h.width) >= mostMoments {
		for k := range h.moments {
			if k%2 == 0 {
				h.moments[k/2] = h.moments[k]
			} else {
				h.moments[k/2].join(h.moments[k])
			}
		}
		h.moments = h.moments[:(len(h.moments)+1)/2]
		h.width *= 2
	}
	for int(t/h.width) >= len(h.moments) {
		h.moments = append(h.moments, moment{})
	}
}

// over is a curve over time: of each moment its middle, in seconds, and a figure of it and of its seconds.
func (h *History) over(figure func(m *moment, seconds float64) float64) (x, y []float64) {
	for i := range h.moments {
		from := time.Duration(i) * h.width
		to := min(from+h.width, h.end)
		seconds := (to - from).Seconds()
		if seconds <= 0 || i > 0 && to-from < h.width/4 {
			continue // too short to tell a rate
		}
		x = append(x, from.Seconds()+float64(seconds/2))
		y = append(y, figure(&h.moments[i], seconds))
	}
	return x, y
}
