package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/urfave/cli/v2"

	"edge/runtime"
	"edge/runtime/config"
)

func validateCommand(io streams) *cli.Command {
	return &cli.Command{
		Name:  "validate",
		Usage: "check a configuration, its modules and, if asked, its servers without starting anything",
		Description: "Reports every mistake at once, each with file, line and column, then admits, compiles and initialises the\n" +
			"modules exactly as run would. With --connect it looks at each sink's server and stream as well: what it is like, how\n" +
			"full, what we may do. Nothing is written to disk, and nothing on a server is created or changed.\n\n" +
			"Exit codes: 0 valid, 2 a mistake in the configuration, 3 a sink would be fatal, 1 a server cannot be reached.",
		Flags: []cli.Flag{
			configFlag(),
			&cli.BoolFlag{Name: "connect", Usage: "look at the servers and streams too"},
			&cli.BoolFlag{Name: "json", Usage: "print what was found as one JSON object on stdout"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			cfg, err := loadConfig(c)
			if err != nil {
				return err
			}
			log := newLogger(io.err, terminal(io.err), slog.LevelError)
			return validate(c.Context, io, cfg, log, c.Bool("connect"), c.Bool("json"))
		},
	}
}

func validate(ctx context.Context, io streams, cfg *config.Config, log *slog.Logger, connect, asJSON bool) error {
	warn := newLogger(io.err, terminal(io.err), slog.LevelWarn)
	for _, w := range cfg.Warnings {
		warn.Warn(w)
	}
	modules, err := runtime.CheckModules(ctx, cfg, warn)
	if err != nil {
		return err
	}
	var sinks []runtime.Reached
	if connect {
		// Its log would only repeat the verdicts.
		if sinks, err = runtime.CheckServers(ctx, cfg, log); err != nil {
			return err
		}
	}
	if asJSON {
		err = printFound(io.out, cfg, modules, sinks)
	} else {
		for _, m := range modules {
			fmt.Fprintf(io.out, "sink %s: module %s: admitted, compiled, initialised; sha256 %s\n", m.Sink, m.Path, m.Digest)
		}
		for i := range sinks {
			printPosture(io.out, &sinks[i])
		}
		if refused(sinks) == nil {
			fmt.Fprintf(io.out, "%s: valid: %s, %s, %s\n", cfg.File, counted(len(cfg.Datasets), "dataset", "datasets"),
				counted(len(cfg.Inputs), "input", "inputs"), counted(len(cfg.Sinks), "sink", "sinks"))
		}
	}
	return errors.Join(err, refused(sinks))
}

// refused joins what stands against running: a *publisher.FatalError among them decides the exit code.
func refused(sinks []runtime.Reached) error {
	var all []error
	for i := range sinks {
		if err := sinks[i].Err; err != nil {
			all = append(all, fmt.Errorf("sink %s: %w", sinks[i].Sink.ID, err))
		}
	}
	return errors.Join(all...)
}
