package workload

import (
	"bytes"
	"errors"
	"fmt"
)

var (
	errEnds   = errors.New("JSON ends early")
	errObject = errors.New("must be one JSON object per line")
)

// A jsonDecoder reads a line that is one flat object; keys it does not know are passed
// over, whatever their values hold. Of a key that appears twice the last counts.
type jsonDecoder struct {
	format *format
	ids    []uint64
}

// newJSONDecoder finds the format by the keys of the first line.
func newJSONDecoder(line []byte) (*jsonDecoder, error) {
	line = trim(line)
	if line[0] == '[' {
		return nil, errors.New("a JSON list of conversations (ShareGPT, vLLM bench) is not read yet")
	}
	var names []string
	err := members(line, func(key, value []byte) error {
		if string(key) == "conversations" {
			return errors.New("conversations (ShareGPT, vLLM bench) are not read yet")
		}
		if len(names) == maxColumns {
			return fmt.Errorf("a line must have at most %d keys, has more", maxColumns)
		}
		names = append(names, string(key))
		return nil
	})
	if err == errEnds {
		return nil, fmt.Errorf("%w, is an object over several lines (as ServeGen's chunk-*-dataset.json, not read yet)", errObject)
	}
	if err != nil {
		return nil, err
	}
	f, err := detect(names, true)
	if err != nil {
		return nil, err
	}
	return &jsonDecoder{format: f}, nil
}

func (d *jsonDecoder) decode(line []byte, r *row) error {
	*r = row{}
	var seen [len(required)]bool
	err := members(trim(line), func(key, value []byte) error {
		for i := range d.format.fields {
			f := &d.format.fields[i]
			if f.name != string(key) {
				continue
			}
			seen[f.role] = true
			if err := d.set(f.role, value, r); err != nil {
				return fmt.Errorf("%s: %w, is %s", f.name, err, quote(value))
			}
			break
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range d.format.fields {
		if f := &d.format.fields[i]; required[f.role] && !seen[f.role] {
			return fmt.Errorf("%s: must be there, is missing", f.name)
		}
	}
	if len(r.prefix) > 0 {
		// An id beyond the prompt's end could only claim tokens that it does not have.
		need := int((int64(r.prompt) + int64(r.block) - 1) / int64(r.block))
		r.odd = len(r.prefix) != need
		r.prefix = r.prefix[:min(need, len(r.prefix))]
	}
	return nil
}

func (d *jsonDecoder) set(role role, value []byte, r *row) (err error) {
	switch role {
	case roleArrival:
		r.at, err = d.format.instant(value)
	case rolePrompt:
		r.prompt, err = parseTokens(value)
	case roleOutput:
		r.output, err = parseTokens(value)
	case rolePrefix:
		err = d.prefix(value, r)
	}
	return err
}

// prefix reads a list of block ids.
func (d *jsonDecoder) prefix(list []byte, r *row) error {
	n := len(list)
	if n < 2 || list[0] != '[' || list[n-1] != ']' {
		return errors.New("must be a list of whole numbers")
	}
	r.prefix, r.block = nil, 0
	d.ids = d.ids[:0]
	rest := space(list[1 : n-1])
	if len(rest) == 0 {
		return nil
	}
	for more := true; more; {
		var entry []byte
		entry, rest, more = bytes.Cut(rest, []byte{','})
		id, err := parseUint(trim(entry))
		if err != nil {
			return fmt.Errorf("entry %d %w", len(d.ids)+1, err)
		}
		d.ids = append(d.ids, id)
	}
	r.prefix, r.block = d.ids, d.format.block
	return nil
}

// members calls do with each key and raw value of an object. Keys are given as written:
// one with an escape in it equals no key that a format has.
func members(b []byte, do func(key, value []byte) error) error {
	if len(b) == 0 || b[0] != '{' {
		return errObject
	}
	b = space(b[1:])
	if len(b) > 0 && b[0] == '}' {
		return last(b[1:])
	}
	for {
		end, err := stringEnd(b)
		if err != nil {
			return err
		}
		key := b[1 : end-1]
		if b = space(b[end:]); len(b) == 0 {
			return errEnds
		}
		if b[0] != ':' {
			return fmt.Errorf("JSON must have ':' after the key %s, has %q", quote(key), b[0])
		}
		b = space(b[1:])
		if end, err = valueEnd(b); err != nil {
			return err
		}
		if err := do(key, b[:end]); err != nil {
			return err
		}
		if b = space(b[end:]); len(b) == 0 {
			return errEnds
		}
		switch b[0] {
		case ',':
			b = space(b[1:])
		case '}':
			return last(b[1:])
		default:
			return fmt.Errorf("JSON must have ',' or '}' after the value of %s, has %q", quote(key), b[0])
		}
	}
}

func last(b []byte) error {
	if b = space(b); len(b) > 0 {
		return fmt.Errorf("%w, is followed by %s", errObject, quote(b))
	}
	return nil
}

// stringEnd is the index behind the string that b starts with.
func stringEnd(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, errEnds
	}
	if b[0] != '"' {
		return 0, fmt.Errorf("JSON must have a string here, has %s", quote(b))
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1, nil
		case '\\':
			i++
		}
	}
	return 0, errEnds
}

// valueEnd is the index behind the value that b starts with. It counts brackets rather
// than recursing, so that no depth of nesting can exhaust the stack.
func valueEnd(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, errEnds
	}
	if b[0] == '"' {
		return stringEnd(b)
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if depth == 0 {
				return 0, fmt.Errorf("JSON must have a value here, has %s", quote(b))
			}
			n, err := stringEnd(b[i:])
			if err != nil {
				return 0, err
			}
			i += n - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return bare(b, i)
			}
			if depth--; depth == 0 {
				return i + 1, nil
			}
		case ',', ' ', '\t', '\r':
			if depth == 0 {
				return bare(b, i)
			}
		}
	}
	return 0, errEnds
}

// bare is the end of a value that is no string, list or object.
func bare(b []byte, end int) (int, error) {
	if end == 0 {
		return 0, fmt.Errorf("JSON must have a value here, has %s", quote(b))
	}
	return end, nil
}

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}
