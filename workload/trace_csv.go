package workload

import (
	"bytes"
	"errors"
	"fmt"
)

// maxColumns bounds the columns of a CSV trace.
const maxColumns = 256

// A row is what a trace says of one request.
type row struct {
	at             int64 // ns, on the file's own clock
	prompt, output int32
	priority       int32
	block          int32 // tokens per entry of prefix; 0: none
	session        int64
	prefix         []uint64 // valid until the next row is decoded
	odd            bool     // prefix has another length than the prompt needs
}

// A decoder reads one line into a row. An error is about that line alone.
type decoder interface {
	decode(line []byte, r *row) error
}

// A csvDecoder finds columns by their names; others are passed over.
type csvDecoder struct {
	format  *format
	columns []field // in the file's order; the role of an unknown one is roleNone
	ids     []uint64
	hidden  []byte // a quoted field, unquoted
	ranges  []byte // of the row, to be spelt out once its prompt is known
}

// newCSVDecoder reads a header.
func newCSVDecoder(header []byte) (*csvDecoder, error) {
	d := &csvDecoder{}
	var names []string
	for rest, more := header, true; more; {
		var cell []byte
		var err error
		if cell, rest, more, err = d.cut(rest); err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		if len(names) == maxColumns {
			return nil, fmt.Errorf("header: must have at most %d columns, has more", maxColumns)
		}
		names = append(names, string(trim(cell)))
	}
	if err := refuseCSV(names); err != nil {
		return nil, err
	}
	f, err := detect(names, false)
	if err != nil {
		return nil, err
	}
	d.format = f
	seen := make(map[string]bool)
	for _, name := range names {
		column := field{name: name}
		for _, known := range f.fields {
			if known.name != name {
				continue
			}
			if seen[name] {
				return nil, fmt.Errorf("header: column %q must appear once, appears twice", name)
			}
			seen[name] = true
			column = known
		}
		d.columns = append(d.columns, column)
	}
	return d, nil
}

// refuseCSV recognises the files that are no list of requests.
func refuseCSV(names []string) error {
	if names[0] == "window_start_s" {
		return errors.New("rates per window (ServeGen) are not read yet")
	}
	if len(names) == 6 {
		numbers := 0
		for _, name := range names {
			if _, err := parseDecimal([]byte(name), 0); err == nil {
				numbers++
			}
		}
		if numbers >= 4 {
			return errors.New("ServeGen's chunk-*-trace.csv (no header; rates per window) is not read yet")
		}
	}
	if _, err := parseDecimal([]byte(names[0]), 0); err == nil {
		return fmt.Errorf("unknown format: the first line must be a header, starts with the number %s; known are %s", quote([]byte(names[0])), known())
	}
	return nil
}

func (d *csvDecoder) decode(line []byte, r *row) error {
	*r = row{}
	d.ranges = d.ranges[:0]
	n := 0
	for rest, more := line, true; more; n++ {
		var cell []byte
		if comma := bytes.IndexByte(rest, ','); len(rest) == 0 || rest[0] != '"' && comma < 0 {
			cell, more = rest, false
		} else if rest[0] != '"' {
			cell, rest = rest[:comma], rest[comma+1:]
		} else {
			var err error
			if cell, rest, more, err = d.cut(rest); err != nil {
				return fmt.Errorf("column %d: %w", n+1, err)
			}
		}
		if n >= len(d.columns) || d.columns[n].role == roleNone {
			continue
		}
		cell = trim(cell)
		if err := d.set(d.columns[n].role, cell, r); err != nil {
			return fmt.Errorf("%s: %w, is %s", d.columns[n].name, err, quote(cell))
		}
	}
	if n != len(d.columns) {
		return fmt.Errorf("must have %d columns as the header, has %d", len(d.columns), n)
	}
	if len(d.ranges) > 0 && r.prompt > 0 {
		return d.spellOut(r)
	}
	return nil
}

