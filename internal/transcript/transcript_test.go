package transcript

import (
	"fmt"
	"strings"
	"testing"
)

// A judge notes what a test would have been told, and goes on where a test would end by panicking
// with itself.
type judge struct {
	testing.TB
	told []string
}

func (j *judge) Helper() {}

func (j *judge) Errorf(format string, args ...any) {
	j.told = append(j.told, fmt.Sprintf(format, args...))
}

func (j *judge) Fatalf(format string, args ...any) {
	j.Errorf(format, args...)
	panic(j)
}

func verdict(text string) (out string, told []string) {
	j := &judge{}
	defer func() {
		if r := recover(); r != nil && r != any(j) {
			panic(r)
		}
		told = j.told
	}()
	sum := 0
	out = play(j, "sum.txt", text, func(c *Command) string {
		switch c.Name {
		case "add":
			sum += c.Int("n", 1)
			return ""
		case "sum":
			return fmt.Sprint(sum)
		}
		c.Fatalf("is not known")
		return ""
	})
	return out, j.told
}

// What is written is compared block by block; every fault is told with its file and line.
func TestPlay(t *testing.T) {
	for _, c := range []struct{ text, told string }{
		{"# Sums.\n\nadd n=2\nadd\nsum\n----\n3\n\n# More.\nadd\n----\nok\n", ""},
		{"# Sums.\n\nadd\nsum\n----\n2\n", "sum.txt:6: add; sum =\n1\nwant\n2"},
		{"# Sums.\n\nadd\n----\n", "sum.txt:5: add =\nok\nwant\n"},
		{"add\n----\nok\n", "sum.txt:1: does not open with a comment that says what is learnt"},
		{"# Sums.\nadd\n\nsum\n----\n1\n", "sum.txt:3: no ---- after the commands"},
		{"# Sums.\nadd\n", "sum.txt:2: no ---- after the commands"},
		{"# Sums.\nadd n=2 m=3\n----\nok\n", "sum.txt:2: add: does not know m"},
		{"# Sums.\nadd n=two\n----\nok\n", `sum.txt:2: add: n: strconv.Atoi: parsing "two": invalid syntax`},
		{"# Sums.\nminus\n----\nok\n", "sum.txt:2: minus: is not known"},
	} {
		out, told := verdict(c.text)
		if got := strings.Join(told, "\n"); got != c.told {
			t.Errorf("play(%q) tells %q, want %q", c.text, got, c.told)
		}
		if c.told == "" && out != c.text {
			t.Errorf("play(%q) = %q, want it unchanged", c.text, out)
		}
	}
}

// With -update the answers given now are written, and everything else stays.
func TestPlayUpdates(t *testing.T) {
	defer func(was bool) { *update = was }(*update)
	*update = true
	const text, want = "# Sums.\n\nadd\nsum\n----\n7\n\n# End.\nadd\n----\n\n", "# Sums.\n\nadd\nsum\n----\n1\n\n# End.\nadd\n----\nok\n"
	if got, told := verdict(text); got != want || len(told) > 0 {
		t.Errorf("play(%q) = %q, telling %q, want %q", text, got, told, want)
	}
}
