package scenarios

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmsim/workload"
)

// processes names the ways requests can arrive, with the keys that each needs and takes besides.
var processes = map[string]struct{ needs, takes []string }{
	"poisson":     {[]string{"rate"}, []string{"grid"}},
	"gamma":       {[]string{"rate", "cv"}, []string{"grid"}},
	"constant":    {[]string{"rate"}, nil},
	"closed":      {[]string{"concurrency"}, []string{"think_time"}},
	"trace":       {[]string{"file"}, []string{"spread", "speedup"}},
	"all-at-once": {nil, nil},
}

// mostGroups bounds the system prompts of a workload.
const mostGroups = 1e6

var arrivalKeys = []string{"rate", "cv", "grid", "concurrency", "think_time", "file", "spread", "speedup"}

func (r *reading) workload(b *block) (w Workload) {
	defer b.close()
	w.Arrivals = r.arrivals(b.block("arrivals"))
	process := w.Arrivals.Process
	if process == "trace" {
		for _, own := range [][2]string{
			{"prompt_tokens", "lengths"}, {"output_tokens", "lengths"}, {"prefix", "prefixes"}, {"sessions", "sessions"},
		} {
			if n := b.get(own[0]); n != nil {
				r.add(n, join(b.path, own[0]), "makes no sense with process trace, which brings its own %s", own[1])
			}
		}
		if b.has("requests") {
			w.Requests = b.whole("requests", positive(mostRequests))
		}
		return w
	}
	w.Prompt, w.Output = r.tokens(b, "prompt_tokens", "tokens"), r.tokens(b, "output_tokens", "tokens")
	if b.has("prefix") {
		w.Prefix = r.systemPrompts(b.block("prefix"))
	}
	if b.has("sessions") {
		if process == "closed" {
			r.add(b.get("sessions"), join(b.path, "sessions"),
				"makes no sense with process closed, whose streams wait for answers themselves: have sessions start by poisson, gamma, constant or all-at-once")
		}
		w.Sessions = r.sessions(b.block("sessions"))
	}
	w.Requests = 10_000
	if b.has("requests") {
		w.Requests = b.whole("requests", positive(mostRequests))
	}
	if rate := w.Arrivals.Rate; rate > 0 && float64(w.Requests)/rate > mostSeconds {
		r.addAmong([]string{"workload.requests", "workload.arrivals.rate"},
			"%d requests at %v per second must arrive within %.0e s, take %.1e s", w.Requests, rate, mostSeconds, float64(w.Requests)/rate)
	}
	return w
}

func (r *reading) arrivals(b *block) (a Arrivals) {
	defer b.close()
	a.Process = b.choice("process", slices.Sorted(maps.Keys(processes))...)
	process := processes[a.Process]
	allowed := slices.Concat(process.needs, process.takes)
	for _, key := range arrivalKeys {
		n := b.get(key)
		if n == nil || a.Process == "" || slices.Contains(allowed, key) {
			continue
		}
		fits := ""
		if len(allowed) > 0 {
			fits = ", which takes " + strings.Join(allowed, ", ")
		}
		r.add(n, join(b.path, key), "makes no sense with process %s%s", a.Process, fits)
	}
	// Of a process that is not known, all that is given is read, so that its faults are told too.
	takes := func(key string) bool {
		return slices.Contains(process.needs, key) || b.has(key) && (a.Process == "" || slices.Contains(process.takes, key))
	}
	if takes("rate") {
		a.Rate = b.number("rate", positive(mostRate))
		if a.Rate != 0 && a.Rate < leastRate {
			r.add(b.get("rate"), join(b.path, "rate"), "must be at least %v, is %v", leastRate, a.Rate)
			a.Rate = 0
		}
	}
	if takes("cv") {
		a.CV = b.number("cv", between(0.001, 100))
	}
	if takes("grid") {
		a.Grid = b.duration("grid", positive(float64(time.Hour)))
	}
	if takes("concurrency") {
		a.Concurrency = b.whole("concurrency", positive(mostConcurrency))
	}
	if takes("think_time") {
		a.ThinkTime = b.duration("think_time", nonNegative(float64(longest)))
	}
	if takes("file") {
		a.Trace = r.file(b, "file")
	}
	if takes("spread") {
		a.Spread = b.choice("spread", workload.SpreadUniform, workload.SpreadPoisson)
	}
	if a.Process == "trace" {
		a.Speedup = 1
	}
	if takes("speedup") {
		a.Speedup = b.number("speedup", between(1e-6, 1e6))
	}
	return a
}

func (r *reading) systemPrompts(b *block) (p SystemPrompts) {
	defer b.close()
	p.Groups = b.whole("groups", positive(mostGroups))
	p.Tokens = b.whole("tokens", positive(workload.MaxTokens))
	return p
}

