package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page is one file that asks for no other, and is no larger than it needs to be.
func TestPagesStandAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	inFolder(t, nil)
	simulated(t, "--requests", "500", "--html", "run.html")
	for name, args := range map[string][]string{
		"plan.html":    {"--rate", "80"},
		"no.html":      {"--rate", "90", "--replicas", "1"},
		"closed.html":  {"--scenario", "base", "--set", "workload.arrivals={process: closed, concurrency: 4}", "--requests", "300"},
		"compare.html": {"--model", "qwen2.5-7b", "--policy", "vllm-v1", "--gpu", "any", "--rate", "20"},
	} {
		drawn := invoke(t.Context(), append([]string{"plan", "--html", name}, args...)...)
		plain := drawn
		if name != "compare.html" { // which takes long
			plain = invoke(t.Context(), append([]string{"plan"}, args...)...)
		}
		if drawn.code != plain.code || drawn.stdout != plain.stdout || drawn.errs != "" || drawn.code > exitNo {
			t.Errorf("%v, want what it says without --html: %v", drawn, plain)
		}
	}
	for name, charts := range map[string]int{"run.html": 6, "plan.html": 8, "no.html": 8, "closed.html": 6, "compare.html": 1} {
		text := readText(t, name)
		if n := strings.Count(text, `<figure class="chart"`); n != charts {
			t.Errorf("%s has %d charts, want %d", name, n, charts)
		}
		if len(text) > 400_000 {
			t.Errorf("%s has %d bytes, want less than 400,000", name, len(text))
		}
		for _, m := range asks.FindAllString(text, -1) {
			t.Errorf("%s asks for something: %s", name, m)
		}
	}
	for name, want := range map[string][]string{
		"plan.html": {"Holds:", "2 replicas, 2 GPUs", "saturates at 79", "sequence slots", "95%", "KV cache", "Sensitivity"},
		"no.html":   {"Does not hold:", "Overload"},
	} {
		for _, w := range want {
			if !strings.Contains(readText(t, name), w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
	}
	once := readText(t, "plan.html")
	invoke(t.Context(), "plan", "--rate", "80", "--html", "plan.html")
	if readText(t, "plan.html") != once {
		t.Error("plan.html differs between two runs")
	}
}

// asks finds what makes a browser load something.
var asks = regexp.MustCompile(`(?i)\b(src|srcset|href|action|poster)\s*=\s*"(?:[^d"]|d[^a"])[^"]*"|url\(|@import|<(iframe|object|embed|img|base)\b|\b(fetch|XMLHttpRequest|WebSocket|sendBeacon|EventSource|importScripts)\b`)

// Every output is written, or none: also where one name is wrong.
func TestPicturesThatAreRefused(t *testing.T) {
	inFolder(t, map[string]string{"x.csv": fewRequests})
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--plot: must end in .png, .svg, .pdf, is run.gif", []string{"simulate", "--plot", "run.gif", "--html", "run.html"}},
		{"--html: needs a file name, is empty", []string{"simulate", "--html", ""}},
		{"--html: needs a file name, is empty", []string{"plan", "--html", " "}},
		{"--html: absent/x.html: no such file or directory", []string{"plan", "--html", "absent/x.html"}},
		{"--timeline: absent/x.json: no such file or directory", []string{"simulate", "--timeline", "absent/x.json", "--html", "run.html"}},
		{"--html same, --timeline ./same: must be two files, are one", []string{"simulate", "--html", "same", "--timeline", "./same"}},
		{"--html x.csv, --trace x.csv: must be two files, are one", []string{"plan", "--trace", "x.csv", "--html", "x.csv"}},
		{"--timeline x.csv, --trace x.csv: must be two files, are one", []string{"simulate", "--trace", "x.csv", "--timeline", "x.csv"}},
		{"--gpu any finds how many replicas it takes", []string{"plan", "--gpu", "any", "--model", "qwen2.5-7b", "--policy", "vllm-v1", "--replicas", "2", "--html", "x.html"}},
	} {
		refused(t, c.want, c.args...)
	}
}

func TestPlotFiles(t *testing.T) {
	inFolder(t, nil)
	for name, magic := range map[string]string{"a.png": "\x89PNG", "a.svg": "<?xml", "a.PDF": "%PDF"} {
		plain := simulated(t, "--requests", "200")
		if out := simulated(t, "--requests", "200", "--plot", name); out != plain {
			t.Errorf("simulate --plot %s prints %q, want what it prints without", name, out)
		}
		if !strings.HasPrefix(readText(t, name), magic) {
			t.Errorf("%s starts with %.10q, want %q", name, readText(t, name), magic)
		}
	}
}

// An event of the trace-event format, with what this program uses of it. Unknown keys are errors.
type event struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat"`
	Ph   string         `json:"ph"`
	Pid  *int64         `json:"pid"`
	Tid  *int64         `json:"tid"`
	Ts   *json.Number   `json:"ts"`
	Dur  *json.Number   `json:"dur"`
	ID   string         `json:"id"`
	S    string         `json:"s"`
	Args map[string]any `json:"args"`
}

