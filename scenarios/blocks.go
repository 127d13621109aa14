package scenarios

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds on what a scenario may ask for: far above what exists, far below what overflows.
const (
	mostBlocks      = 1e9
	mostReplicas    = 4096
	mostGPUs        = 1024 // of one replica
	mostConcurrency = 1e6
	mostRequests    = 1e9
	mostRate        = 1e6 // requests per second
	leastRate       = 1e-6
	mostSeconds     = 1e9 // of arrivals, some 30 years
)

func (r *reading) scenario(s *Scenario) {
	b := r.block(r.root, "")
	s.Name = b.word("name", "a name")
	mixed := r.root.at("cluster", "pools") != nil
	r.openCatalogue(b)
	if b.has("catalogue") && b.get("catalogue").scalar != nil {
		s.Catalogue.Name = b.get("catalogue").text()
	}
	if mixed {
		// Keys of these two may be all the pools' own, and are checked even so; those of the others
		// are read with each pool.
		r.model(b.block("model"))
		r.hardware(b.block("hardware"))
		b.block("engine")
		b.block("cost")
	} else {
		r.machine(b, s)
	}
	r.fleet(b.block("cluster"), s)
	s.Workload = r.workload(b.block("workload"))
	s.Seed = r.seed(b)
	if b.has("slo") {
		s.SLO = r.slo(b.block("slo"))
	}
	b.close()
}

// machine reads what a replica is.
func (r *reading) machine(b *block, s *Scenario) {
	model, hardware := b.block("model"), b.block("hardware")
	s.Model = r.model(model)
	s.Hardware = r.hardware(hardware)
	s.Engine = r.engine(b.block("engine"), s.Hardware, s.Model.MaxModelLen, s.profiled())
	r.store(s, model, hardware)
	s.Cost = r.cost(b.block("cost"), s)
}

func (r *reading) seed(b *block) (seed uint64) {
	n, ok := b.value("seed", "a whole number")
	if !ok {
		return 0
	}
	if n.scalar.ShortTag() != "!!int" || n.scalar.Decode(&seed) != nil || seed > math.MaxInt64 || !decimal.MatchString(n.scalar.Value) {
		r.add(n, "seed", "must be a whole number from 0 to 2^63-1, is %s", show(n))
	}
	return seed
}

func (r *reading) model(b *block) (m Model) {
	defer b.close()
	figures := []string{"parameters_billions", "bytes_per_parameter", "kv_bytes_per_token"}
	b.has("weight_dtype") // which store reads
	if b.has("config") {
		return r.config(b, figures)
	}
	dtype := ""
	name, i := b.catalogued(func(name string) (i int, err error) {
		i, dtype, err = r.catalogue.findModel(name)
		return i, err
	}, figures...)
	if i >= 0 {
		m = r.catalogue.Models[i].Model.in(dtype)
		m.MaxModelLen = r.catalogue.Models[i].MaxModelLen
		name = r.catalogue.Models[i].Name
	}
	m.Name = name
	if slices.ContainsFunc(figures, b.has) {
		m.Architecture, m.MaxModelLen = nil, 0 // whose figures these are not
	}
	if !b.named(figures...) {
		m.Name = ""
	}
	if b.figure("parameters_billions") {
		m.Parameters = math.Round(b.number("parameters_billions", positive(1e6)) * 1e9)
	}
	if b.figure("bytes_per_parameter") {
		m.BytesPerParam = b.number("bytes_per_parameter", positive(16))
	}
	if b.figure("kv_bytes_per_token") {
		m.KVBytesPerToken = int64(b.whole("kv_bytes_per_token", positive(1e9)))
	}
	return m
}

// config reads the model of a config.json; a name beside it is only a name.
func (r *reading) config(b *block, figures []string) (m Model) {
	file := r.file(b, "config")
	for _, key := range figures {
		if n := b.get(key); n != nil {
			r.add(n, join(b.path, key), "makes no sense beside config, which gives it")
		}
	}
	if file.Name != "" && !r.told(b.get("config")) {
		var err error
		if m, err = ReadConfig(file.Path); err != nil {
			r.faults = append(r.faults, err.(Faults)...)
			r.wrong = append(r.wrong, b.get("config"))
		}
	}
	if m.Name = filepath.Base(filepath.Dir(file.Path)); m.Name == "." || m.Name == string(filepath.Separator) {
		m.Name = filepath.Base(file.Path)
	}
	if b.has("name") {
		m.Name = b.word("name", "a name")
	}
	return m
}

