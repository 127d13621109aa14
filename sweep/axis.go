package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxRuns bounds a sweep: its points times the seeds of each.
const MaxRuns = 1_000_000

// An Axis is fields that move together from stop to stop.
type Axis struct {
	Fields []string
	Stops  [][]string // of each, one value for every field
}

// ParseAxis reads FIELD=VALUES, or FIELD,FIELD=VALUES of which each is VALUE:VALUE. Values are
// divided by commas that stand in no brackets and no quotes. One of a single field may be a range:
// FROM..TO:STEP, or FROM..TO:xFACTOR. The error, without the text, is all that is wrong with it.
func ParseAxis(text string) (Axis, error) {
	names, values, ok := strings.Cut(text, "=")
	if !ok || strings.TrimSpace(names) == "" {
		return Axis{}, errors.New("must be FIELD=VALUES")
	}
	var a Axis
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			return Axis{}, errors.New("must be FIELD=VALUES, has an empty field")
		}
		if slices.Contains(a.Fields, name) {
			return Axis{}, fmt.Errorf("%s is given twice", name)
		}
		a.Fields = append(a.Fields, name)
	}
	var faults []error
	for _, item := range split(values, ',') {
		stops, err := a.stops(item)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		a.Stops = append(a.Stops, stops...)
		if len(a.Stops) > MaxRuns {
			return Axis{}, fmt.Errorf("must have at most %d values, has more", MaxRuns)
		}
	}
	if len(faults) > 0 {
		return Axis{}, errors.Join(faults...)
	}
	seen := map[string]bool{}
	for _, stop := range a.Stops {
		name := strings.Join(stop, ":")
		if seen[name] {
			return Axis{}, fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
	}
	return a, nil
}

// stops reads one item between commas.
func (a Axis) stops(item string) (stops [][]string, err error) {
	if item == "" {
		return nil, errors.New("has an empty value")
	}
	if len(a.Fields) == 1 {
		if !isRange(item) {
			return [][]string{{item}}, nil
		}
		values, err := expand(item)
		for _, v := range values {
			stops = append(stops, []string{v})
		}
		return stops, err
	}
	if isRange(item) {
		return nil, fmt.Errorf("%s: fields that move together take lists, no ranges", item)
	}
	stop := split(item, ':')
	if len(stop) != len(a.Fields) {
		return nil, fmt.Errorf("%s: must be %d values with colons between them, is %d", item, len(a.Fields), len(stop))
	}
	if slices.Contains(stop, "") {
		return nil, fmt.Errorf("%s: has an empty value", item)
	}
	return [][]string{stop}, nil
}

// split divides a text at separators that stand in no brackets and no quotes, as YAML has them.
func split(text string, separator byte) (parts []string) {
	depth, from := 0, 0
	quote, before := byte(0), separator
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.IndexByte(",:[{"+string(separator), before) >= 0:
			quote = c // elsewhere in a word it is an apostrophe
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == '}') && depth > 0:
			depth--
		case c == separator && depth == 0:
			parts = append(parts, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
		if c != ' ' {
			before = c
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}

// A grid is every combination of the stops of some axes; the last axis moves fastest.
type grid []Axis

func (g grid) fields() (names []string) {
	for _, a := range g {
		names = append(names, a.Fields...)
	}
	return names
}

// points is how many there are, at most one more than MaxRuns.
func (g grid) points() int {
	n := 1
	for _, a := range g {
		n = min(n*len(a.Stops), MaxRuns+1) // neither factor is above MaxRuns+1: their product fits
	}
	return n
}

// at is the values of a point, in the order of the fields.
func (g grid) at(point int) (values []string) {
	for _, a := range slices.Backward(g) {
		values = append(slices.Clone(a.Stops[point%len(a.Stops)]), values...)
		point /= len(a.Stops)
	}
	return values
}
