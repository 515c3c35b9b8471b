// Recorder writes this machine's own counters as events: one JSON object a line, one line for each of load, cpu,
// memory, every disk and every network interface, at every tick.
//
// It reads /proc and nothing else, so it runs on Linux, needs no rights, and says nothing about who uses the machine.
// The names of the site and the host come from flags, never from the machine.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `recorder writes this machine's load, cpu, memory, disk and network counters as NDJSON.

  go run ./examples/quickstart/recorder -count 1200 -interval 500ms -o recording.ndjson
  go run ./examples/quickstart/recorder -interval 1s | edge run -c edge.yaml      (with an input of kind stdin)

An existing file is appended to: edge reads on where it stopped.

`

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "recorder:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage") // already told

// config is what the flags say.
type config struct {
	interval   time.Duration
	count      int // events; 0: until interrupted
	out        string
	site, host string
}

func run(args []string, stdout, stderr io.Writer) error {
	var c config
	f := flag.NewFlagSet("recorder", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage); f.PrintDefaults() }
	f.DurationVar(&c.interval, "interval", time.Second, "time between two ticks, at least 1ms")
	f.IntVar(&c.count, "count", 0, "stop after this many events; 0 records until interrupted")
	f.StringVar(&c.out, "o", "-", "file to append to; - is standard output")
	f.StringVar(&c.site, "site", "lab", "name of the site in every event")
	f.StringVar(&c.host, "host", "edge-01", "name of the host in every event")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return errUsage
	case f.NArg() > 0:
		fmt.Fprintf(stderr, "unexpected argument %q: see -help\n", f.Arg(0))
		return errUsage
	case c.interval < time.Millisecond || c.count < 0:
		fmt.Fprintln(stderr, "-interval is at least 1ms and -count not negative: see -help")
		return errUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.out == "-" {
		return record(ctx, c, stdout)
	}
	file, err := os.OpenFile(c.out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(record(ctx, c, file), file.Close())
}

// record writes whole lines only, and what it has of a tick when the tick ends, so that a reader never waits.
func record(ctx context.Context, c config, w io.Writer) error {
	s := sampler{site: c.site, host: c.host}
	out := bufio.NewWriter(w)
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for written := 0; ; {
		lines, err := s.tick(time.Now())
		if err != nil {
			return err
		}
		for _, line := range lines {
			if _, err := out.Write(line); err != nil {
				return fmt.Errorf("write event: %w", err)
			}
			if written++; written == c.count {
				break
			}
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		if c.count > 0 && written == c.count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
