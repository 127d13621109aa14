package workload

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"llmsim/internal/shared"
)

const runHeader = "block_hash_ranges,arrival_s,input_tokens,output_tokens\n"

// Ranges are read wherever their column stands, and name no more blocks than the prompt has.
func TestBlockRanges(t *testing.T) {
	for _, c := range []struct {
		cell string
		want []uint64 // of a prompt of 40 tokens: three blocks
	}{
		{"3-5", []uint64{3, 4, 5}},
		{"3-3", []uint64{3}},
		{"9 3", []uint64{9, 3}},
		{" 1  4-5 ", []uint64{1, 4, 5}},
		{"\"7 8\"", []uint64{7, 8}},
		{"18446744073709551615", []uint64{1<<64 - 1}},
		{"", nil},
	} {
		trace, err := openText(runHeader+c.cell+",0,40,1\n", TraceOptions{Strict: true}, heldRows)
		if err != nil {
			t.Errorf("OpenTrace with ranges %q: %v", c.cell, err)
			continue
		}
		if got := replayAll(t, trace)[0].Prefix; trace.Format != "vllm-run" || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s ranges %q = %v, want %v", trace.Format, c.cell, got, c.want)
		}
	}
}

func TestMalformedBlockRangesAreUnparsableRows(t *testing.T) {
	const number = ` must be a whole number or two, LO-HI, with LO <= HI, is `
	for _, c := range []struct{ cell, want string }{
		{"0-3", `must name at most the 3 blocks of 40 input tokens, is "0-3"`},
		{"0-2 9", `must name at most the 3 blocks of 40 input tokens, is "0-2 9"`},
		{"0-18446744073709551615", `must name at most the 3 blocks of 40 input tokens, is "0-18446744073709551615"`},
		{"1 5-4", "range 2" + number + `"1 5-4"`},
		{"-4", "range 1" + number + `"-4"`},
		{"4-", "range 1" + number + `"4-"`},
		{"1-2-3", "range 1" + number + `"1-2-3"`},
		{"1;2", "range 1" + number + `"1;2"`},
		{"18446744073709551616", "range 1" + number + `"18446744073709551616"`},
	} {
		text := runHeader + c.cell + ",0,40,1\n1,0,40,1\n"
		_, err := openText(text, TraceOptions{Strict: true}, heldRows)
		if want := "x.csv:2: block_hash_ranges: " + c.want; err == nil || err.Error() != want {
			t.Errorf("OpenTrace with ranges %q = %v, want %v", c.cell, err, want)
		}
		trace, err := openText(text, TraceOptions{}, heldRows)
		if err != nil || trace.Account.Kept != 1 || trace.Account.Skipped[0].Reason != Unparsable {
			t.Errorf("OpenTrace with ranges %q = %+v, %v, want one row of two", c.cell, trace, err)
		}
	}
	// What is no request anyway needs no blocks.
	trace, err := openText(runHeader+"0-9,0,0,1\n1,0,40,1\n", TraceOptions{Strict: true}, heldRows)
	if err != nil || trace.Account.Skipped[0].Reason != ZeroInput {
		t.Errorf("OpenTrace of a row without input = %+v, %v, want it skipped as that", trace, err)
	}
}

// The measured runs state for every request how many of its tokens an infinite cache would have
// had; the ceiling that is found from their blocks is the sum.
func TestMeasuredRunsStateTheirCeiling(t *testing.T) {
	for _, file := range []string{"rtx4090-llama-3.1-8b.requests.csv", "rtxpro6000-llama-3.1-8b.requests.csv"} {
		path := shared.Data(t, "measured", "vllm-runs", file)
		trace := mustOpen(t, path, TraceOptions{Strict: true})
		in, err := Inspect(trace)
		if err != nil {
			t.Fatal(err)
		}
		if trace.Format != "vllm-run" || trace.Requests != 300 || !trace.HasPrefix || len(trace.Notes) != 0 {
			t.Errorf("OpenTrace(%s) = %s of %d, prefix %v, notes %q", path, trace.Format, trace.Requests, trace.HasPrefix, trace.Notes)
		}
		if want := stated(t, path); math.Abs(in.PrefixCeiling-want) > 1e-12 {
			t.Errorf("Inspect(%s).PrefixCeiling = %v, want %v", path, in.PrefixCeiling, want)
		}
	}
}

// stated is the share of input tokens that the file says an infinite cache would have had.
func stated(t *testing.T, path string) float64 {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	header := strings.Split(lines[0], ",")
	sum := func(column string) (total int) {
		for _, line := range lines[1:] {
			for i, cell := range strings.Split(line, ",") {
				if header[i] == column {
					n, err := parseTokens([]byte(cell))
					if err != nil {
						t.Fatal(err)
					}
					total += int(n)
				}
			}
		}
		return total
	}
	return float64(sum("prefix_hit_ub_tokens")) / float64(sum("input_tokens"))
}
