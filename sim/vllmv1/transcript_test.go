package vllmv1

import (
	"fmt"
	"strings"
	"testing"

	"llmsim/internal/transcript"
)

// The rules in conversation: s01 to s25 are the scenarios that are easy to get wrong, the others
// what is left to say. Commands:
//
//	new usable=10           an engine over so many blocks (of 16 tokens), one iteration a turn;
//	                        models=vllm-0.28 policy=fcfs caching=off async=off budget=8192 seqs=256
//	                        len=1000 chunked=on threshold=0 reserve=on watermark=0
//	add NAME PROMPT/OUTPUT  prio=0 arrival=0 like=NAME (same prompt tokens, as far as they go)
//	                        stop=K (output K, from 1, is a stop token) min=0
//	turn, turn times=3      iterations of the engine
//	schedule, update        the scheduler alone: decide a step; apply the oldest decided
//	abort NAME
//	state NAME, blocks NAME, free, hits
//
// "1: a:40 b:8@32 new" is step 1 with 40 tokens of a and 8 of b on 32 that are computed; admissions
// are marked. "1> a b" says that step 1 has run and emitted a token of each. Every command also
// checks what must always hold.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, "testdata/*.txt", func() transcript.Conversation {
		var k talk
		return k.answer
	})
}

type talk struct {
	*Engine
	bases   map[string]Token // of outputs
	prompts map[string]Token
	said    strings.Builder
}

func (k *talk) say(format string, args ...any) { fmt.Fprintf(&k.said, format+"\n", args...) }

// Sample counts up from a request's base.
func (k *talk) Sample(id string, n int) Token { return k.bases[id] + Token(n) }

func (k *talk) answer(c *transcript.Command) string {
	k.said.Reset()
	switch c.Name {
	case "new":
		k.start(c)
	case "add":
		k.add(c)
	case "turn":
		for range c.Int("times", 1) {
			i := k.Iterate()
			if i.Decision != nil {
				k.decided(i.Decision)
			}
			if i.Outcome != nil {
				k.applied(i.Outcome)
			}
			if i.Decision == nil && i.Outcome == nil {
				k.say("idle")
			}
		}
	case "schedule":
		d := k.Schedule()
		k.flight = append(k.flight, d)
		k.decided(d)
	case "update":
		k.applied(k.Update(k.flight[0], k))
		k.flight = k.flight[1:]
	case "abort":
		if !k.Abort(c.Word(0, "name")) {
			k.say("not there")
		}
	case "state":
		s, ok := k.Look(c.Word(0, "name"))
		if !ok {
			k.say("gone")
			break
		}
		k.say("%v, %d tokens, %d computed, %d in flight, %d stale, %d placeholders", s.Status, s.NumTokens, s.NumComputedTokens,
			s.NumInFlightTokens, s.NumStaleOutputTokens, s.NumOutputPlaceholders)
	case "blocks":
		s, _ := k.Look(c.Word(0, "name"))
		k.say("%v", s.Blocks)
	case "free":
		k.say("%v", k.FreeList())
	case "hits":
		p := k.PrefixStats()
		k.say("%d requests, %d of %d tokens; preempted: %d, %d of %d", p.Requests, p.Hits, p.Queries, p.PreemptedRequests, p.PreemptedHits, p.PreemptedQueries)
	default:
		c.Fatalf("is not known")
	}
	if err := k.check(); err != nil {
		c.Fatalf("%v", err)
	}
	return k.said.String()
}

func (k *talk) start(c *transcript.Command) {
	on := func(key, absent string) bool { return c.Text(key, absent) == "on" }
	profile, err := FindProfile(c.Text("models", DefaultProfile))
	if err != nil {
		c.Fatalf("models: %v", err)
	}
	s, err := New(Config{
		MaxNumSeqs: c.Int("seqs", 256), MaxNumBatchedTokens: c.Int("budget", 8192), MaxModelLen: c.Int("len", 1000),
		LongPrefillTokenThreshold: c.Int("threshold", 0), EnableChunkedPrefill: on("chunked", "on"),
		EnablePrefixCaching: on("caching", "off"), Policy: Order(c.Text("policy", "fcfs")),
		SchedulerReserveFullISL: on("reserve", "on"), Watermark: c.Float("watermark", 0),
		NumGPUBlocks: c.Int("usable", 0) + 1, BlockSize: 16, AsyncScheduling: on("async", "off"),
	}, profile.Rules)
	if err != nil {
		c.Fatalf("%v", err)
	}
	*k = talk{bases: map[string]Token{}, prompts: map[string]Token{}}
	k.Engine = NewEngine(s, k)
}

func (k *talk) add(c *transcript.Command) {
	name := c.Word(0, "name")
	var prompt, output int
	if _, err := fmt.Sscanf(c.Word(1, "lengths"), "%d/%d", &prompt, &output); err != nil {
		c.Fatalf("%v", err)
	}
	base := Token(len(k.bases)+1) * 1_000_000
	k.bases[name], k.prompts[name] = base, base+500_000
	if like := c.Text("like", ""); like != "" {
		k.prompts[name] = k.prompts[like]
	}
	q := Request{
		ID: name, MaxTokens: output, MinTokens: c.Int("min", 0),
		Priority: c.Int("prio", 0), ArrivalTime: c.Float("arrival", 0),
	}
	if stop := c.Int("stop", 0); stop > 0 {
		q.StopTokenIDs = []Token{base + Token(stop-1)}
	}
	for i := range prompt {
		q.Prompt = append(q.Prompt, k.prompts[name]+Token(i))
	}
	if err := k.Add(q); err != nil {
		c.Fatalf("%v", err)
	}
}

func (k *talk) decided(d *Decision) {
	line := fmt.Sprintf("%d:", d.Step)
	for _, e := range d.Scheduled {
		line += fmt.Sprintf(" %s:%d", e.ID, e.NumTokens)
		if e.NumComputedTokens > 0 && e.NumTokens > 1 || e.Origin != FromRunning && e.NumComputedTokens > 0 {
			line += fmt.Sprintf("@%d", e.NumComputedTokens)
		}
		if e.Origin != FromRunning {
			line += " " + string(e.Origin)
		}
	}
	if len(d.Scheduled) == 0 {
		line += " nothing"
	}
	if len(d.Preempted) > 0 {
		line += "; preempted " + strings.Join(d.Preempted, " ")
	}
	if len(d.Waiting) > 0 {
		line += "; waiting " + strings.Join(d.Waiting, " ")
	}
	if len(d.Skipped) > 0 {
		line += "; skipped " + strings.Join(d.Skipped, " ")
	}
	k.say("%s; free %d", line, d.Free)
}

func (k *talk) applied(o *Outcome) {
	line := fmt.Sprintf("%d>", o.Step)
	for _, x := range o.Outputs {
		line += " " + x.ID
	}
	if len(o.Outputs) == 0 {
		line += " nothing"
	}
	for _, f := range o.Finished {
		line += fmt.Sprintf("; %s ends (%s)", f.ID, f.Reason)
	}
	if len(o.Finished) > 0 {
		line += fmt.Sprintf("; free %d", o.Free)
	}
	k.say("%s", line)
}
