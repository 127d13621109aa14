package workload

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"llmsim/internal/shared"
)

// Vidur's copies of the Azure hours hold the same rows, as seconds to the microsecond:
// two parsers and two clocks must agree on every one.
func TestAzureAndVidurAgree(t *testing.T) {
	for _, test := range []struct {
		azure, vidur string
		rows         int
	}{{"azure2023_conv.csv", "vidur_splitwise_conv.csv", 19366}, {"azure2023_code.csv", "vidur_splitwise_code.csv", 8819}} {
		azure := replayAll(t, mustOpen(t, shared.Data(t, "traces", test.azure), TraceOptions{Strict: true}))
		vidur := replayAll(t, mustOpen(t, shared.Data(t, "traces", test.vidur), TraceOptions{Strict: true}))
		if len(azure) != test.rows || len(vidur) != test.rows {
			t.Fatalf("%s has %d rows, %s %d, want %d", test.azure, len(azure), test.vidur, len(vidur), test.rows)
		}
		for i, a := range azure {
			v := vidur[i]
			if off := (a.Arrival - v.Arrival).Abs(); off >= time.Microsecond || a.Prompt != v.Prompt || a.Output != v.Output {
				t.Fatalf("row %d of %s = %+v, of %s = %+v", i, test.azure, a, test.vidur, v)
			}
		}
	}
}

// Every public trace is read whole: no row of them is malformed.
func TestSharedTracesAreReadWhole(t *testing.T) {
	for _, test := range []struct {
		file, format string
		rows         int
		arrivals     bool
		prefix       bool
	}{
		{"mooncake_conversation_first6000.jsonl", "mooncake", 6000, true, true},
		{"mooncake_synthetic.jsonl", "mooncake", 3993, true, true},
		{"llmservingsim_me2_01_mixed.jsonl", "llmservingsim", 608, true, false},
		{"vidur_arxiv_summarization_lengths.csv", "vidur-lengths", 28257, false, false},
		{"burstgpt_format_samples/burstgpt_v1_6col_head3.csv", "burstgpt", 3, true, false},
		{"burstgpt_format_samples/burstgpt_v3_8col_head4.csv", "burstgpt-v3", 4, true, false},
	} {
		trace := mustOpen(t, shared.Data(t, "traces", test.file), TraceOptions{Strict: true})
		if trace.Format != test.format || trace.Account.Rows != test.rows || trace.Account.Kept != test.rows || trace.HasArrivals != test.arrivals || trace.HasPrefix != test.prefix {
			t.Errorf("OpenTrace(%s) = %s, %v, arrivals %v, prefix %v, want %+v", test.file, trace.Format, trace.Account, trace.HasArrivals, trace.HasPrefix, test)
		}
	}
}

// The files beside the traces that are no lists of requests are refused, each by a message of its own.
func TestSharedFilesThatAreNoTraces(t *testing.T) {
	dir := shared.Data(t, "traces")
	for _, pattern := range []string{"servegen_clients/*", "servegen_*.csv", "fleetsim_cdf/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("Glob(%q) = %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			if trace, err := OpenTrace(path, TraceOptions{}); err == nil {
				t.Errorf("OpenTrace(%q) = %s, want an error", path, trace.Format)
			}
		}
	}
}

// The figures that spec and literature give of these traces come out.
func TestInspectReproducesPublishedFigures(t *testing.T) {
	type figures struct{ rate, cv, peak, idc1, idc10, idc60, p50, p90, p99, out50, out99, ceiling float64 }
	for _, test := range []struct {
		file string
		want figures
	}{
		{"azure2023_conv.csv", figures{5.5301, 1.0942, 2.8932, 1.3851, 3.8570, 16.128, 1020, 2734.5, 4142, 129, 601, 0}},
		{"azure2023_code.csv", figures{2.5664, 13.151, 26.107, 13.186, 71.641, 163.96, 1469, 5187.6, 7436, 13, 251.46, 0}},
		{"mooncake_synthetic.jsonl", figures{3.9060, 1.0113, 3.3282, 1.0889, 1.1778, 1.1916, 0, 0, 0, 0, 0, 0.65124}},
		{"mooncake_conversation_first6000.jsonl", figures{3.2046, 2.9349, 7.1772, 7.5074, 1.9766, 2.7954, 0, 0, 0, 0, 0, 0.35273}},
	} {
		in, err := Inspect(mustOpen(t, shared.Data(t, "traces", test.file), TraceOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Dispersion) != 3 {
			t.Fatalf("%s: Dispersion = %+v, want three windows", test.file, in.Dispersion)
		}
		got := figures{in.Rate, in.GapCV, in.PeakRatio, in.Dispersion[0].Index, in.Dispersion[1].Index, in.Dispersion[2].Index,
			in.Prompt.P50, in.Prompt.P90, in.Prompt.P99, in.Output.P50, in.Output.P99, in.PrefixCeiling}
		g, w := []float64{got.rate, got.cv, got.peak, got.idc1, got.idc10, got.idc60, got.ceiling}, []float64{test.want.rate, test.want.cv, test.want.peak, test.want.idc1, test.want.idc10, test.want.idc60, test.want.ceiling}
		if test.want.p50 > 0 {
			g = append(g, got.p50, got.p90, got.p99, got.out50, got.out99)
			w = append(w, test.want.p50, test.want.p90, test.want.p99, test.want.out50, test.want.out99)
		}
		for i := range g {
			if math.Abs(g[i]-w[i]) > 2e-4*math.Abs(w[i]) {
				t.Errorf("Inspect(%s) = %+v, want %+v", test.file, got, test.want)
				break
			}
		}
	}
}

// Mooncake's 3 s grid, taken literally, makes herds; spread over it they are gone.
func TestMooncakeGrid(t *testing.T) {
	path := shared.Data(t, "traces", "mooncake_conversation_first6000.jsonl")
	literal := mustOpen(t, path, TraceOptions{})
	if want := (Grid{3 * time.Second, 625, 23}); literal.Grid != want {
		t.Errorf("Grid = %+v, want %+v", literal.Grid, want)
	}
	for _, spread := range []string{SpreadUniform, SpreadPoisson} {
		in, err := Inspect(mustOpen(t, path, TraceOptions{Spread: spread, Seed: 42}))
		if err != nil {
			t.Fatal(err)
		}
		if in.Herd > 1 || in.GapCV > 1.3 {
			t.Errorf("spread %s: herd %d, CV %.2f, want no herd and a CV near 1", spread, in.Herd, in.GapCV)
		}
	}
}

// BenchmarkOpenAzureHour opens the conversation hour: 19,366 rows, 719 KB.
func BenchmarkOpenAzureHour(b *testing.B) {
	path := shared.Data(b, "traces", "azure2023_conv.csv")
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, err := OpenTrace(path, TraceOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
