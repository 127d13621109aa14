package scenarios

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A span is what a number must lie in; above excludes lo.
type span struct {
	lo, hi float64
	above  bool
}

func positive(hi float64) span    { return span{0, hi, true} }
func nonNegative(hi float64) span { return span{0, hi, false} }
func between(lo, hi float64) span { return span{lo, hi, false} }
func figure(x float64) string     { return strconv.FormatFloat(x, 'f', -1, 64) }

func (s span) complain(x float64, show func(float64) string) string {
	switch {
	case math.IsNaN(x):
		return "must be a number"
	case s.above && s.lo == 0 && x <= 0:
		return "must be positive"
	case s.above && x <= s.lo:
		return "must be above " + show(s.lo)
	case s.lo == 0 && x < 0:
		return "must not be negative"
	case x < s.lo:
		return "must be at least " + show(s.lo)
	case x > s.hi:
		return "must be at most " + show(s.hi)
	}
	return ""
}

// decimal is a number as people read it. YAML has more: it takes 010 for 8, and 1_0 for 10.
var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)

// number takes a number out of a scalar.
func (r *reading) number(n *node, path string, in span) (float64, bool) {
	return r.numeral(n, path, "a decimal number", in)
}

func (r *reading) numeral(n *node, path, want string, in span) (x float64, ok bool) {
	if !r.isScalar(n, path, "a number") {
		return 0, false
	}
	if tag := n.scalar.ShortTag(); tag != "!!int" && tag != "!!float" || n.scalar.Decode(&x) != nil {
		r.add(n, path, "must be a number, is %s", show(n))
		return 0, false
	}
	if finite := !math.IsNaN(x) && !math.IsInf(x, 0); finite && !decimal.MatchString(n.scalar.Value) {
		r.add(n, path, "must be %s, is %s", want, show(n))
		return 0, false
	}
	if wrong := in.complain(x, figure); wrong != "" {
		r.add(n, path, "%s, is %s", wrong, show(n))
		return 0, false
	}
	return x, true
}

// whole takes a whole number out of a scalar; 1e4 is one.
func (r *reading) whole(n *node, path string, in span) (int, bool) {
	x, ok := r.numeral(n, path, "a whole number", in)
	if ok && x != math.Trunc(x) {
		r.add(n, path, "must be a whole number, is %s", show(n))
		return 0, false
	}
	return int(x), ok
}

func (b *block) number(key string, in span) float64 {
	if n, ok := b.value(key, "a number"); ok {
		x, _ := b.reading.number(n, join(b.path, key), in)
		return x
	}
	return 0
}

func (b *block) whole(key string, in span) int {
	if n, ok := b.value(key, "a number"); ok {
		x, _ := b.reading.whole(n, join(b.path, key), in)
		return x
	}
	return 0
}

func (b *block) flag(key string) (set bool) {
	n, ok := b.value(key, "true or false")
	if ok && (n.scalar.ShortTag() != "!!bool" || n.scalar.Decode(&set) != nil) {
		b.add(n, join(b.path, key), "must be true or false, is %s", show(n))
	}
	return set
}

// longest is the span of a duration that makes sense: 30 years, a tenth of what Duration holds.
const longest = 30 * 365 * 24 * time.Hour

func (b *block) duration(key string, in span) time.Duration {
	n, ok := b.value(key, "a duration with its unit, such as 25ms")
	if !ok {
		return 0
	}
	path := join(b.path, key)
	d, err := time.ParseDuration(n.scalar.Value)
	if tag := n.scalar.ShortTag(); tag != "!!str" || err != nil || !strings.HasSuffix(n.scalar.Value, "s") &&
		!strings.HasSuffix(n.scalar.Value, "m") && !strings.HasSuffix(n.scalar.Value, "h") {
		b.add(n, path, "must be a duration with its unit, such as 25ms, is %s", show(n))
		return 0
	}
	seconds := func(x float64) string { return time.Duration(x).String() }
	if wrong := in.complain(float64(d), seconds); wrong != "" {
		b.add(n, path, "%s, is %s", wrong, shorten(n.scalar.Value))
		return 0
	}
	return d
}

func (b *block) word(key, want string) string {
	n, ok := b.value(key, want)
	if !ok {
		return ""
	}
	if s := n.scalar.Value; n.scalar.ShortTag() == "!!str" && s != "" && len(s) <= 4096 && !strings.ContainsFunc(s, control) {
		return s
	}
	b.add(n, join(b.path, key), "must be %s, is %s", want, show(n))
	return ""
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// choice takes one of several words.
func (b *block) choice(key string, options ...string) string {
	s := b.word(key, "one of "+strings.Join(options, ", "))
	if s != "" && !slices.Contains(options, s) {
		b.add(b.get(key), join(b.path, key), "%q is not known, %s", shorten(s), suggest(s, options))
		return ""
	}
	return s
}
