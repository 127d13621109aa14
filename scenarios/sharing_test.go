package scenarios

import (
	"slices"
	"strings"
	"testing"

	"llmsim/sim"
	"llmsim/workload"
)

// What came of a run.
type outcome struct {
	arrived       []workload.Request
	finished      []sim.Finished
	refused       int
	queries, hits int64
}

func play(t testing.TB, s *Scenario) (o outcome) {
	t.Helper()
	source, _, err := s.Source()
	if err != nil {
		t.Fatalf("%s: Source(): %v", s.Name, err)
	}
	run := sim.NewRun(s.Cluster(), source)
	for p, more := run.Advance(); more; p, more = run.Advance() {
		o.arrived = append(o.arrived, p.Arrived...)
		o.refused += len(p.Refused)
		for i := range p.Steps {
			o.finished = append(o.finished, p.Steps[i].Finished...)
			o.queries += p.Steps[i].CacheQueries
			o.hits += p.Steps[i].CacheHits
		}
	}
	return o
}

const vllm = "engine: {policy: vllm-v1}\n"

// With room for all, of a prompt that starts with a system prompt the blocks that lie wholly
// within it are found, but for the first of each group: 64 tokens are four blocks, 70 too, and of
// a prompt of 48 two, since a token is always computed.
func TestSharedSystemPromptsAreHit(t *testing.T) {
	for _, c := range []struct {
		text string
		hit  int64 // of a prompt
	}{
		{"prefix: {groups: 2, tokens: 64}, prompt_tokens: 100", 64},
		{"prefix: {groups: 2, tokens: 70}, prompt_tokens: 100", 64},
		{"prefix: {groups: 2, tokens: 64}, prompt_tokens: 48", 32},
		{"prefix: {groups: 2, tokens: 15}, prompt_tokens: 100", 0},
		{"prefix: {groups: 2, tokens: 64}, prompt_tokens: 100, arrivals: {process: closed, concurrency: 5}", 64},
		{"prefix: {groups: 2, tokens: 64}, prompt_tokens: 100, arrivals: {process: all-at-once}", 64},
	} {
		s := load(t, write(t, vllm+"workload: {requests: 300, output_tokens: 5, "+c.text+"}"))
		o := play(t, s)
		if want := (300 - 2) * c.hit; len(o.finished) != 300 || o.queries != int64(300*s.Workload.Prompt.A) || o.hits != want {
			t.Errorf("%s: %d finished, %d of %d tokens hit, want %d", c.text, len(o.finished), o.hits, o.queries, want)
		}
	}
	off := load(t, write(t, "workload: {requests: 300, prompt_tokens: 100, prefix: {groups: 2, tokens: 64}}"))
	if o := play(t, off); o.hits != 0 {
		t.Errorf("policy classic: %d hits, want none", o.hits)
	}
}

// With room for all, a turn finds every full block of what was said before it, of the answers too.
// By hand, 40 tokens in and 20 out, in blocks of 16: prompts of 40, 100 and 160 tokens, of which
// nothing, 3 and 7 blocks were computed (the last token of an answer never is). In blocks of 8
// they are 7 and 14.
func TestSessionsHitAllTheirContext(t *testing.T) {
	for _, c := range []struct {
		text string
		hits int64 // of a session
	}{
		{vllm, (3 + 7) * 16},
		{"engine: {policy: vllm-v1, async_scheduling: false}\n", (3 + 7) * 16},
		{"engine: {policy: vllm-v1, models: vllm-0.19}\n", (3 + 7) * 16},
		{"engine: {policy: vllm-v1, block_size: 8}\n", (7 + 14) * 8},
	} {
		for _, starts := range []string{"poisson, rate: 3", "all-at-once", "constant, rate: 2", "gamma, rate: 5, cv: 4"} {
			text := c.text + "workload: {arrivals: {process: " + starts + "}, sessions: {turns: 3, think_time: 2s}, prompt_tokens: 40, output_tokens: 20, requests: 60}"
			o := play(t, load(t, write(t, text)))
			if len(o.finished) != 60 || o.queries != 20*300 || o.hits != 20*c.hits {
				t.Errorf("%s: %d finished, %d of %d tokens hit, want %d of 6000", text, len(o.finished), o.hits, o.queries, 20*c.hits)
			}
		}
	}
}

// A system prompt of 32 tokens gives every first turn but one two blocks more.
func TestSessionsShareASystemPrompt(t *testing.T) {
	o := play(t, load(t, write(t, vllm+"workload: {arrivals: {rate: 3}, sessions: {turns: 3, think_time: 2s}, prompt_tokens: 40, output_tokens: 20, requests: 60, prefix: {groups: 1, tokens: 32}}")))
	if want := int64(20*(3+7)*16 + 19*32); o.hits != want {
		t.Errorf("%d tokens hit, want %d", o.hits, want)
	}
}

