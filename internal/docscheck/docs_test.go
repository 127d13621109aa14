// Package docscheck runs the commands of the documentation and compares what they print.
//
// In README.md and docs/**/*.md, every line of a ```sh block is one command, run from a copy of
// the repository, so that a document may write files and use them further on:
//
//   - llmsim and go run ./cmd/llmsim run the program; so do lines of the shell's plain tools;
//   - of make, only that the target exists is checked, and of go build, test and tool nothing;
//   - a comment at its end, # exit 1, gives the exit code; without one it is 0;
//   - a ```text block right after holds what the block prints, both streams as they come; a line
//     of three dots stands for any number of lines;
//   - a block in another language that starts with a comment of only a file's name, # chat.yaml,
//     is written to that file;
//   - $LLMSIM_DATA is the public data; without it a block that needs it is skipped, or fails if
//     LLMSIM_REQUIRE_DATA=1.
//
// Links to files must lead somewhere. go test ./internal/docscheck -update writes what was printed into the documents.
package docscheck

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmsim/internal/shared"
)

var update = flag.Bool("update", false, "rewrite the text blocks of the documents")

const root = "../.."

func TestDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program")
	}
	work, bin := copyRepository(t), t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "llmsim"), "./cmd/llmsim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	documents := []string{"README.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			documents = append(documents, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range documents {
		t.Run(name, func(t *testing.T) { checkDocument(t, name, work, bin) })
	}
}

