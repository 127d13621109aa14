package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// weights reads quantization_config: how linear layers are stored. Without one they have 16 bits.
func (c *config) weights(a *Architecture) WeightFormat {
	const key = "quantization_config"
	f := WeightFormat{Dtype: "bf16"}
	if c.text("torch_dtype") == "float16" || c.text("dtype") == "float16" {
		f.Dtype = "fp16"
	}
	_, v := c.find(key)
	if v == nil {
		return f
	}
	q, ok := v.(map[string]any)
	if !ok {
		c.fault(key, "must be an object, is %s", compact(v))
		return f
	}
	switch method := fmt.Sprint(q["quant_method"]); method {
	case "fp8", "fbgemm_fp8":
		f.Dtype = "fp8"
	case "mxfp4":
		f.Dtype = "mxfp4"
	case "gptq", "awq", "auto-round", "gptq_marlin", "awq_marlin":
		f.Dtype = c.integer(key+".bits", first(q, "bits", "w_bit"))
	case "modelopt", "modelopt_fp4":
		switch algorithm := fmt.Sprint(first(q, "quant_algo")); {
		case strings.Contains(algorithm, "FP4"):
			f.Dtype = "nvfp4"
		case strings.Contains(algorithm, "FP8"):
			f.Dtype = "fp8"
		default:
			c.fault(key+".quant_algo", "must be FP8 or NVFP4, is %s", compact(first(q, "quant_algo")))
		}
	case "compressed-tensors":
		f.Dtype = c.compressed(key, q)
	default:
		known := []string{"fp8", "mxfp4", "gptq", "awq", "modelopt", "compressed-tensors"}
		c.fault(key+".quant_method", "%s is not known, %s", compact(q["quant_method"]), suggest(method, known))
	}
	if f.Dtype == "int4" {
		f.Group = c.group(key, q)
	}
	// What is left in 16 bits is named one by one or by a pattern; only whether attention is
	// among it makes a difference.
	left, _ := json.Marshal(first(q, "modules_to_not_convert", "ignore"))
	attention := bytes.Contains(left, []byte("self_attn"))
	f.ExpertsOnly = a.Experts > 0 && attention
	if a.Experts == 0 && attention {
		c.fault(key, "must leave out no attention in a model without experts: that is not modelled")
	}
	return f
}

// compressed reads the one format of a compressed-tensors configuration.
func (c *config) compressed(key string, q map[string]any) string {
	groups, _ := q["config_groups"].(map[string]any)
	var formats []string
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group, _ := groups[name].(map[string]any)
		weights, _ := group["weights"].(map[string]any)
		bits, kind := fmt.Sprint(weights["num_bits"]), fmt.Sprint(weights["type"])
		at := key + ".config_groups." + name + ".weights"
		switch {
		case kind == "float" && bits == "8":
			formats = append(formats, "fp8")
		case kind == "float" && bits == "4":
			formats = append(formats, "nvfp4")
		case kind == "int":
			formats = append(formats, c.integer(at+".num_bits", weights["num_bits"]))
		default:
			c.fault(at, "must be float or int of 4 or 8 bits, are %s of %s", kind, bits)
			return ""
		}
	}
	slices.Sort(formats)
	if formats = slices.Compact(formats); len(formats) != 1 {
		c.fault(key+".config_groups", "must have one format of weights, has %d", len(formats))
		return ""
	}
	return formats[0]
}

// group reads how many elements share a scale; -1 is a whole row, of which the scale is nothing.
func (c *config) group(key string, q map[string]any) int {
	size := first(q, "group_size", "q_group_size")
	groups, _ := q["config_groups"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group, _ := groups[name].(map[string]any)
		weights, _ := group["weights"].(map[string]any)
		size = first(weights, "group_size")
	}
	number, _ := size.(json.Number)
	switch n, err := number.Int64(); {
	case size == nil:
		return 0
	case err == nil && n == -1:
		return mostWidth
	case err == nil && n > 0 && n <= mostWidth:
		return int(n)
	}
	c.fault(key+".group_size", "must be -1 or from 1 to %d, is %s", mostWidth, compact(size))
	return 0
}

func (c *config) integer(at string, bits any) string {
	switch text := fmt.Sprint(bits); text {
	case "4", "8":
		return "int" + text
	}
	c.fault(at, "must be 4 or 8, is %s", compact(bits))
	return ""
}

// first returns the value of the first of several keys that has one.
func first(object map[string]any, keys ...string) any {
	for _, key := range keys {
		if v := object[key]; v != nil {
			return v
		}
	}
	return nil
}
