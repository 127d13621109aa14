package calibration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"

	"llmsim/sim/cost"
)

// A fit is a problem under way.
type fit struct {
	Problem
	ctx         context.Context
	start       []float64
	points      []Point // fitted ones, in the order of the evidence
	weights     []float64
	evaluations int
}

func newFit(ctx context.Context, p Problem) (*fit, error) {
	f := &fit{Problem: p, ctx: ctx}
	if len(p.Parameters) == 0 || len(p.Start) != len(p.Parameters) {
		return nil, errors.New("must have parameters to fit, and a start for each")
	}
	for i, one := range p.Parameters {
		if x := p.Start[i]; !(x >= one.Least && x <= one.Most) {
			return nil, fmt.Errorf("%s must start from %v to %v, is %v", one.Name, one.Least, one.Most, x)
		}
		// A slope needs room on either side.
		room := 0.01 * (one.Most - one.Least)
		if one.Least > 0 {
			room = 0.01 * p.Start[i]
		}
		f.start = append(f.start, min(p.Start[i], one.Most-min(room, 0.01*one.Most)))
	}
	total := 0.0
	for _, e := range p.Evidence {
		for _, one := range e.Points {
			if !one.HeldOut {
				f.points = append(f.points, one)
				total += one.Weight
			}
		}
	}
	if len(f.points) <= len(p.Parameters) {
		return nil, fmt.Errorf("%d measured figures are too few to fit %d parameters to", len(f.points), len(p.Parameters))
	}
	for _, one := range f.points {
		f.weights = append(f.weights, one.Weight/total)
	}
	if f.MaxEvaluations <= 0 {
		f.MaxEvaluations = defaultEvaluations
	}
	return f, nil
}

func (f *fit) all() (indices []int) {
	for i := range f.Parameters {
		indices = append(indices, i)
	}
	return indices
}

// unit is what a parameter's change is measured in: itself, or where it is near 0, a part of what it is
// elsewhere.
func (f *fit) unit(i int, x float64) float64 { return max(math.Abs(x), f.Parameters[i].Default/4) }

// rounded is a value as it is written down.
func (f *fit) rounded(i int, x float64) float64 {
	one := f.Parameters[i]
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if x-one.Least < 1e-4*f.unit(i, x) {
		return one.Least
	}
	if one.Most-x < 1e-4*f.unit(i, x) {
		return one.Most
	}
	return x
}

func (f *fit) atBound(i int, x float64) bool {
	one := f.Parameters[i]
	return x-one.Least < 1e-3*f.unit(i, x) || one.Most-x < 1e-3*f.unit(i, x)
}

// residuals are the logarithms of simulated over measured of the points that are fitted.
func (f *fit) residuals(values []float64) (r []float64, err error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	for _, e := range f.Evidence {
		figures, err := e.Simulate(f.ctx, values, false)
		if err != nil {
			return nil, err
		}
		for i, one := range e.Points {
			if one.HeldOut {
				continue
			}
			x := math.Log(figures[i] / one.Measured)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("%s: a %s of %v was measured, and %v simulated", one.Source, one.Figure, one.Measured, figures[i])
			}
			r = append(r, x)
		}
	}
	f.evaluations++
	if f.Told != nil {
		f.Told(f.evaluations)
	}
	return r, nil
}

