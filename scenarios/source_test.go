package scenarios

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmsim/workload"
)

func load(t testing.TB, nameOrFile string, edits ...Edit) *Scenario {
	t.Helper()
	s, err := Load(nameOrFile, edits)
	if err != nil {
		t.Fatalf("Load(%q): %v", nameOrFile, err)
	}
	return s
}

// requests draws at most n requests, answering each at once.
func requests(t testing.TB, s *Scenario, n int) (all []workload.Request, notes []string) {
	t.Helper()
	source, notes, err := s.Source()
	if err != nil {
		t.Fatalf("%s: Source(): %v", s.Name, err)
	}
	for len(all) < n {
		r, ok := source.Next()
		if !ok {
			break
		}
		all = append(all, r)
		if f, ok := source.(workload.Feedback); ok {
			f.Done(r.ID, time.Duration(len(all)))
		}
	}
	return all, notes
}

// The article's number of blocks: 7,609 of 16 tokens, 29 requests of 4,096.
func TestKVBlocksOfTheArticle(t *testing.T) {
	s := load(t, "base")
	blocks, m := s.KVBlocks()
	if blocks != 7609 || m.KVBlocks != 7609 || m.WeightsBytes != 13.48e9 || m.KVBytes != 7609*16*524288 {
		t.Errorf("KVBlocks() = %d, %+v, want 7609 and 13.48e9 bytes of weights", blocks, m)
	}
	if sum := m.WeightsBytes + m.KVBytes + m.FreeBytes + m.ReserveBytes; sum != m.HBMBytes {
		t.Errorf("the parts of KVBlocks() = %+v add up to %v, want %v", m, sum, m.HBMBytes)
	}
	if m.FreeBytes < 0 || m.FreeBytes >= 16*524288 {
		t.Errorf("KVBlocks() leaves %v bytes free, want less than a block", m.FreeBytes)
	}
}

// Invariant: KV tokens grow about linearly with TP (each GPU gives its memory once), not with its
// square.
func TestKVBlocksGrowLinearlyWithTP(t *testing.T) {
	one, _ := load(t, "base").KVBlocks()
	for tp, word := range map[int]string{2: "2", 4: "4", 8: "8"} {
		blocks, _ := load(t, "base", Edit{Path: "engine.tensor_parallel_size", Value: word}).KVBlocks()
		// Weights are held once, so that every further GPU adds all its usable memory.
		if extra := float64(blocks-one) / float64(tp-1); extra < 9215 || extra > 9217 {
			t.Errorf("KVBlocks() at tp %d = %d, %v per further GPU, want 9216", tp, blocks, extra)
		}
	}
}

func TestMoreBlocksThanMemoryIsNoted(t *testing.T) {
	_, notes := requests(t, load(t, "base", Edit{Path: "engine.num_gpu_blocks", Value: "20000"}), 1)
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "engine.num_gpu_blocks: 20000 blocks need 96.80 GiB more") {
		t.Errorf("Source() notes %q, want that 20000 blocks do not fit", notes)
	}
}

func TestEmbeddedScenariosStart(t *testing.T) {
	for _, name := range Names() {
		s := load(t, name)
		if s.Name != name {
			t.Errorf("Load(%q).Name = %q", name, s.Name)
		}
		if q := Question(name); !strings.HasSuffix(q, "?") {
			t.Errorf("Question(%q) = %q, want a question", name, q)
		}
		want := s.Workload.Requests
		if s.Workload.Arrivals.Process == "trace" {
			want = 17
		}
		if all, _ := requests(t, s, want+1); len(all) != want {
			t.Errorf("%s gives %d requests, want %d", name, len(all), want)
		}
	}
}

// fields lists which leaves of two values differ.
func fields(a, b reflect.Value, path string) (differ []string) {
	if a.Kind() == reflect.Struct {
		for i := range a.NumField() {
			if name := a.Type().Field(i).Name; a.Type().Field(i).IsExported() && name != "Name" {
				differ = append(differ, fields(a.Field(i), b.Field(i), path+"."+name)...)
			}
		}
		return differ
	}
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		return []string{path}
	}
	return nil
}

