package report

import (
	"errors"
	"io/fs"
	"maps"
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
		f, err := CreateAtomic(path)
		if err == nil {
			f.Abort()
			t.Errorf("CreateAtomic(%q) is no error, want one", path)
		} else if path != "" && (!strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), ".part")) {
			t.Errorf("CreateAtomic(%q) = %v, want the path and the reason only", path, err)
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

// Files that are committed together change together, or not at all.
func TestCommitAll(t *testing.T) {
	t.Chdir(t.TempDir())
	open := func(path, text string) *AtomicFile {
		t.Helper()
		f, err := CreateAtomic(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return f
	}
	check := func(want map[string]string) {
		t.Helper()
		got := map[string]string{}
		entries, err := os.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			text, _ := os.ReadFile(e.Name())
			got[e.Name()] = string(text)
		}
		if !maps.Equal(got, want) {
			t.Errorf("files are %q, want %q", got, want)
		}
	}
	if err := CommitAll(); err != nil {
		t.Errorf("CommitAll() of nothing = %v", err)
	}
	if err := CommitAll(open("a", "1"), open("/dev/null", "x"), open("b", "1")); err != nil {
		t.Error(err)
	}
	check(map[string]string{"a": "1", "b": "1"})
	if err := CommitAll(open("a", "2"), open("b", "2")); err != nil {
		t.Error(err)
	}
	check(map[string]string{"a": "2", "b": "2"})

	old, fresh, blocked, after := open("a", "3"), open("c", "3"), open("d", "3"), open("b", "3")
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	err := CommitAll(old, fresh, blocked, after)
	if err == nil || !strings.HasPrefix(err.Error(), "d: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("CommitAll with a folder in the way = %v, want an error of d", err)
	}
	check(map[string]string{"a": "2", "b": "2", "d": ""})

	ended := open("c", "4")
	ended.Abort()
	if err := CommitAll(open("a", "4"), ended); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("CommitAll with an aborted file = %v, want %v", err, fs.ErrClosed)
	}
	check(map[string]string{"a": "2", "b": "2", "d": ""})
}

func TestSameOutput(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	err := errors.Join(os.WriteFile("there", nil, 0o600), os.Mkdir("sub", 0o700),
		os.Symlink("there", "link"), os.Symlink("sub", "sublink"), os.Link("there", "twin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"new", "new", true}, {"new", "./sub/../new", true}, {"new", filepath.Join(folder, "new"), true}, {"new", "other", false},
		{"there", "link", true}, {"there", "twin", true}, {"there", "new", false}, {"sub/new", "sublink/new", true}, {"sub/new", "new", false},
		{"no/new", "no/new", true}, {"/dev/stdout", "/dev/stdout", true}, {"/dev/null", "/dev/null", false}, {"/dev/null", "new", false},
	} {
		if got := SameOutput(c.a, c.b); got != c.want {
			t.Errorf("SameOutput(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
		if got := SameOutput(c.b, c.a); got != c.want {
			t.Errorf("SameOutput(%q, %q) = %v, want %v", c.b, c.a, got, c.want)
		}
	}
}
