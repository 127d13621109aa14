package workload

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Bounds of what is held in memory: above heldRows a sorted file is read again for
// every replay; above mostRows (1.6 GB) one that must be sorted is refused.
const (
	heldRows = 1_000_000
	heldIDs  = 16_000_000
	mostRows = 64_000_000
	mostIDs  = 256_000_000
)

// rows holds requests at 24 bytes each. What few traces have (priority, session,
// prefix) lies apart, and all prefix ids in one slice.
type rows struct {
	packed []packed
	extras []extra
	ids    []uint64
}

type packed struct {
	at             int64
	prompt, output int32
	sequence       uint32 // place in the file: keeps equal instants in its order
	extra          uint32 // index into extras, from 1; 0: none
}

type extra struct {
	session  int64
	from, n  uint32 // of ids
	priority int32
	block    int32
}

func newRows(expected int) *rows { return &rows{packed: make([]packed, 0, expected)} }

func (h *rows) add(r *row) {
	p := packed{at: r.at, prompt: r.prompt, output: r.output, sequence: uint32(len(h.packed))}
	if r.session != 0 || r.priority != 0 || r.block != 0 {
		h.extras = append(h.extras, extra{r.session, uint32(len(h.ids)), uint32(len(r.prefix)), r.priority, r.block})
		h.ids = append(h.ids, r.prefix...)
		p.extra = uint32(len(h.extras))
	}
	h.packed = append(h.packed, p)
}

// trim gives back what growing took in excess, where that is worth a copy.
func (h *rows) trim() {
	h.packed, h.extras, h.ids = trimmed(h.packed), trimmed(h.extras), trimmed(h.ids)
}

func trimmed[E any](s []E) []E {
	if cap(s)-len(s) <= len(s)/8 {
		return s
	}
	return append(make([]E, 0, len(s)), s...)
}

func (h *rows) sort() {
	slices.SortFunc(h.packed, func(a, b packed) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(a.sequence, b.sequence)
	})
}

// request is row i with its instant counted from base. Its prefix is shared by every
// request made of that row and must not be written to.
func (h *rows) request(i int, base int64) Request {
	p := &h.packed[i]
	q := Request{Arrival: time.Duration(p.at - base), Prompt: int(p.prompt), Output: int(p.output)}
	if p.extra != 0 {
		e := &h.extras[p.extra-1]
		q.Priority, q.Session, q.PrefixBlock = int(e.priority), e.session, int(e.block)
		if e.n > 0 {
			q.Prefix = h.ids[e.from : e.from+e.n : e.from+e.n]
		}
	}
	return q
}

// A Grid is what a coarse clock does to a trace: instants Step apart that several
// requests share.
type Grid struct {
	Step     time.Duration // the usual distance of neighbouring instants; 0: there is no grid
	Distinct int           // instants
	Herd     int           // most requests at one instant
}

// gridFinder sees the instants of a file in ascending order.
type gridFinder struct {
	grid  Grid
	at    int64
	herd  int
	gaps  map[int64]int // how often each distance occurs; only the first mostGaps
	count int           // of all distances
	most  int           // how often the commonest occurs
}

// mostGaps is more different distances than a grid can show and hold: a file with more
// of them has no grid.
const mostGaps = 1024

func (g *gridFinder) see(at int64) {
	if g.herd > 0 && at == g.at {
		g.herd++
		g.grid.Herd = max(g.grid.Herd, g.herd)
		return
	}
	if g.herd > 0 {
		g.count++
		g.measure(at - g.at)
	}
	g.at, g.herd = at, 1
	g.grid.Distinct++
	g.grid.Herd = max(g.grid.Herd, 1)
}

func (g *gridFinder) measure(gap int64) {
	// A clock without a grid shows it early, and then costs nothing more.
	if g.count > 20*mostGaps && g.most < g.count/20 {
		return
	}
	if g.gaps == nil {
		g.gaps = make(map[int64]int)
	}
	n := g.gaps[gap]
	if n == 0 && len(g.gaps) == mostGaps {
		return
	}
	g.gaps[gap] = n + 1
	g.most = max(g.most, n+1)
}

// found tells the grid. Its step is the commonest distance, which jitter of a clock
// (Mooncake's 3 s come as 2999 to 3001 ms) and idle stretches leave as it is. It is a
// grid only if a tenth of all distances agree and some instant is shared.
func (g *gridFinder) found() Grid {
	step := int64(math.MaxInt64)
	for gap, n := range g.gaps {
		if n == g.most && gap < step {
			step = gap
		}
	}
	grid := g.grid
	if grid.Herd > 1 && g.count > 0 && g.most*10 >= g.count {
		grid.Step = time.Duration(step)
	}
	return grid
}
