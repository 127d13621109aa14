// Package picture draws runs, plans and sweeps: pages that need no network, and files of charts.
//
// It knows curves, bars and how people read them. It knows nothing of how a run came about, nor of flags.
package picture
