package scenarios

import (
	"strings"
	"testing"
)

// Names of Hugging Face, of drivers and of measurements find the entry they mean, and say how the
// weights are stored where they say it.
func TestNamesOfModels(t *testing.T) {
	for name, want := range map[string]string{
		"llama-3.1-8b":                                       "llama-3.1-8b bf16",
		"meta-llama/Llama-3.1-8B":                            "llama-3.1-8b bf16",
		"meta-llama/Meta-Llama-3.1-8B-Instruct":              "llama-3.1-8b bf16",
		"META-LLAMA/llama-3.1-8b-instruct":                   "llama-3.1-8b bf16",
		"RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic":   "llama-3.1-70b fp8",
		"nvidia/Llama-3.1-405B-Instruct-NVFP4":               "llama-3.1-405b nvfp4",
		"meta-llama/Llama-2-7b-chat-hf":                      "llama-2-7b bf16",
		"Qwen/Qwen3-32B":                                     "qwen3-32b bf16",
		"Qwen/Qwen3-32B-FP8":                                 "qwen3-32b fp8",
		"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4":                 "qwen2.5-7b int4",
		"Qwen/Qwen3-30B-A3B-Instruct-2507":                   "qwen3-30b-a3b bf16",
		"openai/gpt-oss-120b":                                "gpt-oss-120b mxfp4",
		"MiniMaxAI/MiniMax-M2.5":                             "minimax-m2.5 fp8",
		"mistralai/Mistral-7B-Instruct-v0.3":                 "mistral-7b bf16",
		"mistralai/Mixtral-8x7B-Instruct-v0.1":               "mixtral-8x7b bf16",
		"deepseek-ai/DeepSeek-R1-0528":                       "deepseek-v3 fp8",
		"google/gemma-3-27b-it":                              "gemma-3-27b bf16",
		"hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4": "llama-3.1-8b int4",
	} {
		m, err := catalogue(t).FindModel(name)
		if err != nil {
			t.Errorf("FindModel(%q): %v", name, err)
		} else if got := m.Name + " " + m.Architecture.Weights.Dtype; got != want || m.Model.Name != m.Name {
			t.Errorf("FindModel(%q) = %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{
		"", "/", "mistralai/Mistral-7B-v0.1", "someone/Llama-3.1-8B", "meta-llama/Llama-3.1", "Qwen/Qwen2.5-7B-Instruct-1M",
		"instruct", "fp8", "meta", "meta-llama/Llama-3.1-8B/resolve",
	} {
		if m, err := catalogue(t).FindModel(name); err == nil {
			t.Errorf("FindModel(%q) = %s, want an error", name, m.Name)
		}
	}
}

func TestNamesOfGPUs(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA GeForce RTX 4090": "rtx-4090", "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000",
		"NVIDIA H100 80GB HBM3": "h100-sxm", "h100_sxm": "h100-sxm", "NVIDIA H100 PCIe": "h100-pcie", "H200_SXM": "h200-sxm",
		"NVIDIA H200": "h200-sxm", "b200_sxm": "b200", "NVIDIA B200": "b200", "a100_sxm": "a100-sxm-80gb",
		"NVIDIA A100-SXM4-40GB": "a100-sxm-40gb", "NVIDIA A100 80GB PCIe": "a100-pcie-80gb", "NVIDIA L40S": "l40s", "Tesla T4": "t4",
		"NVIDIA GB200": "gb200", "AMD Instinct MI300X": "mi300x", "NVIDIA RTX A6000": "a6000", "h100-80gb": "h100-80gb",
	} {
		if g, err := catalogue(t).FindGPU(name); err != nil || g.Name != want {
			t.Errorf("FindGPU(%q) = %q, %v, want %s", name, g.Name, err, want)
		}
	}
	for name, near := range map[string]string{
		"NVIDIA H100": "h100-80gb or h100-pcie or h100-sxm", "NVIDIA A100": "a100-sxm-40gb",
		"NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "llmsim gpus lists", "": "", "NVIDIA": "", "NVIDIA H200 NVL": "h200",
	} {
		if g, err := catalogue(t).FindGPU(name); err == nil || !strings.Contains(err.Error(), near) {
			t.Errorf("FindGPU(%q) = %q, %v, want an error with %q", name, g.Name, err, near)
		}
	}
}

// No name stands for two entries.
func TestNamesAreUnique(t *testing.T) {
	c := catalogue(t)
	for _, m := range c.Models {
		for _, name := range m.names() {
			if found, err := c.FindModel(name); err != nil || found.Name != m.Name {
				t.Errorf("FindModel(%q) = %q, %v, want %s", name, found.Name, err, m.Name)
			}
		}
	}
	for _, g := range c.GPUs {
		for _, name := range append([]string{g.Name}, g.Aliases...) {
			if found, err := c.FindGPU(name); err != nil || found.Name != g.Name {
				t.Errorf("FindGPU(%q) = %q, %v, want %s", name, found.Name, err, g.Name)
			}
		}
	}
}

// A scenario keeps the catalogue's names, so that two ways to call its model and GPU are one scenario.
func TestScenarioKeepsCatalogueNames(t *testing.T) {
	a := on(t, "model.name=meta-llama/Llama-3.1-8B-Instruct", "hardware.name=NVIDIA H100 80GB HBM3")
	b := on(t, "model.name=llama-3.1-8b", "hardware.name=h100-sxm")
	one, err1 := a.Digest()
	two, err2 := b.Digest()
	if a.Model.Name != b.Model.Name || a.Hardware.Name != b.Hardware.Name || one != two || err1 != nil || err2 != nil {
		t.Errorf("%s on %s (%s, %v), want %s on %s (%s, %v)", a.Model.Name, a.Hardware.Name, one, err1, b.Model.Name, b.Hardware.Name, two, err2)
	}
	if s := on(t, "model.name=Qwen/Qwen3-32B-FP8", "hardware.name=b200_sxm"); s.Model.Architecture.Weights.Dtype != "fp8" || s.Hardware.PeakFLOPS != 4500e12 {
		t.Errorf("-FP8 stores %s at %g FLOP/s, want fp8 at 4.5e15", s.Model.Architecture.Weights.Dtype, s.Hardware.PeakFLOPS)
	}
}
