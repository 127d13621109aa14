// Package validation replays measured runs of real engines and says how far the simulation is off.
//
// It knows the formats of measurements, what their set-ups mean for a scenario, and errors. It knows
// nothing of how steps are scheduled or priced.
package validation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmsim/scenarios"
)

// A Source is a file of measurements: a run, request by request, or a table of closed-loop runs.
type Source struct {
	Path   string // of the run's meta.json, or of the table
	Digest string // SHA-256 of the run's requests.csv, or of the table, in lower-case hexadecimal
	Run    *Run   // nil: a table
	Rows   []Row  // of a table
}

// Kind is run or table.
func (s Source) Kind() string {
	if s.Run != nil {
		return "run"
	}
	return "table"
}

// A Setup is what was measured: the model, the hardware and the engine as the measurement's record
// has them, put as a scenario's keys.
type Setup struct {
	Place   string // FILE or FILE:LINE
	Model   string // as the record calls it
	GPU     string
	TP      int
	Version string // of vLLM; empty: not recorded
	Date    string // of the measurement, YYYY-MM-DD; may be empty
	Served  bool   // the client spoke HTTP to a server; else it ran in the engine's process

	model, engine []string // key: value
	notes         []string // what the record leaves open, and how it was filled
	unfit         []string // why no scenario can be built
}

func (s *Setup) setModel(key, value string)  { s.model = append(s.model, key+": "+value) }
func (s *Setup) setEngine(key, value string) { s.engine = append(s.engine, key+": "+value) }
func (s *Setup) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}
func (s *Setup) refuse(format string, args ...any) {
	s.unfit = append(s.unfit, fmt.Sprintf(format, args...))
}

// Times are one request's latencies, or the means of a closed-loop run's, in milliseconds. NaN:
// not measured, or, of requests with a single token, TPOT that does not exist.
type Times struct{ TTFT, TPOT, E2E float64 }

var unmeasured = Times{math.NaN(), math.NaN(), math.NaN()}

// A Run is one measured run with its requests.
type Run struct {
	Setup
	File     string    // requests.csv
	Requests []Request // in the order of their arrival
}

// A Request is one of a measured run.
type Request struct {
	ID            string
	Line          int
	Input, Output int     // tokens
	Arrival, Last float64 // seconds; Last is NaN if not measured
	Measured      Times
}

// A Row is one closed-loop run of a table.
type Row struct {
	Setup
	ID          string
	ISL, OSL    int // nominal tokens of prompt and output
	Concurrency int
	TTFT, TPOT  float64 // means, milliseconds; NaN: not measured

	exact bool // lengths are nearly the nominal ones
	twin  bool // the same measurement is in the fitting half under another id
}

// spread is between which lengths those of a row are, uniformly. Clients drew them from 0.8 of nominal
// to nominal, or asked for the nominal ones and got nearly these.
func (r Row) spread(nominal int) (lo, hi int) {
	if r.exact {
		return max(nominal*97/100, 1), nominal
	}
	return max(nominal*4/5, 1), nominal
}

func (r Row) mean(nominal int) float64 {
	lo, hi := r.spread(nominal)
	return float64(float64(lo+hi) / 2)
}

// Measured is the row's means; E2E is TTFT and the mean output's other tokens.
func (r Row) Measured() Times { return r.times(r.TTFT, r.TPOT) }

func (r Row) times(ttft, tpot float64) Times {
	return Times{ttft, tpot, ttft + float64(tpot*(r.mean(r.OSL)-1))}
}

// otherSetup says whether, by Little's law, fewer than half of the sequences ran that slots and a cache
// of so many tokens have room for: the others waited for something that the table does not tell of.
func (r Row) otherSetup(tokens int) bool {
	t := r.Measured()
	if math.IsNaN(t.E2E) {
		return false
	}
	ran := float64(r.Concurrency) * (t.E2E - t.TTFT) / t.E2E
	each := r.mean(r.ISL) + float64(r.mean(r.OSL)/2)
	return r.OSL > 100 && ran < min(float64(r.Concurrency), float64(tokens)/each)/2
}

// throughput is a closed loop's output tokens per second, by Little's law.
func (r Row) throughput(t Times) float64 {
	return float64(float64(r.Concurrency)*r.mean(r.OSL)) / t.E2E * 1e3
}

