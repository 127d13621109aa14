package workload

import "time"

// ForTurns is the purpose of the stream that tells how many turns a session has.
const ForTurns = "session turns"

// A Peeker is a Feedback source of which an answer may bring a request that comes before those it
// had until then. Whoever waits for the next one must therefore not take it before its time.
type Peeker interface {
	Feedback
	// Peek tells when the request arrives that Next would give now; false when it would give none.
	Peek() (at time.Duration, ok bool)
}

// SessionOptions say what the conversations of Sessions are like.
type SessionOptions struct {
	Turns    Lengths       // requests of a session, at least 1
	Think    time.Duration // from the last token of an answer to the next turn
	Context  int           // most tokens that a turn's prompt and output may have, up to MaxTokens
	Requests int           // in all; 0: no end
	Block    int           // tokens per entry of Prefix
	Groups   Groups        // system prompts that sessions start with; Count 0: none
}

// A session is a conversation under way.
type session struct {
	id     int64
	group  int
	common int    // pieces at its start that are its group's
	turns  []turn // to come
}

type turn struct{ prompt, output int32 }

type sessions struct {
	SessionOptions
	starts  Arrivals
	lengths PairSource

	start   time.Duration // of the next session, if drawn
	drawn   bool
	begun   int64 // sessions
	planned int   // requests of the sessions begun
	issued  int64 // requests

	outstanding map[int64]*session // by the request to whose answer there is a next turn
	due         []dueTurn          // in order, since instants of Done are and all think alike
}

type dueTurn struct {
	at      time.Duration
	session *session
}

// Sessions is a workload of conversations. Each begins at one of the starts; its next turn is sent
// a time Think after the answer to the last, and its prompt is all that was said before, prompts
// and answers, and a new text as long as lengths says. A session ends with its last turn, or
// before a turn that would outgrow Context; only a first turn is sent even so, and refused. New
// sessions begin until their turns add up to Requests, of which the last may lack some.
//
// What a session says is drawn when it begins, and so is the same however fast the answers come.
// Of one instant, later turns are sent before first ones, in the order of their Done calls.
//
// Prefix names the whole context, the answer included that is still to be given: its entries
// beyond the prompt stand for that answer's tokens. The last, if cut short, is nobody else's.
func Sessions(starts Arrivals, lengths PairSource, options SessionOptions) Peeker {
	return &sessions{
		SessionOptions: options, starts: starts, lengths: lengths,
		outstanding: map[int64]*session{},
	}
}

func (s *sessions) Peek() (time.Duration, bool) {
	more := s.Requests <= 0 || s.planned < s.Requests
	if more && !s.drawn {
		s.start, s.drawn = s.starts.Next(), true
	}
	if len(s.due) > 0 && (!more || s.due[0].at <= s.start) {
		return s.due[0].at, true
	}
	return s.start, more
}

func (s *sessions) Next() (Request, bool) {
	at, ok := s.Peek()
	if !ok {
		return Request{}, false
	}
	var c *session
	if len(s.due) > 0 && s.due[0].at == at {
		c = s.due[0].session
		s.due = s.due[1:]
	} else {
		c = s.begin()
	}
	t := c.turns[0]
	c.turns = c.turns[1:]
	r := Request{
		ID: s.issued, Arrival: at, Prompt: int(t.prompt), Output: int(t.output),
		Session: c.id, Prefix: s.prefix(c, t), PrefixBlock: s.Block,
	}
	s.issued++
	if len(c.turns) > 0 {
		s.outstanding[r.ID] = c
	}
	return r, true
}

func (s *sessions) Done(id int64, at time.Duration) {
	if c := s.outstanding[id]; c != nil {
		delete(s.outstanding, id)
		s.due = append(s.due, dueTurn{at + s.Think, c})
	}
}

// begin draws a whole session.
func (s *sessions) begin() *session {
	s.drawn = false
	s.begun++
	c := &session{id: s.begun}
	n := s.Turns.Next()
	if s.Requests > 0 {
		n = min(n, s.Requests-s.planned)
	}
	for context := 0; len(c.turns) < n && context < s.Context; {
		prompt, output := s.lengths.NextPair()
		prompt += context
		context = prompt + output
		if context > s.Context && len(c.turns) > 0 {
			break
		}
		c.turns = append(c.turns, turn{int32(prompt), int32(output)})
	}
	s.planned += len(c.turns)
	if g := s.Groups; g.Count > 0 {
		c.group = g.Stream.IntN(g.Count)
		// The piece in which the system prompt ends is each session's own.
		c.common = min(g.Tokens, int(c.turns[0].prompt)) / s.Block
	}
	return c
}

// prefix names the pieces of the next request's prompt and output; none if it will be refused.
func (s *sessions) prefix(c *session, t turn) []uint64 {
	tokens := int(t.prompt) + int(t.output)
	if tokens > s.Context {
		return nil
	}
	whole := tokens / s.Block
	pieces := make([]uint64, (tokens+s.Block-1)/s.Block)
	for i := range pieces {
		switch {
		case i == whole:
			pieces[i] = lastPiece(s.issued)
		case i < c.common:
			pieces[i] = groupPiece(c.group, i)
		default:
			pieces[i] = sessionPiece(c.id, i)
		}
	}
	return pieces
}
