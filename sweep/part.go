package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"llmsim/plan"
)

// A Header says which sweep and which shard of it a part is of.
type Header struct {
	Version     string   `json:"llmsim"`
	Sweep       string   `json:"sweep"` // digest of all points and of what is measured, "sha256:..."
	Measure     string   `json:"measure"`
	Scenario    string   `json:"scenario"` // that the points are of
	Fields      []string `json:"fields"`   // that are swept
	Points      int      `json:"points"`   // of all shards
	Seeds       int      `json:"seeds"`    // of every point
	Shard       Shard    `json:"shard"`
	Figures     []string `json:"figures"`
	Assumptions []string `json:"assumptions,omitempty"` // that the numbers rest on
}

// A Line is one run of one point.
type Line struct {
	Point   int      `json:"point"`
	Run     int      `json:"run"`     // of the point's, one for every seed
	At      []string `json:"at"`      // the values of the fields
	Seed    uint64   `json:"seed"`    // of the point's scenario; run 0 has it
	Digest  string   `json:"digest"`  // of the point's scenario
	Figures []Number `json:"figures"` // as the header names them
}

// A Number is a figure; NaN, which says that there is none, is null in JSON.
type Number float64

// MarshalJSON writes the shortest number that reads back the same.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads it back.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// A Part is what was measured of a shard: the lines in the order of points and runs.
type Part struct {
	Header
	Lines []Line

	path string // where it was read
}

// Write writes a header and lines as JSON, one on each line.
func (p Part) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	err := e.Encode(p.Header)
	for i := range p.Lines {
		err = errors.Join(err, e.Encode(&p.Lines[i]))
	}
	return errors.Join(err, out.Flush())
}

// Bounds of what is read: of a line, and of the lines of a file, which may have been written twice.
const (
	maxLine  = 1 << 20
	maxLines = 2*MaxRuns + 1
)

// scan reads a part's text. Good is how many bytes of it are whole lines; what comes after them is told by the
// error. Lines without a header are an error, an empty text is not.
func scan(r io.Reader, path string) (p Part, good int64, err error) {
	p.path = path
	in := bufio.NewReaderSize(r, 64<<10)
	for number := 1; number <= maxLines; number++ {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return p, good, nil
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the line is cut off")
		}
		if err == nil && number == 1 {
			err = strict(text, &p.Header)
			if err == nil {
				err = p.Header.check()
			}
		} else if err == nil {
			var l Line
			if err = strict(text, &l); err == nil {
				if err = p.Header.checkLine(l); err == nil {
					p.Lines = append(p.Lines, l)
				}
			}
		}
		if err != nil {
			return p, good, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		good += int64(len(text))
	}
	return p, good, fmt.Errorf("%s: must have at most %d lines, has more", path, maxLines)
}

// readLine reads up to and with the next line feed.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > maxLine {
			return line, fmt.Errorf("a line must have at most %d bytes, has more", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("must be a line of a sweep, is %.60q: %w", strings.TrimSpace(string(text)), err)
	}
	if len(bytes.TrimSpace(text[d.InputOffset():])) > 0 {
		return fmt.Errorf("must be one line of a sweep, is %.60q", strings.TrimSpace(string(text)))
	}
	return nil
}

func (h Header) check() error {
	switch {
	case h.Sweep == "" || h.Shard.Of == 0:
		return errors.New("must be the head of a sweep's part, has no sweep or shard")
	case h.Version != plan.Version:
		return fmt.Errorf("must be of llmsim %s, is of llmsim %s", plan.Version, h.Version)
	case h.Points < 1 || h.Seeds < 1 || h.Seeds > MaxSeeds || h.Points > MaxRuns/h.Seeds:
		return fmt.Errorf("must have 1 to %d runs, has %d points of %d seeds", MaxRuns, h.Points, h.Seeds)
	}
	return nil
}

func (h Header) checkLine(l Line) error {
	switch {
	case l.Point < 0 || l.Point >= h.Points || !h.Shard.has(l.Point):
		return fmt.Errorf("point %d is none of shard %s of %d points", l.Point, h.Shard, h.Points)
	case l.Run < 0 || l.Run >= h.Seeds:
		return fmt.Errorf("point %d has %d runs, not one numbered %d", l.Point, h.Seeds, l.Run)
	case l.Digest == "":
		return fmt.Errorf("point %d must have a digest, has none", l.Point)
	case len(l.At) != len(h.Fields) || len(l.Figures) != len(h.Figures):
		return fmt.Errorf("must have %d values and %d figures, has %d and %d", len(h.Fields), len(h.Figures), len(l.At), len(l.Figures))
	}
	return nil
}

// ReadPart reads what a shard wrote.
func ReadPart(path string) (Part, error) {
	f, err := os.Open(path)
	if err != nil {
		return Part{}, fault(path, err)
	}
	defer f.Close()
	p, _, err := scan(f, path)
	if err == nil && p.Sweep == "" {
		err = fmt.Errorf("%s: must be what a shard wrote, is empty", path)
	}
	return p, err
}

// fault names a file once in an error of the file system.
func fault(path string, err error) error {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
