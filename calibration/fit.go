package calibration

import (
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

// slopes are the changes of the residuals at values by a change of each parameter of its unit. Steps of
// all parameters are sized to change the residuals alike: what is noise of a simulation that takes
// another turn is then alike too, and parameters that do the same look the same.
type slopes struct {
	values []float64
	at     []float64  // residuals
	by     *mat.Dense // a column for each parameter
	length []float64  // weighted root mean square of a column
}

const (
	firstStep  = 0.03
	leastStep  = 0.005
	mostStep   = 0.3
	stepEffect = 0.01
)

func (f *fit) slopes(values []float64) (slopes, error) {
	s := slopes{values: slices.Clone(values), by: mat.NewDense(len(f.points), len(values), nil), length: make([]float64, len(values))}
	var err error
	if s.at, err = f.residuals(values); err != nil {
		return s, err
	}
	for j := range values {
		column, length, err := f.slope(values, j, firstStep)
		if err != nil {
			return s, err
		}
		step := min(max(stepEffect/max(length, 1e-9), leastStep), mostStep)
		if step > 1.3*firstStep || step < firstStep/1.3 {
			if column, length, err = f.slope(values, j, step); err != nil {
				return s, err
			}
		}
		s.by.SetCol(j, column)
		s.length[j] = length
	}
	return s, nil
}

func (f *fit) slope(values []float64, j int, step float64) (column []float64, length float64, err error) {
	one, unit := f.Parameters[j], f.unit(j, values[j])
	moved := slices.Clone(values)
	up, down := min(values[j]+float64(step*unit), one.Most), max(values[j]-float64(step*unit), one.Least)
	moved[j] = up
	high, err := f.residuals(moved)
	if err != nil {
		return nil, 0, err
	}
	moved[j] = down
	low, err := f.residuals(moved)
	if err != nil {
		return nil, 0, err
	}
	for i := range high {
		x := (high[i] - low[i]) / (up - down) * unit
		column = append(column, x)
		length += float64(f.weights[i] * x * x)
	}
	return column, math.Sqrt(length), nil
}

const (
	descents    = 12
	damped      = 6
	longestMove = 0.3 // of a parameter's unit in one move
)

// descend follows the slopes by damped, weighted least squares (Levenberg and Marquardt), as long as it
// gets lower.
func (f *fit) descend(values []float64, s slopes) ([]float64, error) {
	values = slices.Clone(values)
	loss := f.loss(s.at)
	damping := 1e-3
	n := len(values)
	for round := range descents {
		if round > 0 {
			var err error
			if s, err = f.slopes(values); err != nil {
				return nil, err
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
				d := min(max(move.AtVec(a), -longestMove), longestMove)
				next[a] = min(max(values[a]-float64(d*f.unit(a, values[a])), f.Parameters[a].Least), f.Parameters[a].Most)
			}
			r, err := f.residuals(next)
			if err != nil {
				return nil, err
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
	return values, nil
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
	vertexStep  = 0.04 // of a parameter's unit, from one corner of the first simplex to the next
	lastGain    = 1e-3 // relative to the loss: a restart that gains less is the last
	quietMoves  = 25   // of the simplex, per parameter and one more, without a gain
	quietChange = 1e-5
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
