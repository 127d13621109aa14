package validation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"llmsim/scenarios"
	"llmsim/workload"
)

// openRun reads a meta.json and the requests.csv beside it.
func openRun(file string) (Source, scenarios.Faults) {
	requests := strings.TrimSuffix(file, metaEnding) + requestsEnding
	var faults scenarios.Faults
	read := func(name, other string) []byte {
		text, err := readFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			faults = append(faults, fault(name, "", "no such file beside %s: a run needs both", other))
		case err != nil:
			faults = append(faults, fault(name, "", "%v", reason(err)))
		}
		return text
	}
	meta, rows := read(file, requests), read(requests, file)
	if len(faults) > 0 {
		return Source{}, faults
	}
	source, faults := readRun(file, meta, requests, rows)
	if len(faults) == 0 {
		faults = replayable(requests)
	}
	return source, faults
}

// replayable sees that requests.csv is a workload as it is compared: no row of it may be passed over.
func replayable(requests string) (faults scenarios.Faults) {
	trace, err := workload.OpenTrace(requests, workload.TraceOptions{})
	if err != nil {
		return scenarios.Faults{fault("", "", "%v", err)}
	}
	for _, skip := range trace.Account.Skipped {
		if skip.Reason == workload.Unparsable {
			for _, row := range skip.First {
				faults = append(faults, fault(fmt.Sprintf("%s:%d", requests, row.Line), "", "%s", row.Message))
			}
		}
	}
	return faults
}

func readRun(file string, meta []byte, requests string, rows []byte) (Source, scenarios.Faults) {
	run := &Run{Setup: Setup{Place: file}, File: requests}
	faults := run.readRequests(rows)
	faults = append(run.readMeta(meta), faults...)
	return Source{Path: file, Digest: digest(rows), Run: run}, faults
}

func (r *Run) readRequests(text []byte) scenarios.Faults {
	s := readSheet(r.File, text)
	if s.names == nil || !s.needs("arrival_s", "input_tokens", "output_tokens") {
		return s.all()
	}
	for i := range s.rows {
		q := Request{
			ID: s.cell(i, "i"), Line: s.lines[i],
			Input: s.whole(i, "input_tokens", 0, mostTokens, -1), Output: s.whole(i, "output_tokens", 0, mostTokens, -1),
			Arrival: s.number(i, "arrival_s", math.Inf(-1)), Last: s.number(i, "last_token_s", math.Inf(-1)),
			Measured: Times{s.number(i, "ttft_ms", 0), s.number(i, "tpot_ms", 0), s.number(i, "e2e_ms", 0)},
		}
		if q.ID == "" {
			q.ID = fmt.Sprint(i)
		}
		if math.IsNaN(q.Arrival) {
			if isAbsent(s.cell(i, "arrival_s")) {
				s.add(s.lines[i], "arrival_s", "must be a number, is empty")
			}
			continue
		}
		if q.Input == 0 || q.Output == 0 {
			continue // as the workload's reader has it
		}
		// What is not there follows from the instants, if those are.
		if first := s.number(i, "first_token_s", math.Inf(-1)); math.IsNaN(q.Measured.TTFT) {
			q.Measured.TTFT = 1e3 * (first - q.Arrival)
		}
		if math.IsNaN(q.Measured.E2E) {
			q.Measured.E2E = 1e3 * (q.Last - q.Arrival)
		}
		if q.Output == 1 {
			q.Measured.TPOT = math.NaN()
		} else if math.IsNaN(q.Measured.TPOT) {
			q.Measured.TPOT = (q.Measured.E2E - q.Measured.TTFT) / float64(q.Output-1)
		}
		r.Requests = append(r.Requests, q)
	}
	if left := len(s.rows) - len(r.Requests); left > 0 && len(s.faults) == 0 {
		r.note("%d of %d requests have no prompt or no output and are left out", left, len(s.rows))
	}
	slices.SortStableFunc(r.Requests, func(a, b Request) int {
		switch {
		case a.Arrival < b.Arrival:
			return -1
		case a.Arrival > b.Arrival:
			return 1
		}
		return 0
	})
	if len(r.Requests) == 0 && len(s.faults) == 0 {
		s.add(0, "", "has no request with a prompt and an output")
	}
	return s.all()
}

