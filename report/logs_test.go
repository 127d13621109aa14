package report

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"llmsim/sim"
	"llmsim/sim/cost"
)

func ExampleRequestLog() {
	var out strings.Builder
	log := NewRequestLog(&out)
	life := func(id int64, arrival time.Duration) *sim.Finished {
		return &sim.Finished{ID: id, Prompt: 512, Output: 64, Arrival: arrival, FirstSchedule: arrival + 1,
			FirstToken: arrival + 20*time.Millisecond, LastToken: arrival + 3*time.Second}
	}
	log.Finished(life(2, 90*time.Millisecond)) // waits for those before it
	log.Skip(1)                                // refused
	log.Finished(life(0, 0))
	if err := log.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Print(out.String())
	// Output:
	// id,arrival_s,input_tokens,output_tokens,first_schedule_s,first_token_s,last_token_s,preemptions,replica
	// 0,0.000000000,512,64,0.000000001,0.020000000,3.000000000,0,0
	// 2,0.090000000,512,64,0.090000001,0.110000000,3.090000000,0,0
}

// Whatever the order of finishing, rows come in the order of IDs, refused ones left out; what waits for one
// never told of is written by Close.
func TestRequestLogOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []int{1, 10, 1000, 5000} {
		const n = 5000
		order := make([]int64, n)
		for i := range order {
			order[i] = int64(i)
		}
		for from := 0; from < n; from += spread {
			part := order[from:min(from+spread, n)]
			rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		}
		var got, want strings.Builder
		log := NewRequestLog(&got)
		for _, id := range order {
			switch {
			case id%7 == 3:
				log.Skip(id)
			case id != 4000: // never told
				log.Finished(&sim.Finished{ID: id})
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		want.WriteString(requestsHead)
		for id := range n {
			if id%7 != 3 && id != 4000 {
				fmt.Fprintf(&want, "%d,0.000000000,0,0,0.000000000,0.000000000,0.000000000,0,0\n", id)
			}
		}
		if got.String() != want.String() {
			t.Errorf("spread %d: %d bytes, want %d, or another order", spread, got.Len(), want.Len())
		}
	}
}

func TestRequestLogTellsOfRepeats(t *testing.T) {
	for _, ids := range [][]int64{{0, 0}, {0, 5, 5}, {1, 0, 1}} {
		log := NewRequestLog(io.Discard)
		for _, id := range ids {
			log.Finished(&sim.Finished{ID: id})
		}
		if err := log.Close(); err == nil {
			t.Errorf("Finished(%v) is no error, want one", ids)
		}
	}
}

func TestAppendSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.000000000", 1: "0.000000001", 999_999_999: "0.999999999", time.Second: "1.000000000",
		1<<63 - 1: "9223372036.854775807", -1: "-0.000000001", -3 * time.Second: "-3.000000000",
	} {
		if got := string(appendSeconds(nil, d)); got != want {
			t.Errorf("appendSeconds(%d) = %s, want %s", int64(d), got, want)
		}
	}
}

func TestStepLog(t *testing.T) {
	var out strings.Builder
	log := NewStepLog(&out)
	log.Step(&sim.Step{Index: 7, Replica: 2, Start: time.Second, End: time.Second + 12345678,
		Shape: cost.Shape{Tokens: 530, Sequences: 19, Decodes: 18}, Running: 20, Waiting: 3, FreeBlocks: 11,
		Preempted: []int64{4, 5}, Bound: cost.KVReads})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if want := stepsHead + "7,2,1.000000000,1.012345678,530,19,512,20,3,11,2,kv\n"; out.String() != want {
		t.Errorf("StepLog wrote\n%swant\n%s", out.String(), want)
	}
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestLogsReportTheFirstError(t *testing.T) {
	requests, steps := NewRequestLog(full{}), NewStepLog(full{})
	for id := range int64(10_000) {
		requests.Finished(&sim.Finished{ID: id})
		steps.Step(&sim.Step{})
	}
	if err := requests.Close(); !errors.Is(err, errFull) {
		t.Errorf("RequestLog.Close() = %v, want %v", err, errFull)
	}
	if err := steps.Close(); !errors.Is(err, errFull) {
		t.Errorf("StepLog.Close() = %v, want %v", err, errFull)
	}
}

func BenchmarkRequestLog(b *testing.B) {
	log := NewRequestLog(io.Discard)
	f := sim.Finished{Prompt: 512, Output: 64, Arrival: 1e12, FirstSchedule: 1e12 + 12345, FirstToken: 1e12 + 1234567,
		LastToken: 1e12 + 123456789}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		f.ID = i ^ 3 // a little out of order
		log.Finished(&f)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkStepLog(b *testing.B) {
	log := NewStepLog(io.Discard)
	s := sim.Step{Index: 123456, Start: 1e12, End: 1e12 + 12345, Shape: cost.Shape{Tokens: 580, Sequences: 60, Decodes: 59},
		Running: 60, FreeBlocks: 5000}
	b.ReportAllocs()
	for b.Loop() {
		log.Step(&s)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
