package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"llmsim/scenarios"
)

func newScenariosCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "scenarios",
		Short: "list the built-in scenarios and the question each one asks",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, name := range scenarios.Names() {
				fmt.Fprintf(c.OutOrStdout(), "%-18s %s\n", name, scenarios.Question(name))
			}
			return nil
		},
	}
}
