package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmsim/sim"
	"llmsim/workload"
)

const mostPools = sim.MostPools

// poolLayer lifts what a pool says above all that is said for every pool.
const poolLayer = 1 << 20

// A Pool is equal replicas of a fleet whose replicas differ.
type Pool struct {
	Name         string
	Model        Model
	Hardware     Hardware
	Engine       Engine
	Cost         Cost
	Replicas     int
	Weight       float64   // of one replica, as routers compare loads
	PromptTokens sim.Range // of the requests that it accepts
}

// Pools are the scenario's parts that have equal replicas, in the order of Fleet.Pools, each as a
// scenario of its own; of a fleet without pools, the scenario itself.
func (s *Scenario) Pools() []*Scenario {
	if len(s.Fleet.Pools) == 0 {
		return []*Scenario{s}
	}
	all := make([]*Scenario, len(s.Fleet.Pools))
	for i, p := range s.Fleet.Pools {
		one := *s
		one.Model, one.Hardware, one.Engine, one.Cost = p.Model, p.Hardware, p.Engine, p.Cost
		one.Fleet = Fleet{Replicas: p.Replicas, Router: s.Fleet.Router}
		all[i] = &one
	}
	return all
}

// Mixed reports whether the fleet is of pools.
func (s *Scenario) Mixed() bool { return len(s.Fleet.Pools) > 0 }

// GPUs is how many the whole fleet has.
func (s *Scenario) GPUs() (n int) {
	for _, p := range s.Pools() {
		n += p.Fleet.Replicas * p.Engine.GPUs()
	}
	return n
}

// PoolOf tells of each replica of the cluster, data-parallel ranks among them, in which pool it
// is; nil for a fleet without pools.
func (s *Scenario) PoolOf() (of []int) {
	for i, p := range s.Fleet.Pools {
		for range p.Replicas * p.Engine.DataParallelSize {
			of = append(of, i)
		}
	}
	return of
}

// longest is the most tokens, prompt and output, that a request may have on some replica.
func (s *Scenario) longest() (tokens int) {
	for _, p := range s.Pools() {
		tokens = max(tokens, min(p.Engine.MaxModelLen, p.UsableBlocks()*p.Engine.BlockSize))
	}
	return tokens
}

// isList says whether a value is a list.
func (n *node) isList() bool { return n != nil && n.scalar == nil && n.fields == nil }

// item is the place of a block in a list, by its name or its number from 0; -1 if there is none.
func (n *node) item(key string) int {
	for i, item := range n.items {
		if item.at("name").text() == key {
			return i
		}
	}
	if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.items) {
		return i
	}
	return -1
}

// named lays blocks, by name, over those of a list; what names none of them is astray.
func (n *node) named(over *node) *node {
	both := &node{origin: n.origin, line: n.line, items: slices.Clone(n.items), whole: n.whole, astray: n.astray}
	for _, key := range over.keys {
		if i := n.item(key); i >= 0 {
			both.items[i] = overlay(both.items[i], over.fields[key], "")
			continue
		}
		if both.astray == nil {
			both.astray = &node{origin: over.origin, line: over.line, fields: map[string]*node{}}
		}
		both.astray.put(key, over.fields[key])
	}
	return both
}

// lifted is a copy of a pool's value, above the values for all pools.
func lifted(n *node) *node {
	if n == nil || n.layer >= poolLayer {
		return n
	}
	up, from := *n, *n.origin
	from.layer += poolLayer
	up.origin = &from
	if n.fields != nil {
		up.fields = map[string]*node{}
		for key, value := range n.fields {
			up.fields[key] = lifted(value)
		}
	}
	up.items = slices.Clone(n.items)
	for i := range up.items {
		up.items[i] = lifted(up.items[i])
	}
	return &up
}

// pooled are the keys of a scenario that a pool may give for itself.
var pooled = []string{"model", "hardware", "engine", "cost"}

