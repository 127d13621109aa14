package calibration

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmsim/scenarios"
	"llmsim/sim/cost"
)

// Kinds of files that time single operators.
const (
	gemmFile       = "gemm"
	contextFile    = "context attention"
	generationFile = "generation attention"
	allReduceFile  = "all-reduce"
	denseFile      = "dense layers"
	mixedFile      = "mixed attention"
	perSequence    = "per sequence"
)

// kinds are told by their columns. Layer profiles have no shapes in them: these are of the model that
// their name has, as in rtx4090-llama-3.1-8b-tp1.dense.csv.
var kinds = []struct {
	name    string
	columns []string
	ofModel bool
}{
	{gemmFile, []string{"dtype", "n", "k", "m", "latency_ms"}, false},
	{contextFile, []string{"kv_dtype", "q_heads", "kv_heads", "head_dim", "batch", "isl", "prefix", "latency_ms"}, false},
	{generationFile, []string{"kv_dtype", "q_heads", "kv_heads", "head_dim", "batch", "kv_len", "latency_ms"}, false},
	{allReduceFile, []string{"system", "num_gpus", "message_size_elems", "backend", "latency_ms"}, false},
	{denseFile, []string{"layer", "tokens", "time_us"}, true},
	{mixedFile, []string{"prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"}, true},
	{perSequence, []string{"layer", "sequences", "time_us"}, true},
}

// Bounds on a file of timings.
const (
	mostBytes  = 64 << 20
	mostRows   = 200_000
	mostFaults = 20
	mostSize   = 1 << 30 // of any dimension
)

// A Timings is a file of operators that were timed on their own.
type Timings struct {
	Path   string
	Digest string // SHA-256, lower-case hexadecimal
	Kind   string
	rows   []row
}

// hasDtype says whether the file's rows are of several formats.
func (t *Timings) hasDtype() bool {
	return t.Kind == gemmFile || t.Kind == contextFile || t.Kind == generationFile
}

// A row is one timing. What it times is in the fields of its kind.
type row struct {
	line       int
	held       bool // of the half that is held out
	small      bool // 8 bits
	name       string
	a, b, c, d int64 // n, k, m | batch, isl, prefix | batch, kv_len | gpus, elements | tokens | chunk, past, decodes, context
	heads      [3]int64
	seconds    float64
}

