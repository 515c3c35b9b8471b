package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"edge/envelope"
)

// TestParse holds the parsers against excerpts of the real files, and against files that are not.
func TestParse(t *testing.T) {
	f := func(name, want string, parse func([]byte) ([]byte, error), file string) {
		t.Helper()
		got, err := parse([]byte(file))
		if err != nil {
			got = []byte("error")
		}
		if string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	load := func(b []byte) ([]byte, error) { l, err := parseLoad(b); return l.append(nil), err }
	stat := func(b []byte) ([]byte, error) { c, err := parseStat(b); return c.append(nil), err }
	memory := func(b []byte) ([]byte, error) { m, err := parseMemory(b); return m.append(nil), err }
	disks := func(b []byte) (out []byte, err error) {
		for _, d := range parseDisks(b) {
			out = d.append(append(out, d.name...))
		}
		return out, nil
	}
	networks := func(b []byte) (out []byte, err error) {
		for _, n := range parseNetwork(b) {
			out = n.append(append(out, n.name...))
		}
		return out, nil
	}
	f("load", `,"avg_1m":1.9,"avg_5m":1.88,"avg_15m":0.92,"running":1,"tasks":91`, load, "1.90 1.88 0.92 1/91 15662\n")
	f("load, empty", "error", load, "")
	f("stat", `,"user":1,"system":3,"idle":4,"iowait":5,"softirq":7,"steal":8,"switches":18446744073709551615,"forks":9`, stat,
		"cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5 0\nctxt 18446744073709551615\nprocesses 9\n")
	f("stat, no total", "error", stat, "cpu0 1 2 3 4 5 6 7 8 0 0\n")
	f("stat, not a number", "error", stat, "cpu  1 2 3 x 5 6 7 8 0 0\n")
	f("memory", `,"total":4096,"free":1024,"available":3072,"cached":2048,"dirty":0,"used_ratio":0.25`, memory,
		"MemTotal: 4 kB\nMemFree:   1 kB\nMemAvailable: 3 kB\nCached: 2 kB\nDirty: 0 kB\nHugePages_Total:       0\n")
	f("memory, empty", "error", memory, "")
	f("disks", `vda,"reads":7,"sectors_read":9,"writes":11,"sectors_written":13,"io_ms":16`, disks,
		" 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 254 0 vda 7 8 9 10 11 12 13 14 15 16 17 0 0 0 0 0 0\n254 1 short 7\n")
	f("networks", `eth0,"rx_bytes":1,"rx_packets":2,"tx_bytes":9,"tx_packets":10,"errors":14,"drops":16`, networks,
		"Inter-|   Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
}

func TestDelta(t *testing.T) {
	s := sampler{last: map[string]uint64{}}
	for i, c := range []struct{ value, want uint64 }{{100, 0}, {130, 30}, {130, 0}, {5, 5}} {
		if got := s.delta("k", c.value); got != c.want {
			t.Errorf("step %d: delta(%d) = %d, want %d", i, c.value, got, c.want)
		}
	}
}

// TestRecord records from this machine: whole lines, exactly as many as asked for, valid, each with its own id; and
// a second recording goes behind the first.
func TestRecord(t *testing.T) {
	if runtime.GOOS != "linux" {
		if err := run([]string{"-count", "1"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "needs Linux") {
			t.Fatalf("without /proc: %v", err)
		}
		return
	}
	out := filepath.Join(t.TempDir(), "recording.ndjson")
	for range 2 {
		if err := run([]string{"-count", "10", "-interval", "2ms", "-o", out, "-site", `l"b`, "-host", "h"}, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := checkRecording(t, got, `"l\"b"`, `"h"`); n != 20 {
		t.Errorf("%d lines, want 20", n)
	}
}

// TestCommittedRecording holds the example's own recording against what its README says of it; more may have been
// added to it, as the README proposes.
func TestCommittedRecording(t *testing.T) {
	got, err := os.ReadFile("../recording.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if n := checkRecording(t, got, `"lab"`, `"edge-01"`); n < 1404 {
		t.Errorf("%d lines, want at least 1404", n)
	}
}

// checkRecording returns the number of lines, each of them whole, valid and with an id of its own.
func checkRecording(t *testing.T, recording []byte, site, host string) (n int) {
	t.Helper()
	x, err := envelope.NewExtractor([]string{"/id", "/ts", "/site", "/host", "/kind", "/metric"})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for line := range bytes.Lines(recording) {
		n++
		out := make([][]byte, 6)
		if err := x.Extract(line, out); err != nil {
			t.Fatalf("line %d: %v\n%s", n, err, line)
		}
		id := strings.Trim(string(out[0]), `"`)
		if _, ok := envelope.ParseID([]byte(id)); !ok || ids[id] {
			t.Errorf("line %d: id %s is malformed or not its own", n, id)
		}
		ids[id] = true
		if _, err := time.Parse(time.RFC3339Nano, strings.Trim(string(out[1]), `"`)); err != nil {
			t.Errorf("line %d: %v", n, err)
		}
		if string(out[2]) != site || string(out[3]) != host || len(out[4]) == 0 || len(out[5]) < 2 || out[5][0] != '{' {
			t.Errorf("line %d: %s", n, line)
		}
	}
	if !bytes.HasSuffix(recording, []byte("}\n")) {
		t.Error("the last line is cut short")
	}
	return n
}

func TestUsage(t *testing.T) {
	f := func(want error, text string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		err := run(args, io.Discard, &out)
		if !errors.Is(err, want) || !strings.Contains(out.String(), text) {
			t.Errorf("%q: %v, %q", args, err, out.String())
		}
	}
	f(flag.ErrHelp, "this many events", "-help")
	f(errUsage, "-interval", "-interval", "1us")
	f(errUsage, "-count", "-count", "-1")
	f(errUsage, "unexpected argument", "more")
	f(errUsage, "not defined", "-nonsense")
}
