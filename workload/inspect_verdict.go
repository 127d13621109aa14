package workload

import (
	"fmt"
	"time"
)

// Bounds between which arrivals count as near Poisson. Of a Poisson process with a
// thousand gaps the CV lies within 0.1 of 1; twice that, and a queue at high load
// already waits visibly more or less than a Poisson plan says.
const (
	regularBelow = 0.8
	burstyAbove  = 1.25
	// driftAbove is the dispersion at 60 s from which the rate itself must move: gaps
	// alone of the CVs above give at most 1.6.
	driftAbove = 2.0
	// judgedFrom is the fewest requests that say anything about burstiness.
	judgedFrom = 100
)

func (in *Inspection) verdict(t *Trace, full bool) []string {
	var said []string
	say := func(text string, args ...any) { said = append(said, fmt.Sprintf(text, args...)) }
	if !in.HasArrivals {
		say("lengths only: arrivals are an assumption")
	} else {
		in.arrivals(t, say)
	}
	switch {
	case !in.HasPrefix:
		say("no prefix identity: any prefix hit rate is an assumption (default 0)")
	case full:
		say("at least %.1f%% of prompt tokens can hit a prefix cache (counted over the first %d different blocks)", 100*in.PrefixCeiling, mostChains)
	default:
		say("at most %.1f%% of prompt tokens can hit a prefix cache, in an infinite one", 100*in.PrefixCeiling)
	}
	return said
}

func (in *Inspection) arrivals(t *Trace, say func(string, ...any)) {
	figures := fmt.Sprintf("CV %.3g, peak second %.3g times the mean", in.GapCV, in.PeakRatio)
	var slow *Dispersion // the widest window judged
	if n := len(in.Dispersion); n > 0 && in.Dispersion[n-1].Windows >= 10 {
		slow = &in.Dispersion[n-1]
	}
	switch {
	case in.Rate == 0:
		say("all requests arrive at once: there is no rate to plan for")
	case t.Grid.Step > 0 && t.options.Spread == "":
		say("instants lie on a grid of %v with herds of up to %d: the burstiness of a literal replay (%s) is the clock's, not the clients'; spread it (uniform or poisson)",
			t.Grid.Step.Round(time.Microsecond), t.Grid.Herd, figures)
	case in.Requests < judgedFrom:
		say("too few requests (%d) to judge burstiness", in.Requests)
	case in.GapCV > burstyAbove:
		say("a Poisson plan for this traffic is wrong: %s; replay the trace, or use gamma arrivals of that CV and check them against it", figures)
	case in.GapCV < regularBelow:
		say("arrivals are more regular than Poisson: %s; a Poisson plan asks for too much", figures)
	case slow != nil && slow.Index > driftAbove:
		say("arrivals are near Poisson from one to the next (%s), but the rate drifts: index of dispersion %.3g at %v, where Poisson has 1; plan for the busy minutes, not for the mean",
			figures, slow.Index, slow.Window)
	default:
		say("arrivals are near Poisson: %s", figures)
	}
}
