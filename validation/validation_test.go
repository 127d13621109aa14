package validation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"llmsim/internal/shared"
	"llmsim/scenarios"
)

func open(t *testing.T, paths ...string) []Source {
	t.Helper()
	sources, err := Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func predict(t *testing.T, sources []Source, o Options) []Prediction {
	t.Helper()
	predictions, err := Predict(context.Background(), sources, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return predictions
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// Measured 10, 20, 40 and simulated 11, 10, 60 are +10%, -50% and +50% off. As requests: the means are
// 70/3 and 27, the medians 20 and 11; at p90, rank 1.8, it is 36 and 50.2; at p99, rank 1.98, 39.6 and
// 59.02.
func TestErrorsByHand(t *testing.T) {
	pairs := []pair{{10, 11}, {20, 10}, {math.NaN(), 7}, {40, 60}, {5, math.NaN()}, {0, 3}}
	for _, c := range []struct {
		name string
		got  *Errors
		want Errors
	}{
		{"requests", ofPercentiles(slices.Clone(pairs)), Errors{3, 81.0/70 - 1, 1.1 / 3, 0.5, 11.0/20 - 1, 50.2/36 - 1, 59.02/39.6 - 1}},
		{"rows", ofErrors(slices.Clone(pairs)), Errors{3, 0.1 / 3, 1.1 / 3, 0.5, 0.5, 0.5, 0.5}},
	} {
		got, want := reflect.ValueOf(*c.got), reflect.ValueOf(c.want)
		for i := range got.NumField() {
			if f := got.Field(i); f.CanFloat() && !near(f.Float(), want.Field(i).Float()) || f.CanInt() && f.Int() != want.Field(i).Int() {
				t.Errorf("%s: %s = %v, want %v", c.name, got.Type().Field(i).Name, f, want.Field(i))
			}
		}
	}
	if ofErrors(nil) != nil || ofPercentiles([]pair{{math.NaN(), 1}}) != nil {
		t.Error("errors of nothing are something")
	}
	if got := quantile([]float64{1, 2, 4, 8}, 0.5); got != 3 {
		t.Errorf("quantile of 1, 2, 4, 8 at 0.5 = %v, want 3 as numpy has it", got)
	}
}

// A run's requests are matched by what they are, and its set-up becomes a scenario's keys.
func TestRun(t *testing.T) {
	source := open(t, "testdata/tiny.requests.csv")[0]
	s, err := source.Run.Scenario(Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := s.Engine
	if s.Model.Name != "llama-3.1-8b" || s.Hardware.Name != "rtx-4090" || e.Models != "vllm-0.19" || e.NumGPUBlocks != 300 || e.MaxNumSeqs != 2 ||
		e.MaxNumBatchedTokens != 512 || e.MaxModelLen != 4096 || !e.AsyncScheduling || !e.EnablePrefixCaching || source.Run.Served {
		t.Errorf("scenario %s on %s, engine %+v, served %v", s.Model.Name, s.Hardware.Name, e, source.Run.Served)
	}
	p := predict(t, []Source{source}, Options{})[0]
	if len(p.Items) != 5 || len(p.Skips) != 0 {
		t.Fatalf("%d items, skips %v, want 5 and none", len(p.Items), p.Skips)
	}
	// Two slots: the third finds both taken, the fourth has to wait for one as well; the last is alone.
	var got []string
	for _, i := range p.Items {
		got = append(got, i.Band)
		if !(i.Simulated.TTFT > 0 && i.Simulated.E2E >= i.Simulated.TTFT) {
			t.Errorf("request %s: simulated %+v", i.ID, i.Simulated)
		}
	}
	if want := []string{Light, Busy, Full, Full, Light}; !slices.Equal(got, want) {
		t.Errorf("bands %q, want %q", got, want)
	}
	g := Judge([]Prediction{p})[0]
	if g.N != 5 || g.Errors.TTFT.N != 5 || g.Errors.TPOT.N != 4 || g.Errors.Throughput.N != 1 || g.Kind != "run" || g.InSample || len(g.Bands) != 3 {
		t.Errorf("group %+v", g)
	}
	if in := Judge(predict(t, []Source{source}, Options{FittedOn: []string{source.Digest}})); !in[0].InSample {
		t.Error("a run whose digest is among those fitted to is blind")
	}
}

func TestTable(t *testing.T) {
	source := open(t, "testdata/table.csv")[0]
	s, err := source.Rows[1].Scenario(Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, e := s.Workload, s.Engine
	if w.Arrivals.Concurrency != 4 || w.Requests != 40 || w.Prompt.A != 204 || w.Prompt.B != 256 || w.Output.A != 51 || w.Output.B != 64 ||
		e.MaxNumSeqs != 4 || e.MaxNumBatchedTokens != 8192 || e.EnablePrefixCaching || !e.AsyncScheduling || e.KVCacheDtype != "" ||
		s.Model.Architecture.Weights.Dtype != "fp8" || e.Models != "vllm-classic-v1" || e.MaxModelLen != 320 {
		t.Errorf("row two: workload %+v, engine %+v, weights %s", w, e, s.Model.Architecture.Weights.Dtype)
	}
	p := predict(t, []Source{source}, Options{Prompts: 2})[0]
	if len(p.Items) != 2 || len(p.Skips) != 1 || p.Skips[0] != (Skip{"testdata/table.csv:4", "pp_size 2 is not modelled"}) {
		t.Fatalf("%d items, skips %v", len(p.Items), p.Skips)
	}
	// 57.5 output tokens on average.
	if m := p.Items[0].Measured; m.E2E != 20+7*56.5 || !near(p.Items[0].throughput.measured, 2*57.5/m.E2E*1e3) {
		t.Errorf("row one: measured %+v, %v tokens/s", m, p.Items[0].throughput.measured)
	}
	g := Judge([]Prediction{p})
	if len(g) != 1 || g[0].N != 2 || g[0].GPU != "h100-sxm" || g[0].RecordedGPU != "h100_sxm" || len(g[0].Engines) != 2 || len(g[0].Notes) != 1 {
		t.Errorf("groups %+v, want one of two rows, two engines, one note", g)
	}
	// Of a fitted table, the half that was not fitted to stays blind.
	o := Options{FittedOn: []string{source.Digest}}
	for i, want := range map[int]bool{0: FittingHalf("one"), 1: FittingHalf("two")} {
		if got := o.RowInSample(source, source.Rows[i]); got != want {
			t.Errorf("row %s in sample: %v, want %v", source.Rows[i].ID, got, want)
		}
	}
	// A measurement that is there twice is not blind under its other id.
	text := "id,model_path,system,isl,osl,concurrency,silicon_ttft_ms,silicon_tpot_ms\none,m,g,1,1,1,2,3\nthree,m,g,1,1,1,2,3\nthree,m,g,1,1,1,2,4\n"
	twins, _ := readTable("x.csv", []byte(text))
	o = Options{FittedOn: []string{twins.Digest}}
	for i, want := range []bool{true, true, false} {
		if got := o.RowInSample(twins, twins.Rows[i]); got != want {
			t.Errorf("row %d of twins in sample: %v, want %v", i, got, want)
		}
	}
	// sha256("one") starts with 0x76, sha256("three") with 0x8b.
	if !FittingHalf("one") || FittingHalf("three") {
		t.Error("the halves are not those of the first byte of the SHA-256")
	}
}

// However many run at once, the same comes out.
func TestPredictionIsDeterministic(t *testing.T) {
	sources := open(t, "testdata")
	if len(sources) != 2 {
		t.Fatalf("testdata has %d sources, want 2", len(sources))
	}
	text := func(procs int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		p := predict(t, sources, Options{Prompts: 3})
		var out bytes.Buffer
		if err := WriteItems(&out, p); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&out).Encode(Report(Judge(p))); err != nil {
			t.Fatal(err)
		}
		if err := (Report(Judge(p))).WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	one := text(1)
	for range 3 {
		if many := text(8); many != one {
			t.Fatalf("one at a time:\n%s\neight:\n%s", one, many)
		}
	}
}

// Measurements leave out much, and what they have may be null or a remark.
func TestWhatAMetaMayLack(t *testing.T) {
	requests := []byte("arrival_s,input_tokens,output_tokens,first_token_s,last_token_s\n0.5,100,10,0.6,1.5\n0,100,0,,\n0.1,50,1,0.2,0.2\n")
	meta := `{"model": "Qwen/Qwen3-32B-FP8", "hardware": {"gpu": "NVIDIA H100 80GB HBM3"}, "kv_cache": "not recorded",
		"scheduler_resolved": null, "engine_version": "", "started_at": "2025-10-29T01:02:03Z",
		"engine_kwargs": {"max_model_len": null, "max_num_seqs": null, "kv_cache_dtype": "fp8_e4m3"}}`
	dir := t.TempDir()
	file := filepath.Join(dir, "x.requests.csv")
	if err := os.WriteFile(file, requests, 0o600); err != nil {
		t.Fatal(err)
	}
	source, faults := readRun(filepath.Join(dir, "x.meta.json"), []byte(meta), file, requests)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s, err := source.Run.Scenario(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Engine.Models != "vllm-classic-v1" || s.Engine.MaxModelLen != 110 || s.Engine.KVCacheDtype != "fp8" || s.Model.Architecture.Weights.Dtype != "fp8" || !source.Run.Served {
		t.Errorf("engine %+v, weights %s, served %v", s.Engine, s.Model.Architecture.Weights.Dtype, source.Run.Served)
	}
	p := predict(t, []Source{source}, Options{})[0]
	if len(p.Items) != 2 || len(p.Items[0].notes) != 3 {
		t.Fatalf("%d items, notes %q, want 2 and 3", len(p.Items), p.Items[0].notes)
	}
	if m := p.Items[1].Measured; !near(m.TTFT, 100) || !near(m.E2E, 1000) || !near(m.TPOT, 100) || !math.IsNaN(p.Items[0].Measured.TPOT) {
		t.Errorf("measured from instants: %+v, %+v", p.Items[0].Measured, m)
	}
}

// Clients are concurrency or batch_size; a mixture's format is its experts'.
func TestWhatARowMayLack(t *testing.T) {
	source, faults := readTable("x.csv", []byte("model_path,system,gemm_quant_mode,moe_quant_mode,isl,osl,batch_size,concurrency,silicon_ttft_ms,silicon_tpot_ms\n"+
		"openai/gpt-oss-20b,l40s,bfloat16,w4a16_mxfp4,100,10,3,,5,\nMiniMaxAI/MiniMax-M2.5,b200_sxm,,,100,10,4,5,5,6\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for i, want := range []string{"line-2 3 mxfp4", "line-3 5 fp8"} {
		r := source.Rows[i]
		s, err := r.Scenario(Options{Edits: []scenarios.Edit{{Path: "engine.tensor_parallel_size", Value: "2"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %d %s", r.ID, s.Workload.Arrivals.Concurrency, s.Model.Architecture.Weights.Dtype); got != want || s.Engine.KVCacheDtype != "" {
			t.Errorf("row %d: %s, KV %q, want %s, 16 bits", i, got, s.Engine.KVCacheDtype, want)
		}
	}
	if p := predict(t, []Source{source}, Options{Prompts: 1}); !math.IsNaN(p[0].Items[0].Measured.E2E) || Judge(p)[0].N != 1 {
		t.Errorf("%+v", p[0].Items)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct{ version, date, want, note string }{
		{"0.28.1", "", "vllm-0.28", ""}, {"0.30", "", "vllm-0.28", ""}, {"0.19.0", "", "vllm-0.19", ""}, {"v0.21.0rc1", "", "vllm-0.19", ""},
		{"0.18.0", "", "vllm-classic-v1", ""}, {"0.11.2", "", "vllm-classic-v1", ""}, {"1.0.0", "", "vllm-0.28", ""},
		{"", "2025-11-02", "vllm-classic-v1", "taken for 0.11"}, {"", "2026-04-25", "vllm-0.19", "taken for 0.19"},
		{"", "", "vllm-0.28", "neither"}, {"nightly", "", "vllm-0.28", "is not one of numbers"}, {"0.6.3", "", "vllm-classic-v1", "older than any"},
	} {
		models, note := (&Setup{Version: c.version, Date: c.date}).engineModelled()
		if models != c.want || !strings.Contains(note, c.note) || c.note == "" && note != "" {
			t.Errorf("version %q of %q: %s, %q, want %s, %q", c.version, c.date, models, note, c.want, c.note)
		}
	}
}

// What can't be modelled is skipped with its reason, whatever else the row says.
func TestSkips(t *testing.T) {
	head := "id,model_path,system,gemm_quant_mode,mode,isl,osl,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms\n"
	for row, want := range map[string]string{
		"a,meta-llama/Llama-3.1-405B,h100_sxm,,agg,100,10,1,1,1,1": "model does not fit",
		"a,nobody/Knows-7B,h100_sxm,,agg,100,10,1,1,1,1":           `"nobody/Knows-7B" is not in the catalogue`,
		"a,Qwen/Qwen3-32B,NVIDIA H100,,agg,100,10,1,1,1,1":         "did you mean h100-80gb or h100-pcie or h100-sxm?",
		"a,Qwen/Qwen3-32B,b200_sxm,,agg,100,10,1,7,1,1":            "must split 64 heads",
		"a,Qwen/Qwen3-32B,b200_sxm,fp3,agg,100,10,1,1,1,1":         `weights of format "fp3" are not modelled`,
		"a,Qwen/Qwen3-32B,b200_sxm,,disagg,100,10,1,1,1,1":         "mode disagg",
		"a,Qwen/Qwen3-32B,b200_sxm,,agg,100,10,1,1,,":              "neither TTFT nor TPOT was measured",
		`a,"Qwen/""Qwen3: {x}",b200_sxm,,agg,100,10,1,1,1,1`:       "is not in the catalogue",
	} {
		source, faults := readTable("x.csv", []byte(head+row+"\n"))
		if len(faults) > 0 {
			t.Errorf("%s: %v", row, faults)
			continue
		}
		p := predict(t, []Source{source}, Options{Prompts: 1})
		if len(p[0].Skips) != 1 || !strings.Contains(p[0].Skips[0].Reason, want) || p[0].Skips[0].Place != "x.csv:2" {
			t.Errorf("%s: skips %v, want %q", row, p[0].Skips, want)
		}
		if lines := SkipLines([]Prediction{p[0], p[0]}); len(lines) != 1 || !strings.HasPrefix(lines[0], "x.csv:2 and 1 more: skipped: ") {
			t.Errorf("%s: lines %q", row, lines)
		}
	}
}

func TestBadInput(t *testing.T) {
	check := func(what string, faults scenarios.Faults, want ...string) {
		t.Helper()
		var got []string
		for _, f := range faults {
			got = append(got, f.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: faults\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	head := "id,model_path,system,isl,osl,concurrency,tp_size,silicon_ttft_ms,silicon_tpot_ms\n"
	for text, want := range map[string][]string{
		"":   {"x.csv: has no rows"},
		head: {"x.csv: has no rows"},
		head + "a,m,g,0,1.5,x,,-1,fast\na,m,g\n": {
			"x.csv:3: must have 9 cells as the head has, has 3",
			`x.csv:2: tp_size: must be a whole number from 1 to 1024, is "0"`,
		},
		"id,model_path,system,isl,osl,concurrency,silicon_ttft,silicon_tpot_ms\na,m,g,1,1,1,1,1\n": {
			`x.csv:1: silicon_ttft_ms: column is missing, did you mean "silicon_ttft"?`},
		head + "a,,g,1,1,,,1,1\n": {"x.csv:2: concurrency: must be a whole number, is empty", "x.csv:2: model_path: must be a name, is empty"},
		"a,\"b\nc":                {"x.csv:2: extraneous or missing \" in quoted-field"},
	} {
		_, faults := readTable("x.csv", []byte(text))
		if strings.Contains(text, "fast") {
			want = []string{
				"x.csv:3: must have 9 cells as the head has, has 3",
				`x.csv:2: isl: must be a whole number from 1 to 10000000, is "0"`,
				`x.csv:2: osl: must be a whole number from 1 to 10000000, is "1.5"`,
				`x.csv:2: concurrency: must be a whole number from 1 to 100000, is "x"`,
				"x.csv:2: silicon_ttft_ms: must be from 1e-06 to 1e+12, is -1",
				`x.csv:2: silicon_tpot_ms: must be a number, is "fast"`,
			}
		}
		check(text, faults, want...)
	}
	good := []byte("arrival_s,input_tokens,output_tokens\n0,1,1\n")
	for text, want := range map[string][]string{
		"{":                  {"x.meta.json: must be a JSON object: unexpected EOF"},
		"[]":                 {"x.meta.json: must be a JSON object"},
		"null":               {"x.meta.json: must be a JSON object"},
		"{\n \"model\": 3,}": {"x.meta.json:2:13: must be a JSON object: invalid character '}' looking for beginning of object key string"},
		`{}`:                 {"x.meta.json: model: must be a model's name, is missing"},
		`{"model": "m", "hardware": {"gpu": 4}, "engine_kwargs": {"tensor_parallel_size": "two", "max_num_seqs": 1.5, "enable_prefix_caching": 1}}`: {
			"x.meta.json: hardware.gpu: must be a text, is 4",
			"x.meta.json: engine_kwargs.tensor_parallel_size: must be a whole number from 1 to 1024, is two",
			"x.meta.json: engine_kwargs.max_num_seqs: must be a whole number from 1 to 1e+06, is 1.5",
			"x.meta.json: engine_kwargs.enable_prefix_caching: must be true or false, is 1",
		},
	} {
		_, faults := readRun("x.meta.json", []byte(text), "x.requests.csv", good)
		check(text, faults, want...)
	}
	_, faults := readRun("x.meta.json", []byte(`{"model": "m", "hardware": {"gpu": "g"}}`), "x.requests.csv",
		[]byte("arrival_s,input_tokens,output_tokens,ttft_ms\n,1,1,\n0,-1,1,soon\n"))
	check("requests", faults, "x.requests.csv:2: arrival_s: must be a number, is empty",
		`x.requests.csv:3: input_tokens: must be a whole number from 0 to 10000000, is "-1"`, `x.requests.csv:3: ttft_ms: must be a number, is "soon"`)

	if _, err := Open([]string{"testdata/none.csv", "testdata/none.meta.json", t.TempDir()}); err == nil || len(err.(scenarios.Faults)) != 3 {
		t.Errorf("Open of two files that are not there and an empty folder: %v, want their faults", err)
	}
}

// Every measurement of the public data opens, and its model and GPU are in the catalogue.
func TestSharedDataResolves(t *testing.T) {
	sources := open(t, shared.Data(t, "measured"))
	runs, rows := 0, 0
	for _, s := range sources {
		if s.Run != nil {
			runs++
			if _, err := s.Run.Scenario(Options{}); err != nil {
				t.Errorf("%s: %v", s.Path, err)
			}
		}
		for _, r := range s.Rows {
			rows++
			if loaded, err := r.Scenario(Options{}); err != nil {
				t.Errorf("%s: %v", r.Place, err)
			} else if loaded.Model.Architecture == nil || loaded.Hardware.Spec == nil {
				t.Errorf("%s: %s on %s are bare figures", r.Place, loaded.Model.Name, loaded.Hardware.Name)
			}
		}
	}
	if runs != 2 || rows != 423 {
		t.Errorf("%d runs and %d rows, want 2 and 423", runs, rows)
	}
}

// Whatever a file says, it is refused or can be predicted.
func FuzzTable(f *testing.F) {
	text, err := os.ReadFile("testdata/table.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		source, faults := readTable("x.csv", text)
		if len(faults) > 0 {
			return
		}
		for _, r := range source.Rows {
			if s, err := r.Scenario(Options{}); err == nil && s.Workload.Arrivals.Concurrency != r.Concurrency {
				t.Errorf("%+v: concurrency %d", r, s.Workload.Arrivals.Concurrency)
			}
		}
	})
}

func FuzzRun(f *testing.F) {
	meta, err := os.ReadFile("testdata/tiny.meta.json")
	if err != nil {
		f.Fatal(err)
	}
	rows, err := os.ReadFile("testdata/tiny.requests.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(meta, rows)
	f.Fuzz(func(t *testing.T, meta, rows []byte) {
		source, faults := readRun("x.meta.json", meta, "x.requests.csv", rows)
		if len(faults) > 0 {
			return
		}
		if len(source.Run.Requests) == 0 || source.Run.Model == "" || source.Run.GPU == "" {
			t.Errorf("%+v", source.Run)
		}
		last := math.Inf(-1)
		for _, q := range source.Run.Requests {
			if q.Arrival < last || q.Input <= 0 || q.Output <= 0 {
				t.Errorf("%+v after %v", q, last)
			}
			last = q.Arrival
		}
		_ = fmt.Sprint(source.Run.Scenario(Options{}))
	})
}
