package conformance

import (
	"encoding/json"
	"errors"
	"fmt"

	"llmsim/sim/vllmv1"
)

// What a recording may hold. Far beyond any real one, and small enough for sums of a few to be
// exact and for a case to fit into memory.
const (
	maxCount      = 1 << 31 // tokens, budgets, steps
	maxBlockSize  = 1 << 20
	maxIterations = 1 << 20
	maxToken      = 1 << 53
)

var (
	caseKeys   = []string{"name", "config", "requests", "events", "truncated", "iterations"}
	configKeys = []string{
		"max_num_seqs", "max_num_batched_tokens", "max_model_len", "long_prefill_token_threshold",
		"enable_chunked_prefill", "enable_prefix_caching", "policy", "scheduler_reserve_full_isl", "watermark",
		"num_gpu_blocks", "block_size", "async_scheduling",
	}
	younger      = map[string]bool{"scheduler_reserve_full_isl": true, "watermark": true} // than the classic versions
	requestKeys  = []string{"id", "prompt", "max_tokens", "arrive_iter", "priority", "arrival_time", "gen_base"}
	addKeys      = []string{"ev", "id"}
	scheduleKeys = []string{"ev", "step", "sched", "preempted", "running", "waiting", "skipped", "free", "blocks"}
	updateKeys   = []string{"ev", "outputs", "finished", "free", "running"}
	eventKeys    = union(addKeys, scheduleKeys, updateKeys)
)

