package report

import (
	"bufio"
	"io"
	"strconv"

	"llmsim/sim"
)

const stepsHead = "step,replica,start_s,end_s,tokens,batch,prefill_tokens,running,waiting,free_blocks,preempted,bound\n"

// A StepLog writes one CSV row for every step, in the order in which it is told of them. The first error stays
// until Close.
type StepLog struct {
	out *bufio.Writer
	row []byte
	err error
}

// NewStepLog starts a log with its head.
func NewStepLog(w io.Writer) *StepLog {
	l := &StepLog{out: bufio.NewWriterSize(w, 1<<16)}
	_, l.err = l.out.WriteString(stepsHead)
	return l
}

// Step writes the row of a step.
func (l *StepLog) Step(s *sim.Step) {
	if l.err != nil {
		return
	}
	b := append(strconv.AppendInt(l.row[:0], s.Index, 10), ',')
	b = append(strconv.AppendInt(b, int64(s.Replica), 10), ',')
	b = append(appendSeconds(b, s.Start), ',')
	b = append(appendSeconds(b, s.End), ',')
	for _, n := range [...]int{s.Shape.Tokens, s.Shape.Sequences, s.Shape.PrefillTokens(), s.Running, s.Waiting,
		s.FreeBlocks, len(s.Preempted)} {
		b = append(strconv.AppendInt(b, int64(n), 10), ',')
	}
	l.row = append(append(b, s.Bound.String()...), '\n')
	_, l.err = l.out.Write(l.row)
}

// Close writes what is buffered and returns the first error. It does not close the writer underneath.
func (l *StepLog) Close() error {
	if l.err != nil {
		return l.err
	}
	return l.out.Flush()
}