// pools reads the pools of a fleet.
func (r *reading) pools(b *block, s *Scenario) {
	list := b.get("pools")
	b.get("split_prompt_tokens")
	if !list.isList() {
		if !isAlias(list) {
			r.add(list, "cluster.pools", "must be a list of pools, is %s", show(list))
		}
		return
	}
	if n := len(list.items); n == 0 || n > mostPools {
		r.add(list, "cluster.pools", "must be 1 to %d pools, are %d", mostPools, n)
		return
	}
	var names []string
	for _, item := range list.items {
		names = append(names, item.at("name").text())
	}
	if list.astray != nil {
		for _, key := range list.astray.keys {
			r.add(list.astray.fields[key], join("cluster.pools", key), "there is no such pool, %s", suggest(key, names))
		}
	}
	told, unknown := map[Fault]bool{}, map[*node]bool{}
	for _, f := range r.faults {
		told[f] = true
	}
	for i, item := range list.items {
		path := fmt.Sprintf("cluster.pools[%d]", i)
		if slices.Contains(names[:i], names[i]) && names[i] != "" {
			r.add(item, join(path, "name"), "must be another than that of pool %d, is %q", slices.Index(names, names[i]), shorten(names[i]))
		}
		in := r.pool(item, path, s)
		// A key that is unknown to one pool of what is said for all is unknown to each.
		in.unknown = slices.DeleteFunc(in.unknown, func(u unknownKey) bool {
			before := unknown[u.key]
			unknown[u.key] = true
			return before
		})
		in.tellUnknown()
		for _, f := range in.faults {
			// What is wrong for every pool is said once.
			if !told[f] {
				told[f] = true
				r.faults = append(r.faults, f)
			}
		}
		r.parts = append(r.parts, in)
	}
	r.split(b, s)
	r.deadEdits()
	ranks := 0
	for i, p := range s.Fleet.Pools {
		s.Fleet.Replicas += p.Replicas
		ranks += p.Replicas * max(p.Engine.DataParallelSize, 1)
		if i == 0 {
			s.Model, s.Hardware, s.Engine, s.Cost = p.Model, p.Hardware, p.Engine, p.Cost
		}
	}
	if ranks > mostReplicas {
		r.add(list, "cluster.pools", "must have at most %d replicas, data-parallel ranks counted, have %d", mostReplicas, ranks)
	}
}

// pool reads one pool, as a scenario that differs in what the pool gives.
func (r *reading) pool(item *node, path string, s *Scenario) *reading {
	in := &reading{catalogue: r.catalogue, within: path}
	item = lifted(item)
	b := in.block(item, "")
	p := Pool{Replicas: 1, Weight: 1}
	p.Name = b.word("name", "a name")
	if p.Name != "" && (len(p.Name) > 40 || strings.ContainsAny(p.Name, ". =,") || decimal.MatchString(p.Name)) {
		in.add(b.get("name"), "name", "must be a word of at most 40 letters without dots, commas or spaces, is %s", show(b.get("name")))
	}
	if b.has("replicas") {
		p.Replicas = b.whole("replicas", positive(mostReplicas))
	}
	if b.has("weight") {
		p.Weight = b.number("weight", between(1e-3, 1e3))
	}
	if b.has("accepts") {
		accepts := b.block("accepts")
		if accepts.has("prompt_tokens") {
			p.PromptTokens = in.lengths(accepts, "prompt_tokens")
		} else if accepts.node != nil {
			accepts.missing("prompt_tokens")
		}
		accepts.close()
	}
	in.root = &node{origin: item.origin, line: item.line, fields: map[string]*node{}, whole: true}
	for _, key := range pooled {
		value, own := r.root.at(key), b.get(key)
		if own != nil && value != nil {
			value = overlay(value, own, key)
		}
		if value != nil {
			in.root.put(key, value)
		}
	}
	in.root.put("cluster", &node{origin: item.origin, line: item.line, fields: map[string]*node{}})
	if n := b.get("replicas"); n != nil {
		in.root.at("cluster").put("replicas", n)
	}
	if in.tp = b.get("tp"); in.tp != nil {
		if n := item.at("engine", "tensor_parallel_size"); n != nil {
			in.add(in.tp, "tp", "is %s and engine.tensor_parallel_size %s, which says the same", show(in.tp), show(n))
		} else if engine := in.root.at("engine"); engine.isMapping() {
			own := &node{origin: item.origin, line: item.line, fields: map[string]*node{}}
			own.put("tensor_parallel_size", in.tp)
			in.root.put("engine", overlay(engine, own, "engine"))
		}
	}
	b.close()
	one := *s
	one.Fleet = Fleet{Replicas: p.Replicas, Router: s.Fleet.Router}
	in.machine(in.block(in.root, ""), &one)
	in.part = &one
	p.Model, p.Hardware, p.Engine, p.Cost = one.Model, one.Hardware, one.Engine, one.Cost
	s.Fleet.Pools = append(s.Fleet.Pools, p)
	return in
}

// lengths reads a range of tokens, whose upper bound may be left out or 0: none.
func (r *reading) lengths(b *block, key string) (in sim.Range) {
	n, at := b.get(key), join(b.path, key)
	if isAlias(n) {
		return in
	}
	if !n.isList() || len(n.items) < 1 || len(n.items) > 2 {
		r.add(n, at, "must be [lo, hi] or [lo], is %s", show(n))
		return in
	}
	lo, ok := r.whole(n.items[0], join(at, "lo"), nonNegative(workload.MaxTokens))
	in.Lo = lo
	if len(n.items) == 2 {
		hi, fine := r.whole(n.items[1], join(at, "hi"), nonNegative(workload.MaxTokens))
		if in.Hi = hi; ok && fine && hi > 0 && lo > hi {
			r.add(n, at, "must be [lo, hi] with lo <= hi, is [%d, %d]", lo, hi)
		}
	}
	return in
}