// An experiment changes one field of the base model, and its variants one of the experiment's;
// with more, a difference in results has no single cause. A variant that changes the engine keeps
// the workload. A scenario under vLLM's policy is compared under it, with its defaults.
func TestEveryExperimentChangesOneField(t *testing.T) {
	against := map[string]string{
		"e1": "base", "e2": "base", "e3": "base", "e4": "base", "e5": "base", "e6-64": "base", "e7": "base",
		"e1-single": "e1", "e1-uniform": "e1", "e1-open": "e1", "e2-long": "e2", "e3-budget-2048": "e3",
		"prefix": "base", "sessions": "base",
		"e5-no-watermark": "e5", "e6-16": "e6-64", "e6-32": "e6-64", "e7-bunched": "e7", "base": "base",
	}
	for _, name := range Names() {
		other, ok := against[name]
		if name == "split" { // compares its own thresholds
			continue
		}
		if !ok {
			t.Errorf("%s: no scenario to compare it with is named here", name)
			continue
		}
		var engine, work []string
		a := load(t, name)
		b := load(t, other, Edit{Path: "engine.policy", Value: a.Engine.Policy})
		for _, path := range fields(reflect.ValueOf(*a), reflect.ValueOf(*b), "") {
			if strings.HasPrefix(path, ".Workload") {
				work = append(work, path)
			} else {
				engine = append(engine, path)
			}
		}
		if len(engine) > 1 || len(engine) == 1 && len(work) > 0 && other != "base" {
			t.Errorf("%s differs from %s in %v and %v, want one field of them", name, other, engine, work)
		}
		if len(engine)+len(work) == 0 && name != "base" && name != "e7" { // e7 is base by its own name
			t.Errorf("%s does not differ from %s", name, other)
		}
	}
}

func digest(t testing.TB, s *Scenario) string {
	t.Helper()
	d, err := s.Digest()
	if err != nil {
		t.Fatalf("Digest(): %v", err)
	}
	return d
}

func TestDigestNamesWhatChangesResults(t *testing.T) {
	const text = "name: a\nengine: {max_num_seqs: 8, block_size: 32}\nworkload: {prompt_tokens: 9}\n"
	first := digest(t, load(t, write(t, text)))
	for _, same := range []string{
		"name: b\nworkload:\n  prompt_tokens: 9 # tokens\nengine:\n  block_size: 32\n  max_num_seqs: 8\n",
		text + "model: {parameters_billions: 6.74, bytes_per_parameter: 2, kv_bytes_per_token: 524288}\n",
		text + "seed: 42\ncost: {step_overhead: 0s}\n",
	} {
		if got := digest(t, load(t, write(t, same))); got != first {
			t.Errorf("Digest() of %q = %v, want %v as of %q", same, got, first, text)
		}
	}
	for _, other := range []string{
		text + "seed: 43", text + "cost: {step_overhead: 1ns}", text + "cluster: {replicas: 2}",
		"engine: {max_num_seqs: 8, block_size: 32}", text + "slo: {ttft-p99: 1s}",
	} {
		if got := digest(t, load(t, write(t, other))); got == first {
			t.Errorf("Digest() of %q is that of %q", other, text)
		}
	}
	// A default that is written out is the same figure.
	chosen := load(t, "base", Edit{Path: "engine.policy", Value: "vllm-v1"})
	written := load(t, "base", Edit{Path: "engine.policy", Value: "vllm-v1"},
		Edit{Path: "engine.max_num_seqs", Value: strconv.Itoa(chosen.Engine.MaxNumSeqs)})
	if a, b := digest(t, chosen), digest(t, written); a != b {
		t.Errorf("Digest() = %v with the default max_num_seqs, %v with it written out, want one", a, b)
	}
	// Pinned: results recorded under a digest must be found again.
	const want = "sha256:8f2d5ab4d6ead4c44b0e2528e4028170aeb496985004f315a4d8891d991890d3"
	if got := digest(t, load(t, "base")); got != want {
		t.Errorf("Digest() of base = %v, want %v", got, want)
	}
}

// A trace is named by what it contains, not by where it lies.
func TestDigestCoversFiles(t *testing.T) {
	const text = "workload: {arrivals: {process: trace, file: trace.csv}}"
	file := write(t, text)
	a, b := load(t, file), load(t, write(t, text))
	if digest(t, a) != digest(t, b) {
		t.Error("Digest() differs for one trace in two folders")
	}
	other := filepath.Join(filepath.Dir(file), "trace.csv")
	if err := os.WriteFile(other, []byte("arrival_s,input_tokens,output_tokens\n0,5,6\n1.5,7,9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if digest(t, load(t, file)) == digest(t, b) {
		t.Error("Digest() is the same for traces of other contents")
	}
	const lengths = "workload: {prompt_tokens: {empirical: list.txt}}"
	file = write(t, lengths)
	before := digest(t, load(t, file))
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "list.txt"), []byte("11\n20\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if digest(t, load(t, file)) == before {
		t.Error("Digest() is the same for lists of other contents")
	}
}

func TestTraceIsReplayed(t *testing.T) {
	s := load(t, write(t, "workload: {arrivals: {process: trace, file: trace.csv, speedup: 3}, requests: 2}"))
	for range 2 {
		all, _ := requests(t, s, 9)
		if len(all) != 2 || all[1].Arrival != 500*time.Millisecond || all[1].Prompt != 7 || all[1].Output != 8 {
			t.Errorf("Source() of a trace gives %+v", all)
		}
	}
	s = load(t, write(t, "workload: {arrivals: {process: trace, file: lengths.csv}}"))
	_, _, err := s.Source()
	if err == nil || !strings.Contains(err.Error(), "{empirical: lengths.csv}") {
		t.Errorf("Source() of a trace without arrivals: %v, want advice to use {empirical: lengths.csv}", err)
	}
}

