package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"llmsim/report"
	"llmsim/workload"
)

// newTraceCommand is the verb for workload files.
func newTraceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "look into workload files, and convert them",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTraceInspectCommand(), newTraceConvertCommand())
	return c
}

// traceFlags are the flags that say how a trace is read.
func traceFlags(c *cobra.Command, o *workload.TraceOptions) {
	f := c.Flags()
	f.StringVar(&o.Spread, "spread", "", "`HOW` to spread requests that share an instant of a coarse clock within its step: uniform or poisson")
	o.Seed = 42
	f.Var(whole[uint64]{&o.Seed}, "seed", "seed of --spread poisson")
	f.Float64Var(&o.Speedup, "speedup", 1, "divide all instants by this `FACTOR`")
	f.Var(whole[int]{&o.Limit}, "requests", "use only the first so many requests (0: all)")
	f.BoolVar(&o.Strict, "strict", false, "refuse malformed and unsorted rows instead of skipping and sorting them")
}

// A whole is a flag's whole number, which pflag would read as octal when it begins with 0.
type whole[T int | uint64] struct{ at *T }

func (w whole[T]) String() string {
	if w.at == nil {
		return "0"
	}
	return strconv.FormatUint(uint64(*w.at), 10)
}

func (w whole[T]) Type() string { return "N" }

func (w whole[T]) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return errors.New("must be a whole number from 0 to 2^63-1")
	}
	*w.at = T(n)
	return nil
}

// openTrace reads a trace and writes its notes, which are no result, to the error stream.
func openTrace(c *cobra.Command, path string, o workload.TraceOptions) (*workload.Trace, error) {
	if !(o.Speedup > 0) {
		return nil, fmt.Errorf("--speedup: must be positive, is %v", o.Speedup)
	}
	t, err := workload.OpenTrace(path, o)
	if err != nil {
		return nil, err
	}
	for _, note := range t.Notes {
		fmt.Fprintln(c.ErrOrStderr(), "note:", note)
	}
	return t, nil
}

func newTraceConvertCommand() *cobra.Command {
	var options workload.TraceOptions
	var out string
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "write a workload file of any known format as llmsim CSV",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkGiven(c.Flags(), "output"); err != nil {
				return err
			}
			if out != "" && report.SameOutput(out, args[0]) {
				return fmt.Errorf("%s, --output %s: must be two files, are one", args[0], out)
			}
			t, err := openTrace(c, args[0], options)
			if err != nil {
				return err
			}
			p, err := t.Source()
			if err != nil {
				return err
			}
			defer p.Close()
			if out == "" {
				_, err := workload.WriteTrace(stoppable{c.Context(), c.OutOrStdout()}, p)
				return err
			}
			n, err := convertTo(c.Context(), out, p)
			if err != nil {
				return err
			}
			requests := "requests"
			if n == 1 {
				requests = "request"
			}
			fmt.Fprintf(c.ErrOrStderr(), "%s: %d %s\n", out, n, requests)
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "write to this `FILE`, complete or not at all; .gz compresses (default: standard output)")
	traceFlags(c, &options)
	return c
}

func convertTo(ctx context.Context, out string, p *workload.Replay) (n int, err error) {
	file, err := report.CreateAtomic(out)
	if err != nil {
		return 0, fmt.Errorf("--output: %w", err)
	}
	defer file.Abort()
	var w io.Writer = stoppable{ctx, file}
	var pack *gzip.Writer
	if strings.HasSuffix(out, ".gz") {
		pack = gzip.NewWriter(w)
		w = pack
	}
	if n, err = workload.WriteTrace(w, p); err != nil {
		return n, err
	}
	if pack != nil {
		if err := pack.Close(); err != nil {
			return n, err
		}
	}
	return n, file.Commit()
}

// stoppable fails once its context is done, so that an interrupted conversion returns
// and leaves nothing half-written.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s stoppable) Write(p []byte) (int, error) {
	if s.ctx != nil && s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.w.Write(p)
}

