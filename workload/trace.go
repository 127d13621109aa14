package workload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Ways to spread the requests that share an instant of a coarse clock over the time
// until its next instant.
const (
	SpreadUniform = "uniform" // evenly
	SpreadPoisson = "poisson" // at independent uniform positions, as a Poisson process would
)

// TraceOptions say how a trace is read and replayed. The zero value reads it as it is.
type TraceOptions struct {
	Spread  string  // "", SpreadUniform or SpreadPoisson
	Seed    uint64  // of SpreadPoisson
	Speedup float64 // instants are divided by it; 0: 1
	Limit   int     // requests at most; 0: all
	Strict  bool    // refuse malformed and unsorted rows instead of skipping and sorting
}

// A Trace is a recorded workload: a file that was read once from end to end, and found
// whole. It does not change, and may be replayed any number of times, also at once.
type Trace struct {
	Path    string
	Format  string
	Digest  string  // SHA-256 of the contents, unpacked, in hex
	Account Account // of the whole file, whatever the limit
	Grid    Grid    // of the instants as written
	// Notes are what a reader of results should know: skipped rows, a sort, a grid and
	// what was done about it, assumptions.
	Notes       []string
	HasArrivals bool // false: the file has lengths only
	HasPrefix   bool // some request names its prompt's blocks
	Requests    int  // that a replay gives

	options TraceOptions
	format  *format
	open    func() (io.ReadCloser, error)
	columns columns
	base    int64 // the instant of the file that is 0 of a replay
	rows    *rows // nil: read the file again
}

// columns tells which optional columns the requests of a source need.
type columns struct{ priority, session, prefix bool }

// OpenTrace reads a trace of any known format, plain or compressed by gzip. It fails on
// a file it does not recognise, one that is truncated, and one without any request;
// rows that are no requests are skipped and accounted for. Errors name file, line and
// column.
//
// A file of up to a million requests is held at 24 bytes each, and 8 for each prefix
// id. A longer one is read again for every replay if it is sorted, else held.
func OpenTrace(path string, options TraceOptions) (*Trace, error) {
	return openTrace(path, func() (io.ReadCloser, error) { return openRegular(path) }, options, heldRows)
}

func openTrace(path string, open func() (io.ReadCloser, error), options TraceOptions, hold int) (*Trace, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t := &Trace{Path: path, options: options, open: open}
	s, err := t.scan(hold, heldIDs, 0)
	if err == nil && s.unsorted > 0 && t.rows == nil {
		s, err = t.scan(mostRows, mostIDs, s.tally.kept)
		if err == nil && t.rows == nil {
			err = fmt.Errorf("%s: an unsorted trace must have at most %d requests and %d prefix ids, has more: sort it by time", path, mostRows, mostIDs)
		}
	}
	if err != nil {
		return nil, err
	}
	t.Format, t.HasArrivals, t.HasPrefix = t.format.name, t.format.stamp != stampNone, s.hasPrefix
	t.Account, t.Digest = s.tally.account(), s.sum()
	t.Requests = t.Account.Kept
	if options.Limit > 0 {
		t.Requests = min(t.Requests, options.Limit)
	}
	if t.rows != nil {
		t.rows.trim()
	}
	if s.unsorted > 0 {
		t.rows.sort()
		s.grid = gridFinder{}
		for i := range t.rows.packed {
			s.grid.see(t.rows.packed[i].at)
		}
	}
	if t.HasArrivals {
		t.Grid = s.grid.found()
		if !t.format.fromStart {
			t.base = s.least
		}
		if end := float64(s.most-t.base) + float64(t.Grid.Step); end/t.speedup() > maxInstant {
			return nil, fmt.Errorf("%s: speedup %v: the trace must end within 146 years, ends after %.3g", path, options.Speedup, end/t.speedup()/1e9/86400/365.25)
		}
		if options.Spread != "" && t.Grid.Herd > heldRows {
			return nil, fmt.Errorf("%s: to be spread, at most %d requests must share an instant, %d do", path, heldRows, t.Grid.Herd)
		}
	}
	t.note(s)
	return t, nil
}

func (o TraceOptions) check() error {
	var faults []error
	if o.Spread != "" && o.Spread != SpreadUniform && o.Spread != SpreadPoisson {
		faults = append(faults, fmt.Errorf("spread: must be %s or %s, is %q", SpreadUniform, SpreadPoisson, o.Spread))
	}
	if !(o.Speedup >= 0) || math.IsInf(o.Speedup, 0) {
		faults = append(faults, fmt.Errorf("speedup: must be positive and finite, is %v", o.Speedup))
	}
	if o.Limit < 0 {
		faults = append(faults, fmt.Errorf("requests: must not be negative, is %d", o.Limit))
	}
	return errors.Join(faults...)
}