// split reads the thresholds between pools that take prompts by their length, in order.
func (r *reading) split(b *block, s *Scenario) {
	n := b.get("split_prompt_tokens")
	if n == nil || isAlias(n) {
		return
	}
	const path = "cluster.split_prompt_tokens"
	items := []*node{n}
	if n.isList() {
		items = n.items
	} else if n.isMapping() {
		r.add(n, path, "must be ascending numbers of tokens, is %s", show(n))
		return
	}
	pools := s.Fleet.Pools
	if len(items) != len(pools)-1 {
		r.add(n, path, "must be %d, one between each two pools, are %d", len(pools)-1, len(items))
		return
	}
	last := 0
	for i, item := range items {
		most, ok := r.whole(item, path, positive(workload.MaxTokens))
		if ok && most <= last {
			r.add(item, path, "must be ascending, is %d after %d", most, last)
		}
		pools[i].PromptTokens.Hi = most
		pools[i+1].PromptTokens.Lo = most + 1
		last = most
	}
	for i, item := range b.get("pools").items {
		if a := item.at("accepts"); a != nil {
			r.add(a, fmt.Sprintf("cluster.pools[%d].accepts", i), "makes no sense beside cluster.split_prompt_tokens, which says it")
		}
	}
}

// deadEdits tells of edits for all pools that none of them takes over, since each has its own.
func (r *reading) deadEdits() {
	used := map[*node]bool{}
	var walk func(n *node, path string, visit func(n *node, path string))
	walk = func(n *node, path string, visit func(n *node, path string)) {
		visit(n, path)
		if n.isMapping() {
			for _, key := range n.keys {
				walk(n.fields[key], join(path, key), visit)
			}
		}
	}
	for _, in := range r.parts {
		walk(in.root, "", func(n *node, _ string) { used[n] = true })
	}
	for _, key := range pooled {
		if top := r.root.at(key); top != nil {
			walk(top, key, func(n *node, path string) {
				if !n.isMapping() && n.layer >= 2 && !used[n] {
					r.add(n, path, "changes nothing: every pool has its own, such as cluster.pools.%s.%s", r.root.at("cluster", "pools").items[0].at("name").text(), path)
				}
			})
		}
	}
}

// checkPools sees that every pool's model fits, and that some pool takes the shortest request.
func (r *reading) checkPools(s *Scenario) {
	for i, in := range r.parts {
		in.checkFit(in.part)
		r.faults = append(r.faults, in.faults...)
		s.Fleet.Pools[i].Engine = in.part.Engine
	}
	s.Engine = s.Fleet.Pools[0].Engine
	if len(r.faults) > 0 || s.Workload.Arrivals.Process == "trace" {
		return
	}
	prompt, output := s.Workload.Prompt.least(), s.Workload.Output.least()
	longest := 0
	for i, one := range s.Pools() {
		p := s.Fleet.Pools[i].PromptTokens
		holds := min(one.Engine.MaxModelLen, one.UsableBlocks()*one.Engine.BlockSize)
		if longest = max(longest, holds); max(prompt, p.Lo)+output <= holds && (p.Hi == 0 || prompt <= p.Hi) {
			return
		}
	}
	r.addAmong([]string{"workload.prompt_tokens", "workload.output_tokens", "cluster.pools", "cluster.split_prompt_tokens"},
		"prompt and output must fit a pool that accepts them: the longest request that one holds has %d tokens, the shortest of the workload %d",
		longest, prompt+output)
}

// poolNotes are the notes of all pools: what holds of every one is said once.
func (s *Scenario) poolNotes() (notes []string) {
	pools := s.Pools()
	count := map[string]int{}
	for _, p := range pools {
		for _, note := range p.partNotes() {
			count[note]++
		}
	}
	for i, p := range pools {
		for _, note := range p.partNotes() {
			switch {
			case count[note] < len(pools):
				notes = append(notes, "pool "+s.Fleet.Pools[i].Name+": "+note)
			case i == 0:
				notes = append(notes, note)
			}
		}
	}
	return append(notes, s.gaps()...)
}

// gaps tells of prompts that no pool accepts.
func (s *Scenario) gaps() (notes []string) {
	ranges := []sim.Range{}
	for _, p := range s.Fleet.Pools {
		ranges = append(ranges, p.PromptTokens)
	}
	slices.SortFunc(ranges, func(a, b sim.Range) int { return a.Lo - b.Lo })
	from := 1
	for _, r := range ranges {
		if r.Lo > from {
			notes = append(notes, fmt.Sprintf("no pool accepts prompts of %d to %d tokens: they are refused", from, r.Lo-1))
		}
		if r.Hi == 0 {
			return notes
		}
		from = max(from, r.Hi+1)
	}
	return append(notes, fmt.Sprintf("no pool accepts prompts of more than %d tokens: they are refused", from-1))
}

// finestBlock is the greatest number of tokens of which the blocks of every pool are multiples.
func (s *Scenario) finestBlock() (tokens int) {
	for _, p := range s.Pools() {
		a, b := p.Engine.BlockSize, tokens
		for b != 0 {
			a, b = b, a%b
		}
		tokens = a
	}
	return tokens
}
