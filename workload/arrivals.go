package workload

import (
	"math"
	"time"

	"llmsim/sim/rng"
)

// Arrivals hands out the instants at which requests arrive; they never decrease.
type Arrivals interface {
	Next() time.Duration
}

// A pace adds gaps in seconds up to an instant. It carries the fraction of a nanosecond over to
// the next gap, so that rounding neither accumulates nor drifts, however long the run.
type pace struct {
	now      time.Duration
	fraction float64 // of a nanosecond, in [0, 1)
}

func (p *pace) wait(seconds float64) time.Duration {
	ns := float64(seconds*1e9) + p.fraction
	if ns >= float64(math.MaxInt64-p.now) { // the end of representable time, 292 years
		p.now, p.fraction = math.MaxInt64, 0
		return p.now
	}
	whole := math.Floor(ns)
	p.now, p.fraction = p.now+time.Duration(whole), ns-whole
	return p.now
}

type poisson struct {
	pace
	mean   float64 // seconds between arrivals
	stream *rng.Stream
}

// NewPoisson gives independent exponential gaps of mean 1/rate, the first before the first
// request; rate is in requests per second.
func NewPoisson(rate float64, s *rng.Stream) Arrivals {
	return &poisson{mean: 1 / rate, stream: s}
}

func (p *poisson) Next() time.Duration { return p.wait(p.stream.Exp() * p.mean) }

type gamma struct {
	pace
	shape, scale float64 // scale in seconds
	stream       *rng.Stream
}

// NewGamma gives independent gamma gaps of mean 1/rate and coefficient of variation cv, the first
// before the first request. A cv of 1 is Poisson; above, requests come in bursts. (vLLM's
// burstiness is 1/cv².)
func NewGamma(rate, cv float64, s *rng.Stream) Arrivals {
	shape := 1 / (cv * cv)
	return &gamma{shape: shape, scale: 1 / (rate * shape), stream: s}
}

func (g *gamma) Next() time.Duration { return g.wait(g.stream.Gamma(g.shape) * g.scale) }

type constant struct {
	rate float64
	n    float64
}

// NewConstant gives request i, from 0, at (i+1)/rate: each waits its interval, the first too. The
// instant is computed from i, and is exact to the nanosecond for the first 104 days.
func NewConstant(rate float64) Arrivals { return &constant{rate: rate} }

func (c *constant) Next() time.Duration {
	c.n++
	ns := math.Round(c.n * 1e9 / c.rate)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

type allAtOnce struct{}

// NewAllAtOnce has every request arrive at the start.
func NewAllAtOnce() Arrivals { return allAtOnce{} }

func (allAtOnce) Next() time.Duration { return 0 }

type onGrid struct {
	Arrivals
	grid time.Duration
}

// OnGrid delays every arrival to the next multiple of grid, as a server does that takes up its
// work in turns. An arrival on the grid stays where it is.
func OnGrid(a Arrivals, grid time.Duration) Arrivals { return onGrid{a, grid} }

func (g onGrid) Next() time.Duration {
	at := g.Arrivals.Next()
	if late := at % g.grid; late > 0 && at <= math.MaxInt64-g.grid {
		at += g.grid - late
	}
	return at
}
