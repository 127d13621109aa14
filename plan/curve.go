package plan

import (
	"cmp"
	"context"
	"slices"
	"time"

	"llmsim/report"
	"llmsim/scenarios"
)

// A Point is one replica at one rate: what requests see there, without the warm-up.
type Point struct {
	Rate    float64          // requests per second
	Behind  bool             // it falls behind: what is seen depends on how long one looks
	Latency report.Latencies // of requests that were completed
}

// Curve simulates one replica of a scenario with open arrivals at several rates, each once, with the same
// requests. Points come in the order of the rates.
func Curve(ctx context.Context, s *scenarios.Scenario, rates []float64, progress func(requests int64)) ([]Point, error) {
	p := &pace{ctx: ctx, report: progress}
	points := make([]Point, len(rates))
	err := each(len(rates), func(i int) error {
		one := *s
		one.Fleet.Replicas = 1
		one.Workload.Arrivals.Rate = rates[i]
		t, err := newTrial(p, one)
		if err != nil {
			return err
		}
		t.most = judgedSteps
		t.warm(time.Duration(leastJudged/rates[i]/5*1e9), nil)
		if err := t.extend(leastJudged); err != nil {
			return err
		}
		points[i] = Point{rates[i], t.judge(rates[i]).state == fallsBehind, t.recorder.Summary(report.Identity{}).Latency}
		return nil
	})
	return points, err
}

// Rates are those at which a curve shows where one replica's latency bends, in ascending order; none where
// nothing is known of a rate.
func (a *Answer) Rates() (rates []float64) {
	c := a.Capacity
	if c == nil || c.Saturation <= 0 {
		return nil
	}
	for _, share := range []float64{0.05, 0.2, 0.4, 0.6, 0.75, 0.85, 0.93, 0.98, 1.04} {
		rates = append(rates, share*c.Saturation)
	}
	if c.PerReplica > 0 && c.PerReplica < 0.95*c.Saturation {
		rates = append(rates, 0.9*c.PerReplica, c.PerReplica, 1.1*c.PerReplica)
	}
	slices.SortFunc(rates, cmp.Compare)
	// Two that are close show one thing.
	return slices.CompactFunc(rates, func(a, b float64) bool { return max(a, b) < 1.02*min(a, b) })
}
