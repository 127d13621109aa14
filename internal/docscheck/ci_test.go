package docscheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// The pipelines of docs/ci.md are YAML, have the keys that their services look for, and call check.
func TestPipelines(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := fences(strings.Split(string(text), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, b := range blocks {
		if b.language != "yaml" {
			continue
		}
		body := strings.Join(b.body, "\n")
		var github struct {
			On   []string
			Jobs map[string]struct {
				RunsOn string `yaml:"runs-on"`
				Steps  []struct{ Uses, Run string }
			}
		}
		var gitlab struct {
			Figures struct {
				Image     string
				Script    []string
				Artifacts struct{ Reports struct{ JUnit string } }
			}
		}
		var any map[string]any
		if err := yaml.Unmarshal([]byte(body), &any); err != nil {
			t.Errorf("docs/ci.md:%d: %v", b.start+1, err)
		}
		if err := yaml.Unmarshal([]byte(body), &github); err == nil && len(github.Jobs) > 0 {
			steps := github.Jobs["check"].Steps
			found["github"] = len(github.On) > 0 && github.Jobs["check"].RunsOn != "" && len(steps) > 3 && strings.Contains(body, " check expect/*.yaml --format github")
			for _, s := range steps {
				if (s.Uses == "") == (s.Run == "") {
					t.Errorf("docs/ci.md:%d: step %+v, want one of uses and run", b.start+1, s)
				}
			}
		}
		if err := yaml.Unmarshal([]byte(body), &gitlab); err == nil && len(gitlab.Figures.Script) > 0 {
			script := strings.Join(gitlab.Figures.Script, "\n")
			found["gitlab"] = gitlab.Figures.Image != "" && strings.Contains(script, " check expect/*.yaml --format junit > "+gitlab.Figures.Artifacts.Reports.JUnit)
		}
	}
	if !found["github"] || !found["gitlab"] {
		t.Errorf("pipelines found whole: %v, want github and gitlab", found)
	}
}
