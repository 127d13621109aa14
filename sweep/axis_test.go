package sweep

import (
	"reflect"
	"strings"
	"testing"
)

// one is the stops of an axis of one field.
func one(values ...string) (stops [][]string) {
	for _, v := range values {
		stops = append(stops, []string{v})
	}
	return stops
}

func TestParseAxis(t *testing.T) {
	for _, c := range []struct {
		text   string
		fields []string
		stops  [][]string
	}{
		{"rate=10", []string{"rate"}, one("10")},
		{"engine.max_num_seqs = 32, 64 ,128", []string{"engine.max_num_seqs"}, one("32", "64", "128")},
		{"rate=10..40:10", []string{"rate"}, one("10", "20", "30", "40")},
		{"rate=10..45:10,100", []string{"rate"}, one("10", "20", "30", "40", "100")},
		{"rate=0.1..0.5:.1", []string{"rate"}, one("0.1", "0.2", "0.3", "0.4", "0.5")},
		{"x=-1..1:.5", []string{"x"}, one("-1", "-0.5", "0", "0.5", "1")},
		{"rate=3..1:-1", []string{"rate"}, one("3", "2", "1")},
		{"seqs=1..64:x2", []string{"seqs"}, one("1", "2", "4", "8", "16", "32", "64")},
		{"seqs=8..1:x0.5", []string{"seqs"}, one("8", "4", "2", "1")},
		{"rate=0.001..1:x10", []string{"rate"}, one("0.001", "0.01", "0.1", "1")},
		{"rate=1..2:x1.1", []string{"rate"}, one("1", "1.1", "1.21", "1.331", "1.4641", "1.61051", "1.771561", "1.9487171")},
		{"cost.step_overhead=0ms..1ms:0.5ms", []string{"cost.step_overhead"}, one("0ms", "0.5ms", "1ms")},
		{"workload.prompt_tokens=512,{uniform: [1, 9]},{lognormal: [400, 0.8]}", []string{"workload.prompt_tokens"},
			one("512", "{uniform: [1, 9]}", "{lognormal: [400, 0.8]}")},
		{"trace=../a.csv,b..c.csv,'d,e.csv'", []string{"trace"}, one("../a.csv", "b..c.csv", "'d,e.csv'")},
		{"slo=ttft-p99=30ms", []string{"slo"}, one("ttft-p99=30ms")},
		{"tp,replicas=1:8, 2:4 ,4:2", []string{"tp", "replicas"}, [][]string{{"1", "8"}, {"2", "4"}, {"4", "2"}}},
		{"model,workload.prompt_tokens=a:{uniform: [1, 2]},'b:c':3", []string{"model", "workload.prompt_tokens"},
			[][]string{{"a", "{uniform: [1, 2]}"}, {"'b:c'", "3"}}},
	} {
		a, err := ParseAxis(c.text)
		if err != nil || !reflect.DeepEqual(a, Axis{c.fields, c.stops}) {
			t.Errorf("ParseAxis(%q) = %v, %v, want %v, %v", c.text, a, err, c.fields, c.stops)
		}
	}
}

func TestParseAxisRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"rate":                         "must be FIELD=VALUES",
		"=3":                           "must be FIELD=VALUES",
		"rate=":                        "has an empty value",
		"rate=1,,2":                    "has an empty value",
		"a,,b=1:2:3":                   "has an empty field",
		"a,a=1:2":                      "a is given twice",
		"rate=1,2,1":                   "1 is given twice",
		"rate=1..3:1,2":                "2 is given twice",
		"rate=10..90":                  "10..90: must be FROM..TO:STEP or FROM..TO:xFACTOR",
		"rate=010..090:10":             "must be FROM..TO:STEP",
		"rate=1e1..9e1:1":              "must be FROM..TO:STEP",
		"rate=1..9:0":                  "the step must lead from 1 to 9, is 0",
		"rate=1..9:-1":                 "the step must lead from 1 to 9, is -1",
		"rate=9..1:1":                  "the step must lead from 9 to 1, is 1",
		"rate=1..9:x1":                 "the factor must lead from 1 to 9, is 1",
		"rate=1..9:x0.5":               "the factor must lead from 1 to 9, is 0.5",
		"rate=0..9:x2":                 "both ends must be positive, are 0 and 9",
		"rate=1..9:x-2":                "the factor must lead from 1 to 9, is -2",
		"o=1ms..9s:1ms":                "must have one unit",
		"o=1ms..9ms:1":                 "must have one unit",
		"rate=0..1000000:1":            "must have at most 1000000 values, has more",
		"rate=1..2:x1.000001":          "must have at most 1000 values, has more",
		"r=1..600000:1,0.5..600000:1":  "must have at most 1000000 values, has more",
		"tp,replicas=1..4:1,2:3":       "1..4:1: fields that move together take lists, no ranges",
		"tp,replicas=1:2:3":            "1:2:3: must be 2 values with colons between them, is 3",
		"tp,replicas=1:":               "1:: has an empty value",
		"rate=1..0:1,5..9,7,,8..9:0.1": "1..0:1: the step must lead from 1 to 0, is 1\n5..9: must be",
	} {
		if a, err := ParseAxis(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseAxis(%q) = %v, %v, want %q", text, a, err, want)
		}
	}
}

// A tenth that is added ten thousand times makes a thousand.
func TestRangesAreExact(t *testing.T) {
	values, err := expand("0..1000:0.1")
	if err != nil || len(values) != 10_001 || values[3] != "0.3" || values[9_999] != "999.9" || values[10_000] != "1000" {
		t.Errorf("expand(0..1000:0.1) = %d values, %v, want 10001 to 1000", len(values), err)
	}
	values, err = expand("1000000000000..100000000000000000:x10")
	if err != nil || len(values) != 6 || values[5] != "100000000000000000" {
		t.Errorf("expand of powers of ten = %v, %v", values, err)
	}
}

func TestGridMovesTheLastAxisFastest(t *testing.T) {
	g := grid{{[]string{"a", "b"}, [][]string{{"1", "2"}, {"3", "4"}}}, {[]string{"c"}, one("x", "y", "z")}}
	if got := g.points(); got != 6 {
		t.Errorf("points() = %d, want 6", got)
	}
	for i, want := range []string{"1 2 x", "1 2 y", "1 2 z", "3 4 x", "3 4 y", "3 4 z"} {
		if got := strings.Join(g.at(i), " "); got != want {
			t.Errorf("at(%d) = %s, want %s", i, got, want)
		}
	}
}

func FuzzParseAxis(f *testing.F) {
	for _, seed := range []string{"rate=10..90:10", "seqs=1..64:x2", "a,b=1:2,{c: [d, 'e']}:\"f\"", "a=0.5ms..9ms:1ms", "a=]},["} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAxis(text)
		if err != nil {
			return
		}
		if len(a.Fields) == 0 || len(a.Stops) == 0 || len(a.Stops) > MaxRuns {
			t.Fatalf("ParseAxis(%q) = %d fields, %d stops", text, len(a.Fields), len(a.Stops))
		}
		for _, stop := range a.Stops {
			if len(stop) != len(a.Fields) {
				t.Fatalf("ParseAxis(%q) has the stop %q of %d fields", text, stop, len(a.Fields))
			}
			for _, v := range stop {
				if v == "" {
					t.Fatalf("ParseAxis(%q) has an empty value", text)
				}
			}
		}
	})
}
