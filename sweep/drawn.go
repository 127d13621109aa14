package sweep

import (
	"slices"

	"llmsim/report"
)

// drawn are the figures of charts, unless others are asked for.
var drawn = []string{"ttft_p99_ms", "itl_p99_ms", "output_tokens_per_s"}

// Drawn are the figures that a picture shows: those asked for, or else those most looked at.
func (r Result) Drawn() (all []Figure) {
	for _, c := range r.columns {
		if r.chosen || slices.Contains(drawn, c.Name) {
			all = append(all, c.Figure)
		}
	}
	if !r.chosen {
		slices.SortFunc(all, func(a, b Figure) int { return slices.Index(drawn, a.Name) - slices.Index(drawn, b.Name) })
	}
	return all
}

// At are the values of the fields, of every point in order.
func (r Result) At() (all [][]string) {
	for row := range r.rows() {
		all = append(all, row[0].At)
	}
	return all
}

// Averages are the means of a figure over each point's seeds, and their standard errors; NaN where a point has no
// such figure.
func (r Result) Averages(figure string) (means, errors []float64) {
	at := slices.Index(r.Header.Figures, figure)
	for row := range r.rows() {
		mean, stderr := row.average(at)
		means, errors = append(means, float64(mean)), append(errors, float64(stderr))
	}
	return means, errors
}

// Table is the table of the first points, however wide.
func (r Result) Table(most int) report.Table {
	shown := r.shown()
	r.lines = r.lines[:min(len(r.lines), most*r.Seeds)]
	return r.tableOf(shown)
}

// Short is what a field is called where there is little room.
func (r Result) Short(field int) string { return shortened(r.Fields[field], r.Fields) }
