// E2e measures the whole path: events in a file (or a pipe), the agent with its module, a nats-server process, and the
// stream read back and checked, event by event.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

const usage = `e2e runs the agent over generated events into a nats-server of its own, checks that the stream holds every event
exactly once, and prints what it cost. Agent and server are built from this repository.

  go run ./bench/e2e                        500,000 events from a file
  go run ./bench/e2e -runs 3 -json          three times, medians, as one JSON object
  go run ./bench/e2e -stdin                 through a pipe
  go run ./bench/e2e -embedded              with the server inside the agent

`

type options struct {
	events, runs, window int
	stdin, embedded      bool
	asJSON               bool
	module, memory       string
	sync, dir            string
}

func main() {
	var o options
	f := flag.NewFlagSet("e2e", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), usage); f.PrintDefaults() }
	f.IntVar(&o.events, "events", 500_000, "events in a run")
	f.IntVar(&o.runs, "runs", 1, "runs; the result is the median of each number")
	f.IntVar(&o.window, "max-in-flight", 0, "the sink's max_in_flight; 0 leaves the agent's default")
	f.BoolVar(&o.stdin, "stdin", false, "feed the events through a pipe instead of a file")
	f.BoolVar(&o.embedded, "embedded", false, "use the server inside the agent; its processor time is then the agent's")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	f.StringVar(&o.module, "module", "examples/modules/envelope/c/envelope.wasm", "module that renders the events; builtin uses the agent's own envelope")
	f.StringVar(&o.memory, "memory", "16MiB", "the module's memory limit; Go modules need 64MiB")
	f.StringVar(&o.sync, "sync-interval", "2m", "the server's sync_interval; 2m is its own default, always is the safest")
	f.StringVar(&o.dir, "dir", "", "folder for all files of a run, removed afterwards; it decides which disk is measured (default: the system's)")
	switch err := f.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2)
	case f.NArg() > 0 || o.events < 1 || o.runs < 1:
		fmt.Fprintln(os.Stderr, "e2e takes flags only, and at least one event and one run: see -help")
		os.Exit(2)
	}
	if err := run(o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// result is one run, or the medians of several. Zero means not measured.
type result struct {
	Events             int     `json:"events"`
	EventsPerS         float64 `json:"events_per_s"` // events / (time the server stored the last one - start of the agent)
	AgentCPUPerEvent   float64 `json:"agent_cpu_us_per_event"`
	ServerCPUPerEvent  float64 `json:"server_cpu_us_per_event"`
	PeakRSSMiB         float64 `json:"peak_rss_mib"` // of the agent
	Stored             float64 `json:"stored"`
	Distinct           float64 `json:"distinct"`
	Reordered          float64 `json:"reordered"`
	OthersBusyFraction float64 `json:"others_busy_fraction"` // of the machine's processors, taken by other processes
}

// numbers are the fields that a median is taken of, with their names for the table.
func (r *result) numbers() []struct {
	name, format string
	value        *float64
} {
	return []struct {
		name, format string
		value        *float64
	}{
		{"events/s", "%.0f", &r.EventsPerS},
		{"agent µs/event", "%.2f", &r.AgentCPUPerEvent},
		{"server µs/event", "%.2f", &r.ServerCPUPerEvent},
		{"peak RSS MiB", "%.1f", &r.PeakRSSMiB},
		{"stored", "%.0f", &r.Stored},
		{"distinct", "%.0f", &r.Distinct},
		{"reordered", "%.0f", &r.Reordered},
		{"others busy", "%.3f", &r.OthersBusyFraction},
	}
}

func run(o options, out, progress io.Writer) error {
	dir, err := os.MkdirTemp(o.dir, "edge-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.module != "builtin" {
		if o.module, err = filepath.Abs(o.module); err != nil {
			return err
		}
		if _, err := os.Stat(o.module); err != nil {
			return fmt.Errorf("find the module (run this from the repository's root, or name one with -module): %w", err)
		}
	}
	fmt.Fprintln(progress, "building the agent and the server")
	edge, natsServer, err := buildBinaries(dir)
	if err != nil {
		return err
	}
	events := filepath.Join(dir, "events.ndjson")
	file, err := os.Create(events)
	if err != nil {
		return err
	}
	if err := errors.Join(writeEvents(file, o.events), file.Close()); err != nil {
		return fmt.Errorf("write the events: %w", err)
	}
	var results []result
	for n := range o.runs {
		r, err := measure(o, edge, natsServer, filepath.Join(dir, fmt.Sprintf("run-%d", n)), events)
		if err != nil {
			return fmt.Errorf("run %d of %d: %w", n+1, o.runs, err)
		}
		fmt.Fprintf(progress, "run %d of %d: %.0f events/s\n", n+1, o.runs, r.EventsPerS)
		results = append(results, r)
	}
	if o.asJSON {
		return json.NewEncoder(out).Encode(struct {
			result
			Runs []result `json:"runs"`
		}{median(results), results})
	}
	return table(out, results)
}

// measure does one run in a folder of its own.
func measure(o options, edge, natsServer, dir, events string) (r result, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return r, err
	}
	defer os.RemoveAll(dir) // the next run finds the disk as this one did
	srv := &server{binary: natsServer, dir: dir, store: filepath.Join(dir, "store"), sync: o.sync}
	defer srv.kill()
	url, token := "embedded://", ""
	if !o.embedded {
		if err := srv.start(); err != nil {
			return r, err
		}
		url, token = srv.url(), srv.token
	}
	before := readProcessors()
	agent, err := runAgent(o, edge, dir, agentConfig(o, dir, events, url, token), events)
	if err != nil {
		return r, err
	}
	after := readProcessors()
	serverCPU, err := srv.stop()
	if err != nil {
		return r, err
	}
	if o.embedded {
		if srv.store, err = embeddedStore(filepath.Join(dir, "data")); err != nil {
			return r, err
		}
	}
	if err := srv.start(); err != nil {
		return r, err
	}
	nc, err := srv.connect()
	if err != nil {
		return r, fmt.Errorf("read the stream back: %w", err)
	}
	defer nc.Close()
	s, err := verify(nc, o.events)
	if err != nil {
		return r, err
	}
	if err := errors.Join(s.check(o.events), checkSummary(agent.summary, o.events)); err != nil {
		return r, err
	}
	perEvent := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(o.events) }
	return result{
		Events:             o.events,
		EventsPerS:         float64(o.events) / s.last.Sub(agent.began).Seconds(),
		AgentCPUPerEvent:   perEvent(agent.cpu),
		ServerCPUPerEvent:  perEvent(serverCPU),
		PeakRSSMiB:         float64(agent.peakRSS) / (1 << 20),
		Stored:             float64(s.messages),
		Distinct:           float64(s.distinct),
		Reordered:          float64(s.reordered),
		OthersBusyFraction: othersBusy(before, after, agent.cpu+serverCPU),
	}, nil
}

