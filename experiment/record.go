package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmsim/report"
	"llmsim/scenarios"
	"llmsim/strict"
)

// A Prediction is what is said before a measurement.
type Prediction struct {
	Version    string      `json:"llmsim"`
	Experiment string      `json:"experiment"`
	Digest     string      `json:"digest"`  // of the experiment
	ID         int         `json:"id"`      // higher than that of any record before it in the folder
	Written    time.Time   `json:"written"` // UTC
	Seed       uint64      `json:"seed"`    // the first; each run has its own
	Runs       int         `json:"runs"`
	Models     []ModelData `json:"models"`
	Values     []Value     `json:"values"`
}

// ModelData names a model's scenario.
type ModelData struct {
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Differs string `json:"differs,omitempty"`
}

// A Measurement is what was found after it.
type Measurement struct {
	Version    string    `json:"llmsim"`
	Experiment string    `json:"experiment"`
	Digest     string    `json:"digest"`
	Prediction string    `json:"prediction"` // SHA-256 of the prediction
	ID         int       `json:"id"`
	Started    time.Time `json:"started"` // UTC
	By         string    `json:"by"`
	Seed       uint64    `json:"seed"`
	Runs       int       `json:"runs"`
	Values     []Value   `json:"values"`
	Effects    []Effect  `json:"effects,omitempty"`
	Distrust   []string  `json:"distrust,omitempty"`
}

// An Effect is what an explanation's figure came to, with the suspected cause and without it.
type Effect struct {
	Claim   string  `json:"claim"`
	Model   float64 `json:"model"`
	Control float64 `json:"control"`
}

// digest is the same however the file is spaced.
func (p *Prediction) digest() string { return digestOf(p) }

// A Folder holds predictions/NAME.json and measurements/NAME.json. What it is given to write it
// returns as files that are complete and still to be committed.
type Folder struct {
	Path    string
	Version string           // of the program
	Now     func() time.Time // the clock
}

// Records are the files of an experiment, whether they are there or not.
func (f Folder) Records(name string) []string {
	return []string{f.prediction(name), f.measurement(name)}
}

func (f Folder) prediction(name string) string {
	return filepath.Join(f.Path, "predictions", name+".json")
}

func (f Folder) measurement(name string) string {
	return filepath.Join(f.Path, "measurements", name+".json")
}

// readRecord reads a file of one JSON value with no key that is unknown.
func readRecord(path string, into any) error {
	text, err := strict.ReadFile(path)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(into); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("must be one JSON value, is followed by more")
		}
	}
	if err != nil {
		return scenarios.Faults{{Where: path, Message: strings.TrimPrefix(err.Error(), "json: ")}}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// mostRecords bounds the files that one folder is looked through for.
const mostRecords = 10_000

// nextID is higher than that of any record. Clocks can be set back; this can't.
func (f Folder) nextID() (int, error) {
	highest := 0
	for _, kind := range []string{"predictions", "measurements"} {
		folder := filepath.Join(f.Path, kind)
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if len(entries) > mostRecords {
			return 0, fmt.Errorf("%s: must have at most %d files, has %d", folder, mostRecords, len(entries))
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".json" || e.IsDir() {
				continue
			}
			path := filepath.Join(folder, e.Name())
			text, err := strict.ReadFile(path)
			if err != nil {
				return 0, err
			}
			var record struct {
				ID int `json:"id"`
			}
			if err := json.Unmarshal(text, &record); err != nil {
				return 0, fmt.Errorf("%s: must be JSON with an id: %w", path, err)
			}
			highest = max(highest, record.ID)
		}
	}
	return highest + 1, nil
}

// records are files to be written, opened before the work whose results they take.
type records []*report.AtomicFile

// open makes sure that records can be written; the folders above them are made.
func open(paths []string) (r records, err error) {
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			r.abort()
			return nil, err
		}
		file, err := report.CreateAtomic(path)
		if err != nil {
			r.abort()
			return nil, err
		}
		r = append(r, file)
	}
	return r, nil
}

// abort leaves nothing behind of files that were not committed.
func (r records) abort() {
	for _, file := range r {
		file.Abort()
	}
}

