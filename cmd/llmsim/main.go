// Command llmsim predicts how an LLM serving system behaves under load.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"llmsim/plan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes, a contract with scripts and CI.
const (
	exitYes         = 0
	exitNo          = 1 // the answer is no
	exitBadInput    = 2
	exitInterrupted = 130 // by a signal, as shells have it
)

// errNo ends a verb whose answer is no; the answer has been printed.
var errNo = errors.New("the answer is no")

// run is the program without its process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return exitYes
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "llmsim: interrupted")
		return exitInterrupted
	default:
		fmt.Fprintf(stderr, "llmsim: %v\n", err)
		return exitBadInput
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "llmsim",
		Short: "predict how an LLM serving system behaves under load, before any load test",
		Long: `llmsim predicts how an LLM serving system behaves under load: it runs the
scheduler, the paged KV cache and a cost model of the GPU in virtual time.

Exit codes: 0 the answer is yes, 1 the answer is no, 2 bad input.`,
		Version:       plan.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w%s\nsee: %s --help", err, nearFlag(c, err), c.CommandPath())
	})
	root.AddCommand(newPlanCommand(), newSimulateCommand(), newTraceCommand(), newScenariosCommand())
	return root
}

// noArguments refuses arguments by name; of a root they are unknown verbs.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasParent() {
		return fmt.Errorf("%s takes flags only, not %q\nsee: %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	text := fmt.Sprintf("%q is not a command", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf(", did you mean %s?", near[0])
	}
	return fmt.Errorf("%s\nsee: %s --help", text, c.CommandPath())
}