// Prompt and output of one row belong together; of two files they do not.
func TestEmpiricalLengths(t *testing.T) {
	s := load(t, write(t, "workload: {prompt_tokens: {empirical: lengths.csv}, output_tokens: {empirical: lengths.csv}}"))
	all, _ := requests(t, s, 100)
	for _, r := range all {
		if r.Output != 10*r.Prompt {
			t.Fatalf("Source() gives %+v, want a row of the file", r)
		}
	}
	s = load(t, write(t, "workload: {prompt_tokens: {empirical: list.txt}, output_tokens: {empirical: lengths.csv}}"))
	all, _ = requests(t, s, 100)
	seen := map[[2]int]bool{}
	for _, r := range all {
		seen[[2]int{r.Prompt, r.Output}] = true
	}
	if len(seen) != 4 || !seen[[2]int{10, 70}] || !seen[[2]int{20, 50}] {
		t.Errorf("Source() gives lengths %v, want 10 and 20 with 50 and 70", seen)
	}
}

func TestDistributionFunctionFiles(t *testing.T) {
	s := load(t, "base", Edit{Path: "workload.prompt_tokens", Value: "{empirical: testdata/cdf.json}"})
	all, _ := requests(t, s, 4000)
	var low int
	for _, r := range all {
		if r.Prompt < 1 || r.Prompt > 200 {
			t.Fatalf("Source() gives a prompt of %d tokens, want 1 to 200", r.Prompt)
		}
		if r.Prompt <= 100 {
			low++
		}
	}
	if low < 900 || low > 1100 {
		t.Errorf("Source() gives %d of 4000 prompts up to 100 tokens, want about 1000", low)
	}
	folder := os.Getenv("LLMSIM_DATA")
	if folder == "" {
		folder = "../../shared/data"
	}
	files, _ := filepath.Glob(filepath.Join(folder, "traces/fleetsim_cdf/*.json"))
	if len(files) == 0 {
		if os.Getenv("LLMSIM_REQUIRE_DATA") != "" {
			t.Fatalf("no distribution functions in %s", folder)
		}
		t.Skipf("no distribution functions in %s", folder)
	}
	for _, file := range files {
		if all, _ := requests(t, load(t, "base", Edit{Path: "workload.prompt_tokens", Value: "{empirical: " + file + "}"}), 100); len(all) != 100 {
			t.Errorf("%s gives %d requests, want 100", file, len(all))
		}
	}
}

func TestFaultyLengthFiles(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1\n0\n", `line 2: must be a whole number from 1 to 10000000, is "0"`},
		{"1\nx\n", `line 2: must be a whole number from 1 to 10000000, is "x"`},
		{"[[1, 0.5, 3]]", "point 0: must be [tokens, cumulative], has 3 numbers"},
		{"[[5, 0.5], [5, 1]]", "point 1: tokens must be whole, above 5 and at most 10000000, are 5"},
		{"[[5, 0.5], [6, 0.4]]", "point 1: cumulative must be from 0.5 to 1, is 0.4"},
		{"[[5, 0.5]]", "the last cumulative must be 1, is 0.5"},
		{`{"cdf": []}`, "the last cumulative must be 1, is 0"},
		{"[[1, 2", "must be a JSON list of [tokens, cumulative]: unexpected end of JSON input"},
	} {
		file := filepath.Join(t.TempDir(), "lengths")
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		s := load(t, "base", Edit{Path: "workload.prompt_tokens", Value: "{empirical: " + file + "}"})
		if _, _, err := s.Source(); err == nil || err.Error() != file+": "+c.want {
			t.Errorf("Source() with lengths %q: %v, want %v", c.text, err, c.want)
		}
	}
}

// Comparing two designs under one seed compares them under one workload.
func TestOtherLengthsKeepArrivals(t *testing.T) {
	a, _ := requests(t, load(t, "base"), 500)
	b, _ := requests(t, load(t, "base", Edit{Path: "workload.prompt_tokens", Value: "{lognormal: [800, 1]}"}), 500)
	for i := range a {
		if a[i].Arrival != b[i].Arrival || a[i].Output != b[i].Output {
			t.Fatalf("request %d: %+v and %+v, want other prompts only", i, a[i], b[i])
		}
	}
}

func TestBunchedArrivalsLieOnTheGrid(t *testing.T) {
	all, _ := requests(t, load(t, "e7-bunched"), 500)
	for _, r := range all {
		if r.Arrival%(25*time.Millisecond) != 0 {
			t.Fatalf("request %d arrives at %v, want a multiple of 25ms", r.ID, r.Arrival)
		}
	}
}
