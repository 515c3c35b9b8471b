package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"edge/envelope"
	"edge/runtime/config"
	"edge/runtime/quarantine"
)

func quarantineCommand(io streams) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "the agent's configuration `FILE`: its data folder is looked at"},
		&cli.StringFlag{Name: "data-dir", Usage: "look at this data folder instead, for example a copied one"},
		&cli.BoolFlag{Name: "json", Usage: "one JSON object a line on stdout"},
	}
	return &cli.Command{
		Name:  "quarantine",
		Usage: "look at what waits for a person",
		Description: "Events that cannot be published and lines that are no events wait here with their reason.\n" +
			"Looking takes no lock: it works beside a running agent.",
		Subcommands: []*cli.Command{
			{
				Name:  "ls",
				Usage: "list the entries, newest last, and count them by reason",
				Flags: append(slices.Clone(flags),
					&cli.StringFlag{Name: "sink", Usage: "only entries of this `SINK` (\"-\" for lines refused by an input)"},
					&cli.StringFlag{Name: "reason", Usage: "only entries with this `REASON`"},
					&cli.IntFlag{Name: "last", Aliases: []string{"n"}, Usage: "list only the last `N` entries; 0 lists all, as --json does", Value: 50},
				),
				Action: func(c *cli.Context) error { return quarantineLs(c, io) },
			},
			{
				Name:      "show",
				Usage:     "show the entries of one event in full: reason, history, raw and rendered form",
				ArgsUsage: "ID",
				Flags:     flags,
				Action:    func(c *cli.Context) error { return quarantineShow(c, io) },
			},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return &usageError{fmt.Errorf("no command %q in quarantine", c.Args().First())}
			}
			return cli.ShowSubcommandHelp(c)
		},
	}
}

// quarantineDir is the folder that the flags name.
func quarantineDir(c *cli.Context) (string, error) {
	dir := c.String("data-dir")
	if dir == "" {
		if c.String("config") == "" {
			return "", &usageError{errors.New("say where to look: -c FILE or --data-dir DIR")}
		}
		cfg, err := config.Load(c.String("config"))
		if err != nil {
			return "", err
		}
		dir = cfg.Agent.DataDir
	}
	return filepath.Join(dir, "quarantine"), nil
}

func quarantineLs(c *cli.Context, io streams) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if c.Int("last") < 0 {
		return &usageError{errors.New("--last takes 0 or a positive number")}
	}
	dir, err := quarantineDir(c)
	if err != nil {
		return err
	}
	if c.Bool("json") && !c.IsSet("last") {
		return quarantineStream(c, io, dir)
	}
	var (
		list    []quarantine.Entry
		total   int
		reasons = map[string]int{}
	)
	damage, err := quarantine.Scan(dir, func(e *quarantine.Entry) bool {
		if !listed(c, e) {
			return true
		}
		total++
		reasons[e.Reason]++
		if !c.Bool("json") {
			e.Raw, e.Event, e.Payload = nil, nil, nil // not shown: a long journal must fit into memory
		}
		if n := c.Int("last"); n > 0 && len(list) == n {
			list = slices.Delete(list, 0, 1)
		}
		list = append(list, *e)
		return true
	})
	if err != nil {
		return err
	}
	tellDamage(io, dir, damage)
	if c.Bool("json") {
		return printEntries(io.out, list)
	}
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	if len(list) > 0 {
		fmt.Fprintln(w, "TIME\tSINK\tID\tSOURCE\tREASON\tDETAIL")
	}
	for i := range list {
		e := &list[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.UTC().Format(time.DateTime), orInput(e.Sink), e.ID, plain(e.Source, 40), e.Reason, plain(e.Detail, 100))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(list) < total {
		fmt.Fprintf(io.out, "… %d older entries not listed: -n 0 lists all\n", total-len(list))
	}
	fmt.Fprintf(io.out, "%s%s\n", counted(total, "entry", "entries"), byReason(reasons))
	return nil
}

// quarantineStream prints entries as they are read.
func quarantineStream(c *cli.Context, io streams, dir string) error {
	var failed error
	damage, err := quarantine.Scan(dir, func(e *quarantine.Entry) bool {
		if listed(c, e) {
			failed = printEntries(io.out, []quarantine.Entry{*e})
		}
		return failed == nil
	})
	tellDamage(io, dir, damage)
	return errors.Join(err, failed)
}

