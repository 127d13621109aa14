package workload

import (
	"math"
	"slices"

	"llmsim/sim/rng"
)

// MaxTokens is the longest prompt or output a distribution gives: some forty times the longest
// context any served model offers, and far from where sums of lengths overflow.
const MaxTokens = 10_000_000

// Lengths hands out numbers of tokens, all within Range.
type Lengths interface {
	Next() int
	Range() (lo, hi int)
}

// Fixed is always the same length.
type Fixed int

func (f Fixed) Next() int         { return int(f) }
func (f Fixed) Range() (int, int) { return int(f), int(f) }

type uniform struct {
	lo, hi int
	stream *rng.Stream
}

// NewUniform gives every length from lo to hi, both included, equally often.
func NewUniform(lo, hi int, s *rng.Stream) Lengths { return &uniform{lo, hi, s} }

func (u *uniform) Next() int         { return u.lo + u.stream.IntN(u.hi-u.lo+1) }
func (u *uniform) Range() (int, int) { return u.lo, u.hi }

type normal struct {
	mean, sd float64
	stream   *rng.Stream
}

// NewNormal gives normal lengths, rounded, those below 1 raised to it and those above MaxTokens
// lowered to it.
func NewNormal(mean, sd float64, s *rng.Stream) Lengths { return &normal{mean, sd, s} }

func (n *normal) Next() int         { return tokens(n.mean + float64(n.sd*n.stream.Norm())) }
func (n *normal) Range() (int, int) { return 1, MaxTokens }

type logNormal struct {
	median, sigma float64
	stream        *rng.Stream
}

// NewLogNormal gives lengths whose logarithm is normal with mean log(median) and standard
// deviation sigma, rounded and clamped as by NewNormal.
func NewLogNormal(median, sigma float64, s *rng.Stream) Lengths {
	return &logNormal{median, sigma, s}
}

func (l *logNormal) Next() int {
	return tokens(l.median * rng.Exp(float64(l.sigma*l.stream.Norm())))
}
func (l *logNormal) Range() (int, int) { return 1, MaxTokens }

func tokens(x float64) int { return int(math.Round(min(max(x, 1), MaxTokens))) }

type empirical struct {
	values []int32
	lo, hi int
	stream *rng.Stream
}

// NewEmpirical draws from values, of which there must be one, with replacement. It keeps values.
func NewEmpirical(values []int32, s *rng.Stream) Lengths {
	return &empirical{values, int(slices.Min(values)), int(slices.Max(values)), s}
}

func (e *empirical) Next() int         { return int(e.values[e.stream.IntN(len(e.values))]) }
func (e *empirical) Range() (int, int) { return e.lo, e.hi }

// A CDFPoint says that the share Cumulative of all lengths is at most Tokens.
type CDFPoint struct {
	Tokens     int
	Cumulative float64
}

type cdf struct {
	points []CDFPoint
	stream *rng.Stream
}

// NewCDF draws from a distribution function by inversion; within a bin, which reaches from above
// one point's Tokens (above 0 for the first) up to the next point's, every length is equally
// likely. Both fields must increase, Tokens strictly, and the last Cumulative be 1.
func NewCDF(points []CDFPoint, s *rng.Stream) Lengths { return &cdf{points, s} }

func (c *cdf) Next() int {
	u := c.stream.Float64()
	i, _ := slices.BinarySearchFunc(c.points, u, func(p CDFPoint, u float64) int {
		if p.Cumulative <= u {
			return -1
		}
		return 1
	})
	var below CDFPoint
	if i > 0 {
		below = c.points[i-1]
	}
	bin := c.points[i]
	width := bin.Tokens - below.Tokens
	part := (u - below.Cumulative) / (bin.Cumulative - below.Cumulative)
	return below.Tokens + 1 + min(int(part*float64(width)), width-1)
}

func (c *cdf) Range() (lo, hi int) {
	for _, p := range c.points {
		if p.Cumulative == 0 {
			lo = p.Tokens
		}
		hi = p.Tokens
		if p.Cumulative == 1 {
			break
		}
	}
	return lo + 1, hi
}

// A PairSource hands out the prompt and output length of one request after another.
type PairSource interface {
	NextPair() (prompt, output int)
}

type independent struct{ prompts, outputs Lengths }

// Independent draws prompt and output lengths without regard to each other.
func Independent(prompts, outputs Lengths) PairSource { return independent{prompts, outputs} }

func (i independent) NextPair() (prompt, output int) { return i.prompts.Next(), i.outputs.Next() }

type pairs struct {
	prompts, outputs []int32
	stream           *rng.Stream
}

// NewPairs draws rows with replacement, of which there must be one: the prompt and the output
// length of one row stay together. It keeps both slices.
func NewPairs(prompts, outputs []int32, s *rng.Stream) PairSource {
	return &pairs{prompts, outputs[:len(prompts)], s}
}

func (p *pairs) NextPair() (prompt, output int) {
	i := p.stream.IntN(len(p.prompts))
	return int(p.prompts[i]), int(p.outputs[i])
}
