package workload

import (
	"io"
	"io/fs"
)

// OpenTraceFS reads a trace as OpenTrace does, from a file system such as an embedded one.
func OpenTraceFS(files fs.FS, name string, options TraceOptions) (*Trace, error) {
	return openTrace(name, func() (io.ReadCloser, error) { return files.Open(name) }, options, heldRows)
}
