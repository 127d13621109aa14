package conformance

import (
	"strings"
	"testing"
)

// The first difference of a case is told with its step, its field, and both values.
func TestMismatches(t *testing.T) {
	for _, c := range []struct {
		old, new string
		step     int
		field    string
		expected string
		got      string
	}{
		{`"ev":"add","id":"a"`, `"ev":"add","id":"b"`, 0, "id", "b", "a"},
		{`"step":2`, `"step":3`, 2, "step", "3", "2"},
		{`["a",1,4,"running"]`, `["a",2,4,"running"]`, 2, "sched", "[a n=2 C=4 running]", "[a n=1 C=4 running]"},
		{`["a",1,4,"running"]`, `["a",1,3,"running"]`, 2, "sched", "[a n=1 C=3 running]", "[a n=1 C=4 running]"},
		{`["a",4,0,"new"]`, `["a",4,0,"resumed"]`, 1, "sched", "[a n=4 C=0 resumed]", "[a n=4 C=0 new]"},
		{`"preempted":[]`, `"preempted":["a"]`, 1, "preempted", "[a]", "[]"},
		{`"running":["a"]`, `"running":["a","b"]`, 1, "running", "[a, b]", "[a]"},
		{`"waiting":[]`, `"waiting":["b"]`, 1, "waiting", "[b]", "[]"},
		{`"skipped":[]`, `"skipped":["b"]`, 1, "skipped", "[b]", "[]"},
		{`"free":6`, `"free":5`, 2, "free", "5", "6"},
		{`{"a":[1,2]}`, `{"a":[1,3]}`, 2, "blocks.a", "[1, 3]", "[1, 2]"},
		{`{"a":[1,2]}`, `{}`, 2, "blocks.a", "none", "[1, 2]"},
		{`{"a":[1,2]}`, `{"a":[1,2],"b":[]}`, 2, "blocks", "[a, b]", "[a]"},
		{`"outputs":[["a",1]]`, `"outputs":[["a",2]]`, 1, "outputs", "[a 2]", "[a 1]"},
		{`["a","length"]`, `["a","stop"]`, 2, "finished", "[a stop]", "[a length]"},
		{`"free":7,"running"`, `"free":8,"running"`, 1, "free", "8", "7"},
		{`"free":8,"running":[]}]`, `"free":8,"running":["a"]}]`, 3, "running", "[a]", "[]"},
		{`{"ev":"add","id":"a"},`, ``, 0, "event", "schedule", "add"},
		{`"iterations":4`, `"iterations":5`, 3, "iterations", "5", "4"},
		{`"iterations":4`, `"iterations":3`, 2, "event", "schedule", "none"},
		{`,{"ev":"update","outputs":[],"finished":[],"free":8,"running":[]}]`, `]`, 3, "event", "none", "update"},
		{`"arrive_iter":1`, `"arrive_iter":2`, 2, "event", "schedule", "none"},
		{`"gen_base":100`, `"gen_base":-100`, 3, "", "", ""}, // outputs are not recorded
	} {
		if !strings.Contains(tiny, c.old) {
			t.Fatalf("the recording has no %s", c.old)
		}
		cases, err := read(strings.Replace(tiny, c.old, c.new, 1))
		if err != nil {
			t.Fatalf("%s: %v", c.new, err)
		}
		_, m, err := Replay(cases[0], profile(t).Rules)
		if err != nil {
			t.Fatalf("%s: %v", c.new, err)
		}
		if m == nil {
			m = &Mismatch{Step: 3}
		}
		if m.Step != c.step || m.Field != c.field || m.Expected != c.expected || m.Got != c.got {
			t.Errorf("Replay with %s = step %d, %s: %s, %s; want %d, %s: %s, %s", c.new,
				m.Step, m.Field, m.Expected, m.Got, c.step, c.field, c.expected, c.got)
		}
	}
}

// A recording that was cut off ends where its iterations end; one that says it was not cut off
// must have ended.
func TestTruncated(t *testing.T) {
	at := strings.Index(tiny, `,{"ev":"schedule","step":2`)
	head := tiny[:at] + `],"truncated":true,"iterations":2}`
	for text, want := range map[string]string{
		head: "",
		strings.Replace(head, `true,"iterations"`, `false,"iterations"`, 1): "iterations",
		strings.Replace(head, `:2}`, `:3}`, 1):                              "event",
	} {
		cases, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		_, m, err := Replay(cases[0], profile(t).Rules)
		if got := ""; err != nil || m != nil && m.Field != want || m == nil && want != got {
			t.Errorf("Replay(...%s) = %+v, %v, want a difference in %q", text[len(text)-40:], m, err, want)
		}
	}
}

// Long lists that differ are shown around the first difference.
func TestContrast(t *testing.T) {
	a := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}
	b := append([]int{}, a...)
	b[6] = 70
	got, want := "", ""
	got, want = contrast(a, b[:9])
	if got != "[(4 equal), 5, 6, 7, 8, 9, 10, 11, 12, (5 more)]" || want != "[(4 equal), 5, 6, 70, 8, 9]" {
		t.Errorf("contrast = %s, %s", got, want)
	}
}
