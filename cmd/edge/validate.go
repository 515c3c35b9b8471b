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
			"modules exactly as run would. Nothing is opened on disk and no server is asked.",
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
			if err := runtime.CheckModules(c.Context, cfg, log); err != nil {
				return err
			}
			fmt.Fprintf(io.out, "%s: valid: %d inputs, %d sinks, %d datasets\n", cfg.File, len(cfg.Inputs), len(cfg.Sinks), len(cfg.Datasets))
			return nil
		},
	}
}
