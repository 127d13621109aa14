package plan

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"llmsim/scenarios"
)

// A replica with a single slot and equal requests is a queue with Poisson arrivals and one service
// time s: its mean wait is rho*s / (2*(1-rho)). Where the SLO bounds the mean wait by s/2, it is held
// up to a load of one half.
func TestCapacityIsThatOfAQueue(t *testing.T) {
	base := load(t, "base")
	weights := base.Model.WeightBytes() / base.Hardware.Bandwidth
	token := float64(base.Model.KVBytesPerToken) / base.Hardware.Bandwidth
	service := 2 * base.Model.Parameters * 512 / base.Hardware.PeakFLOPS
	for length := 513; length <= 521; length++ {
		service += weights + float64(length)*token
	}
	limit := scenarios.Edit{Path: "slo.queue-mean", Value: seconds(service / 2)}
	s, err := base.With(scenarios.Edit{Path: "engine.max_num_seqs", Value: "1"}, scenarios.Edit{Path: "workload.output_tokens", Value: "10"}, limit)
	if err != nil {
		t.Fatal(err)
	}
	p := &pace{ctx: context.Background()}
	sat, err := saturate(p, *s, saturatedRuns)
	if err != nil {
		t.Fatal(err)
	}
	e, err := underSLO(p, *s, sat, judgedSeeds)
	if err != nil {
		t.Fatal(err)
	}
	if want := 0.5 / service; math.Abs(e.mean/want-1) > 0.03 || math.Abs(e.mean-want) > 3*e.half {
		t.Errorf("capacity of one slot = %.3f +/- %.3f req/s, want %.3f", e.mean, e.half, want)
	}
	// What is served can't be more than slots over the time that each is taken: no slot counts twice.
	if sat.mean > 1/service*1.001 {
		t.Errorf("one slot serves %.3f req/s when saturated, more than the %.3f of its service time", sat.mean, 1/service)
	}
}

// A capacity under an SLO is below saturation, grows with the bandwidth and with what the SLO allows,
// and does not depend on the rate that is asked for.
func TestCapacityUnderSLO(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	of := func(edits ...string) *Capacity {
		a := ask(t, true, "base", append([]string{"workload.arrivals.rate=10", "slo={ttft-p99: 60ms}"}, edits...)...)
		return a.Capacity
	}
	c := of()
	if !(c.PerReplica > 40 && c.PerReplica < c.Saturation && c.CI[0] <= c.PerReplica && c.PerReplica <= c.CI[1] && c.CI[1]-c.CI[0] < 0.1*c.PerReplica) {
		t.Errorf("capacity = %+v, want a narrow interval below saturation", c)
	}
	if loose := of("slo={ttft-p99: 200ms}"); loose.PerReplica <= c.PerReplica {
		t.Errorf("capacity with TTFT of 200 ms = %v req/s, with 60 ms %v, want more", loose.PerReplica, c.PerReplica)
	}
	if fast := of("hardware.memory_bandwidth_gbps=4000", "hardware.hbm_gib=80", "hardware.peak_tflops=989"); fast.PerReplica <= c.PerReplica {
		t.Errorf("capacity with 4000 GB/s = %v req/s, with 3000 %v, want more", fast.PerReplica, c.PerReplica)
	}
	if other := of("workload.arrivals.rate=300"); other.PerReplica != c.PerReplica {
		t.Errorf("capacity when asked for 300 req/s = %v, for 10 %v, want the same", other.PerReplica, c.PerReplica)
	}
	if never := of("slo={e2e-p50: 1ms}"); never.PerReplica != 0 {
		t.Errorf("capacity under an SLO that can't be held = %v, want 0", never.PerReplica)
	}
}

// More is never easier: what does not hold at a rate does not hold at a higher one, and what holds
// with some replicas holds with more.
func TestVerdictsAreMonotone(t *testing.T) {
	if testing.Short() {
		t.Skip("many plans")
	}
	slo := "slo={ttft-p99: 60ms, itl-p99: 40ms}"
	last := true
	for _, rate := range []string{"20", "50", "65", "72", "90"} {
		holds := ask(t, true, "base", slo, "workload.arrivals.rate="+rate).Verdict.Holds
		if holds && !last {
			t.Errorf("one replica holds %s req/s, but not a lower rate", rate)
		}
		last = holds
	}
	if last {
		t.Error("one replica holds 90 req/s")
	}
	last = false
	for _, replicas := range []string{"1", "2", "3", "5"} {
		holds := ask(t, true, "base", slo, "workload.arrivals.rate=110", "cluster.replicas="+replicas).Verdict.Holds
		if !holds && last {
			t.Errorf("%s replicas don't hold what fewer do", replicas)
		}
		last = holds
	}
	if !last {
		t.Error("five replicas don't hold 110 req/s")
	}
}

// Traffic of a few seconds makes far too few replicas look enough: 512 tokens out take longer than
// that, so nothing has filled. The verdict is that of the steady state, however long the run is asked
// to be.
func TestVerdictIsNotOfATransient(t *testing.T) {
	if testing.Short() {
		t.Skip("long runs")
	}
	for _, c := range []struct {
		replicas string
		holds    bool
	}{{"8", false}, {"12", false}, {"24", true}} {
		for _, requests := range []string{"1000", "20000"} {
			a := ask(t, true, "base", "model.name=qwen3-14b", "hardware.name=h100-sxm", "workload.arrivals.rate=200",
				"workload.output_tokens=512", "slo={ttft-p99: 500ms}", "cluster.replicas="+c.replicas, "workload.requests="+requests)
			if a.Verdict.Holds != c.holds {
				t.Errorf("%s replicas, %s requests: holds %v, want %v: %s", c.replicas, requests, a.Verdict.Holds, c.holds, a.Verdict.Reason)
			}
		}
	}
}

