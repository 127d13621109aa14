package validation

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"llmsim/scenarios"
)

// Bounds on what is opened.
const (
	mostBytes  = 256 << 20 // of a file
	mostFiles  = 10_000    // below the paths that are asked for, of any kind
	mostFaults = 20        // told of one file
	mostTokens = 10_000_000
)

const (
	metaEnding     = "meta.json"
	requestsEnding = "requests.csv"
)

// Open reads measurements: a run's meta.json or requests.csv with the other beside it, a table of
// closed-loop runs, or a folder with any number of them below. Sources are in the order of the paths,
// those of a folder in the order of their names; none is opened twice. The error is scenarios.Faults,
// all there are.
func Open(paths []string) ([]Source, error) {
	var faults scenarios.Faults
	var files []string
	for _, path := range paths {
		found, err := below(path)
		switch {
		case err != nil:
			faults = append(faults, fault(path, "", "%v", reason(err)))
		case len(found) == 0:
			faults = append(faults, fault(path, "", "has no measured run below it: no *%s with its *%s, no closed-loop table", metaEnding, requestsEnding))
		}
		files = append(files, found...)
	}
	var sources []Source
	opened := map[string]bool{}
	for _, file := range files {
		if opened[filepath.Clean(file)] {
			continue
		}
		opened[filepath.Clean(file)] = true
		var s Source
		var bad scenarios.Faults
		if strings.HasSuffix(file, metaEnding) {
			s, bad = openRun(file)
		} else {
			s, bad = openTable(file)
		}
		faults = append(faults, bad...)
		sources = append(sources, s)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return sources, nil
}

// below lists the measurements that a path stands for: meta.json files and tables. In a folder, what
// is neither is passed over.
func below(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if stem, ok := strings.CutSuffix(path, requestsEnding); ok {
			return []string{stem + metaEnding}, nil
		}
		if !strings.HasSuffix(path, metaEnding) && filepath.Ext(path) != ".csv" {
			return nil, fmt.Errorf("must be a *%s, a *%s, a closed-loop table (*.csv) or a folder", metaEnding, requestsEnding)
		}
		return []string{path}, nil
	}
	seen := 0
	err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if seen++; seen > mostFiles {
			return fmt.Errorf("must have at most %d files below it, has more", mostFiles)
		}
		switch {
		case !e.Type().IsRegular():
		case strings.HasSuffix(name, metaEnding):
			files = append(files, name)
		case strings.HasSuffix(name, requestsEnding):
			files = append(files, strings.TrimSuffix(name, requestsEnding)+metaEnding)
		case filepath.Ext(name) == ".csv":
			is, err := isTable(name)
			if err != nil {
				return err
			}
			if is {
				files = append(files, name)
			}
		}
		return nil
	})
	return files, err
}

func fault(where, path, format string, args ...any) scenarios.Fault {
	return scenarios.Fault{Where: where, Path: path, Message: fmt.Sprintf(format, args...)}
}

// reason is why a file can't be had, without its name.
func reason(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, errors.New("must be a file, is a folder")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("must have at most %d MiB, has more", mostBytes>>20)
	}
	return text, err
}

// A sheet is a CSV read by the names of its columns. It gathers what is wrong with it.
type sheet struct {
	file   string
	column map[string]int
	names  []string
	rows   [][]string
	lines  []int // of the rows, from 1

	faults scenarios.Faults
	untold int // faults beyond mostFaults
}

func readSheet(file string, text []byte) *sheet {
	s := &sheet{file: file, column: map[string]int{}}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	for {
		cells, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			if bad, ok := errors.AsType[*csv.ParseError](err); ok {
				s.add(bad.Line, "", "%v", bad.Err)
			} else {
				s.add(0, "", "%v", err)
			}
			break
		}
		line, _ := r.FieldPos(0)
		if s.names == nil {
			s.names = cells
			for i, name := range cells {
				name = strings.TrimSpace(name)
				if _, twice := s.column[name]; twice {
					s.add(line, name, "is a column twice")
				}
				s.column[name] = i
			}
			continue
		}
		if len(cells) != len(s.names) {
			s.add(line, "", "must have %d cells as the head has, has %d", len(s.names), len(cells))
			continue
		}
		s.rows, s.lines = append(s.rows, cells), append(s.lines, line)
	}
	if len(s.rows) == 0 && len(s.faults) == 0 {
		s.add(0, "", "has no rows")
	}
	return s
}

func (s *sheet) add(line int, column, format string, args ...any) {
	if len(s.faults) >= mostFaults {
		s.untold++
		return
	}
	where := s.file
	if line > 0 {
		where = fmt.Sprintf("%s:%d", s.file, line)
	}
	s.faults = append(s.faults, fault(where, column, format, args...))
}

func (s *sheet) all() scenarios.Faults {
	if s.untold > 0 {
		return append(s.faults, fault(s.file, "", "and %d more faults", s.untold))
	}
	return s.faults
}

// needs tells of columns that are not there, and says whether all are.
func (s *sheet) needs(columns ...string) bool {
	whole := true
	others := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return slices.Contains(columns, name) })
	for _, name := range columns {
		if _, ok := s.column[name]; !ok {
			hint := ""
			if near := scenarios.Nearest(name, others); near != "" {
				hint = fmt.Sprintf(", did you mean %q?", near)
			}
			s.add(1, name, "column is missing%s", hint)
			whole = false
		}
	}
	return whole
}

// cell is a row's text, empty where there is no such column.
func (s *sheet) cell(row int, column string) string {
	if i, ok := s.column[column]; ok {
		return strings.TrimSpace(s.rows[row][i])
	}
	return ""
}

// absent are the ways to write that there is no value.
var absent = []string{"", "nan", "null", "none", "n/a", "-"}

func isAbsent(text string) bool { return slices.Contains(absent, strings.ToLower(text)) }

// number reads a cell; NaN where there is none. What is below least, or not a number, is a fault.
func (s *sheet) number(row int, column string, least float64) float64 {
	text := s.cell(row, column)
	if isAbsent(text) {
		return math.NaN()
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsInf(x, 0) || math.IsNaN(x):
		s.add(s.lines[row], column, "must be a number, is %q", short(text))
	case x < least || x > 1e12:
		s.add(s.lines[row], column, "must be from %v to 1e+12, is %s", least, short(text))
	default:
		return x
	}
	return math.NaN()
}

// whole reads a cell that counts something; otherwise where there is none, which below least is a
// fault.
func (s *sheet) whole(row int, column string, least, most, otherwise int) int {
	text := s.cell(row, column)
	if isAbsent(text) {
		if otherwise < least {
			s.add(s.lines[row], column, "must be a whole number, is empty")
		}
		return otherwise
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != math.Trunc(x) || x < float64(least) || x > float64(most) {
		s.add(s.lines[row], column, "must be a whole number from %d to %d, is %q", least, most, short(text))
		return otherwise
	}
	return int(x)
}

func short(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}

// place is the line and column of an offset, both from 1.
func place(text []byte, offset int64) string {
	head := text[:min(max(offset, 0), int64(len(text)))]
	line := 1 + bytes.Count(head, []byte("\n"))
	return fmt.Sprintf("%d:%d", line, cmp.Or(len(head)-bytes.LastIndexByte(head, '\n')-1, 1))
}
