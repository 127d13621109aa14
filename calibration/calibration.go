// Package calibration fits constants of the operators model to measurements, and says how much the
// measurements know of each.
//
// It knows parameters, figures that were measured, and statistics. It knows nothing of how steps are
// scheduled or priced.
package calibration

import (
	"context"
	"math"

	"llmsim/sim/cost"
)

// A Point is one measured figure.
type Point struct {
	Source string // the file it is from
	Figure string // what it is, as in TPOT or gemm bf16; points of one source and figure are judged together
	// Block is shared by points whose errors go together: requests that ran at the same time, timings
	// of one shape.
	Block    int
	HeldOut  bool    // compared, but not fitted to
	Weight   float64 // in the fit; all fitted points together may weigh anything
	Scale    float64 // of the logarithm of the error, above which it counts by its size and not its square
	Measured float64 // above 0, in whatever unit
}

// Evidence is points, and how to price them.
type Evidence struct {
	Points []Point
	// Simulate returns the figures of all points at values of the problem's parameters, in their
	// order; those of points held out only if asked for, else anything.
	Simulate func(ctx context.Context, values []float64, heldOut bool) ([]float64, error)
	// Steps, if not nil, are the times at such values of the steps that the fitted points were simulated
	// in, always of the same steps, weighted by StepWeights. Parameters that all steps' times can't tell
	// no figure made of them can; a simulation that takes another turn with each value may hide that.
	Steps       func(values []float64) []float64
	StepWeights []float64
}

// A Problem is what to fit, from where, and to what.
type Problem struct {
	Parameters     []cost.Parameter
	Start          []float64 // values of the parameters
	Evidence       []Evidence
	MaxEvaluations int                   // of all points; at most as many, and those that the slopes take; 0: 600
	Told           func(evaluations int) // if not nil, after each
}

// An Estimate is a parameter's value as the fit has it.
type Estimate struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Start   float64 `json:"start"`
	Value   float64 `json:"fitted"`
	AtBound bool    `json:"at_bound"`
	// StandardError is of the value, in its unit; nil at a bound, where none can be told.
	StandardError *float64 `json:"standard_error"`
}

// An Error is how far off the points of one source and figure are: absolute errors as fractions.
type Error struct {
	Source  string `json:"source"`
	Figure  string `json:"figure"`
	HeldOut bool   `json:"held_out"`
	N       int    `json:"n"`
	Before  Spread `json:"before"`
	After   Spread `json:"after"`
}

// A Spread sums up errors, simulated / measured - 1: the median and the mean of their sizes, and their mean.
type Spread struct {
	Median float64 `json:"median"`
	MAPE   float64 `json:"mape"`
	Mean   float64 `json:"mean"`
}

// A Correlation is between the errors of two parameters.
type Correlation struct {
	A     string  `json:"a"`
	B     string  `json:"b"`
	Value float64 `json:"correlation"`
}

// A Result is a fit.
type Result struct {
	Parameters   []Estimate    `json:"parameters"`
	Errors       []Error       `json:"errors"`
	Correlations []Correlation `json:"correlations"` // of at least 0.9 either way
	Condition    float64       `json:"condition"`    // of the slopes, scaled to one length
	Evaluations  int           `json:"evaluations"`
	Converged    bool          `json:"converged"`
}

const (
	defaultEvaluations = 600
	digits             = 5 // of a fitted value
	warnCorrelation    = 0.9
)

// Fit finds the values at which the points that are not held out are met best, by the mean of the
// errors' logarithms, the small ones squared. It goes downhill by slopes, from the start and from the best
// of a few values about it, since simulations of queues have more than one valley; then, because they have
// steps in them, by a simplex. The same problem gives the same result.
//
// The error is an Unidentified where the points can't tell the parameters, or that of Simulate.
func Fit(ctx context.Context, p Problem) (Result, error) {
	f, err := newFit(ctx, p)
	if err != nil {
		return Result{}, err
	}
	before, err := f.figures(p.Start)
	if err != nil {
		return Result{}, err
	}
	if _, err := f.check(f.steps(), f.start, f.all()); err != nil {
		return Result{}, err
	}
	slopes, err := f.slopes(f.figureMeasure(), f.start, steady...)
	if err != nil {
		return Result{}, err
	}
	if _, err := f.identify(slopes, f.all()); err != nil {
		return Result{}, err
	}
	values, err := f.search(slopes)
	if err != nil {
		return Result{}, err
	}
	values, converged, err := f.simplex(values)
	if err != nil {
		return Result{}, err
	}
	for i, x := range values {
		values[i] = f.rounded(i, x)
	}
	if slopes, err = f.slopes(f.figureMeasure(), values, steady...); err != nil {
		return Result{}, err
	}
	var inner []int
	for i := range values {
		if !f.atBound(i, values[i]) {
			inner = append(inner, i)
		}
	}
	exact, err := f.check(f.steps(), values, inner)
	if err != nil {
		return Result{}, err
	}
	condition, err := f.identify(slopes, inner)
	if err != nil {
		return Result{}, err
	}
	condition = max(condition, exact)
	covariance, err := f.covariance(slopes, inner)
	if err != nil {
		return Result{}, err
	}
	after, err := f.figures(values)
	if err != nil {
		return Result{}, err
	}
	result := Result{Errors: f.errors(before, after), Correlations: []Correlation{}, Condition: condition, Evaluations: f.evaluations, Converged: converged}
	for i, one := range p.Parameters {
		result.Parameters = append(result.Parameters, Estimate{
			Name: one.Name, Unit: one.Unit, Least: one.Least, Most: one.Most, Start: p.Start[i], Value: values[i], AtBound: true,
		})
	}
	for a, i := range inner {
		e := math.Sqrt(covariance.At(a, a)) * f.unit(i, values[i])
		result.Parameters[i].StandardError, result.Parameters[i].AtBound = &e, false
		for b, j := range inner[:a] {
			c := covariance.At(a, b) / math.Sqrt(covariance.At(a, a)*covariance.At(b, b))
			if math.Abs(c) >= warnCorrelation {
				result.Correlations = append(result.Correlations, Correlation{p.Parameters[j].Name, p.Parameters[i].Name, c})
			}
		}
	}
	return result, nil
}
