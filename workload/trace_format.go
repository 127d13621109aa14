package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A role is what a column, or a JSON key, says of a request.
type role uint8

const (
	roleNone role = iota
	roleArrival
	rolePrompt
	roleOutput
	rolePriority
	roleSession     // a whole number
	roleSessionName // any text
	rolePrefix
	rolePrefixRanges
)

// required is set for each role that a row may not be without.
var required = [...]bool{roleArrival: true, rolePrompt: true, roleOutput: true, rolePrefixRanges: false}

// A stamp is how a format writes instants.
type stamp uint8

const (
	stampNone     stamp = iota // the format has lengths only
	stampDatetime              // to the nanosecond
	stampSeconds
	stampMillis
	stampNanos
)

// scale is the power of ten that turns the unit into nanoseconds.
func (s stamp) scale() int {
	switch s {
	case stampSeconds:
		return 9
	case stampMillis:
		return 6
	}
	return 0
}

// show writes an instant as the file would, for messages.
func (s stamp) show(ns int64) string {
	switch s {
	case stampDatetime:
		return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.999999999")
	case stampSeconds, stampMillis:
		sign := ""
		if ns < 0 {
			sign, ns = "-", -ns
		}
		digits := fmt.Sprintf("%0*d", s.scale()+1, ns)
		point := len(digits) - s.scale()
		text := strings.TrimSuffix(strings.TrimRight(digits[:point]+"."+digits[point:], "0"), ".")
		return sign + text + map[stamp]string{stampSeconds: " s", stampMillis: " ms"}[s]
	}
	return strconv.FormatInt(ns, 10) + " ns"
}

// A field is a column or key that a format is known by, or may have.
type field struct {
	name     string
	role     role
	optional bool
}

// A format is one way of writing a trace. Its unit of time is part of it and is never
// guessed from how large the numbers are.
type format struct {
	name   string
	json   bool
	stamp  stamp
	fields []field
	block  int32 // tokens that one prefix id covers, unless the file says; 0: no prefix identity
	// fromStart says that instants already count from the start of the run, and so
	// stay as written; others become offsets from the first.
	fromStart bool
	remark    string // what a reader of results should know
}

// formats are tried in this order: one that asks for more fields stands before one
// that is content with some of them.
var formats = []format{
	{name: "vllm-run", stamp: stampSeconds, block: 16, fromStart: true, fields: []field{
		{name: "arrival_s", role: roleArrival}, {name: "input_tokens", role: rolePrompt}, {name: "output_tokens", role: roleOutput},
		{name: "block_hash_ranges", role: rolePrefixRanges}}},
	{name: "llmsim", stamp: stampSeconds, block: 16, fromStart: true, fields: []field{
		{name: "arrival_s", role: roleArrival}, {name: "input_tokens", role: rolePrompt}, {name: "output_tokens", role: roleOutput},
		{name: "priority", role: rolePriority, optional: true}, {name: "session", role: roleSession, optional: true},
		{name: "prefix_hashes", role: rolePrefix, optional: true}, {name: "id", optional: true}}},
	{name: "azure-lmm", stamp: stampDatetime, fields: []field{
		{name: "TIMESTAMP", role: roleArrival}, {name: "NumImages"}, {name: "ContextTokens", role: rolePrompt}, {name: "GeneratedTokens", role: roleOutput}},
		remark: "NumImages is not simulated: an image counts only by the tokens in ContextTokens"},
	{name: "azure", stamp: stampDatetime, fields: []field{
		{name: "TIMESTAMP", role: roleArrival}, {name: "ContextTokens", role: rolePrompt}, {name: "GeneratedTokens", role: roleOutput}}},
	{name: "burstgpt-v3", stamp: stampSeconds, fields: []field{
		{name: "Timestamp", role: roleArrival}, {name: "Session ID", role: roleSessionName}, {name: "Elapsed time"},
		{name: "Request tokens", role: rolePrompt}, {name: "Response tokens", role: roleOutput}}},
	{name: "burstgpt", stamp: stampSeconds, fields: []field{
		{name: "Timestamp", role: roleArrival}, {name: "Request tokens", role: rolePrompt}, {name: "Response tokens", role: roleOutput}}},
	{name: "vidur", stamp: stampSeconds, fields: []field{
		{name: "arrived_at", role: roleArrival}, {name: "num_prefill_tokens", role: rolePrompt}, {name: "num_decode_tokens", role: roleOutput}}},
	{name: "vidur-lengths", fields: []field{
		{name: "num_prefill_tokens", role: rolePrompt}, {name: "num_decode_tokens", role: roleOutput}}},
	{name: "mooncake", json: true, stamp: stampMillis, block: 512, fields: []field{
		{name: "timestamp", role: roleArrival}, {name: "input_length", role: rolePrompt}, {name: "output_length", role: roleOutput},
		{name: "hash_ids", role: rolePrefix, optional: true}}},
	{name: "llmservingsim", json: true, stamp: stampNanos, fields: []field{
		{name: "arrival_time_ns", role: roleArrival}, {name: "input_toks", role: rolePrompt}, {name: "output_toks", role: roleOutput}}},
}

// detect finds the format whose fields are all among names. Where none is, the error
// names the one that comes nearest, and all that are known.
func detect(names []string, json bool) (*format, error) {
	have := make(map[string]bool, len(names))
	folded := make(map[string]string, len(names)) // in lower case: as written
	for _, name := range names {
		have[name] = true
		folded[strings.ToLower(name)] = name
	}
	var nearest *format
	var lacks []string
	most := 0 // fields found in the nearest
	for i := range formats {
		f := &formats[i]
		if f.json != json {
			continue
		}
		var missing []string
		found := 0
		for _, field := range f.fields {
			switch {
			case field.optional:
			case have[field.name]:
				found++
			default:
				need := strconv.Quote(field.name)
				if name, ok := folded[strings.ToLower(field.name)]; ok {
					need += fmt.Sprintf(" (not %q)", name)
					found++
				}
				missing = append(missing, need)
			}
		}
		if missing == nil {
			return f, nil
		}
		if found > most || found == most && found > 0 && len(missing) < len(lacks) {
			nearest, lacks, most = f, missing, found
		}
	}
	hint := ""
	if nearest != nil {
		hint = fmt.Sprintf("; nearest is %s, which also needs %s", nearest.name, strings.Join(lacks, ", "))
	}
	return nil, fmt.Errorf("unknown format: %s %s%s; known are %s", kind(json), quote([]byte(strings.Join(names, ","))), hint, known())
}

func kind(json bool) string {
	if json {
		return "JSON keys"
	}
	return "header"
}

// known lists every format with the fields it is recognised by.
func known() string {
	var b strings.Builder
	for i, f := range formats {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.name)
		if f.json {
			b.WriteString(" JSONL")
		}
		separator := byte(' ')
		for _, field := range f.fields {
			if !field.optional {
				b.WriteByte(separator)
				b.WriteString(field.name)
				separator = ','
			}
		}
	}
	return b.String()
}
