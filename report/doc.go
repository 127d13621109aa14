// Package report turns what a run tells, request by request and step by step, into numbers, tables and files.
//
// It knows durations, counts and how people and programs read them. It knows nothing of scenarios, of how a
// scheduler decides, or of what a step costs.
package report