// Options are what a prediction depends on beside the measurement.
type Options struct {
	// Cost is how steps are priced; nil: Cost of this package.
	Cost func(*Setup) []scenarios.Edit
	// Edits are made after everything else.
	Edits []scenarios.Edit
	// Prompts is how many requests each client of a closed-loop row sends; 0: 10.
	Prompts int
	// FittedOn names files that the constants in use were fitted to, by SHA-256 in lower-case
	// hexadecimal, besides those that the constants themselves name.
	FittedOn []string
}

// Cost is the price of a step that no measurement is asked for: the operators model with the constants
// of the GPU, and of an engine in the client's process, or of its version behind HTTP.
func Cost(s *Setup) []scenarios.Edit {
	preset := "served"
	switch v, ok := minor(s.version()); {
	case !s.Served:
		preset = "in-process"
	case ok && (v[0] == 0 && v[1] < 14):
		preset = "served-before-0.14"
	}
	return []scenarios.Edit{{Path: "cost.model", Value: "operators"}, {Path: "cost.preset", Value: preset}}
}

// FittingHalf says whether a table's row is in the half that constants may be fitted to: the first
// byte of its id's SHA-256 is even. The other half stays blind.
func FittingHalf(id string) bool {
	sum := sha256.Sum256([]byte(id))
	return sum[0]%2 == 0
}

// with adds what a scenario's constants say they were fitted to.
func (o Options) with(s *scenarios.Scenario) Options {
	o.FittedOn = slices.Concat(o.FittedOn, s.Cost.FittedOn)
	return o
}

// InSample says whether a run's constants were fitted to it.
func (o Options) InSample(s Source) bool { return slices.Contains(o.FittedOn, s.Digest) }

// RowInSample says the same of a table's row: the table must be among those that were fitted to, and
// the row in the fitting half, or one measurement with a row that is.
func (o Options) RowInSample(s Source, r Row) bool {
	return o.InSample(s) && (FittingHalf(r.ID) || r.twin)
}

// Scenario is the run as a scenario: its set-up, and its requests as the workload.
func (r *Run) Scenario(o Options) (*scenarios.Scenario, error) {
	return r.scenario(o, scenarios.TraceEdit(r.File))
}

// Scenario is the row as a scenario: a closed loop without think time, whose first requests, as many
// as it has clients, are sent at once.
func (r Row) Scenario(o Options) (*scenarios.Scenario, error) {
	prompts := o.Prompts
	if prompts == 0 {
		prompts = 10
	}
	inLo, inHi := r.spread(r.ISL)
	outLo, outHi := r.spread(r.OSL)
	return r.scenario(o, scenarios.Edit{Path: "workload", Value: fmt.Sprintf(
		"{arrivals: {process: closed, concurrency: %d}, prompt_tokens: {uniform: [%d, %d]}, output_tokens: {uniform: [%d, %d]}, requests: %d}",
		r.Concurrency, inLo, inHi, outLo, outHi, prompts*r.Concurrency)})
}

// scenario builds from blocks, so that a single key that a user sets holds over them.
func (s *Setup) scenario(o Options, workload scenarios.Edit) (*scenarios.Scenario, error) {
	if len(s.unfit) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(s.unfit, "; "))
	}
	price := o.Cost
	if price == nil {
		price = Cost
	}
	models, _ := s.engineModelled()
	block := func(path string, pairs ...string) scenarios.Edit {
		return scenarios.Edit{Path: path, Value: "{" + strings.Join(pairs, ", ") + "}", Label: path + " of the measurement"}
	}
	edits := append(price(s),
		block("model", append([]string{"name: " + quoted(s.Model)}, s.model...)...),
		block("hardware", "name: "+quoted(s.GPU)),
		block("engine", append([]string{"policy: vllm-v1", "models: " + models, fmt.Sprintf("tensor_parallel_size: %d", s.TP)}, s.engine...)...),
		workload)
	loaded, err := scenarios.Load("base", append(edits, o.Edits...))
	if err != nil {
		return nil, err
	}
	return loaded, nil
}

// quoted is a text as YAML has it in double quotes.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, text)) + `"`
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