// ReadTimings tells from a file's head whether it times operators, and reads it; ok is false where it
// does not. The error is scenarios.Faults.
func ReadTimings(path string) (t Timings, ok bool, err error) {
	fault := func(err error) error {
		if failed, is := errors.AsType[*fs.PathError](err); is {
			err = failed.Err
		}
		return scenarios.Faults{{Where: path, Message: err.Error()}}
	}
	f, err := os.Open(path)
	if err != nil {
		return t, false, fault(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	switch {
	case err != nil:
		return t, false, fault(err)
	case kindOf(text) == "":
		return t, false, nil
	case len(text) > mostBytes:
		return t, false, fault(fmt.Errorf("must have at most %d MiB, has more", mostBytes>>20))
	}
	t, faults := readTimings(path, text)
	if len(faults) > 0 {
		return t, true, faults
	}
	return t, true, nil
}

// kindOf is the kind of which a CSV has all columns; empty: none.
func kindOf(text []byte) string {
	head, _, _ := bytes.Cut(text[:min(len(text), 1<<16)], []byte("\n"))
	names := strings.Split(strings.TrimPrefix(strings.TrimSpace(string(head)), "\ufeff"), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(k.columns, func(c string) bool { return !slices.Contains(names, c) }) {
			return k.name
		}
	}
	return ""
}

// A sheet reads cells by the names of their columns and gathers what is wrong with them.
type sheet struct {
	file   string
	column map[string]int
	cells  []string
	line   int
	faults scenarios.Faults
	bad    bool // this row
}

func (s *sheet) add(column, format string, args ...any) {
	s.bad = true
	if len(s.faults) < mostFaults {
		s.faults = append(s.faults, scenarios.Fault{Where: fmt.Sprintf("%s:%d", s.file, s.line), Path: column, Message: fmt.Sprintf(format, args...)})
	}
}

func (s *sheet) text(column string) string { return strings.TrimSpace(s.cells[s.column[column]]) }

func (s *sheet) whole(column string, least int64) int64 {
	text := s.text(column)
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil || x < least || x > mostSize {
		s.add(column, "must be a whole number from %d to %d, is %q", least, mostSize, short(text))
		return least
	}
	return x
}

// seconds reads a time given in a unit of so many seconds.
func (s *sheet) seconds(column string, unit float64) float64 {
	text := s.text(column)
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) || x > 1e9 {
		s.add(column, "must be a time above 0 and at most 1e+09, is %q", short(text))
		return 1
	}
	return x * unit
}

func (s *sheet) small(column string) bool {
	switch text := strings.ToLower(s.text(column)); text {
	case "bfloat16", "float16", "bf16", "fp16":
		return false
	case "fp8", "fp8_block", "fp8_e4m3":
		return true
	default:
		s.add(column, "must be bfloat16 or fp8, is %q", short(text))
	}
	return false
}

func short(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}

func readTimings(path string, text []byte) (Timings, scenarios.Faults) {
	sum := sha256.Sum256(text)
	t := Timings{Path: path, Digest: hex.EncodeToString(sum[:]), Kind: kindOf(text)}
	s := &sheet{file: path, column: map[string]int{}, line: 1}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.TrimLeadingSpace, r.ReuseRecord = true, true
	for n := 0; ; n++ {
		cells, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			if bad, is := errors.AsType[*csv.ParseError](err); is {
				s.line, err = bad.Line, bad.Err
			}
			s.add("", "%v", err)
			break
		}
		s.line, _ = r.FieldPos(0)
		if n == 0 {
			for i, name := range cells {
				if _, twice := s.column[strings.TrimSpace(name)]; twice {
					s.add(strings.TrimSpace(name), "is a column twice")
				}
				s.column[strings.TrimSpace(name)] = i
			}
			continue
		}
		if n > mostRows {
			s.add("", "must have at most %d rows, has more", mostRows)
			break
		}
		s.cells, s.bad = cells, false
		one := t.read(s)
		if !s.bad && t.overflows(one) {
			s.add("", "times an operator beyond all bounds")
		}
		if !s.bad && one.seconds > 0 {
			one.line = s.line
			// As of a table's rows, whose ids decide.
			sum := sha256.Sum256([]byte(strings.Join(cells, ",")))
			one.held = sum[0]%2 == 1
			t.rows = append(t.rows, one)
		}
	}
	if len(t.rows) == 0 && len(s.faults) == 0 {
		s.faults = append(s.faults, scenarios.Fault{Where: path, Message: "has no timing in it that could be used"})
	}
	return t, s.faults
}

// read reads a row; one without a time is none that is used.
func (t *Timings) read(s *sheet) (r row) {
	heads := func() (h [3]int64) {
		h = [3]int64{s.whole("q_heads", 1), s.whole("kv_heads", 1), s.whole("head_dim", 1)}
		return h
	}
	switch t.Kind {
	case gemmFile:
		return row{small: s.small("dtype"), a: s.whole("n", 1), b: s.whole("k", 1), c: s.whole("m", 1), seconds: s.seconds("latency_ms", 1e-3)}
	case contextFile:
		return row{small: s.small("kv_dtype"), heads: heads(), a: s.whole("batch", 1), b: s.whole("isl", 1), c: s.whole("prefix", 0), seconds: s.seconds("latency_ms", 1e-3)}
	case generationFile:
		return row{small: s.small("kv_dtype"), heads: heads(), a: s.whole("batch", 1), b: s.whole("kv_len", 1), seconds: s.seconds("latency_ms", 1e-3)}
	case allReduceFile:
		r = row{name: s.text("system"), a: s.whole("num_gpus", 2), b: s.whole("message_size_elems", 1), seconds: s.seconds("latency_ms", 1e-3)}
		if s.text("backend") != "vllm_graph" {
			r.seconds = 0 // decodes run in CUDA graphs; outside of these the launch is what is timed
		}
		return r
	case mixedFile:
		return row{a: s.whole("prefill_chunk", 0), b: s.whole("kv_prefill", 0), c: s.whole("n_decode", 0), d: s.whole("kv_decode", 0), seconds: s.seconds("time_us", 1e-6)}
	case denseFile:
		r = row{name: s.text("layer"), a: s.whole("tokens", 1), seconds: s.seconds("time_us", 1e-6)}
	case perSequence:
		r = row{name: s.text("layer"), a: s.whole("sequences", 1), seconds: s.seconds("time_us", 1e-6)}
	}
	if !slices.Contains([]string{"qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"}, r.name) {
		r.seconds = 0 // of the small kernels of a layer only the sum is a parameter
	}
	return r
}

