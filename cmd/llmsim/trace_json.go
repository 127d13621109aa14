package main

import (
	"strconv"
	"strings"

	"llmsim/workload"
)

// traceData is an inspection as JSON, units in the keys; null is what the file cannot show.
type traceData struct {
	Trace struct {
		File   string `json:"file"`
		Format string `json:"format"`
		Digest string `json:"digest"`
	} `json:"trace"`
	Rows struct {
		Read    int            `json:"read"`
		Kept    int            `json:"kept"`
		Skipped map[string]int `json:"skipped"`
		First   []skippedData  `json:"first_skipped"`
	} `json:"rows"`
	Requests int           `json:"requests"`
	Arrivals *arrivalsData `json:"arrivals"`
	Tokens   struct {
		Input  lengthData `json:"input"`
		Output lengthData `json:"output"`
	} `json:"tokens"`
	PrefixHitCeiling *float64 `json:"prefix_hit_ceiling"`
	Verdict          []string `json:"verdict"`
	Notes            []string `json:"notes"`
}

type skippedData struct {
	Line    int    `json:"line"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type arrivalsData struct {
	Duration   float64             `json:"duration_s"`
	Rate       float64             `json:"rate_rps"`
	Peak       int                 `json:"peak_second_requests"`
	PeakRatio  float64             `json:"peak_over_mean"`
	GapCV      float64             `json:"gap_cv"`
	Dispersion map[string]*float64 `json:"dispersion"`
	Distinct   int                 `json:"distinct_instants"`
	Herd       int                 `json:"largest_herd"`
	GridStep   *float64            `json:"grid_step_s"`
}

type lengthData struct {
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   int     `json:"max"`
	Total int64   `json:"total"`
}

func inspectionData(in workload.Inspection) traceData {
	var d traceData
	d.Trace.File, d.Trace.Format, d.Trace.Digest = in.Path, in.Format, "sha256:"+in.Digest
	d.Rows.Read, d.Rows.Kept, d.Rows.First = in.Account.Rows, in.Account.Kept, []skippedData{}
	key := strings.NewReplacer(" ", "_")
	d.Rows.Skipped = make(map[string]int)
	for _, reason := range []string{workload.ZeroOutput, workload.ZeroInput, workload.Unparsable} {
		d.Rows.Skipped[key.Replace(reason)] = 0
	}
	for _, s := range in.Account.Skipped {
		reason := key.Replace(s.Reason)
		d.Rows.Skipped[reason] = s.Count
		for _, row := range s.First {
			d.Rows.First = append(d.Rows.First, skippedData{row.Line, reason, row.Message})
		}
	}
	d.Requests = in.Requests
	if in.HasArrivals {
		a := &arrivalsData{
			Duration: in.Duration.Seconds(), Rate: in.Rate, Peak: in.Peak, PeakRatio: in.PeakRatio, GapCV: in.GapCV,
			Dispersion: map[string]*float64{"1s": nil, "10s": nil, "60s": nil}, Distinct: in.Distinct, Herd: in.Herd,
		}
		for _, s := range in.Dispersion {
			a.Dispersion[strconv.Itoa(int(s.Window.Seconds()))+"s"] = &s.Index
		}
		if in.Grid.Step > 0 {
			step := in.Grid.Step.Seconds()
			a.GridStep = &step
		}
		d.Arrivals = a
	}
	d.Tokens.Input, d.Tokens.Output = lengthsOf(in.Prompt), lengthsOf(in.Output)
	if in.HasPrefix {
		d.PrefixHitCeiling = &in.PrefixCeiling
	}
	d.Verdict, d.Notes = in.Verdict, append([]string{}, in.Notes...)
	return d
}

func lengthsOf(s workload.LengthSummary) lengthData {
	return lengthData{s.Mean, s.P50, s.P90, s.P95, s.P99, s.Max, s.Total}
}
