// Package experiments holds the files of the built-in experiments.
//
// It knows nothing of what is in them.
package experiments

import "embed"

// Files are NAME.yaml, and nothing else.
//
//go:embed *.yaml
var Files embed.FS
