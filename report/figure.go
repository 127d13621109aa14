package report

import (
	"strconv"
	"strings"
)

// Figure writes a number as people read it: four significant digits, at most three decimals, commas between
// thousands. What is not zero but would look so is "<0.001".
func Figure(x float64) string { return figure(x, 3) }

// figure is Figure with at most so many decimals.
func figure(x float64, most int) string {
	switch {
	case x < 0:
		return "-" + figure(-x, most)
	case x == 0:
		return "0"
	}
	if x > 0 && x < 0.0005 && most == 3 {
		return "<0.001"
	}
	decimals := 0
	for _, limit := range []float64{999.95, 99.995, 9.9995} { // each rounds to the next power of ten
		if x < limit {
			decimals++
		}
	}
	return commas(strconv.FormatFloat(x, 'f', min(decimals, most), 64))
}

// Count writes a whole number with commas between thousands.
func Count(n int64) string { return commas(strconv.FormatInt(n, 10)) }

// Percent writes a share of 1 in percent, with one decimal and without the sign.
func Percent(share float64) string {
	if share > 0 && share < 0.0005 {
		return "<0.1"
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64)
}

func commas(number string) string {
	whole, rest := number, ""
	if point := strings.IndexByte(number, '.'); point >= 0 {
		whole, rest = number[:point], number[point:]
	}
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + rest
}