// A session ends before it outgrows the model's context, or the cache; nothing is refused then.
func TestSessionsEndWithTheirContext(t *testing.T) {
	for _, engine := range []string{"policy: vllm-v1, max_model_len: 400", "policy: classic, num_gpu_blocks: 26"} {
		s := load(t, write(t, "engine: {"+engine+"}\nworkload: {arrivals: {rate: 1}, sessions: {turns: 50}, prompt_tokens: 40, output_tokens: 20, requests: 60}"))
		o := play(t, s)
		if last := o.arrived[len(o.arrived)-1]; len(o.finished) != 60 || o.refused != 0 || last.Session != 10 {
			t.Errorf("%s: %d finished, %d refused, %d sessions, want 60, 0 and 10 of six turns", engine, len(o.finished), o.refused, last.Session)
		}
	}
}

func TestAssumedHitRateIsNoted(t *testing.T) {
	const note = "no prompts share a prefix: the prefix hit rate is assumed to be 0"
	for _, c := range []struct {
		text string
		want bool
	}{
		{vllm, true},
		{vllm + "workload: {arrivals: {process: closed, concurrency: 2}}", true},
		{"engine: {policy: vllm-v1, enable_prefix_caching: false}", false},
		{"", false},
		{vllm + "workload: {prefix: {groups: 2, tokens: 64}}", false},
		{vllm + "workload: {sessions: {turns: 2}}", false},
	} {
		if _, notes := requests(t, load(t, write(t, c.text)), 1); slices.Contains(notes, note) != c.want {
			t.Errorf("%q: notes %q, want the assumption in them: %v", c.text, notes, c.want)
		}
	}
}

func TestFaultsOfSharing(t *testing.T) {
	const at = "chat.yaml:1: workload."
	for _, c := range []struct{ text, want string }{
		{"workload: {prefix: 3}", at + "prefix: must be a block of keys, is 3"},
		{"workload: {prefix: {groups: 2}}", at + "prefix.tokens: is missing"},
		{"workload: {prefix: {groups: 0, tokens: 5}}", at + "prefix.groups: must be positive, is 0"},
		{"workload: {prefix: {groups: 2e6, tokens: 5}}", at + "prefix.groups: must be at most 1000000, is 2e6"},
		{"workload: {prefix: {groups: 2, tokens: 0}}", at + "prefix.tokens: must be positive, is 0"},
		{"workload: {prefix: {group: 2, groups: 2, tokens: 7}}", at + "prefix.group: unknown key, did you mean groups?"},
		{"workload: {sessions: {}}", at + "sessions.turns: is missing"},
		{"workload: {sessions: {turns: 0}}", at + "sessions.turns: must be positive, is 0"},
		{"workload: {sessions: {turns: many}}",
			at + `sessions.turns: must be a number of turns or {uniform: [lo, hi]}, {normal: [mean, sd]}, {lognormal: [median, sigma]} or {empirical: file}, is "many"`},
		{"workload: {sessions: {turns: 2, think_time: 3}}", at + "sessions.think_time: must be a duration with its unit, such as 25ms, is 3"},
		{"workload: {sessions: {turns: 2}, arrivals: {process: closed, concurrency: 2}}",
			at + "sessions: makes no sense with process closed, whose streams wait for answers themselves: have sessions start by poisson, gamma, constant or all-at-once"},
		{"workload: {sessions: {turns: 2}, arrivals: {process: trace, file: trace.csv}}",
			at + "sessions: makes no sense with process trace, which brings its own sessions"},
		{"workload: {prefix: {groups: 2, tokens: 7}, arrivals: {process: trace, file: trace.csv}}",
			at + "prefix: makes no sense with process trace, which brings its own prefixes"},
	} {
		if got := faults(t, c.text); !slices.Equal(got, []string{c.want}) {
			t.Errorf("Load(%q) = %q\nwant %q", c.text, got, c.want)
		}
	}
	s := load(t, write(t, "workload: {sessions: {turns: {empirical: lengths.csv}}}"))
	if _, _, err := s.Source(); err == nil || !strings.HasSuffix(err.Error(), "lengths.csv: must be a list of numbers or a distribution function to draw turns from, is a trace") {
		t.Errorf("Source() with turns from a trace: %v", err)
	}
}

func TestSharingIsInTheDigestAndTheDescription(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []struct{ text, want string }{
		{"requests: 9", "Poisson arrivals at 80 req/s, 512 in / 64 out tokens"},
		{"requests: 9, prefix: {groups: 1, tokens: 64}", "Poisson arrivals at 80 req/s, 512 in / 64 out tokens, one system prompt of 64 tokens"},
		{"requests: 9, prefix: {groups: 3, tokens: 64}", "Poisson arrivals at 80 req/s, 512 in / 64 out tokens, 3 system prompts of 64 tokens"},
		{"requests: 9, sessions: {turns: 4}", "Poisson arrivals at 80 sessions/s, sessions of 4 turns, 512 new in / 64 out tokens a turn"},
		{"requests: 9, sessions: {turns: {uniform: [1, 9]}, think_time: 5s}",
			"Poisson arrivals at 80 sessions/s, sessions of 1-9 turns that think for 5s, 512 new in / 64 out tokens a turn"},
	} {
		s := load(t, write(t, "workload: {"+c.text+"}"))
		if got := s.Workload.String(); got != c.want {
			t.Errorf("%s: String() = %q, want %q", c.text, got, c.want)
		}
		d := digest(t, s)
		if other, twice := seen[d]; twice {
			t.Errorf("Digest() of %q is that of %q", c.text, other)
		}
		seen[d] = c.text
	}
}
