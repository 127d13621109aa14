package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// An Edit sets the value at a path of a scenario before it is checked.
type Edit struct {
	Path  string // such as workload.arrivals.rate
	Value string // YAML
	Label string // how faults name the edit; if empty, --set PATH=VALUE

	trace string // a file that takes the place of the workload
}

// ParseEdit reads PATH=VALUE.
func ParseEdit(text string) (Edit, error) {
	path, value, ok := strings.Cut(text, "=")
	if path = strings.TrimSpace(path); !ok || path == "" {
		return Edit{}, Faults{{"--set " + text, "", "must be PATH=VALUE"}}
	}
	return Edit{Path: path, Value: value}, nil
}

// TraceEdit has the trace in a file take the place of the scenario's whole workload.
func TraceEdit(file string) Edit {
	return Edit{Path: "workload.arrivals.file", Label: "--trace " + file, trace: file}
}

func (e Edit) label() string {
	if e.Label != "" {
		return e.Label
	}
	return "--set " + e.Path + "=" + e.Value
}

// gather makes one tree of all edits. Of two for one path the later holds, of a block and a key in
// it the key; otherwise their order does not matter.
func gather(edits []Edit) (*node, Faults) {
	var faults Faults
	root := &node{origin: &origin{}, fields: map[string]*node{}}
	depth := func(e Edit) int { return strings.Count(e.Path, ".") }
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int { return depth(a) - depth(b) })
	for i, e := range edits {
		from := &origin{layer: 2 + i, where: e.label(), path: e.Path}
		var value *node
		if e.trace != "" {
			value = from.scalar("!!str", e.trace)
		} else {
			var bad Faults
			if value, bad = parse([]byte(e.Value), from); bad != nil {
				faults = append(faults, bad...)
				continue
			}
		}
		keys := strings.Split(e.Path, ".")
		at := root
		for i, key := range keys[:len(keys)-1] {
			next := at.fields[key]
			if i == 1 && next.isList() && keys[0] == "cluster" && key == "pools" {
				// An edit in one of the pools that another edit gives.
				named := &node{origin: from, fields: map[string]*node{}}
				lay := named
				for _, key := range keys[2 : len(keys)-1] {
					below := &node{origin: from, fields: map[string]*node{}}
					lay.put(key, below)
					lay = below
				}
				lay.put(keys[len(keys)-1], value)
				at.put(key, next.named(named))
				at = nil
				break
			}
			if next != nil && !next.isMapping() {
				message := fmt.Sprintf("%s is set to a value by %s already", key, next.where)
				faults = append(faults, Fault{from.where, "", message})
				at = nil
				break
			}
			if next == nil {
				next = &node{origin: from, fields: map[string]*node{}}
				at.put(key, next)
			}
			at = next
		}
		if at == nil {
			continue
		}
		at.put(keys[len(keys)-1], value)
		if e.trace != "" {
			at.put("process", from.scalar("!!str", "trace"))
			at.alone = true
		}
	}
	return root, faults
}
