package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// included is a line that is only a link to a file and a colon.
var included = regexp.MustCompile(`^\[([^\]]+)\]\(([^)#]+)\):$`)

// A block after a line that is only a link to a file shows that file.
func TestIncludedFiles(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		blocks, err := fences(lines)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, b := range slices.Backward(blocks) { // from the end, so that updates move no block to come
			if b.start < 2 {
				continue
			}
			m := included.FindStringSubmatch(lines[b.start-2])
			if m == nil {
				continue
			}
			found++
			file, err := os.ReadFile(filepath.Join(filepath.Dir(path), m[2]))
			if err != nil {
				t.Error(err)
				continue
			}
			want := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
			switch {
			case slices.Equal(b.body, want):
			case *update:
				lines = slices.Replace(lines, b.start+1, b.end, want...)
			default:
				t.Errorf("%s:%d differs from %s (if that is right: go test ./internal/docscheck -update)", path, b.start+1, m[2])
			}
		}
		if now := strings.Join(lines, "\n"); now != string(text) {
			if err := os.WriteFile(path, []byte(now), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found == 0 {
		t.Error("no document shows a file")
	}
}
