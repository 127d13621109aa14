package workload

import (
	"time"

	"llmsim/sim/rng"
)

// ForGroups is the purpose of the stream that tells which system prompt a prompt starts with.
const ForGroups = "prefix groups"

// Groups are system prompts, Count of them and all as likely, each of Tokens tokens.
type Groups struct {
	Count, Tokens int
	Stream        *rng.Stream
}

// Names of pieces of text, of which a synthetic workload has three kinds, told apart by the highest
// bits. MaxTokens pieces of one text, and 2^38 texts of a kind, have different names.
const (
	pieceBits = 24
	ofGroups  = 1 << 63
	ofNobody  = 1 << 62
)

func groupPiece(group, index int) uint64 {
	return ofGroups | uint64(group)<<pieceBits | uint64(index)
}

func sessionPiece(session int64, index int) uint64 {
	return uint64(session)<<pieceBits | uint64(index)
}

// lastPiece is the cut piece that a request's text ends with: only it reads just so.
func lastPiece(request int64) uint64 { return ofNobody | uint64(request) }

type grouped struct {
	Source
	groups Groups
	names  []uint64 // by group
}

type sharedFeedback struct {
	*grouped
	feedback Feedback
}

func (s *sharedFeedback) Done(id int64, at time.Duration) { s.feedback.Done(id, at) }

// Shared has the prompts of a source start with system prompts: each with the tokens of one of the
// groups, which its length counts, and with as many of them as it has room for. The source must
// not tell what its prompts share; a Feedback one stays one.
func Shared(source Source, groups Groups) Source {
	s := &grouped{source, groups, make([]uint64, groups.Count)}
	for i := range s.names {
		s.names[i] = groupPiece(i, 0)
	}
	if f, ok := source.(Feedback); ok {
		return &sharedFeedback{s, f}
	}
	return s
}

func (s *grouped) Next() (Request, bool) {
	r, ok := s.Source.Next()
	if ok {
		g := s.groups.Stream.IntN(len(s.names))
		r.Prefix, r.PrefixBlock = s.names[g:g+1:g+1], s.groups.Tokens
	}
	return r, ok
}