// nanoseconds of a decimal number of microseconds with at most three decimals.
func nanoseconds(t *testing.T, n *json.Number) int64 {
	t.Helper()
	if n == nil {
		t.Fatal("an event without its time")
	}
	whole, rest, _ := strings.Cut(n.String(), ".")
	var ns int64
	if _, err := fmt.Sscan(whole+(rest + "000")[:3], &ns); err != nil || len(rest) > 3 || ns < 0 {
		t.Fatalf("%s: %v, want microseconds to the nanosecond", n, err)
	}
	return ns
}

// The timeline of a run of 10,000 requests keeps the trace-event format: every phase has what it needs, events of
// a thread nest, asynchronous ones begin and end in pairs; and it tells of every step and every request.
func TestTimelineKeepsTheTraceEventFormat(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	inFolder(t, nil)
	result := flatten(t, simulated(t, "--policy", "vllm-v1", "--rate", "30", "--set", "engine.num_gpu_blocks=200", "--set", "engine.max_model_len=2048", "--replicas", "2",
		"--requests", "10000", "--timeline", "t.json", "--format", "json"))
	file, err := os.Open("t.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var trace struct {
		DisplayTimeUnit string  `json:"displayTimeUnit"`
		TraceEvents     []event `json:"traceEvents"`
	}
	d := json.NewDecoder(file)
	d.DisallowUnknownFields()
	if err := d.Decode(&trace); err != nil {
		t.Fatal(err)
	}
	if trace.DisplayTimeUnit != "ms" {
		t.Errorf("displayTimeUnit = %q, want ms or ns", trace.DisplayTimeUnit)
	}
	type thread struct{ pid, tid int64 }
	type span struct{ from, to int64 }
	spans := map[thread][]span{}
	named := map[thread]bool{}
	open, counters := map[string]int64{}, map[string]int64{}
	var steps, requests, preemptions, waited int
	for i, e := range trace.TraceEvents {
		if e.Name == "" || e.Pid == nil || e.Tid == nil {
			t.Fatalf("event %d = %+v, want a name, a process and a thread", i, e)
		}
		at, on := nanoseconds(t, e.Ts), thread{*e.Pid, *e.Tid}
		switch e.Ph {
		case "M":
			if name, ok := e.Args["name"].(string); !ok || name == "" || !slices.Contains([]string{"process_name", "thread_name"}, e.Name) {
				t.Fatalf("event %d = %+v, want a name for a process or thread", i, e)
			}
			named[on] = true
		case "X":
			if !named[on] {
				t.Fatalf("event %d = %+v is on a thread without a name", i, e)
			}
			spans[on] = append(spans[on], span{at, at + nanoseconds(t, e.Dur)})
			if *e.Tid == 0 {
				steps++
				if e.Args["bound"] == "" || e.Args["batch"] == nil || e.Args["tokens"] == nil {
					t.Fatalf("step %+v, want its batch, tokens and bound", e)
				}
			} else if strings.HasPrefix(e.Name, "request ") {
				requests++
			}
		case "b":
			if _, twice := open[e.ID]; twice || e.Cat == "" || e.ID == "" {
				t.Fatalf("event %d = %+v begins twice, or lacks its category or id", i, e)
			}
			open[e.ID] = at
		case "e":
			if from, ok := open[e.ID]; !ok || from > at || e.Cat == "" {
				t.Fatalf("event %d = %+v ends what has not begun", i, e)
			}
			delete(open, e.ID)
			waited++
		case "i":
			if e.S != "t" && e.S != "p" && e.S != "g" {
				t.Fatalf("event %d = %+v, want a scope", i, e)
			}
			if e.Name == "preemption" {
				preemptions++
			}
		case "C":
			key := fmt.Sprint(*e.Pid, e.Name)
			if last, ok := counters[key]; ok && at < last || len(e.Args) == 0 {
				t.Fatalf("event %d = %+v, want counters in the order of time", i, e)
			}
			counters[key] = at
			for _, v := range e.Args {
				if _, ok := v.(float64); !ok {
					t.Fatalf("event %d = %+v, want numbers", i, e)
				}
			}
		default:
			t.Fatalf("event %d = %+v has a phase that is not used", i, e)
		}
	}
	if len(open) > 0 {
		t.Errorf("%d spans don't end", len(open))
	}
	for on, all := range spans {
		slices.SortStableFunc(all, func(a, b span) int {
			if a.from != b.from {
				return int(max(min(a.from-b.from, 1), -1))
			}
			return int(max(min(b.to-a.to, 1), -1)) // the outer first
		})
		var stack []span
		for _, s := range all {
			for len(stack) > 0 && stack[len(stack)-1].to <= s.from {
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 0 && s.to > stack[len(stack)-1].to {
				t.Fatalf("thread %v: %v overlaps %v, want it within or after", on, s, stack[len(stack)-1])
			}
			stack = append(stack, s)
		}
	}
	for _, c := range []struct {
		key string
		got int
	}{{"steps.count", steps}, {"requests.completed", requests}, {"preemptions.total", preemptions}} {
		if want := figureAt(t, result, c.key); float64(c.got) != want || want == 0 {
			t.Errorf("the timeline tells %d as %s, want %v and some", c.got, c.key, want)
		}
	}
	if requests != 10_000 || waited == 0 {
		t.Errorf("%d requests, %d of which waited, want 10000 and some", requests, waited)
	}
}
