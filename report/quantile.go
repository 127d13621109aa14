package report

import (
	"cmp"
	"math"
	"slices"
)

// Quantiles returns the quantile in nanoseconds for every p in [0, 1], interpolated linearly between the two
// samples around rank p*(Count-1) as numpy does by default. Without samples it returns zeros. A p outside [0, 1]
// is taken as the nearer end.
func (d *Dist) Quantiles(ps ...float64) []float64 {
	d.fold()
	out := make([]float64, len(ps))
	if d.count == 0 {
		return out
	}
	lows, fractions := make([]int64, len(ps)), make([]float64, len(ps))
	var ranks []int64
	for i, p := range ps {
		lows[i], fractions[i] = rank(p, d.count)
		ranks = append(ranks, lows[i])
		if fractions[i] > 0 {
			ranks = append(ranks, lows[i]+1)
		}
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	values := d.order(ranks)
	for i := range ps {
		at, _ := slices.BinarySearch(ranks, lows[i])
		out[i] = values[at]
		if fractions[i] > 0 {
			out[i] = between(values[at], values[at+1], fractions[i])
		}
	}
	return out
}

// rank splits p*(n-1) into the rank below and the way to the next.
func rank(p float64, n int64) (int64, float64) {
	if !(p > 0) {
		return 0, 0
	}
	h := float64(p * float64(n-1)) // rounded, not fused into the difference below
	low := math.Floor(h)
	if p >= 1 || int64(low) >= n-1 {
		return n - 1, 0
	}
	return int64(low), h - low
}

// between interpolates from the nearer end, as numpy does, so that it never leaves [a, b].
func between(a, b, t float64) float64 {
	if t >= 0.5 {
		return b - float64((b-a)*(1-t))
	}
	return a + float64((b-a)*t)
}

// order returns the samples at the given ranks, which ascend without repeats.
func (d *Dist) order(ranks []int64) []float64 {
	values := make([]float64, 0, len(ranks))
	found, holds := d.hist.find(ranks)
	if d.coarse {
		for i, b := range found {
			for _, r := range ranks[:holds[i]] {
				// Rounding in the middle of a bucket must not lead outside of what was seen.
				values = append(values, min(max(b.at(r), float64(d.min)), float64(d.max)))
			}
			ranks = ranks[holds[i]:]
		}
		return values
	}
	all := slices.Concat(d.full, []chunk{d.open.upTo(d.at)})
	held := d.collect(all, found)
	for i, b := range found {
		values = choose(values, held[i], b.low, b.width, after(b.before, ranks[:holds[i]]))
		ranks = ranks[holds[i]:]
	}
	return values
}

// collect gathers the records of each of the buckets, in one pass over all. A bucket that holds a good part of
// them gets all instead: choose finds its own among them.
func (d *Dist) collect(all []chunk, found []bucket) [][]chunk {
	parts := make([]chunk, len(found))
	var wanted [octaves]*[subs]uint8 // for every bucket its place in found, from 1
	sparse := 0
	for i, b := range found {
		if b.count > d.count/8 || i == math.MaxUint8 {
			continue
		}
		if wanted[b.octave] == nil {
			wanted[b.octave] = new([subs]uint8)
		}
		wanted[b.octave][b.sub] = uint8(i + 1)
		sparse++
	}
	if sparse > 0 {
		for _, c := range all {
			for i, v := range c.values {
				if k, sub := slot(uint64(v)); wanted[k] != nil && wanted[k][sub] > 0 {
					parts[wanted[k][sub]-1].append(v, c.weight(i))
				}
			}
		}
	}
	held := make([][]chunk, len(found))
	for i, b := range found {
		held[i] = parts[i : i+1]
		if wanted[b.octave] == nil || wanted[b.octave][b.sub] == 0 {
			held[i] = all
		}
	}
	return held
}

// Fewer records than this are sorted rather than counted once more.
const fewRecords = 2048

// choose appends the samples at the given ranks among the records of a set whose values lie in
// [low, low + 1<<width). It narrows the range by a factor of 1024 at a time; ranks ascend and count from the
// first sample in the range.
func choose(values []float64, set []chunk, low int64, width int, ranks []int64) []float64 {
	if width == 0 {
		for range ranks {
			values = append(values, float64(low))
		}
		return values
	}
	records := 0
	for _, c := range set {
		records += len(c.values)
	}
	if records <= fewRecords {
		return walk(values, set, low, width, ranks)
	}
	narrow := max(width-subBits, 0)
	var counts, sizes [subs]int64
	for _, c := range set {
		for i, v := range c.values {
			if at := uint64(v-low) >> narrow; at>>(width-narrow) == 0 {
				counts[at] += int64(c.weight(i))
				sizes[at]++
			}
		}
	}
	var before int64
	for at, n := range counts {
		held := 0
		for held < len(ranks) && ranks[held] < before+n {
			held++
		}
		if held > 0 {
			part, from := set, low+int64(at)<<narrow
			if narrow > 0 && sizes[at] < int64(records)/2 {
				part = within(set, from, narrow, int(sizes[at]))
			}
			values = choose(values, part, from, narrow, after(before, ranks[:held]))
			ranks = ranks[held:]
		}
		before += n
	}
	return values
}

// within gathers the records, n of them, whose values lie in [low, low + 1<<width).
func within(set []chunk, low int64, width, n int) []chunk {
	part := chunk{values: make([]int64, 0, n), weights: make([]uint32, 0, n)}
	for _, c := range set {
		for i, v := range c.values {
			if uint64(v-low)>>width == 0 {
				part.append(v, c.weight(i))
			}
		}
	}
	return []chunk{part}
}

// after renumbers ranks to count from the one that before samples precede.
func after(before int64, ranks []int64) []int64 {
	inner := make([]int64, len(ranks))
	for i, r := range ranks {
		inner[i] = r - before
	}
	return inner
}

// walk does what choose does, for a small set, by sorting it.
func walk(values []float64, set []chunk, low int64, width int, ranks []int64) []float64 {
	type record struct{ value, weight int64 }
	var sorted []record
	for _, c := range set {
		for i, v := range c.values {
			if uint64(v-low)>>width == 0 {
				sorted = append(sorted, record{v, int64(c.weight(i))})
			}
		}
	}
	slices.SortFunc(sorted, func(a, b record) int { return cmp.Compare(a.value, b.value) })
	var before int64
	for _, s := range sorted {
		for len(ranks) > 0 && ranks[0] < before+s.weight {
			values = append(values, float64(s.value))
			ranks = ranks[1:]
		}
		before += s.weight
	}
	return values
}