func union(lists ...[]string) (all []string) {
	for _, list := range lists {
		for _, s := range list {
			if !contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// decode reads a line. The fault it may return names a field, not a file.
func decode(line []byte) (*Case, *Fault) {
	var raw json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		fault := &Fault{Text: "is not JSON: " + err.Error()}
		if at := new(json.SyntaxError); errors.As(err, &at) {
			fault.Text = fmt.Sprintf("column %d: is not JSON: %v", at.Offset, err)
		}
		return nil, fault
	}
	c := &cursor{text: line}
	k := &Case{lacks: map[string]bool{}}
	c.object(caseKeys, nil, func(key string) {
		switch key {
		case "name":
			k.Name = c.word()
		case "config":
			c.config(k)
		case "requests":
			c.list(func(int) { k.Requests = append(k.Requests, c.request()) })
		case "events":
			c.list(func(int) { k.Events = append(k.Events, c.event()) })
		case "truncated":
			k.Truncated = c.boolean()
		case "iterations":
			k.Iterations = c.integer(0, maxIterations)
		}
	})
	if c.err == nil {
		k.check(c)
	}
	return k, c.err
}

// check holds a case's parts against each other.
func (k *Case) check(c *cursor) {
	if err := k.Config.Validate(); err != nil {
		c.way = []string{"config"}
		c.fail("%v", err)
	}
	seen := make(map[string]bool, len(k.Requests))
	for i, q := range k.Requests {
		c.way = []string{"requests", index(i)}
		if seen[q.ID] {
			c.way = append(c.way, "id")
			c.fail("%s is given to two requests", clip(q.ID))
		}
		seen[q.ID] = true
		if n := len(q.Prompt); n < 1 || n > k.Config.MaxModelLen {
			c.way = append(c.way, "prompt")
			c.fail("must have 1 to max_model_len = %d tokens, has %d", k.Config.MaxModelLen, n)
		}
	}
}

func (c *cursor) config(k *Case) {
	for key := range younger {
		k.lacks[key] = true
	}
	o := &k.Config
	c.object(configKeys, younger, func(key string) {
		delete(k.lacks, key)
		switch key {
		case "max_num_seqs":
			o.MaxNumSeqs = c.integer(1, maxCount)
		case "max_num_batched_tokens":
			o.MaxNumBatchedTokens = c.integer(1, maxCount)
		case "max_model_len":
			o.MaxModelLen = c.integer(1, maxCount)
		case "long_prefill_token_threshold":
			o.LongPrefillTokenThreshold = c.integer(0, maxCount)
		case "enable_chunked_prefill":
			o.EnableChunkedPrefill = c.boolean()
		case "enable_prefix_caching":
			o.EnablePrefixCaching = c.boolean()
		case "policy":
			o.Policy = vllmv1.Order(c.one(string(vllmv1.FCFS), string(vllmv1.Priority)))
		case "scheduler_reserve_full_isl":
			o.SchedulerReserveFullISL = c.boolean()
		case "watermark":
			o.Watermark = c.number()
			if c.err == nil && !(o.Watermark >= 0 && o.Watermark < 1) {
				c.fail("must be at least 0 and below 1, is %v", o.Watermark)
			}
		case "num_gpu_blocks":
			o.NumGPUBlocks = c.integer(2, vllmv1.MaxBlocks)
		case "block_size":
			o.BlockSize = c.integer(1, maxBlockSize)
		case "async_scheduling":
			o.AsyncScheduling = c.boolean()
		}
	})
}

func (c *cursor) request() (q Request) {
	c.object(requestKeys, nil, func(key string) {
		switch key {
		case "id":
			q.ID = c.word()
		case "prompt":
			c.list(func(int) { q.Prompt = append(q.Prompt, vllmv1.Token(c.integer(-maxToken, maxToken))) })
		case "max_tokens":
			q.MaxTokens = c.integer(1, maxCount)
		case "arrive_iter":
			q.ArriveIter = c.integer(0, maxIterations)
		case "priority":
			q.Priority = c.integer(-maxCount, maxCount)
		case "arrival_time":
			q.ArrivalTime = c.number()
		case "gen_base":
			q.GenBase = vllmv1.Token(c.integer(-maxToken, maxToken))
		}
	})
	return q
}

func (c *cursor) event() (e Event) {
	seen := make([]string, 0, len(scheduleKeys))
	c.object(eventKeys, optionalInEvents, func(key string) {
		seen = append(seen, key)
		switch key {
		case "ev":
			e.Kind = Kind(c.one(string(Add), string(Schedule), string(Update)))
		case "id":
			e.ID = c.word()
		case "step":
			e.Step = c.integer(0, maxCount)
		case "sched":
			c.list(func(int) {
				var s Sched
				c.tuple(
					func() { s.ID = c.word() },
					func() { s.N = c.integer(0, maxCount) },
					func() { s.Computed = c.integer(0, maxCount) },
					func() {
						s.Origin = c.one(string(vllmv1.FromNew), string(vllmv1.FromPreempted), string(vllmv1.FromRunning))
					})
				e.Sched = append(e.Sched, s)
			})
		case "preempted":
			e.Preempted = c.words()
		case "running":
			e.Running = c.words()
		case "waiting":
			e.Waiting = c.words()
		case "skipped":
			e.Skipped = c.words()
		case "free":
			e.Free = c.integer(0, maxCount)
		case "blocks":
			e.Blocks = map[string][]int{}
			c.table(func(id string) {
				if _, ok := e.Blocks[id]; ok {
					c.fail("is given twice")
					return
				}
				table := []int{}
				c.list(func(int) { table = append(table, c.integer(0, vllmv1.MaxBlocks)) })
				e.Blocks[id] = table
			})
		case "outputs":
			c.list(func(int) {
				var n Count
				c.tuple(func() { n.ID = c.word() }, func() { n.N = c.integer(0, maxCount) })
				e.Outputs = append(e.Outputs, n)
			})
		case "finished":
			c.list(func(int) {
				var f Ended
				c.tuple(func() { f.ID = c.word() }, func() { f.Reason = c.word() })
				e.Finished = append(e.Finished, f)
			})
		}
	})
	c.fields(e.Kind, seen)
	return e
}

var optionalInEvents = func() map[string]bool {
	optional := map[string]bool{}
	for _, key := range eventKeys {
		optional[key] = key != "ev"
	}
	return optional
}()

// fields fails unless an event has the fields of its kind and no others.
func (c *cursor) fields(kind Kind, seen []string) {
	want := map[Kind][]string{Add: addKeys, Schedule: scheduleKeys, Update: updateKeys}[kind]
	for _, key := range want {
		if c.err == nil && !contains(seen, key) {
			c.way = append(c.way, key)
			c.fail("is missing")
		}
	}
	for _, key := range seen {
		if c.err == nil && !contains(want, key) {
			c.way = append(c.way, key)
			c.fail("is not a field of %q", string(kind))
		}
	}
}

func (c *cursor) words() (list []string) {
	c.list(func(int) { list = append(list, c.word()) })
	return list
}
