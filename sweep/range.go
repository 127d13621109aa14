package sweep

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

const (
	decimal = `([-+]?(?:(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?|\.[0-9]{1,18}))`
	unit    = `([a-zA-Z]{0,8})`
)

var (
	rangeLike = regexp.MustCompile(`^[-+]?\.?[0-9][^/]*\.\.`) // no path of a file begins so
	rangeForm = regexp.MustCompile(`^` + decimal + unit + `\.\.` + decimal + unit + `:(x?)` + decimal + unit + `$`)
)

func isRange(item string) bool { return rangeLike.MatchString(item) }

// expand lists the values of FROM..TO:STEP or FROM..TO:xFACTOR, TO among them if it is met. They are
// computed as fractions, so that no error adds up; those of a factor are shown to 12 digits. Both ends
// and the step may carry a unit, one for all.
func expand(item string) (values []string, err error) {
	m := rangeForm.FindStringSubmatch(item)
	if m == nil {
		return nil, fmt.Errorf("%s: must be FROM..TO:STEP or FROM..TO:xFACTOR, in decimal numbers such as 10..90:10 or 1..64:x2", item)
	}
	from, to, by := fraction(m[1]), fraction(m[3]), fraction(m[6])
	geometric, symbol := m[5] != "", m[2]
	if m[4] != symbol || !geometric && m[7] != symbol || geometric && m[7] != "" {
		return nil, fmt.Errorf("%s: both ends and the step must have one unit, a factor none", item)
	}
	up := to.Cmp(from) >= 0
	if geometric {
		one := big.NewRat(1, 1)
		switch {
		case from.Sign() <= 0 || to.Sign() <= 0:
			return nil, fmt.Errorf("%s: both ends must be positive, are %s and %s", item, m[1], m[3])
		case by.Sign() <= 0 || by.Cmp(one) == 0 || (by.Cmp(one) > 0) != up:
			return nil, fmt.Errorf("%s: the factor must lead from %s to %s, is %s", item, m[1], m[3], m[6])
		}
	} else if by.Sign() == 0 || (by.Sign() > 0) != up {
		return nil, fmt.Errorf("%s: the step must lead from %s to %s, is %s", item, m[1], m[3], m[6])
	}
	if geometric {
		return geometricRange(item, from, to, by, symbol)
	}
	return evenRange(item, from, to, by, max(places(m[1]), places(m[3]), places(m[6])), symbol)
}

// evenRange counts in units of the last decimal place.
func evenRange(item string, from, to, by *big.Rat, places int, symbol string) (values []string, err error) {
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil))
	units := func(x *big.Rat) *big.Int { return new(big.Rat).Mul(x, unit).Num() }
	x, step := units(from), units(by)
	steps := new(big.Int).Quo(new(big.Int).Sub(units(to), x), step)
	if steps.Cmp(big.NewInt(MaxRuns)) >= 0 {
		return nil, tooMany(item, MaxRuns)
	}
	values = make([]string, steps.Int64()+1)
	for i := range values {
		values[i] = pointed(x.String(), places) + symbol
		x.Add(x, step)
	}
	return values, nil
}

// pointed puts the decimal point into a number of units.
func pointed(units string, places int) string {
	if places == 0 {
		return units
	}
	sign := ""
	if strings.HasPrefix(units, "-") {
		sign, units = "-", units[1:]
	}
	if short := places + 1 - len(units); short > 0 {
		units = strings.Repeat("0", short) + units
	}
	return sign + trim(units[:len(units)-places]+"."+units[len(units)-places:])
}

// maxSteps bounds a geometric range, whose exact values get longer with every step.
const maxSteps = 1000

func geometricRange(item string, from, to, by *big.Rat, symbol string) (values []string, err error) {
	up := to.Cmp(from) >= 0
	for x := from; up && x.Cmp(to) <= 0 || !up && x.Cmp(to) >= 0; x = new(big.Rat).Mul(x, by) {
		if len(values) == maxSteps {
			return nil, tooMany(item, maxSteps)
		}
		values = append(values, trim(x.FloatString(digits(x)))+symbol)
	}
	return values, nil
}

func tooMany(item string, most int) error {
	return fmt.Errorf("%s: must have at most %d values, has more", item, most)
}

func fraction(text string) *big.Rat {
	x, _ := new(big.Rat).SetString(text) // rangeForm lets through nothing else
	return x
}

// places is how many decimals a number is written with.
func places(text string) int {
	_, decimals, _ := strings.Cut(text, ".")
	return len(decimals)
}

// digits is how many decimals a positive number needs to have 12 digits.
func digits(x *big.Rat) int {
	const significant = 12
	whole := new(big.Int).Quo(x.Num(), x.Denom())
	if whole.Sign() > 0 {
		return max(significant-len(whole.String()), 0)
	}
	n := significant
	for limit := big.NewRat(1, 10); x.Cmp(limit) < 0; limit = new(big.Rat).Quo(limit, big.NewRat(10, 1)) {
		n++
	}
	return n
}

// trim takes the zeros off that end a number's decimals.
func trim(number string) string {
	if strings.Contains(number, ".") {
		number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	return number
}
