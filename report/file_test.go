package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAtomicFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.csv")
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return string(b)
	}
	write := func(text string, end func(*AtomicFile)) {
		t.Helper()
		f, err := CreateAtomic(path)
		if err != nil {
			t.Fatal(err)
		}
		before := read()
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != before {
			t.Errorf("before its end the file reads %q, want %q", got, before)
		}
		end(f)
	}
	commit := func(f *AtomicFile) {
		if err := f.Commit(); err != nil {
			t.Error(err)
		}
		f.Abort()
	}

	write("lost", (*AtomicFile).Abort)
	if _, err := os.Stat(path); err == nil {
		t.Error("after Abort there is a file")
	}
	write("one", commit)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	write("lost", (*AtomicFile).Abort)
	if got := read(); got != "one" {
		t.Errorf("after Abort the file reads %q, want one", got)
	}
	write("two", commit)
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 || read() != "two" {
		t.Errorf("after Commit the file is %v and reads %q, want 0640 and two", info.Mode(), read())
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	target := path
	path = link
	write("three", commit)
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("a link was replaced by a file")
	}
	path = target
	if got := read(); got != "three" {
		t.Errorf("behind the link the file reads %q, want three", got)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 {
		t.Errorf("%d files are left, want 2: %v", len(entries), entries)
	}
}

// A path that cannot be written is an error before anything was computed.
func TestAtomicFileFailsEarly(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "no", "such", "place"), ""} {
		if f, err := CreateAtomic(path); err == nil {
			f.Abort()
			t.Errorf("CreateAtomic(%q) is no error, want one", path)
		}
	}
}

func TestAtomicFileWritesDevicesDirectly(t *testing.T) {
	f, err := CreateAtomic("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(strings.Repeat("x", 1000))); err != nil {
		t.Error(err)
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatal("/dev/null was replaced")
	}
	out, err := CreateAtomic("/dev/stdout")
	if err != nil {
		t.Fatal(err)
	}
	out.Abort()
	if _, err := os.Stdout.Stat(); err != nil {
		t.Errorf("standard output was closed: %v", err)
	}
}
