package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A reading collects what is wrong with a tree while its values are taken out.
type reading struct {
	root    *node
	faults  Faults
	wrong   []*node  // what the faults found here are of
	known   []string // paths that were asked for
	unknown []unknownKey

	catalogue Catalogue
	chosen    chosen

	parts []*reading // of the pools of a fleet
	// Of a pool: the path that its own values stand under, its tp, and itself as a scenario.
	within string
	tp     *node
	part   *Scenario
}

type unknownKey struct {
	key      *node
	path     string
	siblings []string
}

// A block is a mapping whose keys are being asked for.
type block struct {
	*reading
	*node
	path  string
	asked []string
}

func (r *reading) add(n *node, path, format string, args ...any) {
	if r.within != "" && n.layer >= poolLayer {
		path = r.ofPool(n, path)
	}
	r.addAt(n, path, format, args...)
}

// ofPool is the path of a pool's value.
func (r *reading) ofPool(n *node, path string) string {
	if n == r.tp {
		path = "tp"
	}
	return strings.TrimSuffix(join(r.within, strings.TrimPrefix(path, "cluster.")), ".")
}

func (r *reading) addAt(n *node, path, format string, args ...any) {
	r.faults = append(r.faults, n.fault(path, fmt.Sprintf(format, args...)))
	r.wrong = append(r.wrong, n)
}

// told says whether a value was found wrong already.
func (r *reading) told(n *node) bool { return slices.Contains(r.wrong, n) }

// addAmong tells what is wrong between several values, at the one that was given last: a file is
// not told of what only the base scenario says.
func (r *reading) addAmong(paths []string, format string, args ...any) {
	last, at := r.root, ""
	for _, path := range paths {
		n := r.root.at(strings.Split(path, ".")...)
		if n != nil && (at == "" || n.layer > last.layer) {
			last, at = n, path
		}
	}
	if r.within != "" {
		at = r.ofPool(last, at) // also where the value is that of all pools
	}
	r.addAt(last, at, format, args...)
}

// block opens a mapping; its close tells of the keys that were not asked for.
func (r *reading) block(n *node, path string) *block {
	if n != nil && !n.isMapping() {
		if !isAlias(n) {
			r.add(n, path, "must be a block of keys, is %s", show(n))
		}
		n = nil
	}
	return &block{reading: r, node: n, path: path}
}

func (b *block) block(key string) *block {
	n := b.get(key)
	if n == nil && b.node != nil {
		b.missing(key)
	}
	return b.reading.block(n, join(b.path, key))
}

func (b *block) close() {
	if b.node == nil {
		return
	}
	for _, key := range b.keys {
		if !slices.Contains(b.asked, key) {
			b.unknown = append(b.unknown, unknownKey{b.fields[key], join(b.path, key), b.asked})
		}
	}
}

// mostHints bounds the unknown keys for which a near one is looked up: a file of nothing but
// unknown keys is no scenario, and would take long.
const mostHints = 50

// tellUnknown adds a fault for every unknown key. One that is known elsewhere is told where.
func (r *reading) tellUnknown() {
	for i, u := range r.unknown {
		if i >= mostHints {
			r.add(u.key, u.path, "unknown key")
			continue
		}
		key := u.path[strings.LastIndexByte(u.path, '.')+1:]
		hint := near(key, u.siblings)
		if len(hint) == 0 {
			hint = r.elsewhere(key)
		}
		if len(hint) > 0 {
			r.add(u.key, u.path, "unknown key, did you mean %s?", strings.Join(hint, " or "))
		} else {
			r.add(u.key, u.path, "unknown key, there is %s", strings.Join(u.siblings, ", "))
		}
	}
}

// elsewhere returns the paths of other blocks that end in a key, or in one like it.
func (r *reading) elsewhere(key string) (paths []string) {
	last := func(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
	var names []string
	for _, path := range r.known {
		names = append(names, last(path))
	}
	if !slices.Contains(names, key) {
		names = near(key, names)
	} else {
		names = []string{key}
	}
	for _, path := range r.known {
		if slices.Contains(names, last(path)) && len(paths) < 3 {
			paths = append(paths, path)
		}
	}
	return paths
}

// get returns the value of a key, nil if there is none.
func (b *block) get(key string) *node {
	if !slices.Contains(b.asked, key) {
		b.asked = append(b.asked, key)
		b.known = append(b.known, join(b.path, key))
	}
	if b.node == nil {
		return nil
	}
	return b.fields[key]
}

func (b *block) has(key string) bool { return b.get(key) != nil }

func (b *block) missing(key string) {
	b.add(b.node, join(b.path, key), "is missing")
}

// value returns a scalar of a key that must be there.
func (b *block) value(key, want string) (*node, bool) {
	n := b.get(key)
	if n == nil {
		if b.node != nil {
			b.missing(key)
		}
		return nil, false
	}
	return n, b.isScalar(n, join(b.path, key), want)
}

func (r *reading) isScalar(n *node, path, want string) bool {
	if isAlias(n) {
		return false
	}
	if n.scalar == nil || n.scalar.ShortTag() == "!!null" {
		r.add(n, path, "must be %s, is %s", want, show(n))
		return false
	}
	return true
}

// isAlias says whether a value was refused already for being an alias.
func isAlias(n *node) bool { return n != nil && n.scalar != nil && n.scalar.Tag == "!!alias" }

func show(n *node) string {
	switch {
	case n.fields != nil:
		return "a block of keys"
	case n.scalar == nil:
		return "a list"
	case n.scalar.ShortTag() == "!!null":
		return "empty"
	case n.scalar.ShortTag() == "!!str":
		return strconv.Quote(shorten(n.scalar.Value))
	}
	return shorten(n.scalar.Value)
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
