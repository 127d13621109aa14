package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// The catalogues are there in every format, whole and by name.
func TestCataloguesAreListed(t *testing.T) {
	for _, verb := range []string{"models", "gpus"} {
		for _, format := range formats {
			if a := invoke(t.Context(), verb, "--format", format); a.code != exitYes || strings.Count(a.stdout, "\n") < 15 {
				t.Errorf("%v, want 0 and a line for each", a)
			}
		}
	}
	a := invoke(t.Context(), "models", "deepseek-v3", "--format", "json")
	var m modelFacts
	if err := json.Unmarshal([]byte(a.stdout), &m); err != nil || m.Parameters != 671026419200 || m.KVBytesPerToken != 70272 || m.Architecture.KVLoraRank != 512 {
		t.Errorf("%v\n%v, want DeepSeek-V3's parameters and latent", a, err)
	}
	a = invoke(t.Context(), "gpus", "rtx-4090", "--format", "csv")
	if a.code != exitYes || !strings.Contains(a.stdout, "hbm_bytes,25250627584\n") || !strings.Contains(a.stdout, "sources.hbm,") {
		t.Errorf("%v, want its memory and where that is from", a)
	}
	for _, format := range []string{"table", "md"} {
		if a := invoke(t.Context(), "models", "gpt-oss-20b", "--format", format); a.code != exitYes || !strings.Contains(a.stdout, "architecture.sliding_window") {
			t.Errorf("%v, want every figure of one model", a)
		}
	}
}

func TestCatalogueVerbsRefuse(t *testing.T) {
	inFolder(t, map[string]string{"bad.yaml": "models: {a: {layers: 2}}", "config.json": `{"hiden_size": 4}`})
	for _, c := range []struct {
		want string
		args []string
	}{
		{`"llama-3.1-8" is not in the catalogue, did you mean llama-3.1-8b`, []string{"models", "llama-3.1-8"}},
		{`"a100" is not in the catalogue, did you mean a100-sxm-40gb or a100-pcie-80gb or a100-sxm-80gb?`, []string{"gpus", "a100"}},
		{`"zzz" is not in the catalogue, llmsim gpus lists the 18 there are`, []string{"gpus", "zzz"}},
		{"llmsim models takes one name, not 2", []string{"models", "a", "b"}},
		{"--format: must be one of", []string{"gpus", "--format", "xml"}},
		{"bad.yaml:1: models.a.hidden: is missing", []string{"models", "--catalogue", "bad.yaml"}},
		{"none.yaml: no such file", []string{"gpus", "--catalogue", "none.yaml"}},
		{"--catalogue: needs a file name, is empty", []string{"gpus", "--catalogue", ""}},
		{"./config.json: hidden_size: is missing, there is hiden_size", []string{"models", "./config.json"}},
		{"config.json: hidden_size: is missing, there is hiden_size", []string{"simulate", "--model", "config.json"}},
		{"bad.yaml:1: models.a.heads: is missing", []string{"simulate", "--catalogue", "bad.yaml"}},
		{"--tp 3: tensor_parallel_size must split 32 heads and 8 KV heads evenly, is 3", []string{"simulate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--tp", "3"}},
	} {
		refused(t, c.want, c.args...)
	}
}

// What follows from a model by name follows from its config.json and from a user's entry, too.
func TestModelsByFile(t *testing.T) {
	inFolder(t, map[string]string{
		"config.json": `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000}`,
		"mine.yaml":   "models: {mine: {layers: 32, hidden: 4096, heads: 32, kv_heads: 32, intermediate: 11008, vocab: 32000}}",
	})
	run := func(args ...string) string {
		a := invoke(t.Context(), append([]string{"simulate", "--gpu", "h100-sxm", "--policy", "classic", "--rate", "5", "--requests", "20", "--format", "json"}, args...)...)
		if a.code != exitYes {
			t.Fatal(a)
		}
		return a.stdout
	}
	want := run("--model", "llama-2-7b")
	if got := run("--model", "config.json"); got != want {
		t.Errorf("--model config.json gives\n%s, want\n%s", got, want)
	}
	if got := run("--catalogue", "mine.yaml", "--model", "mine"); got != want {
		t.Errorf("--catalogue mine.yaml --model mine gives\n%s, want\n%s", got, want)
	}
}
