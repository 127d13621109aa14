package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"llmsim/report"
	"llmsim/scenarios"
)

func newScenariosCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "scenarios",
		Short: "list the built-in scenarios and the question each one asks",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			var list scenarioList
			for _, name := range scenarios.Names() {
				list = append(list, scenarioData{name, scenarios.Question(name)})
			}
			return writeResult(c.OutOrStdout(), list, format)
		},
	}
	registerFormat(c, &format)
	return c
}

// A scenarioList is the built-in scenarios, as data and for people.
type scenarioList []scenarioData

type scenarioData struct {
	Name     string `json:"name"`
	Question string `json:"question"`
}

// WriteTable writes a scenario a line.
func (l scenarioList) WriteTable(w io.Writer) error {
	for _, s := range l {
		if _, err := fmt.Fprintf(w, "%-18s %s\n", s.Name, s.Question); err != nil {
			return err
		}
	}
	return nil
}

// WriteMarkdown writes them as a table.
func (l scenarioList) WriteMarkdown(w io.Writer) error {
	t := report.Table{Head: []string{"scenario", "question"}}
	for _, s := range l {
		t.Rows = append(t.Rows, []string{s.Name, s.Question})
	}
	return t.WriteMarkdown(w)
}
