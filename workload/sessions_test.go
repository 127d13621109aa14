package workload

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	"llmsim/sim/rng"
)

// converse answers every request after a time, and takes each when it is due. It sees that they
// come in order.
func converse(t *testing.T, s Peeker, after func(Request) time.Duration) (all []Request) {
	t.Helper()
	type answer struct {
		at time.Duration
		id int64
	}
	var answers []answer
	for len(all) < 100_000 {
		at, ok := s.Peek()
		if len(answers) > 0 && (!ok || answers[0].at <= at) {
			s.Done(answers[0].id, answers[0].at)
			answers = answers[1:]
			continue
		}
		r, given := s.Next()
		if given != ok || ok && r.Arrival != at {
			t.Fatalf("Next() = %+v, %v after Peek() = %v, %v", r, given, at, ok)
		}
		if !ok {
			return all
		}
		if n := len(all); r.ID != int64(n) || n > 0 && r.Arrival < all[n-1].Arrival {
			t.Fatalf("request %d = %+v after %+v", n, r, all[n-1])
		}
		all = append(all, r)
		a := answer{r.Arrival + after(r), r.ID}
		i, _ := slices.BinarySearchFunc(answers, a, func(a, b answer) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
		answers = slices.Insert(answers, i, a)
	}
	t.Fatal("the sessions have no end")
	return nil
}

func bySession(all []Request) (sessions [][]Request) {
	for _, r := range all {
		for int(r.Session) > len(sessions) {
			sessions = append(sessions, nil)
		}
		sessions[r.Session-1] = append(sessions[r.Session-1], r)
	}
	return sessions
}

// By hand: two sessions of three turns, 40 tokens in and 20 out, a second apart. The second one
// begins between the first's turns, though it was known before they were.
func TestSessionsByHand(t *testing.T) {
	s := Sessions(NewConstant(1), Independent(Fixed(40), Fixed(20)), SessionOptions{
		Turns: Fixed(3), Think: 300 * time.Millisecond, Context: 1000, Requests: 6, Block: 16,
	})
	names := func(session int64, whole int, request int64) (ids []uint64) {
		for i := range whole {
			ids = append(ids, sessionPiece(session, i))
		}
		return append(ids, lastPiece(request))
	}
	const ms = time.Millisecond
	want := []Request{
		{0, 1000 * ms, 40, 20, 0, 1, names(1, 3, 0), 16},
		{1, 1500 * ms, 100, 20, 0, 1, names(1, 7, 1), 16},
		{2, 2000 * ms, 160, 20, 0, 1, names(1, 11, 2), 16}, // of one instant, later turns go first
		{3, 2000 * ms, 40, 20, 0, 2, names(2, 3, 3), 16},
		{4, 2500 * ms, 100, 20, 0, 2, names(2, 7, 4), 16},
		{5, 3000 * ms, 160, 20, 0, 2, names(2, 11, 5), 16},
	}
	if got := converse(t, s, func(Request) time.Duration { return 200 * ms }); !reflect.DeepEqual(got, want) {
		t.Errorf("sessions give\n%+v, want\n%+v", got, want)
	}
}

// An answer may bring a turn that comes before the session start seen until then.
func TestPeekGivesWayToAnEarlierTurn(t *testing.T) {
	s := Sessions(NewConstant(0.1), Independent(Fixed(4), Fixed(2)), SessionOptions{
		Turns: Fixed(2), Think: time.Second, Context: 100, Block: 16,
	})
	first, _ := s.Next()
	before, _ := s.Peek()
	s.Done(first.ID, 12*time.Second)
	if after, ok := s.Peek(); !ok || before != 20*time.Second || after != 13*time.Second {
		t.Errorf("Peek() = %v before an answer at 12s, %v, %v after it, want 20s and 13s", before, after, ok)
	}
}

// A turn's prompt is what was said and something new, sent a think time after the answer; what a
// session says does not depend on how fast the answers come.
func TestSessionsGrowAndKeepTheirText(t *testing.T) {
	source := func() Peeker {
		return Sessions(NewPoisson(5, rng.New(2, ForArrivals)),
			Independent(NewUniform(1, 200, rng.New(2, ForPrompts)), NewUniform(1, 100, rng.New(2, ForOutputs))),
			SessionOptions{
				Turns: NewUniform(1, 8, rng.New(2, ForTurns)), Think: time.Second, Context: 900, Requests: 2000, Block: 16,
				Groups: Groups{3, 100, rng.New(2, ForGroups)},
			})
	}
	service := func(r Request) time.Duration { return time.Duration(r.Output) * 10 * time.Millisecond }
	all := converse(t, source(), service)
	if again := converse(t, source(), service); !reflect.DeepEqual(all, again) {
		t.Error("the same sessions differ the second time")
	}
	if len(all) != 2000 {
		t.Fatalf("%d requests, want 2000", len(all))
	}
	short := 0
	for _, turns := range bySession(all) {
		for i, r := range turns {
			if want := (r.Prompt + r.Output + 15) / 16; len(r.Prefix) != want || r.Prompt+r.Output > 900 {
				t.Fatalf("%+v names %d pieces, want %d of at most 900 tokens", r, len(r.Prefix), want)
			}
			if i == 0 {
				continue
			}
			before := turns[i-1]
			if r.Prompt <= before.Prompt+before.Output || r.Arrival != before.Arrival+service(before)+time.Second {
				t.Fatalf("turn %+v after %+v", r, before)
			}
			whole := (before.Prompt + before.Output) / 16
			if !slices.Equal(r.Prefix[:whole], before.Prefix[:whole]) || whole < len(before.Prefix) && r.Prefix[whole] == before.Prefix[whole] {
				t.Fatalf("turn %+v does not begin as %+v ended", r, before)
			}
		}
		if len(turns) < 8 && turns[len(turns)-1].Prompt > 600 {
			short++ // it would have outgrown its context
		}
	}
	if short < 20 {
		t.Errorf("%d sessions end for want of context, want many", short)
	}
	slow := bySession(converse(t, source(), func(Request) time.Duration { return time.Minute }))
	for i, turns := range bySession(all) {
		if len(turns) != len(slow[i]) {
			t.Fatalf("session %d has %d turns, %d with slow answers", i+1, len(turns), len(slow[i]))
		}
		for j, r := range turns {
			whole := (r.Prompt + r.Output) / 16
			if other := slow[i][j]; r.Prompt != other.Prompt || r.Output != other.Output || !slices.Equal(r.Prefix[:whole], other.Prefix[:whole]) {
				t.Fatalf("session %d says %+v, with slow answers %+v", i+1, r, other)
			}
		}
	}
}

// Sessions of one group share the pieces that lie wholly within its system prompt and within
// their first prompts, and no other; nobody else shares any.
func TestSessionsShareTheirGroupsPieces(t *testing.T) {
	for _, c := range []struct{ tokens, prompt, block, want int }{
		{64, 100, 16, 4}, {70, 100, 16, 4}, {15, 100, 16, 0}, {64, 40, 16, 2}, {70, 100, 8, 8}, {70, 100, 1, 70},
	} {
		s := Sessions(NewAllAtOnce(), Independent(Fixed(c.prompt), Fixed(20)), SessionOptions{
			Turns: Fixed(2), Context: 1000, Requests: 80, Block: c.block, Groups: groups(2, c.tokens),
		})
		first := map[uint64][]uint64{}
		for i, turns := range bySession(converse(t, s, func(Request) time.Duration { return 0 })) {
			ids := turns[1].Prefix
			other, seen := first[ids[0]]
			if !seen {
				first[ids[0]] = ids
				continue
			}
			same := 0
			for same < len(ids) && ids[same] == other[same] {
				same++
			}
			if c.want > 0 && same != c.want {
				t.Fatalf("%+v: session %d shares %d pieces, want %d", c, i+1, same, c.want)
			}
		}
		if want := 2; c.want > 0 && len(first) != want || c.want == 0 && len(first) != 40 {
			t.Errorf("%+v: %d different beginnings of 40 sessions", c, len(first))
		}
	}
}

// The cap is met to the request whatever the sessions' lengths; a first turn that is too long is
// sent, and ends its session.
func TestSessionsMeetTheirCaps(t *testing.T) {
	for _, c := range []struct {
		turns, context, requests, want, sessions int
	}{
		{4, 1000, 10, 10, 3},    // 4, 4 and 2
		{4, 1000, 3, 3, 1},      // cut short
		{100, 300, 10, 10, 2},   // 60 tokens a turn: 5
		{100, 60, 3, 3, 3},      // one turn just fits
		{100, 59, 3, 3, 3},      // one turn does not fit
		{1, 10_000, 50, 50, 50}, // no conversation at all
	} {
		s := Sessions(NewAllAtOnce(), Independent(Fixed(40), Fixed(20)), SessionOptions{
			Turns: Fixed(c.turns), Context: c.context, Requests: c.requests, Block: 16,
		})
		all := converse(t, s, func(Request) time.Duration { return time.Second })
		if n := len(bySession(all)); len(all) != c.want || n != c.sessions {
			t.Errorf("%+v: %d requests of %d sessions", c, len(all), n)
		}
		if got := all[0].Prefix == nil; got != (c.context < 60) {
			t.Errorf("%+v: first request %+v", c, all[0])
		}
	}
}

// What lives is what is held: of sessions that ended nothing is left.
func TestSessionsForgetTheEnded(t *testing.T) {
	s := Sessions(NewPoisson(1, rng.New(1, ForArrivals)), Independent(Fixed(9), Fixed(9)), SessionOptions{
		Turns: Fixed(3), Context: 100, Requests: 3000, Block: 16,
	}).(*sessions)
	all := converse(t, s, func(Request) time.Duration { return 0 })
	if len(all) != 3000 || len(s.outstanding) != 0 || len(s.due) != 0 {
		t.Errorf("after %d requests %d are outstanding, %d due, want none", len(all), len(s.outstanding), len(s.due))
	}
}

// Written as a trace a conversation is the same requests, and its ceiling is found: by hand, two
// sessions of turns of 40, 100 and 160 tokens of which 0, 48 and 112 are in whole pieces that were there before.
func TestSessionsAsATrace(t *testing.T) {
	s := Sessions(NewConstant(1), Independent(Fixed(40), Fixed(20)), SessionOptions{
		Turns: Fixed(3), Think: time.Second, Context: 1000, Requests: 6, Block: 16,
	})
	all := converse(t, s, func(Request) time.Duration { return 123456789 })
	var out bytes.Buffer
	src := list(all)
	if _, err := WriteTrace(&out, &src); err != nil {
		t.Fatal(err)
	}
	trace, err := openText(out.String(), TraceOptions{Strict: true}, heldRows)
	if err != nil {
		t.Fatal(err)
	}
	if got := replayAll(t, trace); !reflect.DeepEqual(got, all) {
		t.Errorf("read back %+v, want %+v", got, all)
	}
	in, err := Inspect(trace)
	if want := (48 + 112) / 300.0; err != nil || in.PrefixCeiling != want {
		t.Errorf("Inspect().PrefixCeiling = %v, %v, want %v", in.PrefixCeiling, err, want)
	}
}

func BenchmarkSessions(b *testing.B) {
	s := Sessions(NewPoisson(5, rng.New(2, ForArrivals)), Independent(Fixed(200), Fixed(100)), SessionOptions{
		Turns: Fixed(8), Context: 32768, Block: 16,
	})
	for b.Loop() {
		r, _ := s.Next()
		s.Done(r.ID, r.Arrival)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
