package conformance

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmsim/sim/vllmv1"
)

// tiny is a whole recording: one request of two outputs, by the rules of section 12.
const tiny = `{"name":"tiny","config":{"max_num_seqs":4,"max_num_batched_tokens":64,"max_model_len":32,` +
	`"long_prefill_token_threshold":0,"enable_chunked_prefill":true,"enable_prefix_caching":false,"policy":"fcfs",` +
	`"scheduler_reserve_full_isl":true,"watermark":0.0,"num_gpu_blocks":9,"block_size":4,"async_scheduling":false},` +
	`"requests":[{"id":"a","prompt":[5,6,7,8],"max_tokens":2,"arrive_iter":1,"priority":0,"arrival_time":0.0,"gen_base":100}],` +
	`"events":[{"ev":"add","id":"a"},` +
	`{"ev":"schedule","step":1,"sched":[["a",4,0,"new"]],"preempted":[],"running":["a"],"waiting":[],"skipped":[],"free":7,"blocks":{"a":[1]}},` +
	`{"ev":"update","outputs":[["a",1]],"finished":[],"free":7,"running":["a"]},` +
	`{"ev":"schedule","step":2,"sched":[["a",1,4,"running"]],"preempted":[],"running":["a"],"waiting":[],"skipped":[],"free":6,"blocks":{"a":[1,2]}},` +
	`{"ev":"update","outputs":[["a",1]],"finished":[["a","length"]],"free":8,"running":[]},` +
	`{"ev":"schedule","step":3,"sched":[],"preempted":[],"running":[],"waiting":[],"skipped":[],"free":8,"blocks":{}},` +
	`{"ev":"update","outputs":[],"finished":[],"free":8,"running":[]}],"truncated":false,"iterations":4}` + "\n"

