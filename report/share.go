package report

import (
	"math"
	"time"
)

// AtMost estimates, for each of some limits, how many samples are no larger. It answers from the histogram: a
// sample within 0.1% of a limit may be counted on either side of it. Limits ascend.
func (d *Dist) AtMost(limits ...time.Duration) []float64 {
	d.fold()
	counts := make([]float64, len(limits))
	below, at := 0.0, 0
	for k, o := range d.hist {
		if o == nil {
			continue
		}
		for sub, n := range o {
			if n == 0 {
				continue
			}
			low, width := float64(sub), 1.0
			if k > 0 {
				width = math.Ldexp(1, k-1)
				low = float64(subs+sub) * width
			}
			for ; at < len(limits) && float64(limits[at]) < low+width-1; at++ {
				part := max(float64(limits[at])+1-low, 0) / width
				counts[at] = below + float64(part*float64(n))
			}
			below += float64(n)
		}
	}
	for ; at < len(limits); at++ {
		counts[at] = below
	}
	return counts
}