// figures are all points', held out or not.
func (f *fit) figures(values []float64) (all []float64, err error) {
	for _, e := range f.Evidence {
		figures, err := e.Simulate(f.ctx, values, true)
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}

// loss is the weighted mean of c (sqrt(1 + (r/c)^2) - 1) over the residuals r with scales c: r^2/(2c)
// of small ones, |r| of large ones, so that a few broken measurements don't bend the rest.
func (f *fit) loss(r []float64) (sum float64) {
	for i, x := range r {
		c := f.points[i].Scale
		sum += float64(f.weights[i] * c * (math.Hypot(1, x/c) - 1))
	}
	return sum
}

// A measure is logarithms that parameters change, and their weights.
type measure struct {
	of      func(values []float64) ([]float64, error)
	weights []float64
}

func (f *fit) figureMeasure() measure { return measure{f.residuals, f.weights} }

// steps measures the times of steps, and where there are none, figures.
func (f *fit) steps() (m measure) {
	total := 0.0
	for _, e := range f.Evidence {
		weight, steps := 0.0, 0.0
		for _, one := range e.Points {
			if !one.HeldOut {
				weight += one.Weight
			}
		}
		for _, w := range e.StepWeights {
			steps += w
		}
		for _, w := range e.StepWeights {
			m.weights = append(m.weights, float64(w*weight)/steps)
		}
		for _, one := range e.Points {
			if e.Steps == nil && !one.HeldOut {
				m.weights = append(m.weights, one.Weight)
			}
		}
		total += weight
	}
	for i := range m.weights {
		m.weights[i] /= total
	}
	m.of = func(values []float64) (all []float64, err error) {
		for _, e := range f.Evidence {
			if e.Steps != nil {
				for _, x := range e.Steps(values) {
					all = append(all, math.Log(x))
				}
				continue
			}
			figures, err := e.Simulate(f.ctx, values, false)
			if err != nil {
				return nil, err
			}
			for i, one := range e.Points {
				if !one.HeldOut {
					all = append(all, math.Log(figures[i]))
				}
			}
		}
		return all, f.ctx.Err()
	}
	return m
}

// check is identify by a measure's slopes.
func (f *fit) check(m measure, values []float64, of []int) (condition float64, err error) {
	s, err := f.slopes(m, values, quick...)
	if err != nil {
		return 0, err
	}
	return f.identify(s, of)
}

// slopes are the changes of the residuals at values by a change of each parameter of its unit. Steps of
// all parameters are sized to change the residuals alike: what is noise of a simulation that takes
// another turn is then alike too, and parameters that do the same look the same.
type slopes struct {
	measure
	values []float64
	at     []float64  // residuals
	by     *mat.Dense // a column for each parameter
	length []float64  // weighted root mean square of a column
}

var (
	quick  = []float64{1}         // steps of slopes to go down by
	steady = []float64{0.7, 1, 2} // and of those to judge by
)

const (
	firstStep     = 0.03
	leastStep     = 0.005
	mostShareStep = 0.3
	mostStep      = 3
	stepEffect    = 0.01
)

func (f *fit) slopes(m measure, values []float64, at ...float64) (slopes, error) {
	s := slopes{measure: m, values: slices.Clone(values), by: mat.NewDense(len(m.weights), len(values), nil), length: make([]float64, len(values))}
	steps, err := f.sizes(values)
	if err != nil {
		return s, err
	}
	if s.at, err = m.of(values); err != nil {
		return s, err
	}
	for j := range values {
		column, length, err := f.slope(m, values, j, steps[j], at)
		if err != nil {
			return s, err
		}
		s.by.SetCol(j, column)
		s.length[j] = length
	}
	return s, nil
}

// sizes are the steps, in units, that change the times of simulated steps by stepEffect: those times are
// without noise, and what is less than theirs drowns in it.
func (f *fit) sizes(values []float64) (steps []float64, err error) {
	m := f.steps()
	for j := range values {
		_, length, err := f.slope(m, values, j, firstStep, quick)
		if err != nil {
			return nil, err
		}
		most := float64(mostStep)
		if isShare(f.Parameters[j]) {
			most = mostShareStep
		}
		steps = append(steps, min(max(stepEffect/max(length, 1e-9), leastStep), most))
	}
	return steps, nil
}

// slope is the straight line through the residuals a step and more to either side, by least squares;
// with several steps a turn that a simulation takes within one of them counts for less.
func (f *fit) slope(m measure, values []float64, j int, step float64, at []float64) (column []float64, length float64, err error) {
	one, unit := f.Parameters[j], f.unit(j, values[j])
	moved := slices.Clone(values)
	column = make([]float64, len(m.weights))
	squares := 0.0
	for _, k := range at {
		up, down := min(values[j]+float64(k*step*unit), one.Most), max(values[j]-float64(k*step*unit), one.Least)
		moved[j] = up
		high, err := m.of(moved)
		if err != nil {
			return nil, 0, err
		}
		moved[j] = down
		low, err := m.of(moved)
		if err != nil {
			return nil, 0, err
		}
		width := (up - down) / unit
		for i := range high {
			column[i] += float64((high[i] - low[i]) * width)
		}
		squares += float64(width * width)
	}
	for i := range column {
		column[i] /= squares
		length += float64(m.weights[i] * column[i] * column[i])
	}
	return column, math.Sqrt(length), nil
}

const (
	scattered = 5   // one in so many evaluations
	scatterTo = 100 // at most
	tried     = 3   // of these, the best
	// how far values are scattered, as logarithms, and the longest moves downhill, in units: shares of
	// what a data sheet says are known better than overheads
	narrow, wide         = 0.25, 0.9
	narrowMove, wideMove = 0.3, 2
)

// isShare says whether a parameter is a share of what a data sheet says.
func isShare(p cost.Parameter) bool { return p.Unit == "" && p.Most == 1 && p.Least > 0 }

// search goes downhill from the start and from the best of values about it, and returns the lowest.
func (f *fit) search(s slopes) (best []float64, err error) {
	type try struct {
		values []float64
		loss   float64
	}
	// An additive recurrence covers the space evenly: multiples of powers of 1/g, modulo 1, where
	// g^(n+1) = g + 1 (Roberts, 2018).
	n := len(f.start)
	g := 2.0
	for range 50 {
		g = math.Pow(1+g, 1/float64(n+1))
	}
	var tries []try
	for k := range min(f.MaxEvaluations/scattered, scatterTo) {
		values := make([]float64, n)
		for i, p := range f.Parameters {
			_, at := math.Modf(0.5 + float64(float64(k+1)*math.Pow(g, -float64(i+1))))
			reach := wide
			if isShare(p) {
				reach = narrow
			}
			values[i] = min(max(f.unit(i, f.start[i])*math.Exp(float64(reach*(2*at-1))), p.Least), p.Most)
		}
		r, err := f.residuals(values)
		if err != nil {
			return nil, err
		}
		tries = append(tries, try{values, f.loss(r)})
	}
	slices.SortStableFunc(tries, func(a, b try) int { return cmp.Compare(a.loss, b.loss) })
	best, lowest, err := f.descend(f.start, s)
	if err != nil {
		return nil, err
	}
	for _, one := range tries[:min(len(tries), tried)] {
		if f.evaluations > f.MaxEvaluations/2 {
			break
		}
		s, err := f.slopes(f.figureMeasure(), one.values, quick...)
		if err != nil {
			return nil, err
		}
		values, loss, err := f.descend(one.values, s)
		if err != nil {
			return nil, err
		}
		if loss < lowest {
			best, lowest = values, loss
		}
	}
	return best, nil
}

const (
	descents = 12
	damped   = 6
)

// descend follows the slopes by damped, weighted least squares (Levenberg and Marquardt), as long as it
// gets lower.
func (f *fit) descend(values []float64, s slopes) (lowest []float64, loss float64, err error) {
	values = slices.Clone(values)
	loss = f.loss(s.at)
	damping := 1e-3
	n := len(values)
	for round := range descents {
		if round > 0 {
			if s, err = f.slopes(f.figureMeasure(), values, quick...); err != nil {
				return nil, 0, err
			}
		}
		normal, gradient := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
		for i, x := range s.at {
			c := f.points[i].Scale
			w := f.weights[i] / (c * math.Hypot(1, x/c))
			row := s.by.RawRowView(i)
			for a := range n {
				gradient.SetVec(a, gradient.AtVec(a)+float64(w*x*row[a]))
				for b := range a + 1 {
					normal.SetSym(a, b, normal.At(a, b)+float64(w*row[a]*row[b]))
				}
			}
		}
		better := false
		for range damped {
			m := mat.NewSymDense(n, nil)
			m.CopySym(normal)
			for a := range n {
				m.SetSym(a, a, float64(m.At(a, a)*(1+damping))+1e-12)
			}
			var by mat.Cholesky
			var move mat.VecDense
			if !by.Factorize(m) || by.SolveVecTo(&move, gradient) != nil {
				damping *= 10
				continue
			}
			next := slices.Clone(values)
			for a := range n {
				longest := float64(wideMove)
				if isShare(f.Parameters[a]) {
					longest = narrowMove
				}
				d := min(max(move.AtVec(a), -longest), longest)
				next[a] = min(max(values[a]-float64(d*f.unit(a, values[a])), f.Parameters[a].Least), f.Parameters[a].Most)
			}
			r, err := f.residuals(next)
			if err != nil {
				return nil, 0, err
			}
			if got := f.loss(r); got < loss {
				better = got < 0.999*loss
				loss, values, damping = got, next, max(damping/10, 1e-6)
				break
			}
			damping *= 10
		}
		if !better || f.evaluations > f.MaxEvaluations {
			break
		}
	}
	return values, loss, nil
}

// A curve leads from any number smoothly into a parameter's bounds, both of which it reaches: sin^2 of
// it is the way from one to the other, in logarithms.
type curve struct{ least, most, offset float64 }

func curveOf(p cost.Parameter) curve {
	c := curve{least: p.Least, most: p.Most}
	if p.Least <= 0 {
		c.offset = p.Default / 4
	}
	return c
}

func (c curve) at(theta float64) float64 {
	way := math.Sin(theta) * math.Sin(theta)
	a, b := math.Log(c.least+c.offset), math.Log(c.most+c.offset)
	return min(max(math.Exp(a+float64(way*(b-a)))-c.offset, c.least), c.most)
}

func (c curve) of(x float64) float64 {
	a, b := math.Log(c.least+c.offset), math.Log(c.most+c.offset)
	return math.Asin(math.Sqrt(min(max((math.Log(x+c.offset)-a)/(b-a), 0), 1)))
}

const (
	restarts    = 3
	vertexStep  = 0.1  // of a parameter's unit, from one corner of the first simplex to the next
	lastGain    = 1e-3 // relative to the loss: a restart that gains less is the last
	quietMoves  = 20   // of the simplex, per parameter and one more, without a gain
	quietChange = 1e-4
)

// simplex polishes by the method of Nelder and Mead, and starts again where it ended until that gains
// nothing. It says whether it came to rest within MaxEvaluations.
func (f *fit) simplex(values []float64) (best []float64, converged bool, err error) {
	n := len(values)
	r, err := f.residuals(values)
	if err != nil {
		return nil, false, err
	}
	best = slices.Clone(values)
	loss := f.loss(r)
	for restart := range restarts {
		left := f.MaxEvaluations - f.evaluations
		if left <= 0 {
			return best, false, nil
		}
		curves, zero := make([]curve, n), make([]float64, n)
		width := make([]float64, n)
		step := vertexStep / float64(int(1)<<restart)
		for i, p := range f.Parameters {
			curves[i] = curveOf(p)
			zero[i] = curves[i].of(best[i])
			aside := best[i] - float64(step*f.unit(i, best[i]))
			if aside < p.Least || restart%2 == 1 && best[i]+float64(step*f.unit(i, best[i])) < p.Most {
				aside = best[i] + float64(step*f.unit(i, best[i]))
			}
			width[i] = curves[i].of(aside) - zero[i]
		}
		place := func(x []float64) []float64 {
			values := make([]float64, n)
			for i := range values {
				values[i] = curves[i].at(zero[i] + float64(x[i]*width[i]))
			}
			return values
		}
		var failed error
		problem := optimize.Problem{
			Func: func(x []float64) float64 {
				if failed != nil {
					return math.Inf(1)
				}
				r, err := f.residuals(place(x))
				if err != nil {
					failed = err
					return math.Inf(1)
				}
				return f.loss(r)
			},
			Status: func() (optimize.Status, error) {
				if failed != nil {
					return optimize.Failure, failed
				}
				return optimize.NotTerminated, nil
			},
		}
		settings := &optimize.Settings{
			Converger:       &optimize.FunctionConverge{Relative: quietChange, Iterations: quietMoves * (n + 1) / 2},
			FuncEvaluations: left,
		}
		found, err := optimize.Minimize(problem, make([]float64, n), settings, &optimize.NelderMead{SimplexSize: 1})
		if failed != nil {
			return nil, false, failed
		}
		if err != nil {
			return nil, false, fmt.Errorf("fitting: %w", err)
		}
		gained := loss - found.F
		if gained > 0 {
			best, loss = place(found.X), found.F
		}
		if found.Status == optimize.FunctionEvaluationLimit {
			return best, false, nil
		}
		if gained < lastGain*loss {
			break
		}
	}
	return best, true, nil
}

// errors sums up the points by source, figure and side, in the order of the points.
func (f *fit) errors(before, after []float64) (all []Error) {
	type key struct {
		source, figure string
		heldOut        bool
	}
	at := map[key]int{}
	var one [][2][]float64
	i := 0
	for _, e := range f.Evidence {
		for _, p := range e.Points {
			k := key{p.Source, p.Figure, p.HeldOut}
			n, known := at[k]
			if !known {
				n = len(all)
				at[k] = n
				all, one = append(all, Error{Source: p.Source, Figure: p.Figure, HeldOut: p.HeldOut}), append(one, [2][]float64{})
			}
			all[n].N++
			one[n][0] = append(one[n][0], before[i]/p.Measured-1)
			one[n][1] = append(one[n][1], after[i]/p.Measured-1)
			i++
		}
	}
	for n := range all {
		all[n].Before, all[n].After = spreadOf(one[n][0]), spreadOf(one[n][1])
	}
	return all
}

func spreadOf(errors []float64) Spread {
	mean := stat.Mean(errors, nil)
	for i, x := range errors {
		errors[i] = math.Abs(x)
	}
	slices.Sort(errors)
	return Spread{Median: stat.Quantile(0.5, stat.LinInterp, errors, nil), MAPE: stat.Mean(errors, nil), Mean: mean}
}
