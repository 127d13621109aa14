package report

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A clock that moves a fixed time with every call of Set.
func drive(calls int, each time.Duration, total int64) (out string, draws int) {
	var b strings.Builder
	now := time.Unix(0, 0)
	p := newProgress(&b, total, func() time.Time { return now })
	for i := range calls {
		now = now.Add(each)
		p.Set(total * int64(i+1) / int64(calls))
	}
	p.Done()
	return b.String(), strings.Count(b.String(), "\r")
}

func TestProgress(t *testing.T) {
	if out, _ := drive(900, time.Millisecond, 1000); out != "" {
		t.Errorf("a run of 0.9 s shows %q, want nothing", out)
	}
	out, draws := drive(4_000_000, time.Microsecond, 1_000_000) // 4 s, so 3 s of line, and its end
	if draws < 25 || draws > 32 {
		t.Errorf("in 3 s the line is drawn %d times, want about 30", draws)
	}
	if !strings.HasPrefix(out, "\r 25%  25") || !strings.Contains(out, " of 1,000,000, 3s left") {
		t.Errorf("the line starts %.60q", out)
	}
	if !strings.HasSuffix(out, "\r"+eraseRest) {
		t.Errorf("the line ends %q, want it erased", out[len(out)-20:])
	}
	if _, draws := drive(5, time.Second, 5); draws != 6 { // five calls and the end
		t.Errorf("of five calls in 5 s %d are drawn, want 5", draws-1)
	}
	if out, _ := drive(3, time.Second, 0); !strings.HasPrefix(out, "\r0 done, 1s") {
		t.Errorf("with no total the line is %q", out)
	}
}

func TestProgressOnlyOnTerminals(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := NewProgress(f, 10)
	if p != nil {
		t.Error("NewProgress on a file is not nil")
	}
	p.Set(1)
	p.Done()
}

func BenchmarkProgressSet(b *testing.B) {
	p := newProgress(&strings.Builder{}, 1<<40, time.Now)
	var i int64
	for b.Loop() {
		i++
		p.Set(i)
	}
}
