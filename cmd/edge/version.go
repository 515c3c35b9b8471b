package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/urfave/cli/v2"
)

// version is set by the linker in release builds: -ldflags "-X main.version=1.2.3".
var version = "devel"

// libraries are the ones whose versions decide how an agent behaves.
var libraries = []string{
	"github.com/tetratelabs/wazero", "github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2",
	"github.com/goccy/go-json", "go.etcd.io/bbolt",
}

func versionCommand(io streams) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the versions of the agent, the guest interface and the libraries that matter",
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			fmt.Fprintf(io.out, "edge %s\nguest interface edge_v1\n%s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			info, ok := debug.ReadBuildInfo()
			if !ok {
				return nil
			}
			for _, dep := range info.Deps {
				if slices.Contains(libraries, dep.Path) {
					fmt.Fprintf(io.out, "%s %s\n", dep.Path, dep.Version)
				}
			}
			return nil
		},
	}
}
