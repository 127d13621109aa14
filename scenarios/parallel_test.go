package scenarios

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"llmsim/sim"
)

// parallel loads a model of the catalogue under vllm-v1, spread over tp x pp x dp GPUs.
func parallel(model, gpu string, tp, pp, dp int, edits ...Edit) (*Scenario, error) {
	for path, value := range map[string]any{
		"engine.policy": "vllm-v1", "model.name": model, "hardware.name": gpu, "engine.tensor_parallel_size": tp,
		"engine.pipeline_parallel_size": pp, "engine.data_parallel_size": dp,
	} {
		edits = append(edits, Edit{Path: path, Value: fmt.Sprint(value)})
	}
	return Load("base", edits)
}

// Layers that remain go to the last stage but one first, and the last has none of them.
func TestLayersOfStages(t *testing.T) {
	for _, c := range []struct {
		layers int
		want   []int
	}{
		{80, []int{20, 20, 20, 20}},
		{61, []int{15, 15, 16, 15}},
		{61, []int{7, 7, 8, 8, 8, 8, 8, 7}},
		{63, []int{8, 8, 8, 8, 8, 8, 8, 7}},
		{126, []int{63, 63}},
		{3, []int{2, 1}},
		{22, []int{5, 6, 6, 5}},
		{5, []int{5}},
	} {
		var got []int
		end := 0
		for i, s := range (&Architecture{Layers: c.layers}).stages(len(c.want)) {
			if s.first != end || s.embedding != (i == 0) || s.head != (i == len(c.want)-1) {
				t.Errorf("stage %d of %d layers = %+v, want it to start at %d", i, c.layers, s, end)
			}
			got, end = append(got, s.layers()), s.end
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("stages(%d) of %d layers = %v, want %v", len(c.want), c.layers, got, c.want)
		}
	}
}

// All GPUs together hold the weights, and again what more than one of them needs.
func TestWeightsOfAllGPUs(t *testing.T) {
	known, err := OpenCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range known.Models {
		a := m.Architecture
		if a == nil {
			continue
		}
		whole := a.bytes(a.whole())
		for _, e := range []Engine{
			{TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1},
			{TensorParallelSize: 8, PipelineParallelSize: 1, DataParallelSize: 1},
			{TensorParallelSize: 4, PipelineParallelSize: 3, DataParallelSize: 1},
			{TensorParallelSize: 2, PipelineParallelSize: 2, DataParallelSize: 2},
			{TensorParallelSize: 2, PipelineParallelSize: 2, DataParallelSize: 2, EnableExpertParallel: true},
			{TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 4, EnableExpertParallel: true},
		} {
			dp := float64(e.DataParallelSize)
			want := dp*(whole.common+whole.shared) + whole.experts
			if e.PipelineParallelSize > 1 && a.TiedEmbeddings {
				want += dp * 2 * float64(a.Vocab) * float64(a.Hidden)
			}
			if e.EnableExpertParallel {
				if a.Experts%4 != 0 || a.Experts == 0 {
					continue
				}
				if e.TensorParallelSize > 1 {
					want += dp * whole.shared
				}
			}
			got := 0.0
			for _, stage := range a.stages(e.PipelineParallelSize) {
				got += dp * float64(e.TensorParallelSize) * a.gpuWeights(e, stage)
			}
			if math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s on %d x %d x %d GPUs, whole experts %v: weights of %.0f bytes, want %.0f", m.Name,
					e.TensorParallelSize, e.PipelineParallelSize, e.DataParallelSize, e.EnableExpertParallel, got, want)
			}
		}
	}
}

