package scenarios

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"sync"

	"llmsim/workload"
)

// files holds what a scenario's files contain, so that copies of it that differ in a rate or a
// seed, and may run at the same time, read them once.
type files struct {
	mu      sync.Mutex
	traces  map[traceKey]*workload.Trace
	lengths map[File]*lengthsFile
}

// mostTraces bounds the traces that are held at once: beyond it all are let go, to be read again.
const mostTraces = 16

type traceKey struct {
	File
	options workload.TraceOptions
}

func (f *files) trace(file File, options workload.TraceOptions) (*workload.Trace, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := traceKey{file, options}
	if t := f.traces[key]; t != nil {
		return t, nil
	}
	t, err := openTrace(file, options)
	if err != nil {
		return nil, err
	}
	if f.traces == nil {
		f.traces = map[traceKey]*workload.Trace{}
	}
	if len(f.traces) == mostTraces {
		clear(f.traces)
	}
	f.traces[key] = t
	return t, nil
}

// ShareFiles has s read its files where another scenario does, so that those which both name are read
// once. It is to be called before s is used.
func (s *Scenario) ShareFiles(with *Scenario) { s.files = with.opened() }

func openTrace(file File, options workload.TraceOptions) (*workload.Trace, error) {
	if file.Embedded {
		return workload.OpenTraceFS(embedded, file.Path, options)
	}
	return workload.OpenTrace(file.Path, options)
}

func (f *files) lengthsOf(file File) (*lengthsFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.lengths[file]; l != nil {
		return l, nil
	}
	l, err := readLengths(file)
	if err != nil {
		return nil, err
	}
	if f.lengths == nil {
		f.lengths = map[File]*lengthsFile{}
	}
	f.lengths[file] = l
	return l, nil
}

// A lengthsFile is what lengths are drawn from: a column of numbers, a distribution function, or
// the two columns of a trace.
type lengthsFile struct {
	digest           string
	values           []int32
	cdf              []workload.CDFPoint
	prompts, outputs []int32
	notes            []string
}

var (
	startsList = regexp.MustCompile(`^\s*[0-9]+\s*(\r?\n|$)`)
	startsCDF  = regexp.MustCompile(`^\s*(\[\s*\[|\{\s*"cdf"\s*:)`)
)

// maxLengths bounds a list of lengths or a distribution function; traces may be longer.
const maxLengths = 256 << 20

func readLengths(file File) (*lengthsFile, error) {
	var source io.ReadCloser
	var err error
	if file.Embedded {
		source, err = embedded.Open(file.Path)
	} else {
		source, err = os.Open(file.Path)
	}
	if err != nil {
		return nil, err
	}
	defer source.Close()
	text := bufio.NewReaderSize(source, 4096)
	start, _ := text.Peek(512)
	list, cdf := startsList.Match(start), startsCDF.Match(start)
	if !list && !cdf {
		t, err := openTrace(file, workload.TraceOptions{})
		if err != nil {
			return nil, err
		}
		l := &lengthsFile{digest: t.Digest, notes: t.Notes}
		if l.prompts, l.outputs = t.Lengths(); len(l.prompts) == 0 {
			return nil, fmt.Errorf("%s: has no lengths, or changed while it was read", file.Path)
		}
		return l, nil
	}
	all, err := io.ReadAll(io.LimitReader(text, maxLengths+1))
	if err == nil && len(all) > maxLengths {
		err = errors.New("must be at most 256 MiB, is longer")
	}
	sum := sha256.Sum256(all)
	l := &lengthsFile{digest: hex.EncodeToString(sum[:])}
	if err == nil && list {
		l.values, err = parseList(all)
	} else if err == nil {
		l.cdf, err = parseCDF(all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Path, err)
	}
	return l, nil
}

// parseList reads one whole number per line; blank lines are skipped.
func parseList(text []byte) (values []int32, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		v, err := strconv.Atoi(string(line))
		if err != nil || v < 1 || v > workload.MaxTokens {
			return nil, fmt.Errorf("line %d: must be a whole number from 1 to %d, is %q", number, workload.MaxTokens, shorten(string(line)))
		}
		values = append(values, int32(v))
	}
	return values, nil
}

// parseCDF reads [[tokens, cumulative], ...], or an object with that under "cdf".
func parseCDF(text []byte) ([]workload.CDFPoint, error) {
	var pairs [][]float64
	err := json.Unmarshal(text, &pairs)
	if text = bytes.TrimSpace(text); text[0] == '{' {
		var object struct{ CDF [][]float64 }
		err = json.Unmarshal(text, &object)
		pairs = object.CDF
	}
	if err != nil {
		return nil, fmt.Errorf("must be a JSON list of [tokens, cumulative]: %w", err)
	}
	var points []workload.CDFPoint
	var last workload.CDFPoint
	for i, p := range pairs {
		switch {
		case len(p) != 2:
			return nil, fmt.Errorf("point %d: must be [tokens, cumulative], has %d numbers", i, len(p))
		case p[0] != math.Trunc(p[0]) || p[0] <= float64(last.Tokens) || p[0] > workload.MaxTokens:
			return nil, fmt.Errorf("point %d: tokens must be whole, above %d and at most %d, are %v", i, last.Tokens, workload.MaxTokens, p[0])
		case p[1] < last.Cumulative || p[1] > 1:
			return nil, fmt.Errorf("point %d: cumulative must be from %v to 1, is %v", i, last.Cumulative, p[1])
		}
		last = workload.CDFPoint{Tokens: int(p[0]), Cumulative: p[1]}
		points = append(points, last)
	}
	if len(points) == 0 || math.Abs(last.Cumulative-1) > 1e-6 {
		return nil, fmt.Errorf("the last cumulative must be 1, is %v", last.Cumulative)
	}
	points[len(points)-1].Cumulative = 1
	return points, nil
}
