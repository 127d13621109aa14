package rng

import "math"

// ln 2 in two parts. The high part has 32 significant bits, so that its product with an exponent
// of 12 bits is exact.
const (
	ln2     = 0.693147180559945309417232121458176568
	ln2High = 0x162e42fee * 0x1p-33
	ln2Low  = ln2 - ln2High
)

// rootHalf is the bits of the largest number not above sqrt(1/2).
const rootHalf = 0x3fe6a09e667f3bcc

// Log is the natural logarithm, within 2 units in the last place, the same bits on every machine
// (math.Log is not: it is assembly on some). Log(0) is -Inf and Log of less is NaN.
func Log(x float64) float64 {
	switch {
	case x != x || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	// x = 2^k * f with sqrt(1/2) <= f < sqrt(2): k is how many exponents x lies above the root.
	word, subnormal := math.Float64bits(x), 0
	if word < 1<<52 {
		word, subnormal = math.Float64bits(x*0x1p54), 54
	}
	k := int64(word-rootHalf) >> 52
	f := math.Float64frombits(word - uint64(k)<<52)
	// log f = 2 atanh(s) = 2s (1 + s²/3 + s⁴/5 + ...) with s = (f-1)/(f+1), |s| < 0.1716. The
	// first term left out is below 2^-58 of the sum. Pairs of terms are summed side by side, which
	// is faster than one chain.
	s := (f - 1) / (f + 1)
	z := s * s
	z2 := z * z
	z4 := z2 * z2
	a := 2.0/3 + float64(z*(2.0/5))
	b := 2.0/7 + float64(z*(2.0/9))
	c := 2.0/11 + float64(z*(2.0/13))
	d := 2.0/15 + float64(z*(2.0/17))
	e := 2.0/19 + float64(z*(2.0/21))
	low := a + float64(z2*b)
	high := c + float64(z2*d) + float64(z4*e)
	tail := float64(s * z * (low + float64(z4*high)))
	n := float64(int(k) - subnormal)
	return float64(n*ln2High) + (float64(2*s) + (tail + float64(n*ln2Low)))
}

// Exp is e to the power x, within 2 units in the last place, the same bits on every machine
// (math.Exp is not: it is assembly on some).
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	// x = k ln 2 + r with |r| <= ln(2)/2, where the Taylor series up to r^13 is exact to 2^-57.
	k := math.Floor(float64(x*(1/ln2)) + 0.5)
	r := x - float64(k*ln2High) - float64(k*ln2Low)
	p := 1.0 / 6227020800
	for _, c := range factorials {
		p = c + float64(r*p)
	}
	return math.Ldexp(p, int(k))
}

// factorials holds 1/12!, 1/11!, ... 1/0!.
var factorials = [...]float64{
	1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
	1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1,
}
