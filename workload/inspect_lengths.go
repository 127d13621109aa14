package workload

import (
	"math"
	"slices"
)

// lengthCounts counts how often each length occurs: percentiles of any number of
// requests are then exact at the memory of the different lengths.
type lengthCounts struct {
	low  [1 << 15]int64 // by length
	high map[int]int64
	n    int64
	sum  int64
}

func (c *lengthCounts) add(tokens int) {
	if tokens < len(c.low) {
		c.low[tokens]++
	} else {
		if c.high == nil {
			c.high = make(map[int]int64)
		}
		c.high[tokens]++
	}
	c.n++
	c.sum += int64(tokens)
}

func (c *lengthCounts) summary() LengthSummary {
	if c.n == 0 {
		return LengthSummary{}
	}
	high := make([]int, 0, len(c.high))
	for tokens := range c.high {
		high = append(high, tokens)
	}
	slices.Sort(high)
	quantile := func(p float64) float64 {
		rank := float64(p * float64(c.n-1))
		below := math.Floor(rank)
		lo, hi := c.ranked(high, int64(below))
		return float64(lo) + float64(float64(hi-lo)*(rank-below))
	}
	most, _ := c.ranked(high, c.n-1)
	return LengthSummary{
		Mean: float64(c.sum) / float64(c.n), Total: c.sum, Max: most,
		P50: quantile(0.50), P90: quantile(0.90), P95: quantile(0.95), P99: quantile(0.99),
	}
}

// ranked is the length at a rank from 0, and the one at the next rank, or again the
// last. high holds the keys of c.high in order.
func (c *lengthCounts) ranked(high []int, rank int64) (at, next int) {
	var before int64
	at = -1
	visit := func(tokens int, n int64) (done bool) {
		if n == 0 {
			return false
		}
		before += n
		if at < 0 && before > rank {
			at, next = tokens, tokens
		}
		if at >= 0 {
			next = tokens
			return before > rank+1
		}
		return false
	}
	for tokens, n := range c.low {
		if visit(tokens, n) {
			return at, next
		}
	}
	for _, tokens := range high {
		if visit(tokens, c.high[tokens]) {
			return at, next
		}
	}
	return at, next
}
