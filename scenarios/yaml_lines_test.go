package scenarios

import (
	"strings"
	"testing"
)

// What is no YAML is told of with its line, though yaml.v3 leaves out some and counts others from 0.
func TestYAMLFaultsCarryTheirLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: [", "chat.yaml:1: must be YAML: did not find expected node content"},
		{"a: b: c", "chat.yaml:1: must be YAML: mapping values are not allowed in this context"},
		{"seed: 1\na: b: c", "chat.yaml:2: must be YAML: mapping values are not allowed in this context"},
		{"\tseed: 1", "chat.yaml:1: must be YAML: found character that cannot start any token"},
		{"seed: 1\nengine: {block_size: 3\n", "chat.yaml:2: must be YAML: did not find expected ',' or '}'"},
		{"seed: 1\nengine: {\nblock_size: 3\n", "chat.yaml:2: must be YAML: did not find expected ',' or '}'"},
		{"engine:\n  block_size: 3\n max_num_seqs: 3\n", "chat.yaml:3: must be YAML: did not find expected key"},
		{"seed: 1\nname: \"x\n", "chat.yaml:2: must be YAML: found unexpected end of stream"},
		{"seed: 1\nname: *x\n", "chat.yaml:2: must be YAML: unknown anchor 'x' referenced"},
		{"seed: 1\nname: a\x01b\n", "chat.yaml:2: must be YAML: control characters are not allowed"},
		{"seed: 1\n\nname: a\xff\n", "chat.yaml:3: must be YAML: invalid leading UTF-8 octet"},
		{"\x00", "chat.yaml:1: must be YAML: control characters are not allowed"},
	} {
		if got := strings.Join(faults(t, c.text), "\n"); got != c.want {
			t.Errorf("Load(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