// store brings together what depends on model, GPU and engine: how weights and KV are stored, and
// the arithmetic that gets.
func (r *reading) store(s *Scenario, model, hardware *block) {
	weights := ""
	if model.has("weight_dtype") {
		weights = model.choice("weight_dtype", weightDtypes...)
	}
	if s.Model.Architecture == nil {
		if n := model.get("weight_dtype"); n != nil && !r.told(n) && len(r.faults) == 0 {
			r.add(n, "model.weight_dtype", "needs a model of known architecture; by figures bytes_per_parameter says it")
		}
		if n := r.root.at("engine", "kv_cache_dtype"); n != nil && s.Engine.KVCacheDtype != "" && len(r.faults) == 0 {
			r.add(n, "engine.kv_cache_dtype", "needs a model of known architecture; by figures kv_bytes_per_token says it")
		}
		return
	}
	element := 2
	if s.Engine.KVCacheDtype == "fp8" {
		element = 1
	}
	s.Model = s.Model.stored(weights, element)
	if s.Hardware.Spec != nil && !hardware.has("peak_tflops") {
		s.Hardware.PeakFLOPS = s.Hardware.Spec.peak(s.Model.Architecture.Weights.Dtype)
	}
}

func (r *reading) hardware(b *block) (h Hardware) {
	defer b.close()
	figures := []string{"hbm_gib", "memory_bandwidth_gbps", "peak_tflops"}
	name, i := b.catalogued(r.catalogue.findGPU, figures...)
	if i >= 0 {
		h = r.catalogue.GPUs[i].Hardware
		name = h.Name
	}
	if h.Name = name; !b.named(figures...) {
		h.Name = ""
	}
	if b.figure("hbm_gib") {
		h.HBMBytes = b.number("hbm_gib", positive(1e5)) * (1 << 30)
	}
	if b.figure("memory_bandwidth_gbps") {
		h.Bandwidth = b.number("memory_bandwidth_gbps", positive(1e7)) * 1e9
	}
	if b.figure("peak_tflops") {
		h.PeakFLOPS = b.number("peak_tflops", positive(1e7)) * 1e12
	}
	if i >= 0 && h.Name != "" {
		h.Price, h.PriceSource = r.catalogue.GPUs[i].Price, r.catalogue.GPUs[i].Sources["price"]
	}
	if b.has("price_per_hour") {
		h.Price, h.PriceSource = b.number("price_per_hour", positive(1e6)), "given"
	}
	return h
}

// catalogued reads a block's name, and finds its place in the catalogue: -1 if it has none, when
// the block must give all figures itself.
func (b *block) catalogued(find func(name string) (int, error), figures ...string) (name string, i int) {
	if !b.has("name") {
		return "", -1
	}
	lacks := slices.ContainsFunc(figures, func(key string) bool { return !b.has(key) })
	if name = b.word("name", "a name"); name == "" {
		return "", -1
	}
	i, err := find(name)
	if err != nil && lacks {
		b.add(b.get("name"), join(b.path, "name"), "%v", err)
	}
	return name, i
}

// named says whether a name that comes from the base scenario still stands for its block: not when
// another layer gives figures of its own.
func (b *block) named(figures ...string) bool {
	n := b.get("name")
	return n == nil || n.layer > 0 || !slices.ContainsFunc(figures, func(key string) bool {
		figure := b.get(key)
		return figure != nil && figure.layer > 0
	})
}

// figure says whether a figure must be read: it is given, or there is no name to stand for it.
func (b *block) figure(key string) bool { return b.has(key) || !b.has("name") }

