// Package rng is a source of chance for every named purpose, a pure function of (seed, purpose).
//
// It knows numbers. It knows nothing of what they decide, of requests, or of time.
//
// The same seed gives the same bits on every machine: only operations that IEEE 754 rounds
// exactly are used (+ - * / and square root), and no product feeds an addition unrounded, since
// some compilers fuse the two.
package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
)

// A Stream is one sequence of random numbers. Streams of different purposes are independent, so
// that drawing more from one shifts none of the others. It is not safe for concurrent use.
type Stream struct {
	pcg   rand.PCG
	spare float64 // the second half of the last normal pair
	has   bool    // spare is unused
}

// New returns the stream of a purpose under a seed.
func New(seed uint64, purpose string) *Stream {
	key := make([]byte, 8, 8+len(purpose))
	binary.LittleEndian.PutUint64(key, seed)
	sum := sha256.Sum256(append(key, purpose...))
	s := new(Stream)
	s.pcg.Seed(binary.LittleEndian.Uint64(sum[0:]), binary.LittleEndian.Uint64(sum[8:]))
	return s
}

// Uint64 returns 64 random bits.
func (s *Stream) Uint64() uint64 { return s.pcg.Uint64() }

// Float64 returns a multiple of 2^-53 in [0, 1), all equally likely.
func (s *Stream) Float64() float64 { return float64(s.pcg.Uint64()>>11) * 0x1p-53 }

// IntN returns an integer in [0, n), all equally likely. It panics unless n is positive.
func (s *Stream) IntN(n int) int {
	if n <= 0 {
		panic("rng: IntN of a bound that is not positive")
	}
	// The high word of a 64x64 product is uniform once the products that hit the first
	// 2^64 mod n values of the low word are drawn again (Lemire 2019, arXiv:1805.10941).
	bound := uint64(n)
	hi, lo := bits.Mul64(s.pcg.Uint64(), bound)
	if lo < bound {
		for least := -bound % bound; lo < least; {
			hi, lo = bits.Mul64(s.pcg.Uint64(), bound)
		}
	}
	return int(hi)
}

// Exp returns an exponential variate of mean 1.
func (s *Stream) Exp() float64 {
	// One more than Float64's numerator: in (0, 1], whose logarithm is finite.
	return -Log(float64(s.pcg.Uint64()>>11+1) * 0x1p-53)
}

// Norm returns a normal variate of mean 0 and standard deviation 1.
func (s *Stream) Norm() float64 {
	if s.has {
		s.has = false
		return s.spare
	}
	// Marsaglia's polar method: a point in the unit disc gives two variates.
	for {
		x := float64(2*s.Float64()) - 1
		y := float64(2*s.Float64()) - 1
		q := float64(x*x) + float64(y*y)
		if q >= 1 || q == 0 {
			continue
		}
		scale := math.Sqrt(-2 * Log(q) / q)
		s.spare, s.has = y*scale, true
		return x * scale
	}
}

// Gamma returns a gamma variate of the given shape and scale 1: mean shape, variance shape.
func (s *Stream) Gamma(shape float64) float64 {
	if shape < 1 {
		// G(shape) = G(shape+1) * U^(1/shape).
		u := float64(s.pcg.Uint64()>>11+1) * 0x1p-53
		return s.Gamma(shape+1) * Exp(Log(u)/shape)
	}
	// Marsaglia and Tsang 2000, "A simple method for generating gamma variables".
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.Norm()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(v * v * v)
		u := float64(s.pcg.Uint64()>>11+1) * 0x1p-53
		if Log(u) < float64(x*x/2)+float64(d*(1-v+Log(v))) {
			return d * v
		}
	}
}