// checkSummary holds what the agent says of itself against what it was given.
func checkSummary(summary map[string]any, events int) error {
	for name, want := range map[string]float64{"captured": float64(events), "accepted": float64(events), "quarantined": 0, "dropped": 0, "spooled": 0} {
		if got, ok := summary[name].(float64); !ok || got != want {
			return fmt.Errorf("the agent's summary says %s = %v, want %.0f", name, summary[name], want)
		}
	}
	return nil
}

// median takes the median of each number on its own; of an even count, the mean of the two in the middle.
func median(results []result) result {
	m := results[0]
	for k, field := range m.numbers() {
		var all []float64
		for i := range results {
			all = append(all, *results[i].numbers()[k].value)
		}
		slices.Sort(all)
		*field.value = (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	}
	return m
}

func table(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, r result) {
		fmt.Fprintf(w, "%s\t", name)
		for _, f := range r.numbers() {
			fmt.Fprintf(w, f.format+"\t", *f.value)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "\t")
	for _, f := range results[0].numbers() {
		fmt.Fprintf(w, "%s\t", f.name)
	}
	fmt.Fprintln(w)
	for i, r := range results {
		row(fmt.Sprint("run ", i+1), r)
	}
	if len(results) > 1 {
		row("median", median(results))
	}
	return w.Flush()
}