// cut takes the first field off a line. A quoted field may hold commas and doubled
// quotes, but no line break: one stray quote would otherwise swallow the file.
func (d *csvDecoder) cut(line []byte) (cell, rest []byte, more bool, err error) {
	if len(line) == 0 || line[0] != '"' {
		cell, rest, more = bytes.Cut(line, []byte{','})
		return cell, rest, more, nil
	}
	d.hidden = d.hidden[:0]
	for i := 1; i < len(line); i++ {
		if line[i] != '"' {
			d.hidden = append(d.hidden, line[i])
			continue
		}
		if i++; i == len(line) {
			return d.hidden, nil, false, nil
		}
		switch line[i] {
		case '"':
			d.hidden = append(d.hidden, '"')
		case ',':
			return d.hidden, line[i+1:], true, nil
		default:
			return nil, nil, false, fmt.Errorf("a quoted field must end before a comma, ends before %q", line[i])
		}
	}
	return nil, nil, false, errors.New("a quoted field must end on its line")
}

func (d *csvDecoder) set(role role, cell []byte, r *row) (err error) {
	switch role {
	case roleArrival:
		r.at, err = d.format.instant(cell)
	case rolePrompt:
		r.prompt, err = parseTokens(cell)
	case roleOutput:
		r.output, err = parseTokens(cell)
	case rolePriority:
		r.priority, err = parsePriority(cell)
	case roleSession:
		if len(cell) > 0 {
			r.session, err = parseInt(cell)
		}
	case roleSessionName:
		r.session = nameSession(cell)
	case rolePrefix:
		err = d.prefix(cell, r)
	case rolePrefixRanges:
		d.ranges = append(d.ranges, cell...)
	}
	return err
}

// instant reads a time as the format stamps it.
func (f *format) instant(cell []byte) (int64, error) {
	if f.stamp == stampDatetime {
		return parseDatetime(cell)
	}
	at, err := parseDecimal(cell, f.stamp.scale())
	if err == nil && at < 0 && f.fromStart {
		return 0, errNegative
	}
	return at, err
}

// prefix reads block ids apart by spaces or semicolons, maybe after the tokens of a
// block and a colon: 512:1;2;3.
func (d *csvDecoder) prefix(cell []byte, r *row) error {
	if len(cell) == 0 {
		return nil
	}
	r.block = d.format.block
	if block, ids, ok := bytes.Cut(cell, []byte{':'}); ok {
		n, err := parseTokens(block)
		if err != nil || n == 0 {
			return errors.New("tokens per block, before the colon, must be a whole number from 1")
		}
		r.block, cell = n, ids
	}
	d.ids = d.ids[:0]
	for len(cell) > 0 {
		end := bytes.IndexAny(cell, "; ")
		if end < 0 {
			end = len(cell)
		}
		if end > 0 {
			id, err := parseUint(cell[:end])
			if err != nil {
				return fmt.Errorf("entry %d %w", len(d.ids)+1, err)
			}
			d.ids = append(d.ids, id)
		}
		cell = cell[min(end+1, len(cell)):]
	}
	if len(d.ids) > 0 {
		r.prefix = d.ids
	}
	return nil
}

// parsePriority reads a priority; an empty cell is 0.
func parsePriority(cell []byte) (int32, error) {
	if len(cell) == 0 {
		return 0, nil
	}
	v, err := parseInt(cell)
	if err != nil || v != int64(int32(v)) {
		return 0, errors.New("must be a whole number from -2147483648 to 2147483647")
	}
	return int32(v), nil
}

// nameSession gives a session's name a number, 0 only to the empty name. Two names
// among a million get the same number with a chance of one in ten million.
func nameSession(name []byte) int64 {
	if len(name) == 0 {
		return 0
	}
	h := uint64(14695981039346656037) // FNV-1a, 64 bits
	for _, c := range name {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return max(int64(h>>1), 1)
}
