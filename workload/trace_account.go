package workload

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons for which a row of a trace is skipped.
const (
	ZeroOutput = "zero output" // the call failed: nothing was generated
	ZeroInput  = "zero input"
	Unparsable = "unparsable"
)

// shownRows is how many skipped rows of one reason are kept by line, shownFaults how
// many malformed rows a strict reading reports.
const (
	shownRows   = 5
	shownFaults = 20
)

// An Account says what became of every row of a file: Rows = Kept + all skipped.
type Account struct {
	Rows, Kept int
	Skipped    []Skip // the reasons that occurred, in the order of their constants
}

// A Skip counts the rows skipped for one reason.
type Skip struct {
	Reason string
	Count  int
	First  []SkippedRow // the first few
}

// A SkippedRow is a line of the file and what is wrong there.
type SkippedRow struct {
	Line    int
	Message string
}

// String reads as "8 rows: 5 kept, 3 skipped (2 zero output, first line 3; ...)".
func (a Account) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows: %d kept", a.Rows, a.Kept)
	if a.Rows == a.Kept {
		return b.String()
	}
	fmt.Fprintf(&b, ", %d skipped (", a.Rows-a.Kept)
	for i, s := range a.Skipped {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d %s, first line %d", s.Count, s.Reason, s.First[0].Line)
		if s.Reason == Unparsable {
			fmt.Fprintf(&b, ": %s", s.First[0].Message)
		}
	}
	b.WriteByte(')')
	return b.String()
}

// tally collects an Account while a file is read.
type tally struct {
	rows, kept int
	skips      [3]Skip
	faults     []error // the first malformed rows, in full
}

func (t *tally) skip(reason, line int, message string) {
	s := &t.skips[reason]
	s.Reason = [...]string{ZeroOutput, ZeroInput, Unparsable}[reason]
	s.Count++
	if len(s.First) < shownRows {
		s.First = append(s.First, SkippedRow{line, message})
	}
}

func (t *tally) fault(path string, line int, err error) {
	t.skip(2, line, err.Error())
	if len(t.faults) < shownFaults {
		t.faults = append(t.faults, fmt.Errorf("%s:%d: %w", path, line, err))
	}
}

func (t *tally) account() Account {
	a := Account{Rows: t.rows, Kept: t.kept}
	for _, s := range t.skips {
		if s.Count > 0 {
			a.Skipped = append(a.Skipped, s)
		}
	}
	return a
}

// err joins the malformed rows into one error, nil if there are none.
func (t *tally) err(path string) error {
	faults := t.faults
	if more := t.skips[2].Count - len(faults); more > 0 {
		faults = append(faults[:len(faults):len(faults)], fmt.Errorf("%s: and %d more malformed rows", path, more))
	}
	return errors.Join(faults...)
}
