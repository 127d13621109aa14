package report

import "llmsim/sim"

// Take takes in a stretch of a run.
func (r *Recorder) Take(p *sim.Progress) {
	for i := range p.Arrived {
		r.Arrived(p.Arrived[i])
	}
	for i := range p.Refused {
		r.Refused(p.Refused[i].Request)
	}
	for i := range p.Steps {
		r.Step(&p.Steps[i])
	}
}
