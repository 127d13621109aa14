package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

func keysOf(m map[string][]int) []string { return slices.Sorted(maps.Keys(m)) }

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// compare holds a list against the recorded one.
func compare[T comparable](p *replay, field string, expected, got []T) {
	if p.mismatch == nil && !slices.Equal(expected, got) {
		a, b := contrast(expected, got)
		p.differ(field, a, b)
	}
}

// contrast writes two lists that differ so that one sees where: what stands far before the first
// difference, and far behind it, is only counted.
func contrast[T comparable](a, b []T) (string, string) {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	from := max(0, same-2)
	return window(a, from), window(b, from)
}

func show[T any](list []T) string { return window(list, 0) }

const windowSize = 8

func window[T any](list []T, from int) string {
	var parts []string
	if from > 0 {
		parts = append(parts, fmt.Sprintf("(%d equal)", from))
	}
	to := min(len(list), from+windowSize)
	for _, x := range list[from:to] {
		parts = append(parts, clip(fmt.Sprint(x)))
	}
	if more := len(list) - to; more > 0 {
		parts = append(parts, fmt.Sprintf("(%d more)", more))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
