// Package sweep measures a scenario at every point of a grid over its fields.
//
// It knows axes, points, shards and rows of figures. It knows nothing of flags, of how a point's
// scenario is composed, or of what its figures mean.
package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"llmsim/plan"
	"llmsim/scenarios"
	"llmsim/sim/rng"
)

// MaxSeeds bounds how many times a point is measured.
const MaxSeeds = 1000

// A Question is what a sweep is asked.
type Question struct {
	Axes    []Axis
	Seeds   int // of every point; the first is the scenario's own
	Measure Measure
	// Load composes the scenario of a point from the values of the axes' fields. It is called from
	// several goroutines at once, and more than once for a point.
	Load func(values []string) (*scenarios.Scenario, error)
	// Shard is what of the sweep is measured; all of it is checked.
	Shard Shard
	// Parallel is how many runs there are at once; 0: as many as processors.
	Parallel int
}

// Points is how many points the axes make; at most one more than MaxRuns.
func (q Question) Points() int { return grid(q.Axes).points() }

// A Sweep is a grid that has been checked.
type Sweep struct {
	Header
	q     Question
	grid  grid
	slo   []scenarios.Objective
	known []known     // of every point
	files sharedFiles // of all points
}

// known is what is known of a point before it is measured.
type known struct {
	digest string // of its scenario
	seed   uint64
}

// New checks all points of a sweep. Its error is all that is wrong with them, of whatever shard.
// Told, if not nil, is called one call at a time with the number of points checked.
func New(ctx context.Context, q Question, told func(done int)) (*Sweep, error) {
	g := grid(q.Axes)
	if err := g.check(q.Seeds); err != nil {
		return nil, err
	}
	s := &Sweep{q: q, grid: g, known: make([]known, g.points())}
	s.Header = Header{
		Version: plan.Version, Measure: q.Measure.Name, Fields: g.fields(), Points: len(s.known), Seeds: q.Seeds,
		Shard: q.Shard, Figures: q.Measure.names(),
	}
	var mu sync.Mutex
	faults, notes := newListing(), newListing()
	met, differ := false, false // of SLOs, whether there is one yet, and another
	err := each(ctx, s.parallel(), Whole.indices(len(s.known)), func(i int) error {
		loaded, err := s.load(i)
		var assumptions []string
		if err == nil {
			s.known[i].seed = loaded.Seed
			assumptions, s.known[i].digest, err = examine(loaded)
		}
		mu.Lock()
		defer mu.Unlock()
		if i == 0 && err == nil {
			s.Scenario = loaded.Name
		}
		if err == nil {
			differ = differ || met && !slices.Equal(s.slo, loaded.SLO)
			s.slo, met = loaded.SLO, true
		}
		faults.add(i, lines(err)...)
		notes.add(i, assumptions...)
		return nil
	}, told)
	if err != nil {
		return nil, err
	}
	if len(faults.all) > 0 {
		return nil, errors.New(strings.Join(faults.tell(len(s.known), s.name), "\n"))
	}
	if differ {
		s.slo = nil
	}
	s.Assumptions = notes.tell(len(s.known), s.name)
	s.Sweep, err = s.digest()
	return s, err
}

// SLO is what all points have; none where they differ.
func (s *Sweep) SLO() []scenarios.Objective { return s.slo }

// check refuses axes that can't be one grid, all faults at once.
func (g grid) check(seeds int) error {
	var faults []error
	twice := map[string]bool{}
	for _, a := range g {
		if len(a.Stops) == 0 {
			faults = append(faults, fmt.Errorf("%s: has no values", strings.Join(a.Fields, ",")))
		}
		for _, f := range a.Fields {
			if twice[f] {
				faults = append(faults, fmt.Errorf("%s: is swept twice", f))
			}
			twice[f] = true
		}
	}
	if seeds < 1 || seeds > MaxSeeds {
		faults = append(faults, fmt.Errorf("there must be 1 to %d seeds, are %d", MaxSeeds, seeds))
	} else if n := g.points(); n > MaxRuns/seeds {
		sizes := []string{}
		for _, a := range g {
			sizes = append(sizes, fmt.Sprint(len(a.Stops)))
		}
		if seeds > 1 {
			sizes = append(sizes, fmt.Sprintf("%d seeds", seeds))
		}
		faults = append(faults, fmt.Errorf("a sweep must have at most %d runs, has %s", MaxRuns, strings.Join(sizes, " x ")))
	}
	return errors.Join(faults...)
}

// load composes a point's scenario, which reads its files where the other points do.
func (s *Sweep) load(point int) (*scenarios.Scenario, error) {
	loaded, err := s.q.Load(s.grid.at(point))
	if err != nil {
		return nil, err
	}
	s.files.share(loaded)
	return loaded, nil
}

// sharedFiles are those of the first scenario that was loaded.
type sharedFiles struct {
	once  sync.Once
	first *scenarios.Scenario
}

func (f *sharedFiles) share(s *scenarios.Scenario) {
	f.once.Do(func() { f.first = s })
	if s != f.first {
		s.ShareFiles(f.first)
	}
}