// listed tells whether the filters let e through.
func listed(c *cli.Context, e *quarantine.Entry) bool {
	if s := c.String("sink"); s != "" && s != orInput(e.Sink) {
		return false
	}
	r := c.String("reason")
	return r == "" || r == e.Reason
}

func tellDamage(io streams, dir string, d quarantine.Damage) {
	if d.Lines > 0 {
		fmt.Fprintf(io.err, "edge: %d damaged lines (%d bytes) in %s were passed over\n", d.Lines, d.Bytes, dir)
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + many
}

func quarantineShow(c *cli.Context, io streams) error {
	if c.NArg() != 1 {
		return &usageError{errors.New("quarantine show takes one event id; quarantine ls lists them (flags go before it)")}
	}
	id, ok := envelope.ParseID([]byte(c.Args().First()))
	if !ok {
		return &usageError{fmt.Errorf("%q is no event id: 32 hex digits", c.Args().First())}
	}
	dir, err := quarantineDir(c)
	if err != nil {
		return err
	}
	var list []quarantine.Entry
	damage, err := quarantine.Scan(dir, func(e *quarantine.Entry) bool {
		if e.ID == id {
			list = append(list, *e)
		}
		return true
	})
	if err != nil {
		return err
	}
	tellDamage(io, dir, damage)
	if len(list) == 0 {
		return fmt.Errorf("no entry with id %s in %s: quarantine ls lists what is there", id, dir)
	}
	if c.Bool("json") {
		return printEntries(io.out, list)
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(io.out)
		}
		showEntry(io.out, &list[i])
	}
	return nil
}

func printEntries(w io.Writer, list []quarantine.Entry) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func showEntry(out io.Writer, e *quarantine.Entry) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, plain(value, 0))
		}
	}
	row("id", e.ID.String())
	row("reason", e.Reason)
	row("detail", e.Detail)
	row("quarantined", e.Time.UTC().Format(time.RFC3339Nano))
	row("sink", orInput(e.Sink))
	row("input", e.Input)
	row("source", e.Source)
	row("dataset", e.Dataset)
	for _, l := range e.Identity {
		row("identity "+l.Name, l.Value)
	}
	row("captured", when(e.IngestTime))
	row("event time", when(e.EventTime))
	row("quality", e.Quality.String())
	row("module", e.Module)
	if e.Attempts > 0 {
		row("attempts", fmt.Sprint(e.Attempts))
	}
	row("subject", e.Subject)
	row("headers", strings.ReplaceAll(strings.TrimRight(string(e.Headers), "\r\n"), "\r\n", "; "))
	w.Flush()
	fmt.Fprintf(out, "raw (%d bytes)\n  %s\n", len(e.Raw), body(e.Raw))
	if len(e.Payload) > 0 {
		fmt.Fprintf(out, "rendered (%d bytes)\n  %s\n", len(e.Payload), body(e.Payload))
	}
}

func orInput(sink string) string {
	if sink == "" {
		return "-"
	}
	return sink
}

func when(ns int64) string {
	if ns == 0 || ns == envelope.NoTime {
		return ""
	}
	return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
}

// body shows bytes that anybody may have made: as text when they are text, quoted otherwise.
func body(b []byte) string {
	if utf8.Valid(b) {
		return plain(string(b), 0)
	}
	return fmt.Sprintf("%q", b)
}

// plain takes out what could steer a terminal and cuts to n runes; 0 cuts nothing.
func plain(s string, n int) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || (c >= 0x7f && c < 0xa0) {
			return '·'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if n > 0 && utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:n-1]) + "…"
	}
	return s
}

func byReason(reasons map[string]int) string {
	if len(reasons) == 0 {
		return ""
	}
	names := make([]string, 0, len(reasons))
	for r := range reasons {
		names = append(names, r)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := reasons[b] - reasons[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, r := range names {
		names[i] = fmt.Sprintf("%d %s", reasons[r], r)
	}
	return ": " + strings.Join(names, ", ")
}
