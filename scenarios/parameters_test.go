package scenarios

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"llmsim/sim/cost"
)

// The table of parameters in docs/scenarios.md says what cost.Parameters says. After a change, the
// text that this test prints takes the table's place.
func TestParametersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "| parameter | unit | bounds | default | is |\n"
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	want := head + "|---|---|---|---:|---|\n"
	for _, p := range cost.Parameters {
		want += fmt.Sprintf("| `%s` | %s | %s to %s | %s | %s |\n", p.Name, p.Unit, number(p.Least), number(p.Most), number(p.Default), p.What)
	}
	if _, rest, found := strings.Cut(string(text), want); !found || strings.HasPrefix(rest, "|") {
		t.Errorf("docs/scenarios.md must have this table:\n%s", want)
	}
}
