package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// kinds of terms: what of the hardware, or none, a part of the step's time waits for.
var kinds = map[string]string{
	"linear layers, compute": "compute", "experts, compute": "compute", "prefill attention": "compute",
	"linear layers, weight reads": "memory", "experts, weight reads": "memory", "lm_head": "memory",
	"decode attention": "memory", "mixed batch": "memory", "activations": "memory",
}

func kind(term string) string { return cmp.Or(kinds[term], "overhead") }

// least is the smallest move, as a share, that is told of.
const least = 1e-4

// A move is one sentence, and how far what it is about moved, as a share.
type move struct {
	far  float64
	text string
}

// moved says which kind of step time moved most and which decisions did, the one that moved
// further first.
func (e *Expectation) moved(now *found) []string {
	if len(e.terms) == 0 && len(e.decisions) == 0 {
		return []string{"what moved is not known: the file has no step_ms and decisions; llmsim check --update writes them"}
	}
	var moves []move
	if m, ok := movedTime(e.terms, now.terms); ok {
		moves = append(moves, m)
	}
	if m, ok := movedDecision(e.decisions, now.decisions); ok {
		moves = append(moves, m)
	}
	if len(moves) == 0 {
		return []string{"neither the parts of the mean step nor the decisions moved: the order or the spread of steps did"}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(b.far, a.far) })
	var lines []string
	for _, m := range moves {
		lines = append(lines, m.text)
	}
	return lines
}

// movedTime is about the kind of step time that moved most, as a share of the step, the term of
// that kind that did, and the other kinds that moved: a term's price also moves how many steps it
// is not the longer one in.
func movedTime(was, is []amount) (move, bool) {
	type both struct{ was, is float64 }
	step, byKind, byTerm := both{}, map[string]both{}, map[string]both{}
	var names []string
	tally := func(all []amount, add func(*both, float64)) {
		for _, a := range all {
			k, t := byKind[kind(a.Name)], byTerm[a.Name]
			add(&step, a.Value)
			add(&k, a.Value)
			add(&t, a.Value)
			byKind[kind(a.Name)], byTerm[a.Name] = k, t
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
	}
	tally(was, func(b *both, x float64) { b.was += x })
	tally(is, func(b *both, x float64) { b.is += x })
	off := func(b both) float64 { return math.Abs(b.is - b.was) }
	worst := ""
	for _, k := range []string{"memory", "compute", "overhead"} {
		if worst == "" || off(byKind[k]) > off(byKind[worst]) {
			worst = k
		}
	}
	if step.was == 0 || off(byKind[worst])/step.was < least {
		return move{}, false
	}
	names = slices.DeleteFunc(names, func(name string) bool { return kind(name) != worst })
	term := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(off(byTerm[a]), off(byTerm[b])) })
	k, t := byKind[worst], byTerm[term]
	text := fmt.Sprintf("of the step time, the %s term moved most: %.4g to %.4g ms per step (%s)", worst, k.was, k.is, change(k.was, k.is))
	if len(names) > 1 {
		text += fmt.Sprintf(", in it %s: %.4g to %.4g ms (%s)", term, t.was, t.is, change(t.was, t.is))
	}
	for _, other := range []string{"memory", "compute", "overhead"} {
		if o := byKind[other]; other != worst && off(o)/step.was >= least {
			text += fmt.Sprintf("; the %s term: %.4g to %.4g ms (%s)", other, o.was, o.is, change(o.was, o.is))
		}
	}
	return move{off(k) / step.was, text}, true
}

// movedDecision is about the figure of decisions that moved most, as a share of what it was.
func movedDecision(was, is []amount) (worst move, ok bool) {
	for _, a := range was {
		i := slices.IndexFunc(is, func(b amount) bool { return b.Name == a.Name })
		if i < 0 {
			continue
		}
		far := math.Abs(is[i].Value-a.Value) / max(math.Abs(a.Value), floor(a.Name))
		if far > max(worst.far, least) {
			worst, ok = move{far, fmt.Sprintf("of the decisions, %s moved most: %s to %s (%s)",
				a.Name, exact(a.Value), exact(is[i].Value), change(a.Value, is[i].Value))}, true
		}
	}
	return worst, ok
}

// floor keeps what was next to nothing from seeming to have moved far: a share of time below 1%, a
// count below 1.
func floor(name string) float64 {
	if strings.HasPrefix(name, "blocked.") {
		return 0.01
	}
	return 1
}
