// Command edge runs beside machines: it captures events, keeps them on local disk, turns each into a message
// with a sandboxed module and publishes it to NATS JetStream with a checked acknowledgement.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"edge/publisher"
	"edge/runtime"
	"edge/runtime/config"
	"edge/runtime/flow"
)

// Exit codes, as documented in README.md.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // usage or configuration
	exitHalted = 3 // a sink is fatal
)

func main() {
	ignoreBrokenPipes()
	os.Exit(run(os.Args, streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are the standard streams of one invocation: data goes to out, everything else to err.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// usageError is a command line that asks for something that does not exist.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// signalError says that a signal ended an orderly run.
type signalError struct{ sig syscall.Signal }

func (e *signalError) Error() string { return "stopped by " + e.sig.String() }

func run(args []string, io streams) int {
	ctx, stop := catchSignals(context.Background())
	defer stop()
	err := newApp(io).RunContext(ctx, args)
	code := exitCode(err)
	var sig *signalError
	if err != nil && !errors.As(err, &sig) {
		text := fmt.Sprintf("edge: %v\n", err)
		var usage *usageError
		if errors.As(err, &usage) {
			text += "run edge --help, or edge COMMAND --help, for what there is\n"
		}
		last := newPatient(io.err, logFlush) // the exit code must come, whoever reads
		fmt.Fprint(last, text)
		last.close()
	}
	return code
}

// exitCode maps how a verb ended to the process's exit code.
func exitCode(err error) int {
	var (
		sig   *signalError
		halt  *flow.HaltError
		usage *usageError
		files *config.Errors
		setup *runtime.SetupError
		wire  *publisher.ConfigError
		fatal *publisher.FatalError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &sig):
		return 128 + int(sig.sig)
	case errors.As(err, &halt), errors.As(err, &fatal):
		return exitHalted
	case errors.As(err, &usage), errors.As(err, &files), errors.As(err, &setup), errors.As(err, &wire):
		return exitUsage
	}
	return exitFailed
}

// catchSignals returns a context that ends at the first SIGINT or SIGTERM, with a *signalError as its cause.
// A second signal finds the default action again and ends the process at once.
func catchSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			cancel(&signalError{s.(syscall.Signal)})
		case <-done:
		}
	})
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		watcher.Wait()
		cancel(nil)
	}
}

func newApp(io streams) *cli.App {
	app := &cli.App{
		Name:  "edge",
		Usage: "capture events, keep them, transform them in a sandbox, publish them to NATS JetStream",
		Description: "Start with the example:\n\n" +
			"   edge run -c examples/quickstart/edge.yaml --once\n\n" +
			"Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 a sink is fatal, 130 and 143 stopped by a signal.",
		Reader: io.in, Writer: io.out, ErrWriter: io.err,
		Version:        version,
		Suggest:        true,
		OnUsageError:   onGlobalFlag,
		ExitErrHandler: func(*cli.Context, error) {}, // run decides about the exit code
		Commands: []*cli.Command{
			runCommand(io), validateCommand(io), quarantineCommand(io), versionCommand(io),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return &usageError{fmt.Errorf("no command %q", c.Args().First())}
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, cmd := range app.Commands {
		setUsageErrors(cmd)
	}
	return app
}

func setUsageErrors(cmd *cli.Command) {
	cmd.OnUsageError = onUsageError
	for _, sub := range cmd.Subcommands {
		setUsageErrors(sub)
	}
}

func onUsageError(_ *cli.Context, err error, _ bool) error { return &usageError{err} }

// onGlobalFlag answers a flag before the command.
func onGlobalFlag(_ *cli.Context, err error, _ bool) error {
	return &usageError{fmt.Errorf("%w: flags stand behind their command, as in edge run -c FILE", err)}
}

// noArguments refuses words behind the flags of a verb that takes none.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return &usageError{fmt.Errorf("%s takes no argument, got %q", c.Command.HelpName, c.Args().First())}
	}
	return nil
}

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "the agent's configuration `FILE` (YAML); required"}
}

// loadConfig loads the file that configFlag names.
func loadConfig(c *cli.Context) (*config.Config, error) {
	if c.String("config") == "" {
		return nil, &usageError{fmt.Errorf("%s needs a configuration: -c FILE", c.Command.HelpName)}
	}
	return config.Load(c.String("config"))
}
