package conformance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine bounds a line, and so what is held in memory at a time: one case. In bytes.
const MaxLine = 16 << 20

// A Reader reads recorded cases one by one, plain or compressed.
type Reader struct {
	file  string
	lines *bufio.Reader
	line  int
	buf   []byte
}

// NewReader looks at the first bytes of r to see whether it is compressed. file is what errors call it.
func NewReader(file string, r io.Reader) (*Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, &Fault{File: file, Text: fmt.Sprintf("cannot be unpacked: %v", err)}
		}
		b = bufio.NewReaderSize(z, 1<<16)
	}
	return &Reader{file: file, lines: b}, nil
}

// Next returns the next case, or io.EOF after the last. All other errors are final.
func (r *Reader) Next() (*Case, error) {
	line, err := r.next()
	if err == io.EOF {
		if r.line == 0 {
			return nil, &Fault{File: r.file, Text: "holds no case"}
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	k, fault := decode(line)
	if fault != nil {
		fault.File, fault.Line = r.file, r.line
		return nil, fault
	}
	k.File, k.Line = r.file, r.line
	return k, nil
}

// next returns the next line without its end, valid until the next call.
func (r *Reader) next() ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.lines.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		switch {
		case len(r.buf) > MaxLine:
			return nil, r.fault("is longer than %d MiB", MaxLine>>20)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(r.buf) == 0:
			return nil, io.EOF
		case err != nil && err != io.EOF:
			return nil, r.fault("cannot be read: %v", err)
		}
		line := bytes.TrimSpace(r.buf)
		if len(line) == 0 {
			return nil, r.fault("is empty")
		}
		r.line++
		return line, nil
	}
}

// fault is about the line under way.
func (r *Reader) fault(format string, args ...any) error {
	return &Fault{File: r.file, Line: r.line + 1, Text: fmt.Sprintf(format, args...)}
}
