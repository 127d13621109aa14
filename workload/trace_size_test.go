package workload

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// writeAzure writes n rows in Azure's form, in order or shuffled by up to a minute.
func writeAzure(t testing.TB, n int, sorted bool) string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	text.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\r\n")
	at := time.Date(2023, 11, 16, 18, 17, 3, 0, time.UTC)
	for range n {
		at = at.Add(time.Duration(random.IntN(2_000_000)) * 100)
		shown := at
		if !sorted {
			shown = at.Add(time.Duration(random.IntN(600_000_000)) * 100)
		}
		fmt.Fprintf(&text, "%s,%d,%d\r\n", shown.Format("2006-01-02 15:04:05.0000000"), 1+random.IntN(8000), 1+random.IntN(1000))
	}
	path := filepath.Join(t.TempDir(), "azure.csv")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func liveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A held trace costs 24 bytes a request, sorted or not, and one that is read again
// nothing, so that a week of 44 million rows can be replayed.
func TestTraceMemory(t *testing.T) {
	const n = 300_000
	for _, test := range []struct {
		sorted bool
		hold   int
		most   int64 // bytes per row
	}{{true, heldRows, 30}, {false, heldRows, 30}, {true, n / 2, 2}, {false, n / 2, 30}} {
		path := writeAzure(t, n, test.sorted)
		before := liveBytes()
		trace, err := openTrace(path, func() (io.ReadCloser, error) { return openRegular(path) }, TraceOptions{}, test.hold)
		if err != nil {
			t.Fatal(err)
		}
		p, err := trace.Source()
		if err != nil {
			t.Fatal(err)
		}
		for range n / 2 {
			p.Next()
		}
		// A replay of a file has buffers of its own.
		if got := (liveBytes() - before - 1<<19) / n; got > test.most {
			t.Errorf("live memory, sorted %v, holding %d = %d bytes/row, want at most %d", test.sorted, test.hold, got, test.most)
		}
		p.Close()
		runtime.KeepAlive(trace)
	}
}

func BenchmarkOpenTrace(b *testing.B) {
	const n = 500_000
	for _, bench := range []struct {
		name   string
		sorted bool
		hold   int
	}{{"sorted", true, heldRows}, {"stream", true, 1}, {"unsorted", false, heldRows}} {
		b.Run(bench.name, func(b *testing.B) {
			path := writeAzure(b, n, bench.sorted)
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := openTrace(path, func() (io.ReadCloser, error) { return openRegular(path) }, TraceOptions{}, bench.hold); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	const n = 500_000
	for _, hold := range []int{heldRows, 1} {
		b.Run(map[int]string{heldRows: "held", 1: "stream"}[hold], func(b *testing.B) {
			path := writeAzure(b, n, true)
			trace, err := openTrace(path, func() (io.ReadCloser, error) { return openRegular(path) }, TraceOptions{}, hold)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				p, err := trace.Source()
				if err != nil {
					b.Fatal(err)
				}
				for _, ok := p.Next(); ok; _, ok = p.Next() {
				}
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