func (r *reading) sessions(b *block) (s Sessions) {
	defer b.close()
	s.Turns = r.tokens(b, "turns", "turns")
	if b.has("think_time") {
		s.ThinkTime = b.duration("think_time", nonNegative(float64(longest)))
	}
	return s
}

var kinds = []string{"uniform", "normal", "lognormal", "empirical"}

// tokens reads a number of what is counted, or the name of a distribution with its parameters.
func (r *reading) tokens(b *block, key, counted string) (t Tokens) {
	n, at := b.get(key), join(b.path, key)
	if n == nil {
		if b.node != nil {
			b.missing(key)
		}
		return t
	}
	want := "a number of " + counted + " or {uniform: [lo, hi]}, {normal: [mean, sd]}, {lognormal: [median, sigma]} or {empirical: file}"
	if isAlias(n) {
		return t
	}
	if n.scalar != nil {
		if tag := n.scalar.ShortTag(); tag != "!!int" && tag != "!!float" {
			r.add(n, at, "must be %s, is %s", want, show(n))
			return t
		}
		x, _ := r.whole(n, at, positive(workload.MaxTokens))
		return Tokens{Kind: "fixed", A: float64(x)}
	}
	if !n.isMapping() {
		r.add(n, at, "must be %s, is %s", want, show(n))
		return t
	}
	in := r.block(n, at)
	defer in.close()
	for _, kind := range kinds {
		if !in.has(kind) {
			continue
		}
		if t.Kind != "" {
			r.add(in.get(kind), join(at, kind), "must be one distribution, is %s too", t.Kind)
			continue
		}
		t.Kind = kind
		switch kind {
		case "uniform":
			t.A, t.B = r.pair(in, kind, "[lo, hi]", positive(workload.MaxTokens), positive(workload.MaxTokens), true)
		case "normal":
			t.A, t.B = r.pair(in, kind, "[mean, sd]", between(1, workload.MaxTokens), nonNegative(workload.MaxTokens), false)
		case "lognormal":
			t.A, t.B = r.pair(in, kind, "[median, sigma]", between(1, workload.MaxTokens), nonNegative(10), false)
		case "empirical":
			t.File = r.file(in, kind)
		}
	}
	if t.Kind == "" && len(n.keys) == 0 {
		r.add(n, at, "must be %s, is empty", want)
	}
	return t
}

// pair reads a list of two numbers.
func (r *reading) pair(b *block, key, want string, first, second span, bounds bool) (x, y float64) {
	n, at := b.get(key), join(b.path, key)
	if n.scalar != nil || n.isMapping() || len(n.items) != 2 {
		r.add(n, at, "must be %s", want)
		return 0, 0
	}
	names := strings.Split(strings.Trim(want, "[]"), ", ")
	var ok, ok2 bool
	if bounds {
		var lo, hi int
		lo, ok = r.whole(n.items[0], join(at, names[0]), first)
		hi, ok2 = r.whole(n.items[1], join(at, names[1]), second)
		x, y = float64(lo), float64(hi)
		if ok && ok2 && lo > hi {
			r.add(n, at, "must be %s with lo <= hi, is [%d, %d]", want, lo, hi)
		}
		return x, y
	}
	x, _ = r.number(n.items[0], join(at, names[0]), first)
	y, _ = r.number(n.items[1], join(at, names[1]), second)
	return x, y
}

// A place is a folder, of the disk or of what is embedded, that file names are relative to.
type place struct {
	folder   string
	embedded bool
}

// A File is one that a scenario names.
type File struct {
	Name     string // as the scenario gives it
	Path     string // from the working folder; of an embedded one, among the embedded scenarios
	Embedded bool
}

// file reads a file's name and sees that there is one.
func (r *reading) file(b *block, key string) File {
	name := b.word(key, "a file")
	if name == "" {
		return File{}
	}
	n, at := b.get(key), join(b.path, key)
	f := File{Name: name, Path: name, Embedded: n.place.embedded}
	if f.Embedded {
		f.Path = path.Join(n.place.folder, name)
		if _, err := embedded.Open(f.Path); err != nil {
			r.add(n, at, "no such embedded file: %s", shorten(name))
		}
		return f
	}
	if !filepath.IsAbs(name) {
		f.Path = filepath.Join(n.place.folder, name)
	}
	switch info, err := os.Stat(f.Path); {
	case err != nil:
		r.add(n, at, "must be a file, %s: %v", f.Path, reason(err))
	case !info.Mode().IsRegular():
		r.add(n, at, "must be a file, %s is none", f.Path)
	}
	return f
}
