// Package strict reads YAML into Go values and tells everything that is wrong with it, with lines.
//
// It knows keys and kinds of values. It knows nothing of what a file is about.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"llmsim/scenarios"
)

// MaxFile bounds a file, in bytes.
const MaxFile = 1 << 20

// A Value reads itself from one node. Its error says what the node must be and is.
type Value interface{ ReadYAML(*yaml.Node) error }

// ReadFile returns the content of a file of at most MaxFile bytes. The error is scenarios.Faults.
func ReadFile(path string) ([]byte, error) {
	fault := func(message string) error { return scenarios.Faults{{Where: path, Message: message}} }
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil, fault("must be a file, is a folder")
	}
	if err == nil && info.Size() > MaxFile {
		return nil, fault("must be at most 1 MiB, is longer")
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		if failed, ok := errors.AsType[*os.PathError](err); ok {
			err = failed.Err
		}
		return nil, fault(err.Error())
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fault(err.Error())
	}
	return text, nil
}

var lineOf = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Parse reads one YAML document of at most MaxFile bytes, a block of keys without aliases. The
// error is scenarios.Faults.
func Parse(text []byte, where string) (*yaml.Node, error) {
	if len(text) > MaxFile {
		return nil, scenarios.Faults{{Where: where, Message: "must be at most 1 MiB, is longer"}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, scenarios.Faults{{Where: where, Message: "must be a block of keys, is empty"}}
	}
	if err == nil {
		if err = decoder.Decode(&more); err == nil {
			return nil, scenarios.Faults{{Where: at(where, more.Line), Message: "must be one document, is several"}}
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		message := err.Error()
		if m := lineOf.FindStringSubmatch(message); m != nil {
			message = message[len(m[0]):]
			if m[1] != "" {
				where += ":" + m[1]
			}
		}
		return nil, scenarios.Faults{{Where: where, Message: "must be YAML: " + message}}
	}
	return &doc, nil
}

func at(where string, line int) string { return fmt.Sprintf("%s:%d", where, line) }

// Decode reads a document into the struct that into points to and returns all faults.
//
// Fields are named by their yaml tag; "required" after the name says that a key must be there, and
// a field called Line, of no key, takes the line. A list of structs of which one field is tagged
// ",key" may be written as a block, whose keys then are that field, in order. Where a list of texts
// is wanted one text will do.
func Decode(text []byte, where string, into any) scenarios.Faults {
	doc, err := Parse(text, where)
	if err != nil {
		faults, _ := errors.AsType[scenarios.Faults](err)
		return faults
	}
	r := reading{where: where}
	r.read(doc.Content[0], reflect.ValueOf(into).Elem(), "")
	return r.faults
}

type reading struct {
	where  string
	faults scenarios.Faults
}

// mostFaults bounds what is told of one file.
const mostFaults = 50

func (r *reading) add(n *yaml.Node, path, format string, args ...any) {
	if len(r.faults) < mostFaults {
		r.faults = append(r.faults, scenarios.Fault{Where: at(r.where, n.Line), Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Show is a node in a message.
func Show(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a block of keys"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.ShortTag() == "!!null":
		return "empty"
	case n.ShortTag() == "!!str":
		return strconv.Quote(shorten(n.Value))
	}
	return shorten(n.Value)
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

func (r *reading) read(n *yaml.Node, to reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		r.add(n, path, "must be written out, is an alias")
		return
	}
	if v, ok := to.Addr().Interface().(Value); ok {
		if err := v.ReadYAML(n); err != nil {
			r.add(n, path, "%v", err)
		}
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		r.read(n, to.Elem(), path)
	case reflect.Struct:
		r.block(n, to, path)
	case reflect.Slice:
		r.list(n, to, path)
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			r.add(n, path, "must be text, is %s", Show(n))
			return
		}
		if !plain(n.Value) {
			r.add(n, path, "must be without control characters, is %q", shorten(n.Value))
			return
		}
		to.SetString(n.Value)
	case reflect.Float64:
		x, ok := Number(n)
		if !ok {
			r.add(n, path, "must be a number, is %s", Show(n))
			return
		}
		to.SetFloat(x)
	case reflect.Int:
		x, ok := Number(n)
		if !ok || x != math.Trunc(x) || math.Abs(x) > 1e9 {
			r.add(n, path, "must be a whole number, is %s", Show(n))
			return
		}
		to.SetInt(int64(x))
	default:
		panic("strict: no way to read " + to.Type().String())
	}
}

// plain keeps a file's words from steering the terminal that shows them.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
}

// Number is a finite number that a node says.
func Number(n *yaml.Node) (float64, bool) {
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
		return 0, false
	}
	x, err := strconv.ParseFloat(n.Value, 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

func (r *reading) block(n *yaml.Node, to reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "must be a block of keys, is %s", Show(n))
		return
	}
	if line := to.FieldByName("Line"); line.IsValid() {
		line.SetInt(int64(n.Line))
	}
	fields, required := map[string]int{}, []string{}
	var known []string
	for i := range to.NumField() {
		name, options, _ := strings.Cut(to.Type().Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields[name] = i
		known = append(known, name)
		if options == "required" {
			required = append(required, name)
		}
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name := join(path, shorten(key.Value))
		field, ok := fields[key.Value]
		switch {
		case given[key.Value]:
			r.add(key, name, "is given twice")
		case !ok:
			hint := "there is " + strings.Join(known, ", ")
			if near := scenarios.Nearest(shorten(key.Value), known); near != "" {
				hint = "did you mean " + near + "?"
			}
			r.add(key, name, "unknown key, %s", hint)
		default:
			r.read(n.Content[i+1], to.Field(field), name)
		}
		given[key.Value] = true
	}
	for _, name := range required {
		if !given[name] {
			r.add(n, join(path, name), "is missing")
		}
	}
}

func (r *reading) list(n *yaml.Node, to reflect.Value, path string) {
	of := to.Type().Elem()
	key := -1
	for i := range numField(of) {
		if of.Field(i).Tag.Get("yaml") == ",key" {
			key = i
		}
	}
	switch {
	case n.Kind == yaml.MappingNode && key >= 0:
		given := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i]
			if given[name.Value] {
				r.add(name, join(path, shorten(name.Value)), "is given twice")
				continue
			}
			given[name.Value] = true
			if name.Value == "" || strings.ContainsFunc(name.Value, func(r rune) bool { return unicode.IsControl(r) || r == '|' }) {
				r.add(name, path, "a key must be a name without control characters and bars, is %q", shorten(name.Value))
				continue
			}
			item := reflect.New(of).Elem()
			r.read(n.Content[i+1], item, join(path, shorten(name.Value)))
			item.Field(key).SetString(name.Value)
			if line := item.FieldByName("Line"); line.IsValid() {
				line.SetInt(int64(name.Line))
			}
			to.Set(reflect.Append(to, item))
		}
	case key >= 0:
		r.add(n, path, "must be a block of keys, is %s", Show(n))
	case n.Kind == yaml.SequenceNode:
		for i, child := range n.Content {
			item := reflect.New(of).Elem()
			r.read(child, item, fmt.Sprintf("%s[%d]", path, i))
			to.Set(reflect.Append(to, item))
		}
	case of.Kind() == reflect.String && n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null":
		item := reflect.New(of).Elem()
		r.read(n, item, path)
		to.Set(reflect.Append(to, item))
	default:
		r.add(n, path, "must be a list, is %s", Show(n))
	}
}

func numField(t reflect.Type) int {
	if t.Kind() != reflect.Struct {
		return 0
	}
	return t.NumField()
}