// copyRepository also makes go test see every file that the result depends on: a cached result
// is not used once one of them has changed.
func copyRepository(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		from, to := filepath.Join(root, e.Name()), filepath.Join(work, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "bin" || e.Name() == "results":
		case e.IsDir():
			err = errors.Join(err, os.CopyFS(to, os.DirFS(from)))
		case e.Type().IsRegular():
			text, failed := os.ReadFile(from)
			err = errors.Join(err, failed, os.WriteFile(to, text, 0o666))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return work
}

func checkDocument(t *testing.T, name, work, bin string) {
	path := filepath.Join(root, filepath.FromSlash(name))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	blocks, err := fences(lines)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, m := range link.FindAllStringSubmatch(string(text), -1) {
		if target := filepath.Join(filepath.Dir(path), m[1]); !strings.Contains(m[1], "://") {
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is absent", name, m[1])
			}
		}
	}
	type change struct {
		block
		text []string
	}
	var changes []change
	for i, b := range blocks {
		if file := b.file(); file != "" {
			if err := os.WriteFile(filepath.Join(work, file), []byte(strings.Join(b.body, "\n")+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b.language != "sh" {
			continue
		}
		var shown *block
		if i+1 < len(blocks) && blocks[i+1].language == "text" && blank(lines[b.end+1:blocks[i+1].start]) {
			shown = &blocks[i+1]
		}
		t.Run(fmt.Sprintf("line %d", b.start+1), func(t *testing.T) {
			printed := runBlock(t, b, work, bin)
			if t.Failed() || shown == nil || matches(printed, shown.body) {
				return
			}
			if *update {
				changes = append(changes, change{*shown, elided(printed, shown.body)})
				return
			}
			t.Errorf("%s:%d prints\n%s\nbut is said to print\n%s\n(if that is right: go test ./internal/docscheck -update)",
				name, b.start+1, strings.Join(printed, "\n"), strings.Join(shown.body, "\n"))
		})
	}
	for _, c := range slices.Backward(changes) {
		lines = slices.Replace(lines, c.start+1, c.end, c.text...)
	}
	if len(changes) > 0 {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// link finds the target of a Markdown link, without a place in it.
var link = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

// A block is a fenced one; start and end are the indices of its fences.
type block struct {
	language   string
	start, end int
	body       []string
}

func fences(lines []string) (all []block, err error) {
	for i := 0; i < len(lines); i++ {
		language, ok := strings.CutPrefix(lines[i], "```")
		if !ok {
			continue
		}
		b := block{language: strings.TrimSpace(language), start: i}
		for i++; i < len(lines) && lines[i] != "```"; i++ {
			b.body = append(b.body, lines[i])
		}
		if i == len(lines) {
			return nil, fmt.Errorf("line %d: the block does not end", b.start+1)
		}
		b.end = i
		all = append(all, b)
	}
	return all, nil
}

var fileName = regexp.MustCompile(`^# ([a-z0-9-]+\.[a-z]+)$`)

// file is the name that a block gives itself, if it does.
func (b block) file() string {
	if b.language == "sh" || b.language == "text" || len(b.body) == 0 {
		return ""
	}
	if m := fileName.FindStringSubmatch(b.body[0]); m != nil {
		return m[1]
	}
	return ""
}

func blank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
}

var (
	exitComment = regexp.MustCompile(`\s+# exit (\d+)$`)
	comment     = regexp.MustCompile(`\s+#( .*)?$`)
	tools       = []string{"cat", "cmp", "cut", "diff", "gzip", "head", "ls", "sort", "tail", "wc"}
)

// runBlock runs a block's commands and returns the lines they print.
func runBlock(t *testing.T, b block, work, bin string) []string {
	t.Helper()
	var data string
	if strings.Contains(strings.Join(b.body, "\n"), "$LLMSIM_DATA") {
		data = shared.Data(t)
	}
	var printed bytes.Buffer
	ran := 0
	for _, line := range joined(b.body) {
		want := 0
		if m := exitComment.FindStringSubmatch(line); m != nil {
			want, _ = strconv.Atoi(m[1])
		}
		line = strings.TrimSpace(comment.ReplaceAllString(line, ""))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		ran++
		line = strings.ReplaceAll(line, "go run ./cmd/llmsim", "llmsim")
		words := strings.Fields(line)
		switch {
		case words[0] == "make":
			checkTargets(t, words[1:])
			continue
		case words[0] == "go" && len(words) > 1 && slices.Contains([]string{"build", "test", "tool"}, words[1]):
			continue
		case words[0] != "llmsim" && !slices.Contains(tools, words[0]):
			t.Errorf("%q: only llmsim, make, go and %v can be checked", line, tools)
			continue
		}
		c := exec.Command("sh", "-c", line)
		c.Dir = work
		c.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "LLMSIM_DATA="+data)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		err := c.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := c.ProcessState.ExitCode(); code != want {
			t.Errorf("%s\nends with exit code %d, want %d\n%s", line, code, want, &out)
		}
		printed.Write(out.Bytes())
	}
	if ran == 0 {
		t.Error("the block has no command")
	}
	text := strings.TrimRight(printed.String(), "\n")
	if data != "" {
		text = strings.ReplaceAll(text, data, "$LLMSIM_DATA")
	}
	return strings.Split(text, "\n")
}

// joined puts lines that end in a backslash together with the next.
func joined(lines []string) (all []string) {
	open := ""
	for _, line := range lines {
		if start, ok := strings.CutSuffix(line, `\`); ok {
			open += start
			continue
		}
		all = append(all, open+line)
		open = ""
	}
	return all
}

func checkTargets(t *testing.T, words []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		if !strings.Contains(w, "=") && !bytes.Contains(text, []byte("\n"+w+":")) {
			t.Errorf("make %s: the Makefile has no such target", w)
		}
	}
}

// matches compares what was printed to what a document shows, in which a line of three dots
// stands for any number of lines.
func matches(printed, shown []string) bool {
	at := slices.Index(shown, "...")
	if at < 0 {
		return slices.Equal(printed, shown)
	}
	if len(printed) < at || !slices.Equal(printed[:at], shown[:at]) {
		return false
	}
	for printed = printed[at:]; ; printed = printed[1:] {
		if matches(printed, shown[at+1:]) {
			return true
		}
		if len(printed) == 0 {
			return false
		}
	}
}

// elided cuts what was printed as short as what a document shows, if that ends in three dots.
func elided(printed, shown []string) []string {
	n := len(shown) - 1
	if n > 0 && n < len(printed) && shown[n] == "..." {
		return append(slices.Clone(printed[:n]), "...")
	}
	return printed
}

func TestMatches(t *testing.T) {
	split := func(s string) []string { return strings.Split(s, " ") }
	for _, test := range []struct {
		printed, shown string
		want           bool
	}{
		{"a b c", "a b c", true},
		{"a b c", "a b", false},
		{"a b c", "a ... c", true},
		{"a c", "a ... c", true},
		{"a b c", "a ...", true},
		{"a b c", "... c", true},
		{"a b c d", "... b ... d", true},
		{"a b c", "a ... d", false},
		{"a", "a b ...", false},
	} {
		if got := matches(split(test.printed), split(test.shown)); got != test.want {
			t.Errorf("matches(%q, %q) = %v, want %v", test.printed, test.shown, got, test.want)
		}
	}
}