// commit makes the files appear together, or after an error none.
func (r records) commit(all []any) error {
	for i, file := range r {
		if err := report.WriteJSON(file, all[i]); err != nil {
			return err
		}
	}
	return report.CommitAll(r...)
}

// paths are the files of experiments' records of one kind.
func paths(all []*Experiment, of func(name string) string) (list []string) {
	for _, e := range all {
		list = append(list, of(e.Name))
	}
	return list
}

// Given are predictions of a person's own, by metric, in the place of the simulator's.
type Given map[string]float64

// Predict runs every model in virtual time and writes what its metrics come to, or what is given
// for them. It refuses an experiment that has been measured, and then writes nothing.
func (f Folder) Predict(ctx context.Context, all []*Experiment, given Given, progress func(int64)) ([]Prediction, error) {
	err := distinct(all)
	for _, e := range all {
		if path := f.measurement(e.Name); exists(path) {
			err = errors.Join(err, fmt.Errorf("%s: measured already: a prediction now would come after its measurement %s; only removing that starts anew", e.Name, path))
		}
	}
	for name := range given {
		if !slices.ContainsFunc(all, func(e *Experiment) bool { return e.metricAt(name) >= 0 }) {
			err = errors.Join(err, fmt.Errorf("%q is no metric, %s", name, hint(name, metricNames(all))))
		}
	}
	if err != nil {
		return nil, err
	}
	id, err := f.nextID()
	if err != nil {
		return nil, err
	}
	files, err := open(paths(all, f.prediction))
	if err != nil {
		return nil, err
	}
	defer files.abort()
	var predictions []Prediction
	var written []any
	runs := runCounter{progress: progress}
	for i, e := range all {
		seed := e.Models[0].Scenario.Seed
		o, err := e.run(ctx, Virtual{}, seed, runs.from)
		if err != nil {
			return nil, err
		}
		runs.next()
		values, err := e.values(o)
		if err != nil {
			return nil, err
		}
		for k := range values {
			values[k].By = "simulator"
			if x, ok := given[values[k].Metric]; ok {
				values[k].Value, values[k].By = x, "given"
			}
		}
		p := Prediction{
			Version: f.Version, Experiment: e.Name, Digest: e.Digest, ID: id + i, Written: f.Now().UTC(),
			Seed: seed, Runs: e.Runs, Values: values,
		}
		for _, m := range e.Models {
			p.Models = append(p.Models, ModelData{m.Name, m.Digest, m.Differs})
		}
		predictions, written = append(predictions, p), append(written, p)
	}
	return predictions, files.commit(written)
}

// distinct refuses two experiments that would share a record.
func distinct(all []*Experiment) (err error) {
	seen := map[string]bool{}
	for _, e := range all {
		if seen[e.Name] {
			err = errors.Join(err, fmt.Errorf("%s: is named twice", e.Name))
		}
		seen[e.Name] = true
	}
	return err
}

// A runCounter adds up the runs of several experiments.
type runCounter struct {
	progress   func(int64)
	past, last int64
}

func (r *runCounter) from(done int64) {
	r.last = done
	r.progress(r.past + done)
}

func (r *runCounter) next() { r.past, r.last = r.past+r.last, 0 }

func (e *Experiment) metricAt(name string) int {
	return slices.IndexFunc(e.Metrics, func(m Metric) bool { return m.Name == name })
}

func metricNames(all []*Experiment) (names []string) {
	for _, e := range all {
		for _, m := range e.Metrics {
			names = append(names, m.Name)
		}
	}
	return names
}

// predicted reads an experiment's prediction and refuses one that is of something else.
func (f Folder) predicted(e *Experiment) (*Prediction, error) {
	path := f.prediction(e.Name)
	if !exists(path) {
		return nil, fmt.Errorf("%s: there is no prediction %s: llmsim experiment predict comes first", e.Name, path)
	}
	var p Prediction
	if err := readRecord(path, &p); err != nil {
		return nil, err
	}
	return &p, p.of(e, path)
}