func newTraceInspectCommand() *cobra.Command {
	var options workload.TraceOptions
	var format string
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "tell what a workload is like: rows, rate, burstiness, lengths, prefix reuse",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			t, err := openTrace(c, args[0], options)
			if err != nil {
				return err
			}
			in, err := workload.Inspect(t)
			if err != nil {
				return err
			}
			return writeResult(c.OutOrStdout(), inspection{inspectionData(in), in}, format)
		},
	}
	registerFormat(c, &format)
	traceFlags(c, &options)
	return c
}

// An inspection is plain data for programs and tables for people.
type inspection struct {
	traceData
	in workload.Inspection
}

// WriteTable writes tables and the sentences that follow from them.
func (i inspection) WriteTable(w io.Writer) error { return i.write(w, report.Table.WriteText) }

// WriteMarkdown does so in Markdown.
func (i inspection) WriteMarkdown(w io.Writer) error { return i.write(w, report.Table.WriteMarkdown) }

func (i inspection) write(w io.Writer, table func(report.Table, io.Writer) error) error {
	in := i.in
	_, err := fmt.Fprintf(w, "%s (%s, sha256:%.12s)\n", in.Path, in.Format, in.Digest)
	errs := []error{err}
	for _, t := range inspectionTables(in) {
		_, err := fmt.Fprintln(w)
		errs = append(errs, err, table(t, w))
	}
	_, err = fmt.Fprintf(w, "\n- %s\n", strings.Join(in.Verdict, "\n- "))
	return errors.Join(append(errs, err)...)
}

func inspectionTables(in workload.Inspection) []report.Table {
	count := func(n int) string { return strconv.Itoa(n) }
	figure := func(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

	rows := report.Table{Head: []string{"rows", "count", "first lines"}}
	rows.Rows = append(rows.Rows, []string{"read", count(in.Account.Rows), ""}, []string{"kept", count(in.Account.Kept), ""})
	for _, s := range in.Account.Skipped {
		var at []string
		for _, row := range s.First {
			at = append(at, count(row.Line))
		}
		rows.Rows = append(rows.Rows, []string{"skipped: " + s.Reason, count(s.Count), strings.Join(at, " ")})
	}
	tables := []report.Table{rows}

	if in.HasArrivals {
		t := report.Table{Head: []string{"arrivals", "value", "unit"}}
		t.Rows = [][]string{
			{"requests", count(in.Requests), ""},
			{"first to last", figure(in.Duration.Seconds(), 3), "s"},
			{"mean rate", figure(in.Rate, 4), "requests/s"},
			{"busiest second", count(in.Peak), "requests"},
			{"busiest second over mean", figure(in.PeakRatio, 2), ""},
			{"gap CV (Poisson: 1)", figure(in.GapCV, 2), ""},
		}
		for _, d := range in.Dispersion {
			t.Rows = append(t.Rows, []string{fmt.Sprintf("dispersion at %.0f s (Poisson: 1)", d.Window.Seconds()), figure(d.Index, 2), ""})
		}
		t.Rows = append(t.Rows,
			[]string{"distinct instants", count(in.Distinct), ""},
			[]string{"largest herd", count(in.Herd), "requests"})
		if in.Grid.Step > 0 {
			t.Rows = append(t.Rows, []string{"grid of the file", figure(in.Grid.Step.Seconds(), 3), "s"})
		}
		if in.HasPrefix {
			t.Rows = append(t.Rows, []string{"prefix-hit ceiling", figure(100*in.PrefixCeiling, 1), "% of input tokens"})
		}
		tables = append(tables, t)
	}

	lengths := report.Table{Head: []string{"tokens/request", "mean", "p50", "p90", "p95", "p99", "max"}}
	for _, l := range []struct {
		name string
		workload.LengthSummary
	}{{"input", in.Prompt}, {"output", in.Output}} {
		lengths.Rows = append(lengths.Rows, []string{l.name, figure(l.Mean, 1), figure(l.P50, 1), figure(l.P90, 1), figure(l.P95, 1), figure(l.P99, 1), count(l.Max)})
	}
	return append(tables, lengths)
}