// examine starts a scenario's workload, which reads its files, and lets it go.
func examine(s *scenarios.Scenario) (assumptions []string, digest string, err error) {
	source, notes, err := s.Source()
	if err != nil {
		return nil, "", err
	}
	if c, ok := source.(io.Closer); ok {
		c.Close()
	}
	id, err := plan.Identify(s, notes)
	return id.Assumptions, id.Digest, err
}

// name is how errors and notes call a point.
func (s *Sweep) name(point int) string {
	var parts []string
	for i, value := range s.grid.at(point) {
		parts = append(parts, s.Fields[i]+"="+value)
	}
	return strings.Join(parts, " ")
}

// digest names everything that the sweep's results follow from.
func (s *Sweep) digest() (string, error) {
	sum := sha256.New()
	e := json.NewEncoder(sum)
	err := e.Encode([]any{s.Version, s.Measure, s.Fields, s.Points, s.Seeds, s.Figures})
	for i, k := range s.known {
		err = errors.Join(err, e.Encode([]any{s.grid.at(i), k.digest}))
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil)), err
}

func (s *Sweep) parallel() int {
	if s.q.Parallel > 0 {
		return s.q.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

// Runs is how many runs the shard has.
func (s *Sweep) Runs() int { return s.Shard.size(s.Points) * s.Seeds }

// size is how many of so many points the shard has.
func (s Shard) size(points int) int {
	if points <= s.Index {
		return 0
	}
	return (points - s.Index + s.Of - 1) / s.Of
}

// indices are the shard's points of so many.
func (s Shard) indices(points int) []int {
	all := make([]int, 0, s.size(points))
	for i := s.Index; i < points; i += s.Of {
		all = append(all, i)
	}
	return all
}

// Run measures all that the journal does not hold, and writes it there as it comes; a nil journal holds
// nothing. The part it returns is the same however many runs there are at once, and however often it was
// interrupted. Told, if not nil, is called one call at a time with the number of runs done by this call.
func (s *Sweep) Run(ctx context.Context, j *Journal, told func(done int)) (Part, error) {
	lines := make([]*Line, s.Points*s.Seeds)
	if j != nil {
		for i := range j.Lines {
			l := &j.Lines[i]
			if l.Digest != s.known[l.Point].digest || !slices.Equal(l.At, s.grid.at(l.Point)) {
				return Part{}, fmt.Errorf("%s: point %d is not this sweep's", j.path, l.Point)
			}
			lines[l.Point*s.Seeds+l.Run] = l
		}
	}
	var open []int
	for _, point := range s.Shard.indices(s.Points) {
		for run := range s.Seeds {
			if i := point*s.Seeds + run; lines[i] == nil {
				open = append(open, i)
			}
		}
	}
	err := each(ctx, s.parallel(), open, func(i int) error {
		l, err := s.measure(ctx, i/s.Seeds, i%s.Seeds)
		if err == nil && j != nil {
			err = j.add(l)
		}
		lines[i] = l
		return err
	}, told)
	if err != nil {
		return Part{}, err
	}
	part := Part{Header: s.Header}
	for _, l := range lines {
		if l != nil {
			part.Lines = append(part.Lines, *l)
		}
	}
	return part, nil
}

func (s *Sweep) measure(ctx context.Context, point, run int) (*Line, error) {
	fault := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w", s.name(point), err)
	}
	loaded, err := s.load(point)
	if err != nil {
		return nil, fault(err)
	}
	digest, err := loaded.Digest()
	if err == nil && digest != s.known[point].digest {
		err = errors.New("its files changed while the sweep ran")
	}
	if err != nil {
		return nil, fault(err)
	}
	loaded.Seed = Seed(loaded.Seed, run)
	values, err := s.q.Measure.Of(ctx, loaded)
	if err != nil {
		return nil, fault(err)
	}
	l := &Line{Point: point, Run: run, At: s.grid.at(point), Seed: s.known[point].seed, Digest: digest}
	for _, v := range values {
		l.Figures = append(l.Figures, Number(v))
	}
	return l, nil
}

// Seed is that of a point's run: the scenario's own of the first, and drawn from it of the others. Points
// share their seeds, so that what differs between them is not chance.
func Seed(own uint64, run int) uint64 {
	if run == 0 {
		return own
	}
	return rng.New(own, fmt.Sprintf("sweep run %d", run)).Uint64() & math.MaxInt64
}

// each calls do for every index, so many at once, until all are done, ctx ends, or one fails; of those that
// fail the error of the first among the indices is returned.
func each(ctx context.Context, parallel int, indices []int, do func(index int) error, told func(done int)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var mu sync.Mutex
	done, failed := 0, len(indices)
	var fault error
	var workers sync.WaitGroup
	for range min(parallel, len(indices)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(indices) || ctx.Err() != nil {
					return
				}
				err := do(indices[i])
				mu.Lock()
				switch {
				case err == nil:
					if done++; told != nil {
						told(done)
					}
				case fault != nil && errors.Is(err, context.Canceled): // stopped by the other
				case i < failed:
					failed, fault = i, err
					stop(err)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if fault == nil && done < len(indices) {
		return context.Cause(ctx)
	}
	return fault
}