// of says what keeps a prediction from being one of an experiment.
func (p *Prediction) of(e *Experiment, path string) (err error) {
	if p.Experiment != e.Name {
		err = errors.Join(err, fmt.Errorf("%s: must be of experiment %s, is of %q", path, e.Name, p.Experiment))
	}
	if p.Digest != e.Digest {
		err = errors.Join(err, fmt.Errorf("%s: must be of the experiment as it is, %s, is of %s%s", path, short(e.Digest), short(p.Digest), p.changed(e)))
	}
	return errors.Join(err, e.complete(p.Values, path))
}

// changed names the models whose scenarios are no more those of the prediction.
func (p *Prediction) changed(e *Experiment) string {
	var names []string
	for _, m := range e.Models {
		i := slices.IndexFunc(p.Models, func(d ModelData) bool { return d.Name == m.Name })
		if i < 0 || p.Models[i].Digest != m.Digest {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return " (metrics or tolerances have changed since)"
	}
	return " (changed since: model " + strings.Join(names, ", ") + ")"
}

// complete refuses values that are not those of the metrics, each once and in order.
func (e *Experiment) complete(values []Value, path string) (err error) {
	if len(values) != len(e.Metrics) {
		return fmt.Errorf("%s: must have values of %d metrics, has %d", path, len(e.Metrics), len(values))
	}
	for i, m := range e.Metrics {
		if values[i].Metric != m.Name {
			err = errors.Join(err, fmt.Errorf("%s: values[%d]: must be of metric %s, is of %q", path, i, m.Name, values[i].Metric))
		}
	}
	return err
}

func short(digest string) string { return shortened(digest, len("sha256:")+12) }

func shortened(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// Measuring is how to measure.
type Measuring struct {
	Target Target
	By     string  // what the target is, for people
	Seed   *uint64 // the first; nil: the one after the prediction's last
}

// Measure measures experiments that were predicted, under other seeds, and writes what it found. It
// writes nothing when it refuses one of them.
func (f Folder) Measure(ctx context.Context, all []*Experiment, how Measuring, progress func(int64)) ([]Measurement, error) {
	err := distinct(all)
	predictions := make([]*Prediction, len(all))
	for i, e := range all {
		p, bad := f.predicted(e)
		if bad == nil {
			if seed := how.seed(p); seed < p.Seed+uint64(p.Runs) && p.Seed < seed+uint64(e.Runs) {
				bad = fmt.Errorf("%s: seeds %s: must be others than the prediction's, %s", e.Name, seeds(seed, e.Runs), seeds(p.Seed, p.Runs))
			}
		}
		predictions[i], err = p, errors.Join(err, bad)
	}
	if err != nil {
		return nil, err
	}
	id, err := f.nextID()
	if err != nil {
		return nil, err
	}
	files, err := open(paths(all, f.measurement))
	if err != nil {
		return nil, err
	}
	defer files.abort()
	var measurements []Measurement
	var written []any
	runs := runCounter{progress: progress}
	for i, e := range all {
		started, seed := f.Now().UTC(), how.seed(predictions[i])
		o, err := e.run(ctx, how.Target, seed, runs.from)
		if err != nil {
			return nil, err
		}
		runs.next()
		m := Measurement{
			Version: f.Version, Experiment: e.Name, Digest: e.Digest, Prediction: predictions[i].digest(),
			ID: id + i, Started: started, By: how.By, Seed: seed, Runs: e.Runs, Distrust: o.distrust,
		}
		if m.Values, err = e.values(o); err != nil {
			return nil, err
		}
		for _, x := range e.Explanations {
			if x.Control != "" {
				m.Effects = append(m.Effects, Effect{
					x.Claim, o.of(x.Model, x.Effect, x.Runs, e.Runs), o.of(x.Control, x.Effect, x.Runs, e.Runs),
				})
			}
		}
		measurements, written = append(measurements, m), append(written, m)
	}
	return measurements, files.commit(written)
}

// seed is the first of a measurement.
func (how Measuring) seed(p *Prediction) uint64 {
	if how.Seed != nil {
		return *how.Seed
	}
	return p.Seed + uint64(p.Runs)
}

func seeds(first uint64, n int) string {
	if n == 1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, first+uint64(n)-1)
}
