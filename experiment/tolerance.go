package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"llmsim/strict"
)

// A Tolerance is how far a figure may be off: by Absolute, in the figure's unit, or by Relative, a
// share of what is expected, whichever is more. Zero: not at all, but for what rounding leaves.
type Tolerance struct {
	Absolute float64 `json:"absolute,omitempty"`
	Relative float64 `json:"relative,omitempty"`

	timed bool // Absolute was given as a time
}

// suits says whether a tolerance is in the unit of a figure, of which a time is milliseconds.
func (t Tolerance) suits(key string) bool {
	return !t.timed || strings.HasPrefix(key, "latency_ms.") || strings.HasSuffix(key, "_ms")
}

// rounding is what writing a mean of six decimals as a decimal number may cost.
const rounding = 1e-9

// Limit is how far off a figure may be that is expected to be want.
func (t Tolerance) Limit(want float64) float64 {
	return max(t.Absolute, math.Abs(float64(t.Relative*want)))
}

// Holds says whether got is within the tolerance of want.
func (t Tolerance) Holds(want, got float64) bool {
	return math.Abs(got-want) <= t.Limit(want)+float64(rounding*max(math.Abs(want), math.Abs(got)))
}

// String writes it as a file does, without braces.
func (t Tolerance) String() string {
	var parts []string
	if t.Relative > 0 {
		parts = append(parts, strconv.FormatFloat(math.Round(t.Relative*1e8)/1e6, 'f', -1, 64)+"%")
	}
	if t.Absolute > 0 {
		parts = append(parts, strconv.FormatFloat(t.Absolute, 'g', -1, 64))
	}
	if len(parts) == 0 {
		return "exact"
	}
	return strings.Join(parts, " or ")
}

// ReadYAML reads {relative: 5%, absolute: 3}, either or both; a time as absolute, 3ms, is of figures in
// milliseconds.
func (t *Tolerance) ReadYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return fmt.Errorf("must be {relative: SHARE, absolute: NUMBER} or one of the two, is %s", strict.Show(n))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		var err error
		switch key := n.Content[i].Value; key {
		case "relative":
			t.Relative, err = ReadShare(n.Content[i+1])
		case "absolute":
			t.Absolute, t.timed, err = readAbsolute(n.Content[i+1])
		default:
			return fmt.Errorf("%s: unknown key, %s", key, hint(key, []string{"relative", "absolute"}))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", n.Content[i].Value, err)
		}
	}
	return nil
}

// ReadShare reads 5% or 0.05, from 0 to 100%.
func ReadShare(n *yaml.Node) (float64, error) {
	x, ok := strict.Number(n)
	if percent, has := strings.CutSuffix(n.Value, "%"); !ok && has && n.Kind == yaml.ScalarNode {
		parsed, err := strconv.ParseFloat(percent, 64)
		x, ok = parsed/100, err == nil && finite(parsed)
	}
	if !ok || x < 0 || x > 1 {
		return 0, fmt.Errorf("must be a share from 0 to 100%%, such as 5%% or 0.05, is %s", strict.Show(n))
	}
	return x, nil
}

func readAbsolute(n *yaml.Node) (x float64, timed bool, err error) {
	x, ok := strict.Number(n)
	if d, bad := time.ParseDuration(n.Value); !ok && bad == nil && n.Kind == yaml.ScalarNode {
		x, ok, timed = float64(d)/float64(time.Millisecond), true, true
	}
	if !ok || x < 0 {
		return 0, false, fmt.Errorf("must be a number from 0 on, or a time such as 3ms, is %s", strict.Show(n))
	}
	return x, timed, nil
}

func number(text string) (float64, bool) {
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && finite(x)
}