// l2Bytes are sizes of the last cache of GPUs with GDDR, by the names of the catalogue, where it is several
// times as fast as the memory: a benchmark that reads the same KV again and again times the cache. Sources:
// NVIDIA's Ada and RTX Blackwell architecture white papers, L4 and L40S data sheets.
var l2Bytes = map[string]float64{
	"l4": 48 << 20, "l40s": 96 << 20, "rtx-4090": 72 << 20, "rtx-5090": 96 << 20, "rtx-pro-6000": 128 << 20,
}

// cached is the part of a cache that what is read must exceed to be taken for read from memory.
const cached = 0.8

var profileName = regexp.MustCompile(`^(.+)-tp([0-9]{1,4})\.`)

// gpuOf finds the GPU that a file's name begins with, and what follows it.
func gpuOf(path string, c scenarios.Catalogue) (gpu, rest string, ok bool) {
	parts := strings.Split(filepath.Base(path), "-")
	for n := len(parts) - 1; n > 0; n-- {
		name := strings.Join(parts[:n], "-")
		rest := strings.Join(parts[n:], "-")
		if found, err := c.FindGPU(name); err == nil {
			return found.Name, rest, true
		}
		for _, g := range c.GPUs { // rtx4090 is rtx-4090
			if slices.ContainsFunc(append([]string{g.Name}, g.Aliases...), func(known string) bool { return letters(known) == letters(name) }) {
				return g.Name, rest, true
			}
		}
	}
	return "", "", false
}

// letters are a name's letters and digits.
func letters(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(name))
}

// A priced is a timing with the operator that it times.
type priced struct {
	operator cost.Operators
	shape    cost.Shape
}

// seconds are what the operator takes with some constants, by the formulas of a step, of which it is the
// only part.
func (p *priced) seconds(c cost.Constants) float64 {
	o := p.operator
	o.Constants = c
	b := o.Model().Explain(p.shape)
	return b.Total() - b.Time[cost.StepOverhead] - b.Time[cost.SequenceOverhead] - b.Time[cost.LayerOverhead]
}

