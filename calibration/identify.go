package calibration

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

const (
	// MostCondition is the condition number of the slopes, scaled to one length, above which parameters
	// are refused: Belsley, Kuh and Welsch (Regression Diagnostics, 1980) take 30 for the limit.
	MostCondition = 30
	// leastInfluence is what the figures must change by, as a fraction and root mean square, where a
	// parameter changes by all of itself.
	leastInfluence = 0.002
	// share is the part of two parameters' variances that must come from one combination for them to be
	// called collinear.
	share = 0.5
)

// A Group is parameters of which one makes up for the others.
type Group struct {
	Names     []string
	Condition float64 // of the slopes, by this combination
}

// Unidentified is the error that measurements can't tell parameters.
type Unidentified struct {
	Idle      []string // without influence on any figure
	Collinear []Group
}

func (u Unidentified) Error() string {
	var lines []string
	for _, name := range u.Idle {
		lines = append(lines, fmt.Sprintf("%s has no influence on what was measured; it takes %s", name, Needs(name)))
	}
	for _, group := range u.Collinear {
		lines = append(lines, fmt.Sprintf("%s are collinear: what one does, the others can undo (condition number %.0f, at most %d)",
			strings.Join(group.Names, " and "), min(group.Condition, 1e6), MostCondition))
		for _, name := range group.Names {
			lines = append(lines, fmt.Sprintf("  %s takes %s", name, Needs(name)))
		}
	}
	return "the measurements can't identify what is to be fitted:\n" + strings.Join(lines, "\n") +
		"\nfit fewer parameters, or give measurements that tell them"
}

// needs is what it takes to tell each parameter from the others.
var needs = map[string]string{
	"gemm_memory_efficiency":         "steps or GEMMs of few tokens",
	"gemm_compute_efficiency":        "steps or GEMMs of thousands of tokens, in 16 bits",
	"gemm_compute_efficiency_8bit":   "steps or GEMMs of thousands of tokens, in 8 bits",
	"roof_softness":                  "GEMMs of few, some hundred and thousands of rows",
	"gemm_launch":                    "timings of small GEMMs, or runs of models with other numbers of matrices",
	"kv_efficiency":                  "long contexts beside short ones, in 16 bits",
	"kv_efficiency_8bit":             "long contexts beside short ones, in 8 bits",
	"attention_compute_efficiency":   "long prompts",
	"attention_launch":               "timings of attention over short contexts",
	"attention_row":                  "timings of decode attention with few and many sequences of short contexts",
	"attention_tile":                 "timings of context attention, short and long",
	"mixed_attention_factor":         "steps with decodes of long contexts beside prompts, and without",
	"expert_memory_efficiency":       "a mixture of experts at small batches",
	"expert_compute_efficiency":      "a mixture of experts at large batches, in 16 bits",
	"expert_compute_efficiency_8bit": "a mixture of experts at large batches, in 8 bits",
	"expert_memory_efficiency_8bit":  "a mixture of experts at small batches, in 8 bits",
	"expert_compute_efficiency_4bit": "a mixture of experts of 4 bits at large batches, on a GPU that multiplies none",
	"request_overhead":               "TTFT at light load, of prompts of different lengths",
	"expert_tile":                    "a mixture of experts at middling batches",
	"expert_launch":                  "runs of mixtures with other numbers of layers",
	"allreduce_latency":              "tensor parallelism over NVLink and small batches, or timings of all-reduces",
	"link_efficiency":                "tensor parallelism over NVLink and large batches, or timings of all-reduces",
	"pcie_latency":                   "tensor parallelism over PCIe and small batches, or timings of all-reduces",
	"pcie_efficiency":                "tensor parallelism over PCIe and large batches, or timings of all-reduces",
	"step_overhead":                  "runs of models of other sizes: in all steps of one model it is a constant like any other",
	"layer_overhead":                 "runs of models with other numbers of layers",
	"sequence_overhead":              "small and large batches of sequences whose contexts differ",
}

// Needs says what measurements identify a parameter.
func Needs(name string) string { return needs[name] }

