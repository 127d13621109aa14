package sweep

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Merge puts the parts of all shards together into what one process would have measured. Its error is all
// that keeps them from being one sweep: parts of several, some that are missing, there twice, or unfinished.
func Merge(parts []Part) (Part, error) {
	if len(parts) == 0 {
		return Part{}, errors.New("there must be parts, are none")
	}
	first := parts[0]
	of := map[int]string{} // paths, by shard
	var faults []error
	add := func(format string, values ...any) { faults = append(faults, fmt.Errorf(format, values...)) }
	for _, p := range parts {
		h := p.Header
		h.Shard.Index = first.Shard.Index
		switch {
		case p.Sweep != first.Sweep:
			add("%s: is of sweep %.19s, must be of %.19s as %s is", p.path, p.Sweep, first.Sweep, first.path)
			continue
		case p.Shard.Of != first.Shard.Of:
			add("%s: is shard %s, must be of %d as %s is", p.path, p.Shard, first.Shard.Of, first.path)
			continue
		case !reflect.DeepEqual(h, first.Header):
			add("%s: is of scenario %s, must be of %s as %s is", p.path, p.Scenario, first.Scenario, first.path)
			continue
		}
		if other, twice := of[p.Shard.Index]; twice {
			add("%s: is shard %s, as %s is", p.path, p.Shard, other)
			continue
		}
		of[p.Shard.Index] = p.path
	}
	var missing []string
	for i := range first.Shard.Of {
		if _, ok := of[i]; !ok {
			missing = append(missing, strconv.Itoa(i))
		}
	}
	if n := len(missing); n > 0 {
		if n > mostTold {
			missing = append(missing[:mostTold], fmt.Sprintf("and %d more", n-mostTold))
		}
		add("of shards 0 to %d there must be a part each, missing: %s", first.Shard.Of-1, strings.Join(missing, ", "))
	}
	if len(faults) > 0 {
		return Part{}, errors.Join(faults...)
	}

	whole := Part{Header: first.Header}
	whole.Shard = Whole
	whole.Lines = make([]Line, whole.Points*whole.Seeds)
	for _, p := range parts {
		runs := 0
		for _, l := range p.Lines {
			at := &whole.Lines[l.Point*whole.Seeds+l.Run]
			if at.Digest != "" {
				add("%s: has run %d of point %d twice", p.path, l.Run, l.Point)
				break
			}
			*at = l
			runs++
		}
		if want := p.Shard.size(p.Points) * p.Seeds; runs < want {
			add("%s: is unfinished, has %d of %d runs", p.path, runs, want)
		}
	}
	return whole, errors.Join(faults...)
}