// Of DeepSeek-V3, each of 16 GPUs holds 16 of 256 experts, an eighth of attention, dense layers,
// embeddings, norms and routers, and the shared experts.
func TestExpertsOfAGPU(t *testing.T) {
	s, err := parallel("deepseek-v3", "h100-sxm", 8, 1, 2, Edit{Path: "engine.enable_expert_parallel", Value: "true"})
	if err != nil {
		t.Fatal(err)
	}
	const (
		expert    = 3 * 7168 * 2048 // bytes at 8 bits
		attention = 7168*576 + 512*128*256 + 128*128*7168 + 7168*1536 + 1536*128*192
		dense     = 3 * 3 * 7168 * 18432
		plain     = 61*2*7168 + 7168 + 61*(512+1536) + 58*7168*256 + 58*256
		want      = 58*16*expert + 58*expert + (61*attention+dense+2*(2*129280*7168+plain))/8
	)
	blocks, m := s.KVBlocks()
	if m.WeightsBytes != want || m.BlockBytes != 16*70272 || blocks == 0 {
		t.Errorf("KVBlocks() = %d, %+v, want weights of %d bytes and blocks of %d", blocks, m, want, 16*70272)
	}
	if gpus, whole := s.Engine.expertGroup(); gpus != 16 || !whole || s.Engine.GPUs() != 16 {
		t.Errorf("expertGroup() = %d, %v, GPUs() = %d, want 16, true, 16", gpus, whole, s.Engine.GPUs())
	}
}

// Weights that eight GPUs can't hold, two stages of eight can; the last stage, which samples, has
// room for the fewest blocks.
func TestPipelineFitsWhatOneStageDoesNot(t *testing.T) {
	if _, err := parallel("llama-3.1-405b", "h100-sxm", 8, 1, 1); err == nil ||
		!strings.Contains(err.Error(), "tensor_parallel_size 16 is the smallest power of two that fits") {
		t.Errorf("405 billion parameters on eight GPUs: %v, want that they do not fit", err)
	}
	s, err := parallel("llama-3.1-405b", "h100-sxm", 8, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	blocks, m := s.KVBlocks()
	first := s.stageMemory(s.Model.Architecture.stages(2)[0])
	if m.Stage != 2 || s.Engine.GPUs() != 16 || blocks > int(first.room()) || m.BlockBytes != 63*2*128*2*16 {
		t.Errorf("KVBlocks() = %d, %+v, room of the first stage %.0f; want stage 2 to bind", blocks, m, first.room())
	}
	if off := m.ReserveBytes + m.WeightsBytes + m.KVBytes + m.FreeBytes - m.HBMBytes; math.Abs(off) > 1 {
		t.Errorf("parts of %+v differ from HBM by %.0f bytes", m, off)
	}
}

// More GPUs never leave room for fewer blocks.
func TestMoreGPUsMoreBlocks(t *testing.T) {
	known, err := OpenCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range known.Models {
		for _, gpu := range []string{"h100-sxm", "b200"} {
			before, last := 0, ""
			for _, sizes := range [][3]int{{1, 1, 1}, {1, 2, 1}, {2, 2, 1}, {2, 4, 1}, {2, 4, 2}, {4, 4, 2}, {4, 8, 2}, {8, 8, 2}} {
				s, err := parallel(m.Name, gpu, sizes[0], sizes[1], sizes[2], Edit{Path: "engine.max_model_len", Value: "1024"})
				if err != nil {
					if strings.Contains(err.Error(), "does not fit") && before > 0 {
						t.Errorf("%s fits %s %s, but not %v", m.Name, last, gpu, sizes)
					}
					continue
				}
				blocks, _ := s.KVBlocks()
				if blocks < before {
					t.Errorf("%s on %v %s has %d blocks, and %d on %s", m.Name, sizes, gpu, blocks, before, last)
				}
				before, last = blocks, fmt.Sprint(sizes)
			}
		}
	}
}

// Ranks of a dense model are replicas but for the name.
func TestRanksAreScheduledAsReplicas(t *testing.T) {
	ends := func(replicas, dp string) (ends []time.Duration) {
		s := on(t, "engine.policy=vllm-v1", "model.name=llama-3.1-8b", "hardware.name=h100-sxm", "workload.requests=200",
			"cluster.replicas="+replicas, "engine.data_parallel_size="+dp)
		source, notes, err := s.Source()
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(strings.Join(notes, "\n"), "data-parallel ranks of 1 GPU"); told != (dp != "1") {
			t.Errorf("notes with data_parallel_size %s = %q", dp, notes)
		}
		run := sim.NewRun(s.Cluster(), source)
		for {
			p, more := run.Advance()
			if !more {
				return ends
			}
			for i := range p.Steps {
				ends = append(ends, p.Steps[i].End)
			}
		}
	}
	if got, want := ends("2", "3"), ends("6", "1"); !slices.Equal(got, want) {
		t.Errorf("2 replicas of 3 ranks take %d steps, 6 replicas %d, or at other times", len(got), len(want))
	}
}

func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"engine: {pipeline_parallel_size: 2}", []string{"pipeline_parallel_size 2 needs a model of known architecture"}},
		{"engine: {enable_expert_parallel: true}", []string{"enable_expert_parallel needs a model of known architecture"}},
		{"model: {name: llama-3.1-8b}\nengine: {pipeline_parallel_size: 33, tensor_parallel_size: 3, enable_expert_parallel: true}", []string{
			"tensor_parallel_size must split 32 heads and 8 KV heads evenly, is 3",
			"pipeline_parallel_size must be at most the model's layers, 32, is 33",
			"enable_expert_parallel needs a model with experts, llama-3.1-8b has none"}},
		{"model: {name: mixtral-8x7b}\nengine: {tensor_parallel_size: 8, data_parallel_size: 2, enable_expert_parallel: true}",
			[]string{"enable_expert_parallel needs an expert for each of 8 x 2 GPUs, there are 8"}},
		{"model: {name: mixtral-8x7b}\nengine: {data_parallel_size: 3}",
			[]string{"1 x 3 GPUs must split experts of 14336 evenly, or enable_expert_parallel give each whole ones"}},
		{"engine: {tensor_parallel_size: 64, data_parallel_size: 32}", []string{"a replica must have at most 1024 GPUs, has 64 x 1 x 32"}},
		{"engine: {data_parallel_size: 2}\ncluster: {replicas: 4096}", []string{"at most 4096 data-parallel ranks in all, have 4096 x 2"}},
		{"engine: {data_parallel_size: 0, pipeline_parallel_size: 1.5}", []string{"must be positive, is 0", "must be a whole number, is 1.5"}},
		{"model: {name: llama-3.1-8b}\nengine: {policy: vllm-v1, models: vllm-classic-v1, async_scheduling: true, pipeline_parallel_size: 2}",
			[]string{"vllm-classic-v1 has async_scheduling only with pipeline_parallel_size 1, is 2"}},
	} {
		all := faults(t, c.text)
		for _, want := range c.want {
			if len(all) != len(c.want) || !slices.ContainsFunc(all, func(f string) bool { return strings.Contains(f, want) }) {
				t.Errorf("faults of %q = %q, want %q", c.text, all, want)
			}
		}
	}
}

