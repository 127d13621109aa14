package plan

import (
	"fmt"
	"io"
	"strings"

	"llmsim/report"
)

// WriteTable writes the answer for people: verdict first, then its evidence.
func (a *Answer) WriteTable(w io.Writer) error {
	return a.write(w, report.Table.WriteText, a.Run.WriteTable, "", "")
}

// WriteMarkdown writes the answer for a pull request.
func (a *Answer) WriteMarkdown(w io.Writer) error {
	return a.write(w, report.Table.WriteMarkdown, a.Run.WriteMarkdown, "**", "\n")
}

func (a *Answer) write(w io.Writer, table func(report.Table, io.Writer) error, run func(io.Writer) error, strong, space string) error {
	var b strings.Builder
	verdict := "HOLDS"
	if !a.Verdict.Holds {
		verdict = "DOES NOT HOLD"
	}
	gpus := fmt.Sprintf("%s, %s", plural(a.Replicas, "replica"), plural(a.GPUs, "GPU"))
	b.WriteString(report.Wrap(fmt.Sprintf("%s%s: %s%s", strong, verdict, gpus, strong)) + space)
	b.WriteString(report.Wrap(a.Verdict.Reason+".") + space)
	if a.Verdict.Margin != "" {
		b.WriteString(report.Wrap("Beware: "+a.Verdict.Margin+".") + space)
	}
	b.WriteString("\n" + report.Wrap(fmt.Sprintf("%sWhat breaks first%s (%s): %s.", strong, strong, a.Bottleneck.Of, a.Bottleneck.What)) + "\n")
	for i, t := range []report.Table{a.trials(), a.objectives(), a.memory()} {
		if len(t.Rows) == 0 {
			continue
		}
		if i > 0 {
			b.WriteString("\n")
		}
		if err := table(t, &b); err != nil {
			return err
		}
	}
	b.WriteString("\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return run(w)
}

func (a *Answer) trials() report.Table {
	t := report.Table{Head: []string{"replicas simulated", "requests", "warm-up (s)", "simulated (s)", "backlog growth (req/s)"}}
	for _, x := range a.Trials {
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%d: %s", x.Replicas, x.State), report.Count(x.Requests), report.Figure(x.WarmupS),
			report.Figure(x.VirtualS), fmt.Sprintf("%.3f +/- %.3f", x.Growth, significance*x.StdErr),
		})
	}
	return t
}

func (a *Answer) objectives() report.Table {
	t := report.Table{Head: []string{"SLO", "limit (ms)", "simulated (ms)", "met"}}
	for _, o := range a.SLO {
		met := "no"
		if o.Met {
			met = "yes"
		}
		t.Rows = append(t.Rows, []string{o.Name, report.Figure(o.Limit), report.Figure(o.Value), met})
	}
	return t
}

func (a *Answer) memory() report.Table {
	if len(a.Pools) > 0 {
		return a.pools()
	}
	m := a.Memory
	gib := func(bytes float64) string { return report.Figure(bytes / (1 << 30)) }
	gpu := "memory of a GPU"
	if m.Stage > 0 {
		gpu += fmt.Sprintf(" of stage %d", m.Stage)
	}
	return report.Table{
		Head: []string{gpu, "GiB", "of HBM (%)"},
		Rows: [][]string{
			{"weights", gib(m.Weights), report.Percent(m.Weights / m.HBM)},
			{fmt.Sprintf("KV cache, %s tokens", report.Count(int64(m.KVTokens))), gib(m.KV), report.Percent(m.KV / m.HBM)},
			{"reserve", gib(m.Reserve), report.Percent(m.Reserve / m.HBM)},
			{"free", gib(m.Free), report.Percent(m.Free / m.HBM)},
		},
	}
}
