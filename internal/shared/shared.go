// Package shared finds the public data and the recorded decisions that tests read from beside the repository.
//
// It knows where they lie. It knows nothing of what is in them.
package shared

import (
	"os"
	"path/filepath"
	"testing"
)

// Data returns the path of a file or directory of public data: $LLMSIM_DATA, or
// ../shared/data beside the repository, joined with elem. Where it is absent the test
// is skipped, or fails if LLMSIM_REQUIRE_DATA=1, so that a run meant to check
// everything cannot pass by checking nothing.
func Data(t testing.TB, elem ...string) string {
	t.Helper()
	return find(t, dataDir(t), elem)
}

// Golden returns the path of a recording in golden, the directory beside data; absent, it does as Data does.
func Golden(t testing.TB, elem ...string) string {
	t.Helper()
	return find(t, filepath.Join(filepath.Dir(dataDir(t)), "golden"), elem)
}

func find(t testing.TB, dir string, elem []string) string {
	t.Helper()
	path := filepath.Join(append([]string{dir}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("LLMSIM_REQUIRE_DATA") == "1" {
			t.Fatalf("LLMSIM_REQUIRE_DATA=1, but shared data is absent: %v", err)
		}
		t.Skipf("shared data is absent (set LLMSIM_DATA): %v", err)
	}
	return path
}

func dataDir(t testing.TB) string {
	t.Helper()
	root := moduleRoot(t)
	dir := os.Getenv("LLMSIM_DATA")
	switch {
	case dir == "":
		return filepath.Join(filepath.Dir(root), "shared", "data")
	case filepath.IsAbs(dir):
		return filepath.Clean(dir)
	}
	// A test runs in its package's directory; a relative path is meant from the root.
	return filepath.Join(root, dir)
}

// moduleRoot walks up from the test's directory to the one that holds go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = parent
	}
}
