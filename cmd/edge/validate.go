package main

import (
	"fmt"
	"log/slog"

	"github.com/urfave/cli/v2"

	"edge/runtime"
)

func validateCommand(io streams) *cli.Command {
	return &cli.Command{
		Name:  "validate",
		Usage: "check a configuration and its modules without starting anything",
		Description: "Reports every mistake at once, each with file, line and column, then admits, compiles and initialises the\n" +
			"modules exactly as run would. Nothing is written to disk and no server is asked.",
		Flags: []cli.Flag{configFlag()},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			cfg, err := loadConfig(c)
			if err != nil {
				return err
			}
			log := newLogger(io.err, terminal(io.err), slog.LevelWarn)
			for _, w := range cfg.Warnings {
				log.Warn(w)
			}
			modules, err := runtime.CheckModules(c.Context, cfg, log)
			if err != nil {
				return err
			}
			for _, m := range modules {
				fmt.Fprintf(io.out, "sink %s: module %s: admitted, compiled, initialised; sha256 %s\n", m.Sink, m.Path, m.Digest)
			}
			fmt.Fprintf(io.out, "%s: valid: %s, %s, %s\n", cfg.File, counted(len(cfg.Datasets), "dataset", "datasets"),
				counted(len(cfg.Inputs), "input", "inputs"), counted(len(cfg.Sinks), "sink", "sinks"))
			return nil
		},
	}
}
