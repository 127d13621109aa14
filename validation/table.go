package validation

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"llmsim/scenarios"
)

// tableColumns are those that make a CSV a table of closed-loop runs.
var tableColumns = []string{"model_path", "system", "isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms"}

// isTable looks at a CSV's head.
func isTable(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := bufio.NewReader(io.LimitReader(f, 1<<16)).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	columns := strings.Split(strings.TrimPrefix(strings.TrimSpace(head), "\ufeff"), ",")
	return !slices.ContainsFunc(tableColumns, func(name string) bool { return !slices.Contains(columns, name) }), nil
}

func openTable(file string) (Source, scenarios.Faults) {
	text, err := readFile(file)
	if err != nil {
		return Source{}, scenarios.Faults{fault(file, "", "%v", reason(err))}
	}
	return readTable(file, text)
}

func readTable(file string, text []byte) (Source, scenarios.Faults) {
	source := Source{Path: file, Digest: digest(text)}
	s := readSheet(file, text)
	// A row says how many clients it had by either column.
	clients := "concurrency"
	if _, ok := s.column[clients]; !ok {
		if _, ok := s.column["batch_size"]; ok {
			clients = "batch_size"
		}
	}
	if s.names == nil || !s.needs(append(slices.Clone(tableColumns), clients)...) {
		return source, s.all()
	}
	for i := range s.rows {
		clients := clients
		if isAbsent(s.cell(i, clients)) && !isAbsent(s.cell(i, "batch_size")) {
			clients = "batch_size"
		}
		r := Row{
			Setup: Setup{
				Place: fmt.Sprintf("%s:%d", file, s.lines[i]), Served: true,
				Model: s.cell(i, "model_path"), GPU: s.cell(i, "system"), TP: s.whole(i, "tp_size", 1, 1024, 1),
				Version: s.cell(i, "backend_version"), Date: s.cell(i, "measured_date"),
			},
			ID:  s.cell(i, "id"),
			ISL: s.whole(i, "isl", 1, mostTokens, 0), OSL: s.whole(i, "osl", 1, mostTokens, 0),
			Concurrency: s.whole(i, clients, 1, 100_000, 0),
			TTFT:        s.number(i, "silicon_ttft_ms", 1e-6), TPOT: s.number(i, "silicon_tpot_ms", 1e-6),
		}
		for _, column := range []string{"model_path", "system"} {
			if s.cell(i, column) == "" {
				s.add(s.lines[i], column, "must be a name, is empty")
			}
		}
		if r.ID == "" {
			r.ID = fmt.Sprintf("line-%d", s.lines[i])
		}
		// The campaign that records neither format nor date asked for exact lengths.
		r.exact = isAbsent(s.cell(i, "precision")) && r.Date == ""
		r.closedLoop()
		if math.IsNaN(r.TTFT) && math.IsNaN(r.TPOT) {
			r.refuse("neither TTFT nor TPOT was measured")
		}
		if mode := s.cell(i, "mode"); mode != "" && mode != "agg" {
			r.refuse("mode %s: only prefill and decode on the same GPUs (agg) are modelled", mode)
		}
		if backend := s.cell(i, "backend"); backend != "" && backend != "vllm" {
			r.refuse("backend %s: only vllm is modelled", backend)
		}
		if n := s.whole(i, "pp_size", 1, 1024, 1); n != 1 {
			r.refuse("pp_size %d is not modelled", n)
		}
		if n := s.whole(i, "attention_dp_size", 1, 1024, 1); n != 1 {
			r.setEngine("data_parallel_size", fmt.Sprint(n))
		}
		if n := s.whole(i, "moe_ep_size", 1, 1024, 1); n != 1 {
			r.setEngine("enable_expert_parallel", "true")
		}
		quantised := s.cell(i, "gemm_quant_mode")
		if isAbsent(quantised) {
			quantised = s.cell(i, "precision")
		}
		// Of a mixture nearly all weights are experts'.
		if experts := s.cell(i, "moe_quant_mode"); sixteenBits(quantised) && !isAbsent(experts) {
			quantised = experts
		}
		r.store(quantised, s.cell(i, "kvcache_quant_mode"))
		source.Rows = append(source.Rows, r)
	}
	markTwins(source.Rows)
	return source, s.all()
}

