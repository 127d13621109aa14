// Package expect holds the committed figures of the built-in scenarios.
//
// It knows nothing of what is in them.
package expect

import "embed"

// Files are NAME.yaml, and nothing else.
//
//go:embed *.yaml
var Files embed.FS