// A section is an object of a meta.json; a text or null in its place says that nothing was recorded.
type section struct {
	where  string
	path   string
	values map[string]any
	faults *scenarios.Faults
}

func (s section) at(key string) string {
	if s.path == "" {
		return key
	}
	return s.path + "." + key
}

func (s section) section(key string) section {
	values, _ := s.values[key].(map[string]any)
	return section{s.where, s.at(key), values, s.faults}
}

func (s section) add(key, format string, args ...any) {
	*s.faults = append(*s.faults, fault(s.where, s.at(key), format, args...))
}

func (s section) text(key string) string {
	switch v := s.values[key].(type) {
	case nil:
	case string:
		return v
	default:
		s.add(key, "must be a text, is %v", short(fmt.Sprint(v)))
	}
	return ""
}

func (s section) number(key string, least, most float64, whole bool) (float64, bool) {
	v := s.values[key]
	if v == nil {
		return 0, false
	}
	n, ok := v.(json.Number)
	x, err := n.Float64()
	kind := "a number"
	if whole {
		kind = "a whole number"
	}
	if !ok || err != nil || x < least || x > most || whole && x != math.Trunc(x) {
		s.add(key, "must be %s from %v to %v, is %s", kind, least, most, short(fmt.Sprint(v)))
		return 0, false
	}
	return x, true
}

func (s section) flag(key string) (value, ok bool) {
	v := s.values[key]
	if v == nil {
		return false, false
	}
	if value, ok = v.(bool); !ok {
		s.add(key, "must be true or false, is %v", short(fmt.Sprint(v)))
	}
	return value, ok
}

func (r *Run) readMeta(text []byte) (faults scenarios.Faults) {
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&values); err != nil || values == nil {
		where := r.Place
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			where += ":" + place(text, bad.Offset)
		}
		if err == nil || !strings.Contains(err.Error(), "character") && !strings.Contains(err.Error(), "EOF") {
			return scenarios.Faults{fault(where, "", "must be a JSON object")}
		}
		return scenarios.Faults{fault(where, "", "must be a JSON object: %v", err)}
	}
	meta := section{where: r.Place, values: values, faults: &faults}
	kwargs, resolved, cache, hardware := meta.section("engine_kwargs"), meta.section("scheduler_resolved"), meta.section("kv_cache"), meta.section("hardware")
	if r.Model = meta.text("model"); r.Model == "" {
		if r.Model = kwargs.text("model"); r.Model == "" && len(faults) == 0 {
			meta.add("model", "must be a model's name, is missing")
		}
	}
	if r.GPU = hardware.text("gpu"); r.GPU == "" && len(faults) == 0 {
		hardware.add("gpu", "must be a GPU's name, is missing")
	}
	r.Version = meta.text("engine_version")
	if started := meta.text("started_at"); len(started) >= 10 {
		r.Date = started[:10]
	}
	r.Served = !strings.Contains(strings.ToLower(meta.text("client")), "in-process")
	if engine := meta.text("engine"); engine != "" && !strings.EqualFold(engine, "vllm") {
		r.refuse("engine %s is not modelled", short(engine))
	}
	r.readParallel(kwargs)
	r.readScheduler(kwargs, resolved, cache)
	r.readStore(kwargs)
	return faults
}

func (r *Run) readParallel(kwargs section) {
	r.TP = 1
	if tp, ok := kwargs.number("tensor_parallel_size", 1, 1024, true); ok {
		r.TP = int(tp)
	}
	for _, key := range []string{"data_parallel_size", "pipeline_parallel_size"} {
		if n, ok := kwargs.number(key, 1, 1024, true); ok && n != 1 {
			r.refuse("%s %v is not modelled", key, n)
		}
	}
	if on, _ := kwargs.flag("enable_expert_parallel"); on {
		r.note("enable_expert_parallel is not modelled: experts are split as the other weights are")
	}
}