// price makes an operator of a row; ok is false for one that must not be fitted to.
func (t *Timings) price(r row, h scenarios.Hardware, a *scenarios.Architecture, tp int) (p priced, figure string, block [4]int64, ok bool) {
	bits := " bf16"
	if r.small {
		bits = " fp8"
	}
	peaks := h.Spec.Peaks
	plain := max(peaks["bf16"], peaks["fp16"])
	o := &p.operator
	*o = cost.Operators{PlainFLOPS: plain, PeakFLOPS: plain, Bandwidth: h.Bandwidth, TP: 1, Stages: 1}
	matrix := func(n, k, m int64, element float64, small bool) {
		o.Linears = []cost.Linear{{K: int(k), N: int(n), Count: 1, Element: element, Small: small}}
		p.shape = cost.Shape{Tokens: int(m)}
		block = [4]int64{n, k}
	}
	attention := func(q, kv, dim int64) *cost.Attention {
		element := 2.0
		if r.small {
			element = 1
		}
		o.Attention = []cost.Attention{{
			Layers: 1, Heads: int(q), ReadBytes: 2 * element * float64(kv*dim), DecodeDims: int(2 * dim), Dims: int(2 * dim),
			RowBytes: 2 * float64(2*q*dim+2*kv*dim), Small: r.small,
		}}
		block = [4]int64{q, kv, dim}
		return &o.Attention[0]
	}
	share := func(n int) int64 { return int64((n + tp - 1) / tp) }
	switch t.Kind {
	case gemmFile:
		small, element := false, 2.0
		if r.small {
			if small = peaks["fp8"] > 0; !small {
				return p, "", block, false // 8 bits are turned into 16 in some way that no parameter is of
			}
			o.PeakFLOPS, element = peaks["fp8"], 1
		}
		matrix(r.a, r.b, r.c, element, small)
		return p, "gemm" + bits, block, true
	case contextFile:
		attention(r.heads[0], r.heads[1], r.heads[2])
		batch, fresh, past := r.a, r.b, r.c
		p.shape = cost.Shape{
			Sequences: int(batch), Tokens: int(batch * fresh), Context: batch * (fresh + past), PrefillPairs: batch * (fresh*past + fresh*(fresh+1)/2),
		}
		return p, "context attention" + bits, block, true
	case generationFile:
		one := attention(r.heads[0], r.heads[1], r.heads[2])
		p.shape = cost.Shape{Sequences: int(r.a), Tokens: int(r.a), Decodes: int(r.a), Context: r.a * r.b, DecodeContext: r.a * r.b}
		fits := float64(r.a*r.b)*one.ReadBytes <= cached*l2Bytes[h.Name]
		return p, "generation attention" + bits, block, !fits
	case allReduceFile:
		*o = cost.Operators{PlainFLOPS: plain, PeakFLOPS: plain, Bandwidth: h.Bandwidth, TP: int(r.a), Stages: 1, Hidden: int(r.b), LinkBandwidth: h.Spec.NVLink}
		if o.LinkBandwidth == 0 {
			o.LinkBandwidth, o.PCIe = h.Spec.PCIe, true
		}
		p.shape = cost.Shape{Tokens: 1}
		return p, "all-reduce", [4]int64{r.a, r.b}, o.LinkBandwidth > 0
	case mixedFile:
		one := attention(share(a.Heads), max(int64(a.KVHeads/tp), 1), int64(a.HeadDim))
		p.shape = cost.Shape{
			Sequences: int(r.c), Tokens: int(r.a + r.c), Decodes: int(r.c), DecodeContext: r.c * r.d,
			Context: r.c*r.d + r.a + r.b, PrefillPairs: r.a*r.b + r.a*(r.a+1)/2,
		}
		name := "mixed attention"
		switch {
		case r.a > 0 && r.c == 0:
			name = "prefill attention"
		case r.a == 0:
			p.shape.Context, name = r.c*r.d, "decode attention"
		}
		if r.a > 0 {
			p.shape.Sequences++
		}
		return p, name, [4]int64{r.a, r.b}, r.a > 0 && r.c == 0 || r.c > 0 && float64(p.shape.Context)*one.ReadBytes > cached*l2Bytes[h.Name]
	case denseFile, perSequence:
		q, kv := share(a.Heads)*int64(a.HeadDim), max(int64(a.KVHeads/tp), 1)*int64(a.HeadDim)
		hidden := int64(a.Hidden)
		n, k := map[string]int64{"qkv_proj": q + 2*kv, "o_proj": hidden, "gate_up_proj": 2 * share(a.Intermediate), "down_proj": hidden, "lm_head": share(a.Vocab)}[r.name],
			map[string]int64{"qkv_proj": hidden, "o_proj": q, "gate_up_proj": hidden, "down_proj": share(a.Intermediate), "lm_head": hidden}[r.name]
		matrix(n, k, r.a, 2, false)
		return p, "gemm bf16", block, n > 0 && k > 0
	}
	return p, "", block, false
}

// mostWork bounds what a row multiplies: beyond it whole numbers would not be exact.
const mostWork = 1 << 52

// overflows says whether what a row's attention multiplies leaves that range.
func (t *Timings) overflows(r row) bool {
	a, b, c, d := float64(r.a), float64(r.b), float64(r.c), float64(r.d)
	work := 0.0
	switch t.Kind {
	case contextFile:
		work = a * (b + 1) * (b + c)
	case generationFile:
		work = a * b
	case mixedFile:
		work = c*d + (a+1)*(a+b)
	}
	return work > mostWork || float64(r.heads[0])*float64(r.heads[2]) > mostWork || float64(r.heads[1])*float64(r.heads[2]) > mostWork
}
