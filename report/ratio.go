package report

import (
	"math"
	"math/big"
	"math/bits"
	"time"
)

// An area is the exact sum of levels times how long they lasted.
type area struct{ hi, lo uint64 }

func (a *area) add(took time.Duration, level int) {
	hi, lo := bits.Mul64(uint64(took), uint64(level))
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi += hi + carry
}

func (a area) int() *big.Int {
	n := new(big.Int).SetUint64(a.hi)
	return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(a.lo))
}

func integer[N ~int | ~int64](n N) *big.Int { return big.NewInt(int64(n)) }

const millionth = 1_000_000

// quotient is a/b to six decimals, half up, and 0 when b is not positive. Integers do the rounding, so that
// every machine prints the same digits.
func quotient(a, b *big.Int) float64 { return scaled(a, b, 1) }

// perSecond is n per second of took, to six decimals.
func perSecond(n int64, took time.Duration) float64 {
	return scaled(integer(n), integer(took), int64(time.Second))
}

// scaled is a*by/b to six decimals, half up, and 0 when b is not positive.
func scaled(a, b *big.Int, by int64) float64 {
	if b.Sign() <= 0 {
		return 0
	}
	q := new(big.Int).Mul(a, big.NewInt(2*by))
	q.Mul(q, big.NewInt(millionth)).Add(q, b).Div(q, new(big.Int).Lsh(b, 1))
	f, _ := new(big.Float).SetInt(q).Float64()
	return f / millionth
}

// ms is a time in milliseconds; a nanosecond is its sixth decimal.
func ms(d time.Duration) float64 { return float64(d) / millionth }

// nearestMS rounds nanoseconds to a whole one, half up, and gives milliseconds.
func nearestMS(ns float64) float64 { return ms(time.Duration(math.Floor(ns + 0.5))) }

// seconds divides once, so that the nearest float prints as the decimal it stands for.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
