package workload

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

// maxTokens bounds a length read from a file: no model's context comes near it, and
// sums over any file that fits a disk stay far inside an int64.
const maxTokens = 100_000_000

// maxInstant bounds an instant read from a file, in nanoseconds either side of the
// origin (146 years): the difference of any two then fits a time.Duration.
const maxInstant = 1 << 62

var (
	errNumber   = errors.New("must be a number")
	errWhole    = errors.New("must be a whole number")
	errNegative = errors.New("must not be negative")
	errTokens   = fmt.Errorf("must be at most %d", maxTokens)
	errInstant  = errors.New("is out of range (at most 146 years from its origin)")
	errDatetime = errors.New("must be a date and time as 2023-11-16 18:17:03.9799600, with or without a zone")
	errID       = errors.New("must be a whole number from 0 to 18446744073709551615")
	errInt64    = errors.New("must be a whole number from -9223372036854775808 to 9223372036854775807")
)

// quote shows what a file held, cut to a length that fits a message.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "..."
	}
	return strconv.Quote(string(b))
}

// parseTokens reads a length. A fraction of zeros (472.0) is allowed: a column with
// gaps comes out of common table tools that way.
func parseTokens(b []byte) (int32, error) {
	var v uint64
	i := 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		v = v*10 + uint64(b[i]-'0')
		if v > maxTokens {
			if !wholeNumber(b) {
				return 0, errWhole
			}
			return 0, errTokens
		}
	}
	if i == len(b) && i > 0 {
		return int32(v), nil
	}
	if len(b) > 1 && b[0] == '-' && wholeNumber(b[1:]) {
		return 0, errNegative
	}
	if !wholeNumber(b) {
		return 0, errWhole
	}
	return int32(v), nil
}

// wholeNumber tells whether b is digits, and maybe a fraction of zeros.
func wholeNumber(b []byte) bool {
	i := 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
	}
	if i == 0 {
		return false
	}
	if i < len(b) && b[i] == '.' {
		for i++; i < len(b) && b[i] == '0'; i++ {
		}
	}
	return i == len(b)
}

// parseUint reads a u64, such as a block's hash.
func parseUint(b []byte) (uint64, error) {
	if len(b) == 0 {
		return 0, errID
	}
	var v uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 {
			return 0, errID
		}
		hi, lo := bits.Mul64(v, 10)
		sum, carry := bits.Add64(lo, d, 0)
		if hi != 0 || carry != 0 {
			return 0, errID
		}
		v = sum
	}
	return v, nil
}

// parseInt reads a signed whole number.
func parseInt(b []byte) (int64, error) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	v, err := parseUint(digits)
	switch {
	case err != nil:
		return 0, errInt64
	case negative && v <= 1<<63:
		return -int64(v), nil
	case !negative && v < 1<<63:
		return int64(v), nil
	}
	return 0, errInt64
}

// parseDecimal reads a decimal number times 10^scale, to the nearest whole, halves
// away from zero. The digits are taken as they stand, never through a float: seconds
// written as 5.8926549999999995 are 5,892,655,000 ns.
func parseDecimal(b []byte, scale int) (int64, error) {
	const most = maxInstant / 10
	i := 0
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		i = 1
	}
	var v uint64
	digits, taken := 0, 0 // digits seen; digits behind the point that v holds
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if v > most {
			return parseScientific(b, scale)
		}
		v = v*10 + uint64(b[i]-'0')
		digits++
	}
	up := false
	if i < len(b) && b[i] == '.' {
		i++
		for first := i; i < len(b) && b[i]-'0' <= 9; i++ {
			switch at := i - first; {
			case at < scale:
				if v > most {
					return parseScientific(b, scale)
				}
				v = v*10 + uint64(b[i]-'0')
				taken++
			case at == scale:
				up = b[i] >= '5'
			}
			digits++
		}
	}
	if i < len(b) {
		return parseScientific(b, scale)
	}
	if digits == 0 {
		return 0, errNumber
	}
	for ; taken < scale; taken++ {
		if v > most {
			return 0, errInstant
		}
		v *= 10
	}
	return signed(v, up, negative)
}

// parseScientific is parseDecimal for what its straight path does not take: numbers
// with an exponent (5e-06), too large, or malformed.
func parseScientific(b []byte, scale int) (int64, error) {
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	mantissa, exponent := b, 0
	for i, c := range b {
		if c != 'e' && c != 'E' {
			continue
		}
		mantissa = b[:i]
		e, err := strconv.Atoi(string(b[i+1 : min(len(b), i+12)]))
		if err != nil || len(b) > i+12 {
			return 0, errNumber
		}
		exponent = e
		break
	}
	whole, digits, points := len(mantissa), 0, 0
	for i, c := range mantissa {
		switch {
		case c == '.':
			points++
			whole = i
		case c-'0' <= 9:
			digits++
		default:
			return 0, errNumber
		}
	}
	if digits == 0 || points > 1 {
		return 0, errNumber
	}
	// place is the power of ten, after scaling, that the next digit counts for.
	place := whole - 1 + exponent + scale
	var v uint64
	up := false
	for _, c := range mantissa {
		if c == '.' {
			continue
		}
		if place >= 0 {
			if v > maxInstant/10 {
				return 0, errInstant
			}
			v = v*10 + uint64(c-'0')
		} else if place == -1 {
			up = c >= '5'
		}
		place--
	}
	for ; place >= 0 && v > 0; place-- {
		if v > maxInstant/10 {
			return 0, errInstant
		}
		v *= 10
	}
	return signed(v, up, negative)
}

func signed(v uint64, up, negative bool) (int64, error) {
	if up {
		v++
	}
	if v > maxInstant {
		return 0, errInstant
	}
	if negative {
		return -int64(v), nil
	}
	return int64(v), nil
}