// readScheduler takes what the engine resolved before what it was asked for; what neither says is its
// version's default.
func (r *Run) readScheduler(kwargs, resolved, cache section) {
	number := func(key string, least, most float64, whole bool, from ...section) bool {
		for _, s := range from {
			if x, ok := s.number(key, least, most, whole); ok {
				r.setEngine(key, fmt.Sprintf("%.12g", x))
				return true
			}
		}
		return false
	}
	number("max_num_seqs", 1, 1e6, true, resolved, kwargs)
	number("max_num_batched_tokens", 1, 1e8, true, resolved, kwargs)
	number("long_prefill_token_threshold", 0, mostTokens, true, resolved, kwargs)
	number("block_size", 1, 65536, true, cache, kwargs)
	number("gpu_memory_utilization", 0.01, 1, false, cache, kwargs)
	blocks := number("num_gpu_blocks", 2, 1e9, true, cache)
	if !blocks {
		blocks = number("num_gpu_blocks_override", 2, 1e9, true, kwargs) && r.rename("num_gpu_blocks_override", "num_gpu_blocks")
	}
	// vLLM starts only if max_model_len fits the cache. Where blocks were not counted in the run, ours
	// must not refuse a length that no request has.
	longest := 0
	for _, q := range r.Requests {
		longest = max(longest, q.Input+q.Output)
	}
	if !blocks || !number("max_model_len", 1, mostTokens, true, resolved, kwargs) {
		r.setEngine("max_model_len", fmt.Sprint(max(longest, 1)))
	}
	if !blocks {
		r.note("the run has no count of KV blocks: it is computed from the GPU's memory")
	}
	models, note := r.engineModelled()
	if note != "" {
		r.note("%s", note)
	}
	for _, f := range []struct {
		key  string
		from []section
	}{
		{"enable_prefix_caching", []section{cache, resolved, kwargs}}, {"enable_chunked_prefill", []section{resolved, kwargs}},
		{"async_scheduling", []section{resolved, kwargs}}, {"scheduler_reserve_full_isl", []section{resolved, kwargs}},
	} {
		for _, s := range f.from {
			if on, ok := s.flag(f.key); ok {
				if f.key == "scheduler_reserve_full_isl" && models == "vllm-classic-v1" {
					break // which it does not have
				}
				r.setEngine(f.key, fmt.Sprint(on))
				break
			}
		}
	}
	if policy := resolved.text("policy"); policy != "" && policy != "fcfs" {
		r.refuse("scheduling policy %s: requests have no priorities in these files", short(policy))
	}
}

// rename gives the key that was set last another name.
func (r *Run) rename(from, to string) bool {
	last := &r.engine[len(r.engine)-1]
	*last = to + strings.TrimPrefix(*last, from)
	return true
}

// readStore takes the format of weights from quantization; dtype is that of arithmetic, and says
// nothing about a model that comes in fewer bits.
func (r *Run) readStore(kwargs section) {
	weights, kv := kwargs.text("quantization"), kwargs.text("kv_cache_dtype")
	if isAbsent(kv) {
		kv = "auto"
	}
	if !isAbsent(weights) {
		// modelopt, compressed-tensors and the like say it in the checkpoint, whose name says it too.
		if known := []string{"fp8", "awq", "gptq", "mxfp4", "nvfp4", "modelopt_fp4"}; !slices.Contains(known, strings.ToLower(weights)) {
			r.note("quantization %s: weights are stored as the model's name says", short(weights))
			weights = ""
		}
	}
	if dtype := kwargs.text("dtype"); dtype == "float32" || dtype == "float" {
		r.refuse("dtype %s is not modelled", dtype)
	}
	r.store(weights, kv)
}
