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
	if c := a.Capacity; c != nil {
		b.WriteString(report.Wrap(a.capacity()) + space)
	}
	if p := a.Price; p != nil {
		b.WriteString(report.Wrap(fmt.Sprintf("$%.2f per hour, $%s per million output tokens, $%s per 1,000 requests ($%.2f per GPU and hour: %s).",
			p.PerHour, dollars(p.PerMillionOutput), dollars(p.PerThousand), p.PerGPUHour, p.Source)) + space)
	}
	b.WriteString("\n" + report.Wrap(fmt.Sprintf("%sWhat breaks first%s (%s): %s.", strong, strong, a.Bottleneck.Of, a.Bottleneck.What)) + "\n")
	first := true
	for _, t := range []report.Table{a.sensitivity(), a.objectives(), a.trials(), a.memory()} {
		if len(t.Rows) == 0 {
			continue
		}
		if !first {
			b.WriteString("\n")
		}
		first = false
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

// capacity says what one replica sustains.
func (a *Answer) capacity() string {
	c := a.Capacity
	under := ""
	if len(a.SLO) > 0 {
		under = " under the SLO"
	}
	if c.Speedup > 0 {
		return fmt.Sprintf("The trace may come %s times as fast%s before %s no longer keep%s up.", report.Figure(c.Speedup), under, plural(a.Replicas, "replica"), third(a.Replicas))
	}
	if c.Fleet > 0 {
		return fmt.Sprintf("The pools together sustain %s req/s%s; headroom %s%%.", report.Figure(c.Fleet), under, report.Percent(c.Headroom))
	}
	text := fmt.Sprintf("One replica sustains %s req/s%s", interval(c.PerReplica, (c.CI[1]-c.CI[0])/2), under)
	if len(a.SLO) > 0 {
		if c.PerReplica == 0 {
			text = "No rate holds the SLO"
		}
		text += fmt.Sprintf("; it saturates at %s", interval(c.Saturation, (c.SaturationCI[1]-c.SaturationCI[0])/2))
	}
	if a.Verdict.Holds && c.Headroom <= 0 && a.Replicas > 1 {
		text += fmt.Sprintf("; %s sustain more than that times %d, since the router evens out what each gets", plural(a.Replicas, "replica"), a.Replicas)
	}
	if a.Verdict.Holds && c.Headroom > 0 {
		text += fmt.Sprintf("; headroom %s%%", report.Percent(c.Headroom))
	}
	return text + "."
}

// dollars has three digits that mean something.
func dollars(x float64) string {
	if x >= 1 {
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// sensitivity is what one setting changed alone would give.
func (a *Answer) sensitivity() report.Table {
	t := report.Table{Head: []string{"changed alone", "to", "req/s each", "per GPU", "change (%)"}}
	if len(a.Sensitivity) > 0 {
		t.Rows = append(t.Rows, []string{"nothing", "", report.Figure(a.Unchanged), "", ""})
	}
	for _, x := range a.Sensitivity {
		row := []string{shortKnob(x.Knob), x.To, report.Figure(x.PerReplica), report.Figure(x.PerGPU), fmt.Sprintf("%+.1f", 100*x.Change)}
		if x.Reason != "" {
			row = []string{shortKnob(x.Knob), x.To, "-", "-", "impossible"}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// shortKnob is a field without its block, where that says nothing.
func shortKnob(path string) string {
	if name, ok := map[string]string{"hardware.name": "GPU", "model.weight_dtype": "weights", "workload.prefix": "shared prefix"}[path]; ok {
		return name
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

func (a *Answer) trials() report.Table {
	t := report.Table{Head: []string{"replicas simulated", "requests", "warm-up (s)", "simulated (s)", "backlog growth (req/s)"}}
	for _, x := range a.Trials {
		fared := x.State
		if x.State == keepsUp.String() && x.MissesSLO {
			fared = "misses SLO"
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%d: %s", x.Replicas, fared), report.Count(x.Requests), report.Figure(x.WarmupS),
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
		limit, value := report.Figure(o.Limit), report.Figure(o.Value)
		if o.empty() {
			value = "-"
		}
		if o.Unit != "" {
			limit, value = limit+o.Unit, value+o.Unit
		}
		t.Rows = append(t.Rows, []string{o.Name, limit, value, met})
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
