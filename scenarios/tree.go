package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// An origin is where a value was written.
type origin struct {
	layer int    // what is laid over what: 0 base scenario, 1 file, 2 and up the edits
	where string // FILE, or the edit's label
	path  string // of an edit; empty for a file
	place place  // against which file names are taken
}

func (o *origin) scalar(tag, value string) *node {
	return &node{origin: o, scalar: &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}, whole: true}
}

// nothing is what an empty text says: of a file, that all is as it was; of an edit, no value.
func (o *origin) nothing() *node {
	if o.path != "" {
		return o.scalar("!!null", "")
	}
	return &node{origin: o, line: 1, fields: map[string]*node{}, whole: true}
}

// A node is a value of a scenario with its place. Unlike yaml.Node it has been through the checks
// that need no schema: no aliases, plain keys, none of them twice.
type node struct {
	*origin
	line   int
	scalar *yaml.Node       // nil for a mapping or a list
	keys   []string         // of a mapping, in the order written
	fields map[string]*node // nil unless a mapping
	items  []*node          // of a list
	whole  bool             // given as a value, not made on the way to a deeper edit
	astray *node            // of a list: edits of blocks by name that it does not have
	alone  bool             // takes the place of what it is laid over, keys and all
}

func (n *node) isMapping() bool { return n != nil && n.fields != nil }

func (n *node) at(keys ...string) *node {
	for _, key := range keys {
		if n == nil {
			return nil
		}
		n = n.fields[key]
	}
	return n
}

func (n *node) text() string {
	if n == nil || n.scalar == nil {
		return ""
	}
	return n.scalar.Value
}

func (n *node) put(key string, value *node) {
	if _, has := n.fields[key]; !has {
		n.keys = append(n.keys, key)
	}
	n.fields[key] = value
}

func (n *node) fault(path, message string) Fault {
	switch {
	case n.path == "" && n.line > 0:
		return Fault{fmt.Sprintf("%s:%d", n.where, n.line), path, message}
	case n.path == path:
		return Fault{n.where, "", message}
	}
	return Fault{n.where, path, message}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// maxFile bounds a scenario file, and maxKey a key; the longest of ours have one KB and 28 bytes.
const (
	maxFile = 1 << 20
	maxKey  = 80
)

// unspaced finds a key of a block on one line whose colon ends no word.
var unspaced = regexp.MustCompile(`[{,]\s*[a-z_]+:[\[{\d]`)

var lineOf = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// ofParser are the messages of yaml.v3's parser, which counts lines from 0; its scanner counts from 1.
var ofParser = regexp.MustCompile(`^did not find expected (<|node content|'-' indicator|key|',' or )|^found (undefined|duplicate|incompatible) `)

var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

// faultLine is the line of a message of yaml.v3, from 1; counted is what yaml.v3 says, empty for its first.
func faultLine(text []byte, counted, message string) int {
	at := 0
	if n, err := strconv.Atoi(counted); err == nil {
		if ofParser.MatchString(message) {
			n++
		}
		return min(n, 1+bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))) // the end is no line
	} else if m := unknownAnchor.FindStringSubmatch(message); m != nil {
		at = bytes.Index(text, []byte("*"+m[1]))
	} else if strings.HasPrefix(message, "control characters") || strings.Contains(message, "UTF-8") || strings.Contains(message, "Unicode") {
		at = firstUnreadable(text)
	}
	return 1 + bytes.Count(text[:max(at, 0)], []byte("\n"))
}

// firstUnreadable is where text has what is no character, or none that YAML has.
func firstUnreadable(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && size == 1, r == 0xFFFE, r == 0xFFFF,
			r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7F && r < 0xA0 && r != 0x85:
			return at
		}
		at += size
	}
	return 0
}

// parse reads one YAML document; an empty one is an empty mapping.
func parse(text []byte, from *origin) (*node, Faults) {
	if len(text) > maxFile {
		return nil, Faults{{from.where, "", "must be at most 1 MiB, is longer"}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return from.nothing(), nil
	}
	if err == nil {
		if err = decoder.Decode(&more); err == nil {
			line := Fault{fmt.Sprintf("%s:%d", from.where, more.Line), "", "must be one document, is several"}
			return nil, Faults{line}
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		where := from.where
		message := err.Error()
		if m := lineOf.FindStringSubmatch(message); m != nil {
			message = message[len(m[0]):]
			if from.path == "" {
				where += fmt.Sprintf(":%d", faultLine(text, m[1], message))
			}
		}
		if from.path != "" && unspaced.Match(text) {
			message += " (a colon within braces needs a space after it)"
		}
		return nil, Faults{{where, "", "must be YAML: " + message}}
	}
	var faults Faults
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return from.nothing(), nil
	}
	return convert(root, from, from.path, &faults), faults
}

func convert(y *yaml.Node, from *origin, path string, faults *Faults) *node {
	n := &node{origin: from, line: y.Line, whole: true}
	switch y.Kind {
	case yaml.MappingNode:
		n.fields = map[string]*node{}
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			at := &node{origin: from, line: key.Line}
			if key.Kind != yaml.ScalarNode || len(key.Value) > maxKey || strings.ContainsFunc(key.Value, control) {
				*faults = append(*faults, at.fault(path, "a key must be a plain word"))
				continue
			}
			below := join(path, key.Value)
			if _, twice := n.fields[key.Value]; twice {
				*faults = append(*faults, at.fault(below, "is given twice"))
				continue
			}
			value := convert(y.Content[i+1], from, below, faults)
			value.line = key.Line
			n.put(key.Value, value)
		}
	case yaml.SequenceNode:
		for _, item := range y.Content {
			n.items = append(n.items, convert(item, from, path, faults))
		}
	case yaml.AliasNode:
		*faults = append(*faults, n.fault(path, "must be written out, is an alias"))
		n.scalar = from.scalar("!!alias", "").scalar
	default:
		n.scalar = y
	}
	return n
}

// overlay lays one scenario over another: its values are taken, and what it does not give stays.
// A block that says what it is by one of its keys (a name, a process) takes the whole place of a
// block that is something else, whose other keys would not suit it.
//
// Blocks by name that are laid over a list of them are laid over those with these names.
func overlay(under, over *node, path string) *node {
	if path == "cluster.pools" && under.isList() && over.isMapping() {
		return under.named(over)
	}
	if !under.isMapping() || !over.isMapping() || over.alone {
		return over
	}
	drop := []string{}
	switch path {
	case "model", "hardware":
		if over.at("name") != nil || over.at("config") != nil {
			return over
		}
	case "slo":
		if over.whole {
			return over
		}
	case "workload":
		arrivals := over.at("arrivals")
		if arrivals.at("process").text() == "trace" &&
			(arrivals.alone || under.at("arrivals", "process").text() != "trace") {
			drop = []string{"prompt_tokens", "output_tokens", "requests", "prefix", "sessions"} // a trace brings its own
		}
	case "workload.arrivals":
		if p := over.at("process"); p != nil && p.text() != under.at("process").text() {
			return over
		}
	case "workload.prompt_tokens", "workload.output_tokens", "workload.sessions.turns":
		return over
	}
	both := &node{origin: over.origin, line: over.line, fields: map[string]*node{}, whole: true}
	for _, key := range under.keys {
		if !slices.Contains(drop, key) {
			both.put(key, under.fields[key])
		}
	}
	for _, key := range over.keys {
		value := over.fields[key]
		if below := both.fields[key]; below != nil {
			value = overlay(below, value, join(path, key))
		}
		both.put(key, value)
	}
	return both
}
