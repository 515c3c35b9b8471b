package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"edge/runtime"
	"edge/runtime/config"
	"edge/runtime/spool"
	"edge/runtime/status"
)

func runCommand(io streams) *cli.Command {
	return &cli.Command{
		Name:  "run",
		Usage: "run the agent",
		Description: "Reads the inputs, keeps every event on disk, renders and publishes it, and quarantines what cannot be\n" +
			"published. SIGINT or SIGTERM ends it in order: inputs stop, what is in flight gets its answer (at most\n" +
			"agent.drain_time), the rest stays on disk for the next run. A second signal ends it at once. A server that cannot\n" +
			"be reached is tried for ever, with --once too.\n\n" +
			"   edge run -c edge.yaml                 serve until a signal\n" +
			"   edge run -c edge.yaml --once          read the inputs to their end, settle everything, exit\n" +
			"   edge run -c edge.yaml --once --json   the same, with the summary as one JSON object on stdout",
		Flags: []cli.Flag{
			configFlag(),
			&cli.BoolFlag{Name: "once", Usage: "end when the inputs are at their end and everything is settled"},
			&cli.BoolFlag{Name: "json", Usage: "print the summary as one JSON object on stdout"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "log at debug level"},
			&cli.BoolFlag{Name: "no-progress", Usage: "no live progress line, even on a terminal"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			cfg, err := loadConfig(c)
			if err != nil {
				return err
			}
			return runAgent(c.Context, io, cfg, runFlags{
				once: c.Bool("once"), json: c.Bool("json"), verbose: c.Bool("verbose"), quiet: c.Bool("no-progress"),
			})
		},
	}
}

type runFlags struct{ once, json, verbose, quiet bool }

func runAgent(ctx context.Context, io streams, cfg *config.Config, f runFlags) error {
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	tty := terminal(io.err)
	sink := newPatient(io.err, logFlush)
	defer sink.close()
	out := newPatient(io.out, dataFlush)
	defer out.close()
	show := &screen{w: sink}
	log := newLogger(show, tty, level)
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	agent, err := runtime.Open(ctx, cfg, runtime.Options{Once: f.once, Stdin: io.in, Logger: log})
	var sig *signalError
	if err != nil {
		if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &sig) {
			return sig
		}
		return err
	}
	watching, unwatch := context.WithCancel(context.Background())
	var watcher sync.WaitGroup
	watcher.Go(func() {
		w := watch{agent: agent, log: log, once: f.once, columns: func() int { return columns(io.err) }, flush: func() { sink.flush() }}
		if tty && !f.quiet {
			w.screen = show
		}
		if !f.json {
			w.settled = func(s *status.Summary) { printSummary(out, s, cfg.File, false) }
		}
		w.run(watching)
	})
	err = agent.Run(ctx)
	unwatch()
	watcher.Wait()
	summary := agent.Summary()
	if cerr := agent.Close(); cerr != nil && !sameFailure(err, cerr) {
		err = errors.Join(err, cerr)
	}
	sink.flush() // the log and the last live line come before the summary
	err = errors.Join(err, printSummary(out, summary, cfg.File, f.json), out.flush())
	if err == nil && !summary.Balanced {
		err = errors.New("the books do not balance: see the summary")
	}
	if err == nil && errors.As(context.Cause(ctx), &sig) {
		return sig
	}
	return err
}

// sameFailure tells whether closing only repeats what running has failed of: a spool that failed stays failed.
func sameFailure(ran, closed error) bool {
	var a, b *spool.FailedError
	return errors.As(ran, &a) && errors.As(closed, &b) && a == b
}

