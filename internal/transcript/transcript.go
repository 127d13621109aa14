// Package transcript plays conversations that are written down: commands, and what they answered.
//
// It knows files of commands and answers. It knows nothing of what the commands mean.
package transcript

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the answers in transcripts with those given now")

// A Command is one line of a conversation: a name, words, and values given as key=value, which a
// conversation takes by key.
type Command struct {
	Name  string
	Words []string

	t      testing.TB
	place  string // file:line
	values map[string]string
}

// Fatalf ends the test with a message that names the command's place.
func (c *Command) Fatalf(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s: %s: %s", c.place, c.Name, fmt.Sprintf(format, args...))
}

// Word is the i-th word, which must be there; what says what it stands for.
func (c *Command) Word(i int, what string) string {
	c.t.Helper()
	if i >= len(c.Words) {
		c.Fatalf("lacks its %s", what)
	}
	return c.Words[i]
}

// Text takes the value of a key; absent if it is not given.
func (c *Command) Text(key, absent string) string {
	value, ok := c.values[key]
	if !ok {
		return absent
	}
	delete(c.values, key)
	return value
}

// Int takes an integer.
func (c *Command) Int(key string, absent int) int {
	return take(c, key, absent, strconv.Atoi)
}

// Float takes a number.
func (c *Command) Float(key string, absent float64) float64 {
	return take(c, key, absent, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

// Duration takes a time as Go writes it.
func (c *Command) Duration(key string, absent time.Duration) time.Duration {
	return take(c, key, absent, time.ParseDuration)
}

func take[T any](c *Command, key string, absent T, parse func(string) (T, error)) T {
	c.t.Helper()
	text := c.Text(key, "")
	if text == "" {
		return absent
	}
	value, err := parse(text)
	if err != nil {
		c.Fatalf("%s: %v", key, err)
	}
	return value
}

// A Conversation answers one command after another; an answer has no empty line. Commands that
// have nothing to say answer "".
type Conversation func(*Command) string

// Run plays every file that a pattern matches, each a subtest with a conversation of its own.
//
// A file opens with a comment, lines that start with #, that says what is learnt. Then come
// blocks: commands, one a line; a line of four dashes; the answers of all of them together, up to
// an empty line. Where no command has anything to say the answer is "ok". With -update the
// answers are rewritten.
func Run(t *testing.T, pattern string, start func() Conversation) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("transcript: no file matches %s (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, file, string(text), start())
			if *update && got != string(text) {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

const dashes = "----"

// play runs a file's commands and returns the file with the answers they gave. Unless these are
// to be rewritten, it reports each that differs from what is written.
func play(t testing.TB, file, text string, answer Conversation) string {
	t.Helper()
	if !strings.HasPrefix(text, "# ") {
		t.Fatalf("%s:1: does not open with a comment that says what is learnt", file)
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out strings.Builder
	for i := 0; i < len(lines); {
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			out.WriteString(lines[i] + "\n")
			i++
			continue
		}
		from, said := i, ""
		for ; i < len(lines) && lines[i] != dashes; i++ {
			if lines[i] == "" {
				t.Fatalf("%s:%d: no %s after the commands", file, i+1, dashes)
			}
			c := parse(t, fmt.Sprintf("%s:%d", file, i+1), lines[i])
			said += answer(c)
			if said != "" && !strings.HasSuffix(said, "\n") {
				said += "\n"
			}
			if len(c.values) > 0 {
				c.Fatalf("does not know %s", strings.Join(slices.Sorted(maps.Keys(c.values)), ", "))
			}
			out.WriteString(lines[i] + "\n")
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: no %s after the commands", file, i, dashes)
		}
		commands := strings.Join(lines[from:i], "; ")
		i++
		from = i
		for i < len(lines) && lines[i] != "" {
			i++
		}
		want := strings.Join(lines[from:i], "\n")
		got := strings.TrimSuffix(said, "\n")
		if got == "" {
			got = "ok"
		}
		if got != want && !*update {
			t.Errorf("%s:%d: %s =\n%s\nwant\n%s", file, from+1, commands, got, want)
		}
		out.WriteString(dashes + "\n" + got + "\n")
	}
	return out.String()
}

func parse(t testing.TB, place, line string) *Command {
	words := strings.Fields(line)
	c := &Command{Name: words[0], t: t, place: place, values: map[string]string{}}
	for _, w := range words[1:] {
		if key, value, ok := strings.Cut(w, "="); ok {
			c.values[key] = value
		} else {
			c.Words = append(c.Words, w)
		}
	}
	return c
}