func profile(t testing.TB) vllmv1.Profile {
	t.Helper()
	p, err := vllmv1.FindProfile(vllmv1.DefaultProfile)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func read(text string) ([]*Case, error) {
	r, err := NewReader("rec", strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var all []*Case
	for {
		k, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, k)
	}
}

func pack(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Plain and compressed files are the same, whatever they are called; the last line may lack its end.
func TestReads(t *testing.T) {
	for _, text := range []string{tiny + tiny, pack(t, tiny+tiny), tiny + strings.TrimSpace(tiny), pack(t, tiny) + pack(t, tiny)} {
		cases, err := read(text)
		if err != nil || len(cases) != 2 || cases[1].Name != "tiny" || cases[1].Line != 2 || len(cases[1].Events) != 7 {
			t.Errorf("read(%.20q...) = %d cases, %v, want 2 of 7 events", text, len(cases), err)
		}
	}
}

// Every fault names file, line, field, and what is there instead.
func TestReaderFaults(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(tiny, old) {
			t.Fatalf("the recording has no %s", old)
		}
		return tiny + strings.Replace(tiny, old, new, 1)
	}
	packed := pack(t, tiny+tiny)
	for _, c := range []struct{ text, want string }{
		{"", "rec: holds no case"},
		{"\n" + tiny, "rec:1: is empty"},
		{tiny + "\n", "rec:2: is empty"},
		{packed[:len(packed)/2], "rec:1: cannot be read: unexpected EOF"},
		{packed[:len(packed)-4], "rec:3: cannot be read: unexpected EOF"},
		{packed[:5], "rec: cannot be unpacked: unexpected EOF"},
		{tiny + `{"name":`, "rec:2: column 8: is not JSON: unexpected end of JSON input"},
		{tiny + "[]", "rec:2: must be an object, is a list"},
		{tiny + "{}", "rec:2: name: is missing"},
		{swap(`"truncated":false`, `"truncated":null`), "rec:2: truncated: must be true or false, is null"},
		{swap(`"iterations":4`, `"iterations":4,"more":1`), "rec:2: more: is not a field here"},
		{swap(`"iterations":4`, `"iterations":9999999`), "rec:2: iterations: must be an integer from 0 to 1048576, is 9999999"},
		{swap(`"iterations":4`, `"iterations":4,"name":""`), "rec:2: name: is given twice"},
		{swap(`"policy":"fcfs"`, `"policy":"lifo"`), `rec:2: config.policy: must be one of fcfs, priority, is "lifo"`},
		{swap(`"num_gpu_blocks":9`, `"num_gpu_blocks":1`), "rec:2: config.num_gpu_blocks: must be an integer from 2 to 1048576, is 1"},
		{swap(`"watermark":0.0`, `"watermark":-0.5`), "rec:2: config.watermark: must be at least 0 and below 1, is -0.5"},
		{swap(`"watermark":0.0`, `"watermark":1e999`), "rec:2: config.watermark: must be a number, is 1e999"},
		{swap(`"block_size":4,`, ``), "rec:2: config.block_size: is missing"},
		{swap(`[5,6,7,8]`, `[5,6,"7",8]`), `rec:2: requests[0].prompt[2]: must be an integer, is "7"`},
		{swap(`[5,6,7,8]`, `[5,6,7.5,8]`), `rec:2: requests[0].prompt[2]: must be an integer from -9007199254740992 to 9007199254740992, is 7.5`},
		{swap(`[5,6,7,8]`, `[]`), "rec:2: requests[0].prompt: must have 1 to max_model_len = 32 tokens, has 0"},
		{swap(`"max_model_len":32`, `"max_model_len":3`), "rec:2: requests[0].prompt: must have 1 to max_model_len = 3 tokens, has 4"},
		{swap(`"max_tokens":2`, `"max_tokens":0`), "rec:2: requests[0].max_tokens: must be an integer from 1"},
		{swap(`"ev":"add"`, `"ev":"abort"`), `rec:2: events[0].ev: must be one of add, schedule, update, is "abort"`},
		{swap(`"ev":"add","id"`, `"ev":"add","free":1,"id"`), `rec:2: events[0].free: is not a field of "add"`},
		{swap(`"step":1,`, ``), "rec:2: events[1].step: is missing"},
		{swap(`["a",4,0,"new"]`, `["a",4,0]`), "rec:2: events[1].sched[0]: must have 4 elements, has 3"},
		{swap(`["a",4,0,"new"]`, `["a",4,0,"new",1]`), "rec:2: events[1].sched[0]: must have 4 elements, has more"},
		{swap(`["a",4,0,"new"]`, `["a",4,0,"old"]`), `rec:2: events[1].sched[0][3]: must be one of new, resumed, running, is "old"`},
		{swap(`{"a":[1]}`, `{"a":[1],"a":[2]}`), "rec:2: events[1].blocks.a: is given twice"},
		{swap(`{"a":[1]}`, `{"a b":[{}]}`), `rec:2: events[1].blocks."a b"[0]: must be an integer, is an object`},
	} {
		_, err := read(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("read(...%s) = %v, want %s", c.text[max(0, len(c.text)-30):], err, c.want)
		}
	}
	twice := strings.Replace(tiny, `"requests":[`, `"requests":[{"id":"a","prompt":[1],"max_tokens":2,"arrive_iter":1,"priority":0,"arrival_time":0,"gen_base":1},`, 1)
	if _, err := read(twice); err == nil || err.Error() != "rec:1: requests[1].id: a is given to two requests" {
		t.Errorf("read = %v", err)
	}
}

// A line without end is refused before it fills the memory.
func TestLongLine(t *testing.T) {
	r, err := NewReader("rec", io.LimitReader(zeros{}, 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err == nil || err.Error() != "rec:1: is longer than 16 MiB" {
		t.Errorf("Next = %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Files that are none are refused by name.
func TestCheckFaults(t *testing.T) {
	dir := t.TempDir()
	if _, err := Check(t.Context(), []string{dir}, profile(t)); err == nil || err.Error() != dir+": must be a file, is a directory" {
		t.Errorf("Check(directory) = %v", err)
	}
	absent := filepath.Join(dir, "absent")
	if _, err := Check(t.Context(), []string{absent}, profile(t)); err == nil || !strings.Contains(err.Error(), absent) {
		t.Errorf("Check(absent) = %v", err)
	}
	// What versions without a setting leave out, a version with it needs.
	path := filepath.Join(dir, "old")
	if err := os.WriteFile(path, []byte(strings.Replace(tiny, `"watermark":0.0,`, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), []string{path}, profile(t)); err == nil || !strings.HasPrefix(err.Error(), path+":1: config.watermark: is missing") {
		t.Errorf("Check(without watermark) = %v", err)
	}
	classic, err := vllmv1.FindProfile("vllm-classic-v1")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Check(t.Context(), []string{path}, classic); err != nil || r.Mismatches != 0 {
		t.Errorf("Check(without watermark, classic) = %+v, %v", r, err)
	}
}

// Whatever a line holds, it is read and replayed, or refused with its place.
func FuzzRead(f *testing.F) {
	f.Add([]byte(tiny))
	f.Add([]byte(strings.Replace(tiny, `"async_scheduling":false`, `"async_scheduling":true`, 1)))
	f.Add([]byte(strings.Replace(tiny, `"a"`, `"\u00e9\n"`, -1)))
	f.Add([]byte(strings.Replace(tiny, `:false},"requests"`, `:true},"requests"`, 1)))
	f.Add([]byte("{\"\":[]}"))
	f.Add([]byte(pack(f, tiny)))
	rules := profile(f).Rules
	f.Fuzz(func(t *testing.T, text []byte) {
		cases, err := read(string(text))
		if err != nil && !strings.HasPrefix(err.Error(), "rec") {
			t.Errorf("read = %v, which names no place", err)
		}
		for _, k := range cases {
			if k.Config.NumGPUBlocks > 10_000 {
				continue // right, only slow
			}
			if _, _, err := Replay(k, rules); err != nil && !strings.HasPrefix(err.Error(), "rec:") {
				t.Errorf("Replay = %v, which names no place", err)
			}
		}
	})
}
