package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// A Fault is one thing wrong with a scenario.
type Fault struct {
	Where   string // FILE:LINE, or the edit
	Path    string // of the key; empty if Where says it
	Message string
}

func (f Fault) String() string {
	var parts []string
	for _, part := range []string{f.Where, f.Path, f.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Faults is everything wrong with a scenario, one line each.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// suggest says which of the known names a wrong one may have meant, or else which there are.
func suggest(wrong string, known []string) string {
	if names := near(wrong, known); len(names) > 0 {
		return "did you mean " + strings.Join(names, " or ") + "?"
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "there is " + strings.Join(known, ", ")
}

// Nearest returns the known name that differs from wrong by a few letters, or nothing.
func Nearest(wrong string, known []string) string {
	if names := near(wrong, known); len(names) > 0 {
		return names[0]
	}
	return ""
}

// near returns at most three of the known names that differ from wrong by a few letters, the
// nearest first.
func near(wrong string, known []string) []string {
	type match struct {
		name     string
		distance int
	}
	var matches []match
	for _, name := range known {
		a, b := strings.ToLower(wrong), strings.ToLower(name)
		d := distance(a, b)
		if len(wrong) > 2 && strings.Contains(b, a) {
			d = 0 // a part of the name is nearer than another name
		}
		if d <= 1+max(len(wrong), len(name))/4 {
			matches = append(matches, match{name, d})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int { return a.distance - b.distance })
	var names []string
	for _, m := range matches {
		if len(names) < 3 && !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names
}

// distance is the number of letters to insert, delete, replace, or swap with their neighbour to
// make b of a; more than 64 letters are not looked at.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

func gib(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/(1<<30)) }
