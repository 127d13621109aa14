package experiment

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"llmsim/scenarios"
)

// differences are the fields in which two scenarios differ, each with both values. What is chosen
// with parameters of its own, a distribution of lengths or another process, model or policy, is one
// field; so is what follows from it.
func differences(a, b *scenarios.Scenario) (all []string) {
	return compare(reflect.ValueOf(*a), reflect.ValueOf(*b), "")
}

// choices are the fields that, when they differ, make their whole block one choice.
var choices = map[string]string{
	"model": "Name", "hardware": "Name", "cost": "Model", "engine": "Policy", "workload.arrivals": "Process",
}

// names are what scenario files call fields whose names differ by more than their capitals.
var names = map[string]string{
	"fleet": "cluster", "workload.prompt": "workload.prompt_tokens", "workload.output": "workload.output_tokens",
	"model.parameters": "model.parameters_billions", "model.bytes_per_param": "model.bytes_per_parameter",
	"hardware.hbm_bytes": "hardware.hbm_gib", "hardware.bandwidth": "hardware.memory_bandwidth_gbps",
	"hardware.peak_flops": "hardware.peak_tflops",
}

func compare(a, b reflect.Value, path string) (all []string) {
	if choice, ok := choices[path]; ok {
		if x, y := a.FieldByName(choice), b.FieldByName(choice); x.Interface() != y.Interface() {
			return []string{fmt.Sprintf("%s from %v to %v", path, x, y)}
		}
	}
	if a.Kind() != reflect.Struct || a.Type() == reflect.TypeFor[scenarios.Tokens]() {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			return nil
		}
		return []string{fmt.Sprintf("%s from %s to %s", path, shown(a), shown(b))}
	}
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if !f.IsExported() || path == "" && (f.Name == "Name" || f.Name == "Catalogue") || f.Name == "Defaults" {
			continue
		}
		name := snake(f.Name)
		if path != "" {
			name = path + "." + name
		}
		if known := names[name]; known != "" {
			name = known
		}
		all = append(all, compare(a.Field(i), b.Field(i), name)...)
	}
	return all
}

func shown(v reflect.Value) string {
	if t, ok := v.Interface().(scenarios.Tokens); ok {
		switch t.Kind {
		case "fixed":
			return fmt.Sprint(t.A)
		case "empirical":
			return "empirical " + t.File.Name
		}
		return fmt.Sprintf("%s [%v, %v]", t.Kind, t.A, t.B)
	}
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
		return "one"
	}
	return fmt.Sprint(v.Interface())
}

// snake is MaxNumSeqs as max_num_seqs.
func snake(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		starts := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if starts {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
