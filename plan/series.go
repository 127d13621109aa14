package plan

import (
	"math"
	"time"

	"llmsim/sim"
)

// A series follows the backlog (requests that wait or run) over a run of any length in a bounded
// number of bins: when they run out, neighbours are joined, and each stands for twice the time.
type series struct {
	width time.Duration
	bins  []bin
}

type bin struct {
	arrived, left int64 // completed or refused
	idle          bool  // some step of the bin left nobody waiting
	waits         bool  // some step of the bin left somebody waiting
}

const mostBins = 1000 // even, and a multiple of MSER's batches

func newSeries() *series {
	return &series{width: time.Millisecond, bins: make([]bin, 1, mostBins)}
}

func (s *series) at(t time.Duration) *bin {
	i := int(t / s.width)
	for i >= mostBins {
		for k := range mostBins / 2 {
			var a, b bin
			if 2*k < len(s.bins) {
				a = s.bins[2*k]
			}
			if 2*k+1 < len(s.bins) {
				b = s.bins[2*k+1]
			}
			if 2*k < len(s.bins) {
				s.bins[k] = bin{a.arrived + b.arrived, a.left + b.left, a.idle || b.idle, a.waits || b.waits}
			}
		}
		s.bins = s.bins[:(len(s.bins)+1)/2]
		s.width *= 2
		i = int(t / s.width)
	}
	for i >= len(s.bins) {
		s.bins = append(s.bins, bin{})
	}
	return &s.bins[i]
}

// take takes in a stretch of a run.
func (s *series) take(p *sim.Progress) {
	for i := range p.Arrived {
		s.at(p.Arrived[i].Arrival).arrived++
	}
	for i := range p.Refused {
		s.at(p.Refused[i].Request.Arrival).left++
	}
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.Waiting == 0 {
			s.at(step.Start).idle = true
			s.at(step.End).idle = true
		} else {
			s.at(step.End).waits = true
		}
		if n := len(step.Finished); n > 0 {
			s.at(step.End).left += int64(n)
		}
	}
}

// levels is the backlog at the end of each whole bin.
func (s *series) levels() []float64 {
	levels := make([]float64, 0, len(s.bins))
	var level int64
	for _, b := range s.bins[:len(s.bins)-1] {
		level += b.arrived - b.left
		levels = append(levels, float64(level))
	}
	return levels
}

// mser finds where the warm-up of a series ends: the truncation, up to half of it, that
// minimises the squared standard error of the mean of what remains, over batches of five values
// (MSER-5; White 1997, "An effective truncation heuristic for bias reduction in simulation
// output", Simulation 69). It returns how many values to cut; not converged when the best cut is
// the longest allowed, as for a series that keeps growing.
func mser(values []float64) (cut int, converged bool) {
	const batch = 5
	n := len(values) / batch
	if n < 4 {
		return 0, false
	}
	means := make([]float64, n)
	for i := range means {
		for _, v := range values[i*batch : (i+1)*batch] {
			means[i] += v / batch
		}
	}
	best, sum, squares := math.Inf(1), 0.0, 0.0
	for i := n - 1; i >= 0; i-- {
		sum += means[i]
		squares += float64(means[i] * means[i])
		m := float64(n - i)
		if score := max(squares-float64(sum*sum)/m, 0) / float64(m*m); i <= n/2 && score <= best {
			best, cut = score, i
		}
	}
	return cut * batch, cut < n/2
}

// A drift is how fast the backlog grows.
type drift struct {
	perSecond float64 // requests per second
	stderr    float64
}

const driftParts = 20

// significance is how many standard errors count as clear: 0.4% of chance for one side of
// Student's distribution with 19 degrees of freedom.
const significance = 3

// growth measures the drift of a series after a cut. Its standard error comes from the changes
// over 20 equal parts as if they were independent. Those of a queue that is stable make up for
// each other, so that the error of a stable one is overstated, never understated.
func growth(levels []float64, width time.Duration) drift {
	part := len(levels) / driftParts
	if part == 0 {
		return drift{stderr: math.Inf(1)}
	}
	levels = levels[len(levels)-part*driftParts:]
	var changes [driftParts]float64
	mean := 0.0
	before := levels[0]
	for i := range changes {
		after := levels[(i+1)*part-1]
		changes[i] = after - before
		mean += changes[i] / driftParts
		before = after
	}
	variance := 0.0
	for _, c := range changes {
		variance += float64((c-mean)*(c-mean)) / (driftParts - 1)
	}
	seconds := (time.Duration(part) * width).Seconds()
	return drift{
		perSecond: mean / seconds,
		stderr:    math.Sqrt(variance/driftParts) / seconds,
	}
}