// identify refuses parameters among those given that the slopes can't tell, and returns the condition number.
// A parameter that does nothing is found by its slopes' size; those that make up for one another by the
// smallest singular values of the slopes at one length, to which they contribute most of their variance.
func (f *fit) identify(s slopes, of []int) (condition float64, err error) {
	var u Unidentified
	var active []int
	for _, j := range of {
		if s.length[j] < leastInfluence {
			u.Idle = append(u.Idle, f.Parameters[j].Name)
		} else {
			active = append(active, j)
		}
	}
	condition = 1
	if n := len(active); n > 1 {
		m := mat.NewDense(len(s.weights), n, nil)
		for i := range s.weights {
			for a, j := range active {
				m.Set(i, a, math.Sqrt(s.weights[i])*s.by.At(i, j)/s.length[j])
			}
		}
		var svd mat.SVD
		if !svd.Factorize(m, mat.SVDThin) {
			return 0, fmt.Errorf("the slopes have no singular values")
		}
		values := svd.Values(nil)
		var v mat.Dense
		svd.VTo(&v)
		least := 1e-9 * values[0]
		condition = values[0] / max(values[n-1], least)
		variance := make([]float64, n)
		part := func(a, k int) float64 {
			x := v.At(a, k) / max(values[k], least)
			return x * x
		}
		for a := range n {
			for k := range n {
				variance[a] += part(a, k)
			}
		}
		var grouped []int
		for k := n - 1; k > 0 && values[0]/max(values[k], least) > MostCondition; k-- {
			var group []int
			for a := range n {
				if part(a, k) > share*variance[a] && !slices.Contains(grouped, a) {
					group = append(group, a)
				}
			}
			if len(group) < 2 {
				// Of several such combinations none need have most: those with the largest parts in this one.
				group = group[:0]
				for a := range n {
					group = append(group, a)
				}
				slices.SortStableFunc(group, func(a, b int) int {
					switch x, y := math.Abs(v.At(a, k)), math.Abs(v.At(b, k)); {
					case x > y:
						return -1
					case x < y:
						return 1
					}
					return 0
				})
				group = group[:2]
				slices.Sort(group)
			}
			grouped = append(grouped, group...)
			var names []string
			for _, a := range group {
				names = append(names, f.Parameters[active[a]].Name)
			}
			u.Collinear = append(u.Collinear, Group{names, values[0] / max(values[k], least)})
		}
	}
	if len(u.Idle)+len(u.Collinear) > 0 {
		return condition, u
	}
	return condition, nil
}

// covariance is of the parameters given, in their units. With the loss' first and second derivatives
// g and h at each residual and the slopes J it is A^-1 B A^-1, where A = J' h J and B sums (J' g)(J' g)'
// over blocks (Huber; Liang and Zeger): errors within a block may go together in any way.
func (f *fit) covariance(s slopes, of []int) (*mat.SymDense, error) {
	n := len(of)
	if n == 0 {
		return nil, nil
	}
	a := mat.NewSymDense(n, nil)
	var order []int
	score := map[int]*mat.VecDense{}
	for i, x := range s.at {
		p := f.points[i]
		root := math.Hypot(1, x/p.Scale)
		g := f.weights[i] * x / (p.Scale * root)
		h := f.weights[i] / (p.Scale * root * root * root)
		block, known := score[p.Block]
		if !known {
			block = mat.NewVecDense(n, nil)
			score[p.Block] = block
			order = append(order, p.Block)
		}
		for k, j := range of {
			block.SetVec(k, block.AtVec(k)+float64(g*s.by.At(i, j)))
			for l, m := range of[:k+1] {
				a.SetSym(k, l, a.At(k, l)+float64(h*s.by.At(i, j)*s.by.At(i, m)))
			}
		}
	}
	b := mat.NewSymDense(n, nil)
	for _, id := range order {
		b.SymRankOne(b, 1, score[id])
	}
	var by mat.Cholesky
	if !by.Factorize(a) {
		return nil, fmt.Errorf("no standard errors: the slopes at the fitted values are singular")
	}
	var inverse mat.SymDense
	if err := by.InverseTo(&inverse); err != nil {
		return nil, fmt.Errorf("no standard errors: %w", err)
	}
	var half, whole mat.Dense
	half.Mul(&inverse, b)
	whole.Mul(&half, &inverse)
	blocks := float64(len(order))
	few := blocks / max(blocks-float64(n), 1) // as parameters fitted to a block take its error in
	c := mat.NewSymDense(n, nil)
	for k := range n {
		for l := range k + 1 {
			c.SetSym(k, l, few*(whole.At(k, l)+whole.At(l, k))/2)
		}
	}
	return c, nil
}
