// Command llmsim predicts how an LLM serving system behaves under load.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"llmsim/plan"
	"llmsim/scenarios"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes, a contract with scripts and CI.
const (
	exitYes         = 0
	exitNo          = 1 // the answer is no
	exitBadInput    = 2
	exitUntrusted   = 3   // what was measured is not to be trusted
	exitInterrupted = 130 // by a signal, as shells have it
)

// errNo ends a verb whose answer is no; the answer has been printed.
var errNo = errors.New("the answer is no")

// errUntrusted ends a verb whose measurement is not to be trusted; why has been printed.
var errUntrusted = errors.New("the measurement is not to be trusted")

// run is the program without its process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	out := &output{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil || errors.Is(err, errNo) || errors.Is(err, errUntrusted) {
		err = cmp.Or(out.err, err) // an answer that nobody got is none
	}
	switch {
	case err == nil:
		return exitYes
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, errUntrusted):
		return exitUntrusted
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "llmsim: interrupted")
		return exitInterrupted
	default:
		fmt.Fprintf(stderr, "llmsim: %v\n", err)
		return exitBadInput
	}
}

// An output remembers its first error, which those who write help and the version don't look at.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "llmsim",
		Short: "predict how an LLM serving system behaves under load, before any load test",
		Long: `llmsim predicts how an LLM serving system behaves under load: it runs the
scheduler, the paged KV cache and a cost model of the GPU in virtual time.

Exit codes: 0 the answer is yes, 1 the answer is no, 2 bad input, 3 what was
measured is not to be trusted.`,
		Version:       plan.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// The flags of a verb that is not known are not known either: the verb is what is wrong.
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			return noArguments(c, args)
		}
		return fmt.Errorf("%w%s\nsee: %s --help", err, nearFlag(c, err), c.CommandPath())
	})
	root.AddCommand(newPlanCommand(), newSimulateCommand(), newSweepCommand(), newValidateCommand(), newCalibrateCommand(), newConformanceCommand(), newTraceCommand(), newScenariosCommand(),
		newExperimentCommand(), newCheckCommand(), newModelsCommand(), newGPUsCommand())
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = knownVerbs
		}
	}
	return root
}

// knownVerbs refuses verbs that help is asked for and that there are none of.
func knownVerbs(help *cobra.Command, args []string) error {
	at, rest, err := help.Root().Find(args)
	if err != nil {
		return err
	}
	return noArguments(at, rest)
}

// noArguments refuses arguments by name; of a verb that has verbs of its own they are unknown verbs.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasSubCommands() {
		return fmt.Errorf("%s takes flags only, not %q\nsee: %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	text := fmt.Sprintf("%q is not a command", args[0])
	if c.HasParent() {
		text = fmt.Sprintf("%q is not a command of %s", args[0], c.CommandPath())
	}
	var verbs []string
	for _, verb := range c.Commands() {
		verbs = append(verbs, verb.Name())
	}
	if near := scenarios.Nearest(args[0], verbs); near != "" {
		text += fmt.Sprintf(", did you mean %s?", near)
	}
	return fmt.Errorf("%s\nsee: %s --help", text, c.CommandPath())
}
