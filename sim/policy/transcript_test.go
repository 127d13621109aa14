package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"llmsim/internal/transcript"
	"llmsim/sim/kv"
)

// The classic policy in conversation; testdata is the documentation of its rules. Commands:
//
//	new blocks=8 block=4 budget=64 slots=8 watermark=0   a policy over an empty cache
//	add NAME PROMPT/OUTPUT
//	step                    schedule, then commit
//	schedule, commit        the same in two, so that something may happen in between
//	quiet                   does the next step change anything but contexts?
//	abort NAME
//	state
//
// "compute a 4 on 8" computes 4 tokens of a, which has 8 in the cache; "wait a" says that a runs
// and gets none. "token a 2" is its second token. Every command also checks what must always hold.
func TestClassicTranscripts(t *testing.T) {
	transcript.Run(t, "testdata/classic_*.txt", func() transcript.Conversation {
		var talk classicTalk
		return talk.answer
	})
}

type classicTalk struct {
	*Classic
	names    map[Handle]string
	emitted  map[string]int
	decision Decision
	outcome  Outcome
	steady   []Handle // computed as decodes by the step under way
	quiet    bool     // was foretold of the step under way
	said     strings.Builder
}

func (k *classicTalk) say(format string, args ...any) { fmt.Fprintf(&k.said, format+"\n", args...) }

func (k *classicTalk) answer(c *transcript.Command) string {
	k.said.Reset()
	switch c.Name {
	case "new":
		pool := kv.NewPool(c.Int("blocks", 8), c.Int("block", 4))
		limits := Limits{MaxNumSeqs: c.Int("slots", 8), MaxNumBatchedTokens: c.Int("budget", 64)}
		*k = classicTalk{Classic: NewClassic(pool, limits, c.Float("watermark", 0)), names: map[Handle]string{}, emitted: map[string]int{}}
	case "add":
		var prompt, output int
		if _, err := fmt.Sscanf(c.Word(1, "lengths"), "%d/%d", &prompt, &output); err != nil {
			c.Fatalf("%v", err)
		}
		k.names[k.Add(Request{Prompt: prompt, Output: output})] = c.Word(0, "name")
	case "step":
		if k.schedule(c) {
			k.commit(c)
		}
	case "schedule":
		k.schedule(c)
	case "commit":
		k.commit(c)
	case "quiet":
		if shape, quiet := k.Quiet(); quiet {
			k.say("yes, %d decodes on %d", shape.Decodes, shape.DecodeContext-int64(shape.Decodes))
		} else {
			k.say("no")
		}
	case "abort":
		k.abort(c)
	case "state":
		k.state()
	default:
		c.Fatalf("is not known")
	}
	k.check(c)
	return k.said.String()
}

func (k *classicTalk) each(l list, visit func(h Handle, s *sequence)) {
	for h := l.head; h != none; h = k.seqs[h].next {
		visit(h, &k.seqs[h])
	}
}

func (k *classicTalk) schedule(c *transcript.Command) bool {
	if k.underway {
		c.Fatalf("a step is under way")
	}
	foretold, quiet := k.Quiet()
	queued := map[Handle]bool{}
	k.each(k.queue, func(h Handle, _ *sequence) { queued[h] = true })
	if !k.Schedule(&k.decision) {
		k.say("nothing to compute")
		return false
	}
	d := &k.decision
	// Those preempted in the step that admitted them were admitted too.
	var admitted []Handle
	for h := range queued {
		if k.seqs[h].state != waiting || slices.Contains(d.Preempted, h) {
			admitted = append(admitted, h)
		}
	}
	slices.SortFunc(admitted, func(x, y Handle) int { return cmp.Compare(k.seqs[x].order, k.seqs[y].order) })
	for _, h := range admitted {
		k.say("admit %s", k.names[h])
	}
	for _, h := range d.Preempted {
		k.say("preempt %s", k.names[h])
	}
	k.steady = k.steady[:0]
	sequences, tokens, context := 0, 0, int64(0)
	k.each(k.running, func(h Handle, s *sequence) {
		n := int(s.scheduled)
		if s.state == decoding {
			n = 1
			k.steady = append(k.steady, h)
		}
		if n == 0 {
			k.say("wait %s", k.names[h])
			return
		}
		k.say("compute %s %d on %d", k.names[h], n, k.computed(s))
		sequences, tokens, context = sequences+1, tokens+n, context+int64(k.computed(s)+n)
	})
	if shape := d.Shape; shape.Sequences != sequences || shape.Tokens != tokens || shape.Context != context {
		c.Fatalf("shape = %+v, want %d sequences, %d tokens, %d of context", shape, sequences, tokens, context)
	}
	if tokens > k.limits.MaxNumBatchedTokens || k.running.len > k.limits.MaxNumSeqs {
		c.Fatalf("%d tokens and %d running, beyond %+v", tokens, k.running.len, k.limits)
	}
	if k.quiet = quiet; quiet && (d.Shape != foretold || len(d.Started)+len(d.Stalled)+len(d.Preempted) > 0) {
		c.Fatalf("Schedule = %+v, but Quiet foretold %+v", *d, foretold)
	}
	load := k.Load()
	if load.Blocked != Unblocked {
		k.say("blocked by %v", load.Blocked)
	}
	k.say("free %d", load.Free)
	return true
}