func TestPipelineIsNoted(t *testing.T) {
	s, err := parallel("llama-3.1-70b", "h100-sxm", 2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(s.notes(), "\n"); !strings.Contains(notes, "a step passes the 2 stages of the pipeline one after the other") {
		t.Errorf("notes() = %q, want one about the pipeline", notes)
	}
}

// What is not priced is said: the way between ranks, and that between GPUs whose links are not known.
func TestFreeCommunicationIsNoted(t *testing.T) {
	const ranks, tensor = "what they send each other for experts is free", "communication between them is free"
	s, err := parallel("qwen3-30b-a3b", "h100-sxm", 2, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(s.notes(), "\n"); !strings.Contains(notes, ranks) || strings.Contains(notes, tensor) {
		t.Errorf("notes() = %q, want one of ranks and none of tensor parallelism", notes)
	}
	s.Hardware.Spec = &Spec{Peaks: s.Hardware.Spec.Peaks}
	if notes := strings.Join(s.notes(), "\n"); !strings.Contains(notes, tensor) {
		t.Errorf("notes() without links = %q, want one of tensor parallelism", notes)
	}
}

// One of something, written out or not, is the same scenario; two are another.
func TestDigestOfSizes(t *testing.T) {
	digest := func(edits ...string) string {
		d, err := on(t, append(edits, "model.name=llama-3.1-8b", "hardware.name=h100-sxm")...).Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest() != digest("engine.pipeline_parallel_size=1", "engine.data_parallel_size=1", "engine.enable_expert_parallel=false") {
		t.Error("sizes of 1 change the digest")
	}
	if digest() == digest("engine.pipeline_parallel_size=2") || digest() == digest("engine.data_parallel_size=2") {
		t.Error("sizes of 2 do not change the digest")
	}
}

// Under vLLM, a model's own length is the default, but no more than the KV cache holds.
func TestLengthOfTheModel(t *testing.T) {
	for _, c := range []struct {
		edits  []string
		want   int
		listed string // among the defaults
	}{
		{[]string{"engine.policy=vllm-v1", "model.name=llama-3.1-8b", "hardware.name=h100-sxm"}, 131072, "max_model_len 131072"},
		{[]string{"engine.policy=vllm-v1", "model.name=llama-2-7b", "hardware.name=h100-sxm"}, 4096, "max_model_len 4096"},
		{[]string{"engine.policy=vllm-v1", "model.name=llama-3.1-8b", "hardware.name=h100-sxm", "engine.max_model_len=5000"}, 5000, ""},
		{[]string{"engine.policy=vllm-v1", "model.name=llama-3.1-8b", "hardware.name=h100-sxm", "engine.num_gpu_blocks=101"}, 1600,
			"max_model_len 1600 (what the KV cache holds: vLLM needs --max-model-len for it, the model has 131072)"},
		{[]string{"engine.policy=vllm-v1"}, 32768, ""},
		{[]string{"model.name=llama-3.1-8b", "hardware.name=h100-sxm"}, 131072, "max_model_len 131072"},
		{[]string{"model.name=llama-3.1-8b", "hardware.name=h100-sxm", "engine.policy=classic"}, 32768, ""},
		{[]string{"engine.policy=vllm-v1", "model.name=llama-2-7b", "model.kv_bytes_per_token=524288"}, 32768, ""},
	} {
		s := on(t, c.edits...)
		listed := ""
		for _, d := range s.Engine.Defaults {
			if strings.HasPrefix(d, "max_model_len ") {
				listed = d
			}
		}
		if s.Engine.MaxModelLen != c.want || listed != c.listed {
			t.Errorf("%v: max_model_len %d, listed as %q, want %d, %q", c.edits, s.Engine.MaxModelLen, listed, c.want, c.listed)
		}
	}
}

// Without chunked prefill a step computes whole prompts, so that a longer one leaves a smaller
// cache: the length is the longest that its own cache holds.
func TestLengthWithoutChunks(t *testing.T) {
	for _, engine := range []string{"vllm-0.28", "vllm-v0"} {
		s := on(t, "engine.policy=vllm-v1", "engine.models="+engine, "engine.enable_chunked_prefill=false",
			"model.name=llama-3.1-8b", "hardware.name=rtx-4090")
		e := s.Engine
		if room := s.UsableBlocks() * e.BlockSize; e.MaxModelLen > room || e.MaxNumBatchedTokens != e.MaxModelLen {
			t.Errorf("%s: max_model_len %d, %d tokens of a step, room for %d", engine, e.MaxModelLen, e.MaxNumBatchedTokens, room)
		}
		s.Engine.MaxModelLen++
		s.Engine.MaxNumBatchedTokens++
		if room := s.UsableBlocks() * e.BlockSize; s.Engine.MaxModelLen <= room {
			t.Errorf("%s: max_model_len %d would do, too", engine, s.Engine.MaxModelLen)
		}
	}
}

func TestLengthOfAConfig(t *testing.T) {
	with := func(length string) string {
		return strings.Replace(configs["llama-3.1-8b"], "{", `{"max_position_embeddings": `+length+", ", 1)
	}
	for text, want := range map[string]int{configs["llama-3.1-8b"]: 0, with("8192"): 8192, with("null"): 0} {
		if m, err := ReadConfig(writeNamed(t, "config.json", text)); err != nil || m.MaxModelLen != want {
			t.Errorf("ReadConfig(%s) = %+v, %v, want max_model_len %d", text, m, err, want)
		}
	}
	_, err := ReadConfig(writeNamed(t, "config.json", with(`"many"`)))
	if err == nil || !strings.Contains(err.Error(), "max_position_embeddings: must be a whole number") {
		t.Errorf("max_position_embeddings of many: %v, want a fault", err)
	}
}