// markTwins finds the rows that are one measurement with a row of the fitting half, under another id.
func markTwins(rows []Row) {
	type measurement struct {
		model, gpu            string
		tp, isl, osl, clients int
		ttft, tpot            float64
	}
	of := func(r Row) measurement {
		return measurement{r.Model, r.GPU, r.TP, r.ISL, r.OSL, r.Concurrency, r.TTFT, r.TPOT}
	}
	fitted := map[measurement]bool{}
	for _, r := range rows {
		if FittingHalf(r.ID) {
			fitted[of(r)] = true
		}
	}
	for i, r := range rows {
		rows[i].twin = fitted[of(r)] && !FittingHalf(r.ID)
	}
}

// closedLoop is the set-up that all rows share: no prefix cache, max_num_seqs as many as there are
// clients, max_num_batched_tokens 8192, and decisions ahead, which V1 has been able to do for longer
// than it has done so by default.
func (r *Row) closedLoop() {
	r.setEngine("max_num_seqs", fmt.Sprint(max(r.Concurrency, 1)))
	r.setEngine("max_num_batched_tokens", fmt.Sprint(max(8192, r.Concurrency)))
	r.setEngine("max_model_len", fmt.Sprint(max(r.ISL+r.OSL, 2)))
	r.setEngine("enable_prefix_caching", "false")
	r.setEngine("async_scheduling", "true")
}

// store says how weights and KV are stored. Without a format, and with one of 4 bits, a model that comes
// in a format of its own keeps it. With weights of fp8 and no word on KV, the rows in which the cache
// was the limit (a TTFT of many seconds) tell: on Hopper a cache of 16 bits gives what was measured,
// and one of 8 bits would have held every request; on Blackwell it is the other way round.
func (s *Setup) store(weights, kv string) {
	weights, kv = strings.ToLower(weights), strings.ToLower(kv)
	own := s.ownFormat()
	fourBits := own == "mxfp4" || own == "nvfp4" || own == "int4"
	dtype := ""
	switch {
	case isAbsent(weights), weights == "auto":
	case strings.HasPrefix(weights, "fp8"):
		dtype = "fp8"
		if isAbsent(kv) && strings.Contains(strings.ToLower(s.GPU), "b200") {
			kv = "fp8"
		}
	case strings.Contains(weights, "fp4"):
		if !fourBits {
			dtype = "nvfp4"
		}
	case strings.HasPrefix(weights, "int4"), weights == "awq", weights == "gptq":
		if !fourBits {
			dtype = "int4"
		}
	case strings.HasPrefix(weights, "int8"):
		dtype = "int8"
	case sixteenBits(weights):
		dtype = "bf16"
	default:
		s.refuse("weights of format %q are not modelled", short(weights))
	}
	if dtype != "" && dtype != own {
		s.setModel("weight_dtype", dtype)
	}
	switch {
	case isAbsent(kv), kv == "auto", sixteenBits(kv):
	case strings.HasPrefix(kv, "fp8"), kv == "int8":
		s.setEngine("kv_cache_dtype", "fp8")
	default:
		s.refuse("a KV cache of format %q is not modelled", short(kv))
	}
}

func sixteenBits(format string) bool {
	return slices.Contains([]string{"bf16", "bfloat16", "fp16", "float16", "half"}, strings.ToLower(format))
}

// ownFormat is the format in which the catalogue has the model's weights; empty: not known.
func (s *Setup) ownFormat() string {
	c, err := scenarios.OpenCatalogue("")
	if err != nil {
		return ""
	}
	if m, err := c.FindModel(s.Model); err == nil && m.Architecture != nil {
		return m.Architecture.Weights.Dtype
	}
	return ""
}