func (t *Trace) speedup() float64 {
	if t.options.Speedup == 0 {
		return 1
	}
	return t.options.Speedup
}

// scanned is what one pass over a file finds out.
type scanned struct {
	*reader
	grid        gridFinder
	least, most int64  // instants
	unsorted    int    // rows before their predecessor
	disorder    string // the first of them
	odd         int    // rows with another number of prefix ids than their prompt needs
	hasPrefix   bool

	disorderLine, oddLine int // where each is first
}

// scan reads the file once, and leaves t.rows nil if it has more rows or ids than may
// be held. A sorted file needs none of them held, so that only one found to be unsorted
// after they were let go is read again; it then expects so many.
func (t *Trace) scan(mostRows, mostIDs, expected int) (*scanned, error) {
	r, err := openReader(t.Path, t.open)
	if err != nil {
		return nil, err
	}
	defer r.close()
	t.format, t.rows = r.format, newRows(min(expected, mostRows))
	s := &scanned{reader: r}
	var to row
	var before int64 // the last request's instant, and its line
	line := 0
	for {
		if err = r.next(&to); err != nil {
			break
		}
		if r.tally.kept == 1 {
			s.least, s.most = to.at, to.at
		} else if to.at < before {
			if s.unsorted++; s.unsorted == 1 {
				show := r.format.stamp.show
				s.disorder = fmt.Sprintf("line %d is at %s, line %d before it at %s", r.number, show(to.at), line, show(before))
				s.disorderLine = r.number
			}
		}
		before, line = to.at, r.number
		s.least, s.most = min(s.least, to.at), max(s.most, to.at)
		if r.format.stamp != stampNone && s.unsorted == 0 {
			s.grid.see(to.at)
		}
		if to.odd {
			if s.odd++; s.odd == 1 {
				s.oddLine = r.number
			}
		}
		t.columns.priority = t.columns.priority || to.priority != 0
		t.columns.session = t.columns.session || to.session != 0
		t.columns.prefix = t.columns.prefix || to.block != 0
		s.hasPrefix = s.hasPrefix || len(to.prefix) > 0
		if t.rows != nil {
			if t.rows.add(&to); len(t.rows.packed) > mostRows || len(t.rows.ids) > mostIDs {
				t.rows = nil
			}
		}
	}
	switch {
	case err != io.EOF:
		return nil, err
	case t.options.Strict && s.strict() != nil:
		return nil, s.strict()
	case r.tally.kept == 0:
		return nil, fmt.Errorf("%s: empty trace: %v", t.Path, r.tally.account())
	}
	return s, nil
}

// strict is what a strict reading refuses: all of it in one error.
func (s *scanned) strict() error {
	err := s.tally.err(s.path)
	if s.unsorted > 0 {
		err = errors.Join(err, fmt.Errorf("%s:%d: rows must be in order of arrival: %s", s.path, s.disorderLine, s.disorder))
	}
	return err
}

// note writes down what the file does not show.
func (t *Trace) note(s *scanned) {
	add := func(text string, args ...any) {
		t.Notes = append(t.Notes, t.Path+": "+fmt.Sprintf(text, args...))
	}
	if t.Account.Rows > t.Account.Kept {
		add("%v", t.Account)
	}
	if s.unsorted > 0 {
		add("rows were not in order of arrival and have been sorted: %s", s.disorder)
	}
	if s.odd > 0 {
		add("rows with another number of prefix ids than ceil(input/%d): %d, first line %d", t.format.block, s.odd, s.oddLine)
	}
	if t.format.remark != "" {
		add("%s", t.format.remark)
	}
	if !t.HasArrivals {
		add("no arrivals, only lengths")
	} else {
		t.noteGrid(add)
	}
	if !t.HasPrefix {
		add("no prefix identity: the prefix hit rate is assumed to be 0")
	}
}

func (t *Trace) noteGrid(add func(string, ...any)) {
	g := t.Grid
	switch step := g.Step.Round(time.Microsecond); {
	case g.Step > 0 && t.options.Spread != "":
		add("instants lie on a grid of %v with up to %d requests each; spread within it: %s", step, g.Herd, t.options.Spread)
	case g.Step > 0:
		add("instants lie on a grid of %v: replayed as written they arrive in herds of up to %d, which no client sent; spread uniform or poisson within the grid to avoid that", step, g.Herd)
	case t.options.Spread != "":
		add("instants lie on no grid that requests share: nothing was spread")
	}
}