// Replicas are paid for whole: two replicas of four GPUs are eight.
func TestPriceIsOfWholeReplicas(t *testing.T) {
	a := ask(t, true, "base", "model.name=llama-3.1-8b", "hardware={name: h100-sxm, price_per_hour: 2}", "engine.tensor_parallel_size=4",
		"cluster.replicas=2", "workload.arrivals.rate=10", "workload.requests=2000")
	p := a.Price
	if a.GPUs != 8 || p == nil || p.PerHour != 16 || p.PerGPUHour != 2 {
		t.Fatalf("%d GPUs, price %+v, want 8 at $16 per hour", a.GPUs, p)
	}
	served := a.Run.Throughput
	for _, c := range []struct{ got, want float64 }{
		{p.PerMillionOutput, 16 / 3600. / served.Output * 1e6}, {p.PerThousand, 16 / 3600. / served.Completed * 1e3},
	} {
		if math.Abs(c.got/c.want-1) > 1e-4 {
			t.Errorf("price %v, want %v", c.got, c.want)
		}
	}
	if unknown := ask(t, true, "base", "workload.arrivals.rate=10", "workload.requests=2000"); unknown.Price != nil {
		t.Errorf("a GPU without a price costs %+v", unknown.Price)
	}
}

// Goodput is the share of requests that keep all bounds of each request; with bounds that all keep it
// is everything, and the percentile form of the same bound agrees with it.
func TestGoodput(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	at := func(slo string) Objective {
		a := ask(t, true, "base", "workload.arrivals.rate=70", "workload.requests=20000", "slo="+slo)
		for _, o := range a.SLO {
			if o.Name == "goodput" {
				return o
			}
		}
		t.Fatalf("%s: no goodput in %+v", slo, a.SLO)
		return Objective{}
	}
	if all := at("{ttft: 10s, tpot: 1s, goodput: 100%}"); all.Value != 100 || !all.Met {
		t.Errorf("goodput with bounds that all keep = %+v", all)
	}
	p90 := ask(t, true, "base", "workload.arrivals.rate=70", "workload.requests=20000").Run.Latency.TTFT.P90
	some := at("{ttft: " + seconds(p90/1e3) + ", goodput: 99%}")
	if math.Abs(some.Value-90) > 0.1 || some.Met {
		t.Errorf("goodput at TTFT's p90 = %+v, want 90%%, missed", some)
	}
}

// Each knob is turned alone; what a knob gives is what a plan of the scenario with it says.
func TestSensitivity(t *testing.T) {
	s := load(t, "base", "workload.arrivals.rate=60")
	a, err := Ask(context.Background(), Question{Scenario: s, Fixed: true, Sensitivity: true})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Sensitivity{}
	for _, x := range a.Sensitivity {
		found[x.Knob+" "+x.To] = x
	}
	slots := found["engine.max_num_seqs 128"]
	other := ask(t, true, "base", "workload.arrivals.rate=60", "engine.max_num_seqs=128").Capacity
	if math.Abs(slots.PerReplica/other.PerReplica-1) > 0.03 || slots.Change < 0.1 {
		t.Errorf("128 slots = %+v, a plan with them sustains %v req/s", slots, other.PerReplica)
	}
	if tp := found["engine.tensor_parallel_size 2"]; math.Abs(tp.PerReplica/2-tp.PerGPU) > 1e-3 || math.Abs(tp.Change-1) > 0.1 {
		t.Errorf("two GPUs under the roofline = %+v, want twice as much", tp)
	}
	if longer := found["workload.output_tokens 10% longer"]; longer.Change > -0.03 || longer.Change < -0.12 {
		t.Errorf("longer answers = %+v, want some less", longer)
	}
	for _, x := range a.Sensitivity {
		if x.Reason != "" && !strings.Contains(x.Reason, "fit") {
			t.Errorf("%+v", x)
		}
	}
}

// Of several GPUs the cheapest that holds comes first, and its whole fleet was simulated.
func TestCompare(t *testing.T) {
	var candidates []Candidate
	for _, gpu := range []string{"h100-sxm", "l40s", "a100-sxm-80gb"} {
		candidates = append(candidates, Candidate{GPU: gpu, Scenarios: []*scenarios.Scenario{
			load(t, "base", "model.name=llama-3.1-8b", "hardware.name="+gpu, "workload.arrivals.rate=30", "slo={ttft-p99: 1s}"),
		}})
	}
	candidates = append(candidates, Candidate{GPU: "t4", Reason: "does not fit"})
	c, err := Compare(context.Background(), candidates, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Verdict.Holds || len(c.Choices) != 3 || len(c.Others) != 1 || c.Best != c.Choices[0].GPU || !c.Choices[0].Checked {
		t.Fatalf("comparison %+v", c)
	}
	for i := 1; i < len(c.Choices); i++ {
		if c.Choices[i].Price.PerHour < c.Choices[i-1].Price.PerHour {
			t.Errorf("%+v comes after the dearer %+v", c.Choices[i], c.Choices[i-1])
		}
	}
	for _, x := range c.Choices {
		if float64(x.Replicas)*x.PerReplica < 30 {
			t.Errorf("%+v can't serve 30 req/s", x)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name  string
		edits []string
	}{
		{"base", nil},
		{"llama-3.1-8b-h100-slo", []string{"model.name=llama-3.1-8b", "hardware.name=h100-sxm", "slo={ttft-p99: 500ms, itl-p99: 50ms}"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := load(b, "base", c.edits...)
			for b.Loop() {
				if _, err := Ask(context.Background(), Question{Scenario: s, Sensitivity: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// seconds is a time as a scenario gives it.
func seconds(x float64) string { return time.Duration(x * 1e9).String() }
