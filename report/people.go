package report

import (
	"fmt"
	"io"
	"strings"
)

// width is the number of columns that a table for people stays within.
const width = 80

// WriteTable writes the summary for people, 80 columns wide. What has no samples is left out.
func (s Summary) WriteTable(w io.Writer) error {
	l := newLines(w)
	for _, line := range s.identity() {
		l.text(wrap(line, ""))
	}
	for _, t := range s.Tables() {
		l.text("\n")
		l.do(t.WriteText)
	}
	l.text("\n" + wrap(s.footnote(), ""))
	for _, a := range s.Assumptions {
		l.text(wrap("- "+a, "  "))
	}
	return l.end()
}

// WriteMarkdown writes the summary for a pull request.
func (s Summary) WriteMarkdown(w io.Writer) error {
	l := newLines(w)
	for i, line := range s.identity() {
		if i == 0 {
			line = "**" + line + "**\n"
		} else {
			line = "- " + line
		}
		l.text(line + "\n")
	}
	for _, t := range s.Tables() {
		l.text("\n")
		l.do(t.WriteMarkdown)
	}
	l.text("\n" + s.footnote() + "\n")
	if len(s.Assumptions) > 0 {
		l.text("\n")
	}
	for _, a := range s.Assumptions {
		l.text("- " + a + "\n")
	}
	return l.end()
}

func (s Summary) identity() []string {
	digest := s.Scenario.Digest
	if short := len("sha256:") + 12; len(digest) > short {
		digest = digest[:short]
	}
	lines := []string{
		strings.Join(nonempty("llmsim "+s.Version, "scenario "+s.Scenario.Name, digest, fmt.Sprint("seed ", s.Seed)), ", "),
	}
	if s.Engine.Policy != "" && len(s.Pools) == 0 {
		lines = append(lines, strings.Join(nonempty("policy "+s.Engine.Policy, "models "+s.Engine.Models), ", "))
	}
	for _, p := range s.Pools {
		lines = append(lines, p.line())
	}
	if len(s.Engine.Defaults) > 0 {
		lines = append(lines, "defaults of that engine: "+strings.Join(s.Engine.Defaults, ", "))
	}
	if s.KV.Blocks > 0 {
		lines = append(lines, fmt.Sprintf("%s KV blocks of %d tokens per replica, %s tokens in all",
			Count(int64(s.KV.Blocks)), s.KV.BlockSize, Count(int64(s.KV.Tokens))))
	}
	if s.Workload != "" {
		lines = append(lines, s.Workload)
	}
	r := s.Requests
	requests := fmt.Sprintf("%s arrived, %s completed", counted(r.Arrived, "request"), Count(r.Completed))
	for _, part := range []struct {
		n    int64
		what string
	}{{r.Refused, "refused"}, {r.Cancelled, "cancelled"}, {r.Arrived - r.Completed - r.Refused - r.Cancelled, "unfinished"}} {
		if part.n > 0 {
			requests += fmt.Sprintf(", %s %s", Count(part.n), part.what)
		}
	}
	lines = append(lines, requests+", in "+Figure(s.VirtualS)+" simulated seconds")
	if s.WarmupS > 0 {
		lines = append(lines, fmt.Sprintf("warm-up left out: the first %s s, in which %s arrived",
			Figure(s.WarmupS), counted(r.Warmup, "more request")))
	}
	return lines
}

// counted is a number and what it counts, in the plural unless there is one.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// nonempty drops what says nothing: empty parts, and names without the thing named.
func nonempty(parts ...string) (kept []string) {
	for _, p := range parts {
		if p != "" && !strings.HasSuffix(p, " ") {
			kept = append(kept, p)
		}
	}
	return kept
}

func (s Summary) footnote() string {
	samples := ""
	if n := s.Latency.E2E.Count; n > 0 {
		samples = " of " + counted(n, "request")
		if n := s.Latency.ITL.Count; n > 0 {
			samples += " and " + counted(n, "gap") + " between tokens"
		}
	}
	return "Percentiles" + samples + " are " + s.Percentiles + ", interpolated linearly."
}

