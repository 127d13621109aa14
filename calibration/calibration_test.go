package calibration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"llmsim/internal/shared"
	"llmsim/scenarios"
	"llmsim/sim/cost"
	"llmsim/validation"
)

func parameters(t *testing.T, names ...string) (all []cost.Parameter) {
	t.Helper()
	for _, name := range names {
		p, err := Parameter(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// made are figures of a formula, some points of it off by chance.
func made(n int, formula func(i int, values []float64) float64, truth []float64, noise float64, seed uint64) Evidence {
	r := rand.New(rand.NewPCG(seed, 1))
	e := Evidence{Simulate: func(_ context.Context, values []float64, _ bool) ([]float64, error) {
		out := make([]float64, n)
		for i := range out {
			out[i] = formula(i, values)
		}
		return out, nil
	}}
	for i := range n {
		e.Points = append(e.Points, Point{Source: "made", Figure: "time", Block: i, HeldOut: i%4 == 3, Weight: 1, Scale: 0.05,
			Measured: formula(i, truth) * math.Exp(noise*r.NormFloat64())})
	}
	return e
}

func step(i int, v []float64) float64 { return v[0] + v[1]*float64(i%50) }

// Two standard errors hold the truth nineteen times of twenty.
func TestStandardErrorsCoverTheTruth(t *testing.T) {
	truth := []float64{700, 20}
	within, n := 0, 0
	for seed := range uint64(100) {
		p := Problem{Parameters: parameters(t, "step_overhead", "sequence_overhead"), Start: []float64{500, 5}, Evidence: []Evidence{made(120, step, truth, 0.03, seed)}}
		result, err := Fit(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range result.Parameters {
			if math.Abs(e.Value-truth[i]) > 0.1*truth[i] {
				t.Errorf("%s = %v, want about %v", e.Name, e.Value, truth[i])
			}
			n++
			if math.Abs(e.Value-truth[i]) < 2**e.StandardError {
				within++
			}
		}
	}
	if share := float64(within) / float64(n); share < 0.88 || share > 0.995 {
		t.Errorf("%.0f%% of fits are within two standard errors of the truth, want about 95%%", 100*share)
	}
}

// A tenth of figures that are wrong by a factor of three do not bend the rest.
func TestBrokenPoints(t *testing.T) {
	e := made(200, step, []float64{700, 20}, 0.01, 3)
	for i := range e.Points {
		if i%10 == 0 {
			e.Points[i].Measured *= 3
		}
	}
	result, err := Fit(t.Context(), Problem{Parameters: parameters(t, "step_overhead", "sequence_overhead"), Start: []float64{500, 5}, Evidence: []Evidence{e}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{700, 20} {
		if got := result.Parameters[i].Value; math.Abs(got/want-1) > 0.04 {
			t.Errorf("%s = %v, want %v", result.Parameters[i].Name, got, want)
		}
	}
}

func TestBounds(t *testing.T) {
	e := made(100, func(i int, v []float64) float64 { return float64(i+1)/v[0] + v[1] }, []float64{1, 50}, 0.001, 1)
	for i := range e.Points {
		e.Points[i].Measured = (e.Points[i].Measured-50)*0.7 + 50 // faster than the data sheet
	}
	result, err := Fit(t.Context(), Problem{Parameters: parameters(t, "gemm_memory_efficiency", "step_overhead"), Start: []float64{0.8, 30}, Evidence: []Evidence{e}})
	if err != nil {
		t.Fatal(err)
	}
	if p := result.Parameters[0]; p.Value != 1 || !p.AtBound || p.StandardError != nil {
		t.Errorf("%+v, want 1, at its bound, without a standard error", p)
	}
	for _, p := range result.Parameters {
		if p.Value < p.Least || p.Value > p.Most {
			t.Errorf("%+v is out of bounds", p)
		}
	}
}

func TestUnidentified(t *testing.T) {
	for _, c := range []struct {
		names   []string
		formula func(i int, v []float64) float64
		want    []string
	}{
		{[]string{"step_overhead", "layer_overhead"}, func(i int, v []float64) float64 { return v[0] + 32*v[1] + float64(i) }, []string{"step_overhead and layer_overhead are collinear", "other numbers of layers"}},
		{[]string{"step_overhead", "link_efficiency"}, func(i int, v []float64) float64 { return v[0] + float64(i) }, []string{"link_efficiency has no influence", "over NVLink"}},
		{
			[]string{"gemm_memory_efficiency", "step_overhead", "sequence_overhead"}, func(i int, v []float64) float64 { return 1000/v[0] + v[1] + float64(i)*v[2] },
			[]string{"gemm_memory_efficiency and step_overhead"},
		},
	} {
		var start []float64
		ps := parameters(t, c.names...)
		for _, p := range ps {
			start = append(start, p.Default)
		}
		_, err := Fit(t.Context(), Problem{Parameters: ps, Start: start, Evidence: []Evidence{made(60, c.formula, start, 0.01, 1)}})
		if _, is := errors.AsType[Unidentified](err); !is {
			t.Fatalf("%v: %v, want to be refused", c.names, err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v\nwant %q in it", c.names, err, want)
			}
		}
	}
}

func TestCurvesReachTheirBounds(t *testing.T) {
	for _, p := range cost.Parameters {
		c := curveOf(p)
		for _, x := range []float64{p.Least, p.Default, p.Most} {
			if got := c.at(c.of(x)); math.Abs(got-x) > 1e-9*max(x, 1) || got < p.Least || got > p.Most {
				t.Errorf("%s: %v there and back is %v", p.Name, x, got)
			}
		}
		if Needs(p.Name) == "" {
			t.Errorf("nothing says what identifies %s", p.Name)
		}
	}
}

// synthetic writes a run that the simulator made with constants of its own, as if it had been measured,
// every time off by noise.
func synthetic(t *testing.T, noise float64, constants ...scenarios.Edit) string {
	t.Helper()
	dir := t.TempDir()
	meta := `{"model": "meta-llama/Llama-3.1-8B", "engine": "vllm", "engine_version": "0.19.0",
"engine_kwargs": {"max_num_seqs": 64, "max_num_batched_tokens": 2048, "max_model_len": 16384},
"hardware": {"gpu": "NVIDIA GeForce RTX 4090"}, "kv_cache": {"num_gpu_blocks": 2588, "block_size": 16}, "client": "in-process"}`
	path := filepath.Join(dir, "made.requests.csv")
	if err := os.WriteFile(filepath.Join(dir, "made.meta.json"), []byte(meta), 0o666); err != nil {
		t.Fatal(err)
	}
	write := func(times func(i int) string) {
		var b strings.Builder
		b.WriteString("i,arrival_s,input_tokens,output_tokens,ttft_ms,tpot_ms,e2e_ms\n")
		r := rand.New(rand.NewPCG(7, 7))
		at := 0.0
		for i := range 200 {
			at += r.ExpFloat64() * 0.25
			if i%50 == 0 {
				at += 8 // and some are alone
			}
			fmt.Fprintf(&b, "%d,%.6f,%d,%d,%s\n", i, at, 16+int(2000*r.Float64()*r.Float64()*r.Float64()), 16+r.IntN(250), times(i))
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(func(int) string { return ",," })
	sources, err := validation.Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	predictions, err := validation.Predict(t.Context(), sources, validation.Options{Edits: constants}, nil)
	if err != nil {
		t.Fatal(err)
	}
	items := predictions[0].Items
	if len(items) != 200 {
		t.Fatalf("%d requests, %v", len(items), predictions[0].Skips)
	}
	r := rand.New(rand.NewPCG(8, 8))
	write(func(i int) string {
		off := func(x float64) float64 { return x * math.Exp(noise*r.NormFloat64()) }
		s := items[i].Simulated
		return fmt.Sprintf("%.6f,%.6f,%.6f", off(s.TTFT), off(s.TPOT), off(s.E2E))
	})
	return path
}

func edit(t *testing.T, text string) scenarios.Edit {
	t.Helper()
	e, err := scenarios.ParseEdit(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func calibrated(t *testing.T, paths []string, s Setting, most int) (Report, error) {
	t.Helper()
	in, err := Open(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, notes, err := in.Problem(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p.MaxEvaluations = most
	result, err := Fit(t.Context(), p)
	return in.Report(result, notes), err
}

// A run whose constants are known gives them back, from a start that is 20-50% off.
func TestSyntheticRun(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates some hundred times")
	}
	truth := map[string]float64{"gemm_memory_efficiency": 0.78, "gemm_compute_efficiency": 0.62}
	var edits []scenarios.Edit
	for name, x := range truth {
		edits = append(edits, edit(t, fmt.Sprintf("cost.parameters.%s=%v", name, x)))
	}
	path := synthetic(t, 0.02, edits...)
	report, err := calibrated(t, []string{path}, Setting{Fit: []string{"gemm_memory_efficiency", "gemm_compute_efficiency"}}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Parameters {
		want := truth[p.Name]
		t.Logf("%s = %v +/- %v, truth %v", p.Name, p.Value, *p.StandardError, want)
		if off := math.Abs(p.Value - want); off > 4**p.StandardError || off > 0.05*want {
			t.Errorf("%s = %v +/- %v, want %v", p.Name, p.Value, *p.StandardError, want)
		}
	}

	// A scenario that names the file gets these very constants.
	out := filepath.Join(t.TempDir(), "fit.yaml")
	var text bytes.Buffer
	if err := report.WriteFile(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := scenarios.Load("base", []scenarios.Edit{
		edit(t, "model.name=llama-3.1-8b"), edit(t, "hardware.name=rtx-4090"), edit(t, "engine.num_gpu_blocks=1000"), edit(t, "engine.max_model_len=4096"),
		edit(t, "cost.model=operators"), edit(t, "cost.parameter_file="+out),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	for _, p := range report.Parameters {
		one, _ := Parameter(p.Name)
		if got := *one.Of(&s.Cost.Constants); got != p.Value {
			t.Errorf("a scenario has %s = %v, want %v", p.Name, got, p.Value)
		}
	}
	if !slices.Contains(s.Cost.FittedOn, report.FittedOn[0]) {
		t.Errorf("a scenario's constants were fitted on %v, want %v", s.Cost.FittedOn, report.FittedOn)
	}
}

// In the steps of one model, what a step and what its layers cost are one constant; and a run at TP 1
// knows nothing of links.
func TestRunCannotTell(t *testing.T) {
	path := synthetic(t, 0.02)
	for _, c := range []struct{ fit, want string }{
		{"step_overhead layer_overhead", "step_overhead and layer_overhead are collinear"},
		{"gemm_launch step_overhead", "gemm_launch and step_overhead are collinear"},
		{"gemm_memory_efficiency allreduce_latency", "allreduce_latency has no influence"},
		{"kv_efficiency kv_efficiency_8bit", "kv_efficiency_8bit has no influence"},
	} {
		_, err := calibrated(t, []string{path}, Setting{Fit: strings.Fields(c.fit)}, 50)
		if _, is := errors.AsType[Unidentified](err); !is || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.fit, err, c.want)
		}
	}
}

// Same inputs, same bytes, however many simulations run at once.
func TestSameBytes(t *testing.T) {
	path := synthetic(t, 0.02)
	var first string
	for _, processors := range []int{1, 2} {
		before := runtime.GOMAXPROCS(processors)
		report, err := calibrated(t, []string{path, "testdata/h100-sxm-gemm.csv"}, Setting{Fit: []string{"gemm_memory_efficiency", "step_overhead"}}, 40)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := errors.Join(report.WriteFile(&b), report.WriteTable(&b), report.WriteMarkdown(&b)); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = b.String()
		} else if first != b.String() {
			t.Errorf("first\n%s\nthen\n%s", first, b.String())
		}
	}
}

// Timings of single operators give a GPU's constants to within the shapes' own scatter.
func TestOperatorTimings(t *testing.T) {
	if testing.Short() {
		t.Skip("fits ten times to thousands of timings")
	}
	dir := shared.Data(t, "measured", "ops")
	for _, gpu := range []struct {
		name      string
		attention float64 // median error that is allowed
	}{{"a100_sxm", 0.10}, {"h100_sxm", 0.10}, {"h200_sxm", 0.10}, {"l40s", 0.10}, {"b200_sxm", 0.13}} {
		t.Run(gpu.name, func(t *testing.T) {
			for _, c := range []struct {
				pattern string
				most    float64
			}{{"-gemm.csv", 0.10}, {"_attention.csv", gpu.attention}} {
				files, err := filepath.Glob(filepath.Join(dir, gpu.name+"-*"+c.pattern))
				if err != nil || len(files) == 0 {
					t.Fatalf("no files of %s: %v", gpu.name, err)
				}
				in, err := Open(files, nil)
				if err != nil {
					t.Fatal(err)
				}
				p, notes, err := in.Problem(t.Context(), Setting{Dtype: "bf16"})
				if err != nil {
					t.Fatal(err)
				}
				p.MaxEvaluations = 600
				result, err := Fit(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				var values []float64
				for _, e := range result.Parameters {
					values = append(values, e.Value)
					deviation := math.NaN()
					if e.StandardError != nil {
						deviation = *e.StandardError
					}
					t.Logf("%s = %v +/- %.2g", e.Name, e.Value, deviation)
				}
				both := map[bool][]float64{}
				for _, e := range p.Evidence {
					figures, err := e.Simulate(t.Context(), values, true)
					if err != nil {
						t.Fatal(err)
					}
					for i, one := range e.Points {
						both[one.HeldOut] = append(both[one.HeldOut], figures[i]/one.Measured-1)
					}
				}
				for held, errors := range both {
					n := len(errors)
					s := spreadOf(errors)
					t.Logf("%s, held out %v: %d timings, off by %.1f%% in the median, %.1f%% on average", c.pattern, held, n, 100*s.Median, 100*s.MAPE)
					if s.Median > c.most {
						t.Errorf("%s, held out %v: median error %.1f%%, want at most %.0f%%", c.pattern, held, 100*s.Median, 100*c.most)
					}
				}
				if gpu.name == "l40s" && c.pattern != "-gemm.csv" && !strings.Contains(strings.Join(notes, "\n"), "L2 cache") {
					t.Errorf("notes %q, want to be told of what the L2 cache holds", notes)
				}
			}
		})
	}
}

func TestBadInputs(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"h100-sxm-gemm.csv", "dtype,n,k,m,latency_ms\nbfloat16,0,8,8,1\n", "h100-sxm-gemm.csv:2: n: must be a whole number from 1 to"},
		{"h100-sxm-gemm.csv", "dtype,n,k,m,latency_ms\nint3,8,8,8,1\n", ":2: dtype: must be bfloat16 or fp8, is \"int3\""},
		{"h100-sxm-gemm.csv", "dtype,n,k,m,latency_ms\nfp8,8,8,8,-1\n", ":2: latency_ms: must be a time above 0"},
		{"h100-sxm-gemm.csv", "dtype,n,k,m,latency_ms\nfp8,8,8,8,NaN\n", ":2: latency_ms: must be a time above 0"},
		{"h100-sxm-gemm.csv", "dtype,n,k,m,latency_ms\nfp8,8,8\n", ":2: wrong number of fields"},
		{"h100-sxm-gemm.csv", "dtype,n,k,m,latency_ms\n", "has no timing"},
		{"h100-sxm-gemm.csv", "dtype,n,k,m,latency_ms,n\nfp8,8,8,8,1,1\n", "n: is a column twice"},
		{"h100-sxm-ctx.csv", "kv_dtype,q_heads,kv_heads,head_dim,batch,isl,prefix,latency_ms\nfp8,1,1,128,1000000000,1000000000,0,1\n", "beyond all bounds"},
		{"other.csv", "a,b\n1,2\n", "column is missing"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open([]string{path}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Open([]string{filepath.Join(dir, "absent.csv")}, nil); err == nil || !strings.Contains(err.Error(), "absent.csv: no such file") {
		t.Errorf("%v, want to be told that there is no such file", err)
	}
	gemm := "dtype,n,k,m,latency_ms\nbfloat16,8,8,8,1\n"
	for _, c := range []struct {
		name, text string
		set        Setting
		want       string
	}{
		{"gemm.csv", gemm, Setting{}, "say it with --gpu"},
		{"gemm.csv", gemm, Setting{GPU: "z80"}, `--gpu: "z80" is not in the catalogue`},
		{"h100-sxm-gemm.csv", gemm, Setting{Fit: []string{"gemm_memory_eficiency"}}, "did you mean gemm_memory_efficiency?"},
		{"h100-sxm-gemm.csv", gemm, Setting{Fit: []string{"gemm_launch", "gemm_launch"}}, "gemm_launch is named twice"},
		{"nothing.dense.csv", "layer,tokens,time_us\nqkv_proj,1,1\n", Setting{GPU: "h100-sxm"}, "must be named GPU-MODEL-tpN"},
		{"ar.csv", "system,num_gpus,message_size_elems,backend,latency_ms\nz80,2,128,vllm_graph,1\n", Setting{}, "ar.csv:2: system:"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		in, err := Open([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := in.Problem(t.Context(), c.set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	_, err := Fit(t.Context(), Problem{Parameters: parameters(t, "step_overhead"), Start: []float64{1}, Evidence: []Evidence{made(1, step, []float64{1, 1}, 0, 1)}})
	if err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("%v, want too few figures", err)
	}
}

func FuzzTimings(f *testing.F) {
	for _, k := range kinds {
		head := strings.Join(k.columns, ",")
		f.Add([]byte(head + "\n" + strings.Repeat("1,", len(k.columns)-1) + "1\n"))
		f.Add([]byte(head + "\nbfloat16" + strings.Repeat(",8", len(k.columns)-1) + "\n"))
	}
	c, err := scenarios.OpenCatalogue("")
	if err != nil {
		f.Fatal(err)
	}
	gpu, _ := c.FindGPU("h100-sxm")
	model, _ := c.FindModel("llama-3.1-8b")
	f.Fuzz(func(t *testing.T, text []byte) {
		if kindOf(text) == "" {
			return
		}
		timings, faults := readTimings("h100-sxm-fuzz.csv", text)
		if len(faults) > mostFaults+1 || len(faults) == 0 && len(timings.rows) == 0 {
			t.Fatalf("%d faults, %d rows", len(faults), len(timings.rows))
		}
		for _, r := range timings.rows {
			p, _, _, ok := timings.price(r, gpu.Hardware, model.Architecture, 1)
			if !ok {
				continue
			}
			if x := p.seconds(cost.DefaultConstants()); !(x >= 0) || math.IsInf(x, 0) {
				t.Fatalf("%+v takes %v", r, x)
			}
		}
	})
}

// Of a table, rows that are fitted to are of the fitting half, and none that is held out is one measurement with
// a row that is.
func TestTableIsSplit(t *testing.T) {
	sources, err := validation.Open([]string{shared.Data(t, "measured", "e2e", "vllm-closed-loop.csv")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := scenarios.OpenCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	fitted, blind, err := split(sources[0], "b200", c)
	if err != nil {
		t.Fatal(err)
	}
	type measurement struct{ ttft, tpot float64 }
	known := map[measurement]bool{}
	for _, row := range fitted.Rows {
		if !validation.FittingHalf(row.ID) || row.GPU != "b200_sxm" {
			t.Errorf("%s of %s is fitted to", row.ID, row.GPU)
		}
		known[measurement{row.TTFT, row.TPOT}] = true
	}
	for _, row := range blind.Rows {
		if validation.FittingHalf(row.ID) || known[measurement{row.TTFT, row.TPOT}] {
			t.Errorf("%s is held out, but known", row.ID)
		}
	}
	if len(fitted.Rows) < 10 || len(blind.Rows) < 10 {
		t.Errorf("%d rows are fitted to and %d held out", len(fitted.Rows), len(blind.Rows))
	}
	if _, _, err := split(sources[0], "l4", c); err == nil || !strings.Contains(err.Error(), "has no row of l4") {
		t.Errorf("%v, want no row of l4", err)
	}
}
