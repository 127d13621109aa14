package main

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// asTrace writes the arrivals and lengths of a run's requests as a workload.
func asTrace(t *testing.T, requests, path string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(readText(t, requests))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, row := range rows {
		fmt.Fprintln(&text, strings.Join(row[1:4], ","))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The requests of a run, replayed as a trace, live the same lives to the nanosecond.
func TestReplayGivesTheSameLives(t *testing.T) {
	const lengths = "workload.output_tokens={lognormal: [60, 0.8]}"
	for _, c := range []struct{ workload, engine []string }{
		{[]string{"--rate", "120", "--requests", "3000", "--set", lengths}, []string{"--replicas", "2"}},
		{[]string{"--rate", "120", "--requests", "3000", "--set", lengths}, []string{"--replicas", "2", "--set", "cluster.router=least-loaded"}},
		{[]string{"--rate", "120", "--requests", "3000", "--set", lengths}, []string{"--replicas", "2", "--set", "cluster.router=join-shortest-queue"}},
		{[]string{"--rate", "120", "--requests", "3000", "--set", lengths}, []string{"--replicas", "2", "--set", "cluster.router=power-of-two-choices"}},
		{[]string{"--rate", "20", "--requests", "800", "--set", lengths}, []string{"--set", "engine.num_gpu_blocks=300"}},
		// arrivals of a closed loop fall on the ends of steps
		{[]string{"--scenario", "e1-uniform", "--requests", "1000"}, nil},
		{[]string{"--scenario", "e1", "--requests", "1000"}, []string{"--replicas", "2", "--set", "cluster.router=least-loaded"}},
		{[]string{"--scenario", "e1-uniform", "--requests", "1000", "--set", "workload.arrivals.think_time=5ms"},
			[]string{"--replicas", "2", "--set", "cluster.router=join-shortest-queue"}},
		{[]string{"--scenario", "e5"}, nil},
	} {
		folder := t.TempDir()
		first, trace, second := filepath.Join(folder, "r.csv"), filepath.Join(folder, "trace.csv"), filepath.Join(folder, "again.csv")
		simulated(t, append(append(c.workload, c.engine...), "--requests-out", first)...)
		asTrace(t, first, trace)
		again := append([]string{"--trace", trace}, c.engine...)
		if c.workload[0] == "--scenario" {
			again = append(again, c.workload[:2]...)
		}
		simulated(t, append(again, "--requests-out", second)...)
		a, b := strings.Split(readText(t, first), "\n"), strings.Split(readText(t, second), "\n")
		if len(a) != len(b) {
			t.Errorf("simulate %v %v replayed has %d rows, want %d", c.workload, c.engine, len(b), len(a))
			continue
		}
		for i := range a {
			if a[i] != b[i] {
				t.Errorf("simulate %v %v replayed: row %d = %s, want %s", c.workload, c.engine, i+1, b[i], a[i])
				break
			}
		}
	}
}

// A trace's request that no replica can hold is refused and counted; a row that is no request is
// skipped and told of. Neither ends the run.
func TestReplayAccountsForEveryRow(t *testing.T) {
	folder := t.TempDir()
	trace, requests := filepath.Join(folder, "t.csv"), filepath.Join(folder, "r.csv")
	text := "arrival_s,input_tokens,output_tokens\n0,10,5\n1,abc,5\n2,40000,5\n3,7,0\n4,7,3\n"
	if err := os.WriteFile(trace, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	leaves := flatten(t, simulated(t, "--trace", trace, "--format", "json", "--requests-out", requests))
	for path, want := range map[string]float64{"requests.arrived": 3, "requests.completed": 2, "requests.refused": 1} {
		if got := figureAt(t, leaves, path); got != want {
			t.Errorf("simulate of %q: %s = %v, want %v", text, path, got, want)
		}
	}
	told := false
	for path, value := range leaves {
		told = told || strings.HasPrefix(path, "assumptions.") && strings.Contains(fmt.Sprint(value),
			`5 rows: 3 kept, 2 skipped (1 zero output, first line 5; 1 unparsable, first line 3: input_tokens: must be a whole number, is "abc")`)
	}
	if !told {
		t.Errorf("simulate of %q: assumptions do not tell of the two rows skipped: %v", text, leaves)
	}
	if ids := csvColumns(t, requests, headOfRequests)["id"]; len(ids) != 2 || ids[0] != 0 || ids[1] != 2 {
		t.Errorf("simulate of %q: requests-out has %v, want 0 and 2", text, ids)
	}
}

// peakLive runs f and returns the most bytes that a collection found live meanwhile.
func peakLive(f func()) uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for most := uint64(0); ; {
			select {
			case <-tick.C:
				metrics.Read(live)
				most = max(most, live[0].Value.Uint64())
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	f()
	close(stop)
	return <-peak
}

// A trace of any length is streamed: five million requests take the memory of one million, 120
// bytes each.
func TestReplayOfALongTraceStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("reads five million rows twice")
	}
	const rows, held, perRequest = 5_000_000, 1_000_000, 120
	path := filepath.Join(t.TempDir(), "long.csv.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	pack, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriterSize(pack, 1<<20)
	chance := rand.New(rand.NewPCG(1, 2))
	out.WriteString("arrival_s,input_tokens,output_tokens\n")
	at := int64(0)
	for range rows {
		at += chance.Int64N(20_000_000)
		fmt.Fprintf(out, "%d.%09d,%d,%d\n", at/1e9, at%1e9, 1+chance.IntN(400), 1+chance.IntN(16))
	}
	for _, end := range []func() error{out.Flush, pack.Close, file.Close} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()

	var result string
	peak := peakLive(func() { result = simulated(t, "--trace", path, "--format", "json") })
	if n := figureAt(t, flatten(t, result), "requests.completed"); n != rows {
		t.Errorf("simulate of %d rows completes %v requests", rows, n)
	}
	t.Logf("live memory at most %.1f MB", float64(peak)/1e6)
	if peak == 0 || peak > held*perRequest {
		t.Errorf("simulate of %d rows: live memory reaches %d bytes, want at most %d", rows, peak, held*perRequest)
	}
}