// Tables are the parts of the summary that have something to say.
func (s Summary) Tables() []Table {
	var tables []Table
	for _, t := range append(s.latency(), s.throughput(), s.pools(), s.steps(), s.bound(), s.blocked(), s.preemptions()) {
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	if s.Explain != nil {
		tables = append(tables, s.Explain.tables()...)
	}
	return tables
}

// latency is one table in milliseconds, unless long times make it too wide: then those are in seconds.
func (s Summary) latency() []Table {
	var all, short, long []namedLatency
	for _, l := range []namedLatency{{"TTFT", s.Latency.TTFT}, {"ITL", s.Latency.ITL}, {"TPOT", s.Latency.TPOT},
		{"E2E", s.Latency.E2E}, {"queue", s.Latency.Queue}} {
		switch {
		case l.Count == 0:
			continue
		case l.Max < 10_000:
			short = append(short, l)
		default:
			long = append(long, l)
		}
		all = append(all, l)
	}
	if t := latencyTable("ms", 1, all, 3); t.width() <= width {
		return []Table{t}
	}
	return []Table{narrowest("s", 1000, long), narrowest("ms", 1, short)}
}

type namedLatency struct {
	name string
	Latency
}

// narrowest gives up decimals until the table is narrow enough.
func narrowest(unit string, by float64, of []namedLatency) Table {
	decimals := 3
	t := latencyTable(unit, by, of, decimals)
	for t.width() > width && decimals > 0 {
		decimals--
		t = latencyTable(unit, by, of, decimals)
	}
	return t
}

func latencyTable(unit string, by float64, of []namedLatency, decimals int) Table {
	t := Table{Head: []string{"latency (" + unit + ")", "mean", "p50", "p90", "p95", "p99", "max"}}
	for _, l := range of {
		row := []string{l.name}
		for _, x := range []float64{l.Mean, l.P50, l.P90, l.P95, l.P99, l.Max} {
			row = append(row, figure(x/by, decimals))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (s Summary) throughput() Table {
	t := Table{Head: []string{"throughput", "per second"}}
	for _, r := range []struct {
		name string
		rate float64
	}{
		{"requests offered", s.Throughput.Offered}, {"requests completed", s.Throughput.Completed},
		{"input tokens", s.Throughput.Input}, {"output tokens", s.Throughput.Output},
	} {
		if r.rate > 0 {
			t.Rows = append(t.Rows, []string{r.name, Figure(r.rate)})
		}
	}
	return t
}

func (s Summary) steps() Table {
	t := Table{Head: []string{"steps: " + Count(s.Steps.Count), "mean", "max"}}
	if s.Steps.Count == 0 {
		return t
	}
	t.Rows = [][]string{
		{"time (ms)", Figure(s.Steps.MeanMS), ""},
		{"batch (sequences)", Figure(s.Steps.MeanBatch), Count(int64(s.Steps.MaxBatch))},
		{"computed (tokens)", Figure(s.Steps.MeanTokens), ""},
		{"running (sequences)", Figure(s.Running.Mean), Count(int64(s.Running.Max))},
		{"waiting (sequences)", Figure(s.Queue.Mean), Count(int64(s.Queue.Max))},
	}
	if s.KV.UseMax > 0 {
		t.Rows = append(t.Rows, []string{"KV in use (%)", Percent(s.KV.UseMean), Percent(s.KV.UseMax)})
	}
	if s.PrefixCache.Queries > 0 {
		t.Rows = append(t.Rows, []string{"prefix cache hits (% of prompt tokens)", Percent(s.PrefixCache.HitRate), ""})
	}
	return t
}

func (s Summary) bound() Table {
	t := Table{Head: []string{"steps bound by", "of time (%)", "of steps (%)"}}
	for _, b := range []struct {
		name        string
		time, steps float64
	}{
		{"compute", s.Bound.Time.Compute, s.Bound.Steps.Compute}, {"weight reads", s.Bound.Time.Weights, s.Bound.Steps.Weights},
		{"KV reads", s.Bound.Time.KV, s.Bound.Steps.KV}, {"overhead", s.Bound.Time.Overhead, s.Bound.Steps.Overhead},
	} {
		if b.time > 0 || b.steps > 0 {
			t.Rows = append(t.Rows, []string{b.name, Percent(b.time), Percent(b.steps)})
		}
	}
	return t
}

func (s Summary) blocked() Table {
	t := Table{Head: []string{"admission blocked by", "of time (%)"}}
	for _, b := range []struct {
		name string
		time float64
	}{{"sequence slots", s.Blocked.Slots}, {"KV blocks", s.Blocked.KV}, {"token budget", s.Blocked.Budget}} {
		if b.time > 0 {
			t.Rows = append(t.Rows, []string{b.name, Percent(b.time)})
		}
	}
	return t
}

func (s Summary) preemptions() Table {
	t := Table{Head: []string{"preemptions", ""}}
	p := s.Preemptions
	if p.Total == 0 && p.Requests == 0 {
		return t
	}
	t.Rows = [][]string{{"total", Count(p.Total)}, {"requests hit", Count(p.Requests)},
		{"most for one request", Count(int64(p.MaxPerRequest))}}
	if p.LongestFreeze > 0 {
		t.Rows = append(t.Rows, []string{"longest freeze (ms)", Figure(p.LongestFreeze)})
	}
	return t
}

// Wrap breaks a line for people at spaces, to stay within 80 columns, and ends it. What goes on
// after a "- " is indented.
func Wrap(line string) string {
	if strings.HasPrefix(line, "- ") {
		return wrap(line, "  ")
	}
	return wrap(line, "")
}

// wrap breaks a line at spaces to stay within width; further lines start with indent.
func wrap(line, indent string) string {
	var out strings.Builder
	at := 0
	for i, word := range strings.Fields(line) {
		n := len([]rune(word))
		switch {
		case i > 0 && at+1+n > width:
			out.WriteString("\n" + indent)
			at = len(indent)
		case i > 0:
			out.WriteString(" ")
			at++
		}
		out.WriteString(word)
		at += n
	}
	return out.String() + "\n"
}
