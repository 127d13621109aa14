package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// maxLine bounds a line of a trace: a Mooncake row of a million tokens has 40 KB, a row
// with all its token ids a few MB.
const maxLine = 16 << 20

// lines hands out the lines of a trace, plain or compressed, and digests its contents
// (of a compressed one: as they read once unpacked).
type lines struct {
	path   string
	source io.ReadCloser
	buffer *bufio.Reader
	digest hash.Hash
	long   []byte // a line that outgrew the buffer
	number int    // of the line last handed out, from 1
	packed bool
}

// openRegular opens a file that can be read twice.
func openRegular(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory, must be a trace file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: must be a regular file (it is read twice), is %s", path, info.Mode().Type())
	}
	return os.Open(path)
}

func openLines(path string, open func() (io.ReadCloser, error)) (*lines, error) {
	source, err := open()
	if err != nil {
		return nil, err
	}
	l := &lines{path: path, source: source, digest: sha256.New()}
	raw := bufio.NewReaderSize(source, 64<<10)
	var contents io.Reader = raw
	if magic, _ := raw.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		l.packed = true
		if contents, err = gzip.NewReader(raw); err != nil {
			source.Close()
			return nil, fmt.Errorf("%s: %w", path, explain(err))
		}
	}
	l.buffer = bufio.NewReaderSize(io.TeeReader(contents, l.digest), 256<<10)
	if mark, _ := l.buffer.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = l.buffer.Discard(3)
	}
	return l, nil
}

func explain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("gzip data is truncated: the file ends early")
	}
	return err
}

// next returns the next line that is not blank, without its end; it is valid until the
// following call. At the end of the file the error is io.EOF.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.buffer.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			line, err = l.join(line)
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s:%d: %w", l.path, l.number+1, explain(err))
		}
		if len(line) == 0 && err == io.EOF {
			return nil, io.EOF
		}
		l.number++
		if n := len(line); line[n-1] == '\n' {
			line = line[:n-1]
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if len(trim(line)) > 0 {
			return line, nil
		}
	}
}

// join collects a line longer than the buffer.
func (l *lines) join(start []byte) ([]byte, error) {
	l.long = append(l.long[:0], start...)
	for {
		part, err := l.buffer.ReadSlice('\n')
		if len(l.long)+len(part) > maxLine {
			return nil, fmt.Errorf("line must be at most %d MiB, is longer", maxLine>>20)
		}
		l.long = append(l.long, part...)
		if err != bufio.ErrBufferFull {
			return l.long, err
		}
	}
}

// sum is the SHA-256 of the contents, once next has returned io.EOF.
func (l *lines) sum() string { return hex.EncodeToString(l.digest.Sum(nil)) }

func (l *lines) close() error { return l.source.Close() }

// trim cuts spaces and tabs off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for n := len(b); n > 0 && (b[n-1] == ' ' || b[n-1] == '\t'); n-- {
		b = b[:n-1]
	}
	return b
}