// cost reads the model of a step's time. Where nothing else is asked for, it is operators for what
// the catalogue knows, and roofline for bare figures.
func (r *reading) cost(b *block, s *Scenario) (c Cost) {
	defer b.close()
	c.Model = b.choice("model", "roofline", "operators")
	if b.node == nil {
		return c
	}
	own := func(key string) bool { n := b.get(key); return n != nil && n.layer > 0 }
	// A model or a GPU that was not found may be one that the catalogue knows.
	unread := s.Model.Parameters == 0 || s.Hardware.HBMBytes == 0
	if n := b.get("model"); n != nil && n.layer == 0 && (s.profiled() || unread) && !own("step_overhead") && !own("efficiency") {
		c.Model = "operators"
	}
	if c.Model == "operators" {
		for _, key := range []string{"step_overhead", "efficiency"} {
			if own(key) {
				r.add(b.get(key), join(b.path, key), "makes no sense under operators, whose cost.parameters say it")
			}
			b.get(key)
		}
		if !s.profiled() && len(r.faults) == 0 {
			r.add(b.get("model"), "cost.model", "operators needs a model of known architecture and a GPU of the catalogue")
		}
		r.operatorsCost(b, &c, s.Hardware.Name)
		return c
	}
	for _, key := range []string{"preset", "parameter_file", "parameters"} {
		if n := b.get(key); n != nil {
			r.add(n, join(b.path, key), "makes no sense under roofline, only under operators")
		}
	}
	c.StepOverhead = b.duration("step_overhead", nonNegative(3600e9))
	eff := b.block("efficiency")
	c.Efficiency.Compute = eff.number("compute", positive(1))
	c.Efficiency.Memory = eff.number("memory", positive(1))
	eff.close()
	return c
}

func (r *reading) fleet(b *block, s *Scenario) {
	defer b.close()
	mixed := b.has("pools")
	if n := b.get("replicas"); !mixed {
		s.Fleet.Replicas = b.whole("replicas", positive(mostReplicas))
	} else if n != nil && n.layer > 0 {
		r.add(n, "cluster.replicas", "makes no sense beside cluster.pools, of which each has its own: cluster.pools.NAME.replicas")
	}
	s.Fleet.Router = b.choice("router", "round-robin", "least-loaded", "join-shortest-queue", "power-of-two-choices", "prefix-affinity")
	if mixed {
		r.pools(b, s)
	} else if n := b.get("split_prompt_tokens"); n != nil {
		r.add(n, "cluster.split_prompt_tokens", "needs cluster.pools, there are none")
	}
}

var metrics = []string{"ttft", "itl", "tpot", "e2e", "queue"}

func (r *reading) slo(b *block) (all []Objective) {
	if b.node == nil {
		return nil
	}
	each, goodput := 0, 0
	for _, name := range slices.Sorted(slices.Values(b.keys)) {
		o := Objective{Name: name, Metric: name}
		metric, statistic, found := strings.Cut(name, "-")
		p, ok := percentile(statistic)
		switch {
		case name == "goodput":
			goodput++
			o.Share = r.share(b, name)
			all = append(all, o)
			continue
		case !found && (metric == "ttft" || metric == "tpot" || metric == "e2e"):
			each++
			o.Each = true
		case !slices.Contains(metrics, metric) || !ok:
			meant := strings.ReplaceAll(name, "_", "-")
			if metric, statistic, _ := strings.Cut(meant, "-"); meant != name && slices.Contains(metrics, metric) {
				if _, ok := percentile(statistic); ok {
					r.add(b.get(name), "slo."+name, "is not known, did you mean %s?", meant)
					continue
				}
			}
			r.add(b.get(name), "slo."+name, "must be a metric (%s) and p1 to p99.99, mean or max, such as ttft-p99; ttft, tpot, e2e of each request; or goodput",
				strings.Join(metrics, ", "))
			continue
		}
		o.Metric, o.P = metric, p
		o.Limit = b.duration(name, positive(float64(longest)))
		all = append(all, o)
	}
	if each > 0 && goodput == 0 {
		r.add(b.node, "slo", "bounds of each request (ttft, tpot, e2e) need goodput, the share of requests that keep them, such as goodput: 99%%")
	}
	if goodput > 0 && each == 0 {
		r.add(b.get("goodput"), "slo.goodput", "needs bounds of each request, such as ttft: 500ms")
	}
	return all
}

// share reads 0.99 or 99%.
func (r *reading) share(b *block, key string) float64 {
	n, ok := b.value(key, "a share, such as 99%")
	if !ok {
		return 0
	}
	text, percent := strings.CutSuffix(n.scalar.Value, "%")
	x, err := strconv.ParseFloat(text, 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x > 0 && x <= 1) || len(text) > 20 {
		r.add(n, join(b.path, key), "must be above 0 and at most 1 or 100%%, is %s", show(n))
		return 0
	}
	return x
}

// percentile reads pNN, pNN.N, mean or max.
func percentile(statistic string) (float64, bool) {
	switch statistic {
	case "mean":
		return 0, true
	case "max":
		return 100, true
	}
	digits, ok := strings.CutPrefix(statistic, "p")
	if !ok || digits == "" || len(digits) > 8 || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	p, err := strconv.ParseFloat(digits, 64)
	return p, err == nil && p > 0 && p < 100
}