func (k *classicTalk) commit(c *transcript.Command) {
	if !k.underway {
		c.Fatalf("no step is under way")
	}
	var order []Handle
	k.each(k.running, func(h Handle, _ *sequence) { order = append(order, h) })
	free := k.pool.Free()
	k.Commit(&k.outcome)
	o := &k.outcome

	first, last, emits := map[Handle]bool{}, map[Handle]bool{}, map[Handle]bool{}
	for _, h := range k.steady {
		if h != none {
			emits[h] = true
		}
	}
	if o.Steady != len(emits) {
		c.Fatalf("Commit: %d steady, want %d", o.Steady, len(emits))
	}
	for _, h := range o.Firsts {
		first[h], emits[h] = true, true
	}
	for _, h := range o.Resumed {
		emits[h] = true
	}
	for _, h := range o.Finished {
		last[h] = true
	}
	if k.quiet && len(o.Firsts)+len(o.Resumed)+len(o.Finished) > 0 {
		c.Fatalf("Commit = %+v after a step foretold as quiet", *o)
	}
	for _, h := range order {
		name := k.names[h]
		if !emits[h] {
			continue
		}
		k.emitted[name]++
		n := k.emitted[name]
		if first[h] != (n == 1) {
			c.Fatalf("token %d of %s: first is %t", n, name, first[h])
		}
		switch {
		case first[h] && last[h]:
			k.say("token %s %d (first, last)", name, n)
		case first[h]:
			k.say("token %s %d (first)", name, n)
		case last[h]:
			k.say("token %s %d (last)", name, n)
		default:
			k.say("token %s %d", name, n)
		}
		if last[h] {
			delete(k.names, h)
		}
	}
	if k.pool.Free() != free {
		k.say("free %d", k.pool.Free())
	}
}

func (k *classicTalk) abort(c *transcript.Command) {
	for h, name := range k.names {
		if name == c.Word(0, "name") {
			k.Abort(h)
			delete(k.names, h)
			// The handle may name another from now on.
			for i := range k.steady {
				if k.steady[i] == h {
					k.steady[i] = none
				}
			}
			k.say("free %d", k.pool.Free())
			return
		}
	}
	c.Fatalf("%s is not known", c.Words[0])
}

// held is how many blocks a running sequence has.
func (k *classicTalk) held(s *sequence) int {
	if s.state != decoding {
		return s.lease.Blocks()
	}
	n := k.computed(s)
	if k.underway {
		n++
	}
	return k.pool.Need(n)
}

func (k *classicTalk) state() {
	k.each(k.running, func(h Handle, s *sequence) {
		lacks := 1
		if s.state == partial {
			lacks = s.target() - k.computed(s)
		}
		k.say("running %s, %d of %d computed, %d blocks", k.names[h], k.computed(s), k.computed(s)+lacks, k.held(s))
	})
	k.each(k.queue, func(h Handle, s *sequence) { k.say("waiting %s, 0 of %d computed", k.names[h], s.target()) })
	k.say("free %d of %d", k.pool.Free(), k.pool.Total())
}

// check holds every block against its owner, and those that wait to holding none.
func (k *classicTalk) check(c *transcript.Command) {
	used := 0
	k.each(k.running, func(_ Handle, s *sequence) { used += k.held(s) })
	k.each(k.queue, func(h Handle, s *sequence) {
		if s.lease.Blocks() != 0 || s.computed != 0 {
			c.Fatalf("%s waits, but holds %d blocks and %d tokens", k.names[h], s.lease.Blocks(), s.computed)
		}
	})
	if used+k.pool.Free() != k.pool.Total() {
		c.Fatalf("%d blocks are held and %d free, of %d", used, k.pool.Free(), k.pool.Total())
	}
	if known := k.running.len + k.queue.len; known != len(k.names) {
		c.Fatalf("%d run or wait, want %d", known, len(k.names))
	}
}
