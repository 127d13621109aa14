package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file whose lines end in CR is one line to a reader; the error says so, whatever comes of that line.
func TestLinesThatEndInCR(t *testing.T) {
	const want = ":1: lines must end in LF or CRLF, end in CR"
	for name, text := range map[string]string{
		"llmsim.csv": "arrival_s,input_tokens,output_tokens\r0,10,5\r1,10,5\r",
		"extra.csv":  "arrived_at,num_prefill_tokens,num_decode_tokens,note\r0,10,5,x\r",
		"long.csv":   "arrival_s,input_tokens,output_tokens\r" + strings.Repeat("0,10,5\r", maxLine/7),
		"keys.jsonl": strings.Repeat(`{"timestamp": 1, "input_length": 2, "output_length": 3}`+"\r", 2),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTrace(path, TraceOptions{}); err == nil || err.Error() != path+want {
			t.Errorf("OpenTrace(%s) = %v, want %s%s", name, err, path, want)
		}
	}
}

// A header in other letters comes near the format it has the words of.
func TestNearestFormatWhateverTheCase(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{"timestamp,contexttokens,generatedtokens",
			`nearest is azure, which also needs "TIMESTAMP" (not "timestamp"), "ContextTokens" (not "contexttokens"), "GeneratedTokens" (not "generatedtokens");`},
		{"Arrival_s,input_tokens,output_tokens", `nearest is llmsim, which also needs "arrival_s" (not "Arrival_s");`},
		{"timestamp,Request tokens,Response tokens", `nearest is burstgpt, which also needs "Timestamp" (not "timestamp");`},
	} {
		if _, err := detect(strings.Split(c.header, ","), false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("detect(%s) = %v, want %s", c.header, err, c.want)
		}
	}
}