// printSummary prints s for a person, or for a program if asJSON. file is the configuration, for what to do next.
func printSummary(w io.Writer, s *status.Summary, file string, asJSON bool) error {
	if !asJSON {
		text := s.String()
		if s.Quarantined > 0 {
			text += "see what waits for a person: edge quarantine ls -c " + file + "\n"
		}
		_, err := io.WriteString(w, text)
		return err
	}
	b, err := json.Marshal(s)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

// watch shows how an agent gets on while it runs.
type watch struct {
	agent   *runtime.Agent
	log     *slog.Logger
	screen  *screen // nil: no live line, but a log line now and then
	columns func() int
	flush   func()
	once    bool
	settled func(*status.Summary) // called once when a serving agent has nothing left to do; may be nil

	last     uint64 // settled events at the last look
	lastTime time.Time
	rate     float64
	told     bool
	states   map[string]string
}

const (
	liveEvery = 200 * time.Millisecond // often enough to look alive
	logEvery  = 10 * time.Second       // for a log that people keep
)

func (w *watch) run(ctx context.Context) {
	w.lastTime = time.Now()
	w.states = make(map[string]string)
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	logged := time.Now()
	for {
		select {
		case <-ctx.Done():
			if w.screen != nil {
				w.screen.Live("")
			}
			return
		case <-tick.C:
		}
		s, p := w.agent.Summary(), w.agent.Progress()
		w.measure(s)
		w.tellStates(s)
		if w.screen != nil {
			w.screen.Live(w.line(s, p))
		} else if time.Since(logged) >= logEvery {
			logged = time.Now()
			w.log.Info("progress", append([]any{"captured", s.Captured, "accepted", s.Accepted, "quarantined", s.Quarantined,
				"spooled", s.Spooled, "events_per_s", int(w.rate)}, sinkStates(s)...)...)
		}
		if !w.once && !w.told && p.Done && s.Spooled == 0 {
			w.told = true
			if w.screen != nil {
				w.screen.Live("")
				w.flush()
			}
			if w.settled != nil {
				w.settled(s)
			}
			w.log.Info("inputs are at their end and everything is settled; press Ctrl-C to stop, or run with --once to end by itself")
		}
	}
}

// measure smooths the rate over about a second, so that a person can read it.
func (w *watch) measure(s *status.Summary) {
	now := time.Now()
	dt := now.Sub(w.lastTime).Seconds()
	if dt <= 0 {
		return
	}
	settled := s.Accepted + s.Dropped + s.Quarantined
	r := float64(settled-min(w.last, settled)) / dt
	w.rate += (r - w.rate) * min(dt/0.8, 1)
	w.last, w.lastTime = settled, now
}

// tellStates logs every change of a sink's state once, so that a lost server is seen without a terminal too.
func (w *watch) tellStates(s *status.Summary) {
	for _, k := range s.Sinks {
		if w.states[k.ID] == k.State {
			continue
		}
		w.states[k.ID] = k.State
		if k.Error != "" {
			w.log.Warn("sink state", "sink", k.ID, "state", k.State, "cause", k.Error)
		} else {
			w.log.Info("sink state", "sink", k.ID, "state", k.State, "stream", k.Stream, "delivery_class", k.DeliveryClass)
		}
	}
}

// sinkStates are the log attributes of the sinks that are not well: a group each, with state and cause.
func sinkStates(s *status.Summary) (attrs []any) {
	for _, k := range s.Sinks {
		if why := cmp.Or(k.Error, k.Trouble); why != "" {
			attrs = append(attrs, slog.Group("sink "+k.ID, "state", k.State, "cause", why))
		}
	}
	return attrs
}

// line is the live line: what came in, what is done, what waits, how fast, and how the sinks are.
func (w *watch) line(s *status.Summary, p runtime.Progress) string {
	var b strings.Builder
	if p.Total > 0 && p.Read < p.Total {
		fmt.Fprintf(&b, "%3d%% read  ", p.Read*100/p.Total)
	}
	fmt.Fprintf(&b, "captured %s  accepted %s  waiting %s", status.Count(s.Captured), status.Count(s.Accepted), status.Count(s.Spooled))
	if s.Quarantined > 0 {
		fmt.Fprintf(&b, "  quarantined %s", status.Count(s.Quarantined))
	}
	if s.SpoolFull {
		b.WriteString("  SPOOL FULL")
	}
	if s.Dropped > 0 {
		fmt.Fprintf(&b, "  dropped %s", status.Count(s.Dropped))
	}
	fmt.Fprintf(&b, "  %s/s", status.Count(uint64(w.rate)))
	for _, k := range s.Sinks {
		fmt.Fprintf(&b, "  [%s %s", k.ID, k.State)
		if why := cmp.Or(k.Error, k.Trouble); why != "" {
			// The line is short and the cause stands last: where it happened is in the log.
			why = strings.TrimPrefix(why, "publish message: ")
			if rest, ok := strings.CutPrefix(why, "connect to "); ok {
				if _, cause, ok := strings.Cut(rest, ": "); ok {
					why = cause
				}
			}
			fmt.Fprintf(&b, ": %s", why)
		}
		b.WriteByte(']')
	}
	return fit(b.String(), w.columns())
}

// columns is the width of the terminal behind w, 80 if it does not say.
func columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// fit cuts s to one row of n columns and takes out what would break the row.
func fit(s string, n int) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
	if utf8.RuneCountInString(s) < n {
		return s
	}
	cut := []rune(s)
	return string(cut[:max(n-2, 0)]) + "…"
}
