package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errCR is about a file that would be one line.
var errCR = errors.New("lines must end in LF or CRLF, end in CR")

// A reader hands out the rows of a file that are requests, in the file's order, and
// accounts for the others.
type reader struct {
	*lines
	format *format
	decoder
	tally tally
	first []byte // a JSON line that named the format, and is a row as well
}

// openReader recognises the format by the header, or by the keys of the first line.
func openReader(path string, open func() (io.ReadCloser, error)) (*reader, error) {
	l, err := openLines(path, open)
	if err != nil {
		return nil, err
	}
	r := &reader{lines: l}
	if err := r.recognise(); err != nil {
		l.close()
		return nil, err
	}
	return r, nil
}

func (r *reader) recognise() error {
	line, err := r.lines.next()
	if err != nil && bytes.IndexByte(r.long, '\r') >= 0 { // longer than a line may be
		return fmt.Errorf("%s:1: %w", r.path, errCR)
	}
	if err == io.EOF {
		return fmt.Errorf("%s: empty trace: the file has no line that is not blank", r.path)
	}
	if err != nil {
		return err
	}
	if c := trim(line)[0]; c == '{' || c == '[' {
		d, err := newJSONDecoder(line)
		if err != nil && bytes.IndexByte(line, '\r') >= 0 {
			err = errCR
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", r.path, r.number, err)
		}
		r.format, r.decoder, r.first = d.format, d, line
		return nil
	}
	if bytes.IndexByte(line, '\r') >= 0 {
		return fmt.Errorf("%s:%d: %w", r.path, r.number, errCR)
	}
	d, err := newCSVDecoder(line)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", r.path, r.number, err)
	}
	r.format, r.decoder = d.format, d
	return nil
}

// next reads on to a row that is a request; at the end of the file the error is io.EOF.
// A malformed row is no error, it is accounted for.
func (r *reader) next(to *row) error {
	for {
		line := r.first
		if r.first = nil; line == nil {
			var err error
			if line, err = r.lines.next(); err != nil {
				return err
			}
		}
		r.tally.rows++
		err := r.decode(line, to)
		switch {
		case err != nil:
			r.tally.fault(r.path, r.number, err)
		case to.output == 0:
			r.tally.skip(0, r.number, fmt.Sprintf("output must be positive, is 0 (input is %d)", to.prompt))
		case to.prompt == 0:
			r.tally.skip(1, r.number, fmt.Sprintf("input must be positive, is 0 (output is %d)", to.output))
		default:
			r.tally.kept++
			return nil
		}
	}
}
