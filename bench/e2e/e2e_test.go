package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestEvents(t *testing.T) {
	var b bytes.Buffer
	if err := writeEvents(&b, 5000); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 5000 {
		t.Fatalf("%d lines, want 5000", len(lines))
	}
	robotsSeen := map[string]bool{}
	for i, line := range lines {
		var e struct {
			ID, Robot string
			Metric    struct{ Seq int }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if k, ok := parseID(e.ID); !ok || k != uint64(i) || e.Metric.Seq != i {
			t.Fatalf("line %d says it is %d (%v) and %d", i, k, ok, e.Metric.Seq)
		}
		if n := len(line); n < 210 || n > 240 {
			t.Fatalf("line %d has %d bytes", i, n)
		}
		robotsSeen[e.Robot] = true
	}
	if len(robotsSeen) != robots {
		t.Errorf("%d robots, want %d", len(robotsSeen), robots)
	}
	var again bytes.Buffer
	if err := writeEvents(&again, 5000); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("a second writing differs: %v", err)
	}
}

func TestParseID(t *testing.T) {
	good := string(appendID(nil, 41))
	f := func(ok bool, id string) {
		t.Helper()
		if i, got := parseID(id); got != ok || ok && i != 41 {
			t.Errorf("parseID(%q) = %d, %v", id, i, got)
		}
	}
	f(true, good)
	f(false, "")
	f(false, good[1:])
	f(false, good[:31]+"8") // the index of another event
	f(false, strings.Repeat("z", 32))
}

func TestMedian(t *testing.T) {
	f := func(want float64, values ...float64) {
		t.Helper()
		var results []result
		for _, v := range values {
			results = append(results, result{EventsPerS: v})
		}
		if got := median(results).EventsPerS; got != want {
			t.Errorf("median of %v is %v, want %v", values, got, want)
		}
	}
	f(3, 3)
	f(2.5, 3, 2)
	f(2, 9, 1, 2)
}

func TestCheck(t *testing.T) {
	f := func(want string, s stored) {
		t.Helper()
		got := ""
		if err := s.check(10); err != nil {
			got = err.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	f("", stored{messages: 10, distinct: 10})
	f("1 of 10 events are not", stored{messages: 9, distinct: 9})
	f("more than once", stored{messages: 11, distinct: 10, doubled: 1})
	f("not what they should be", stored{messages: 11, distinct: 10, foreign: 1, example: "x"})
}

// TestRun is the command itself with few events: agent and server are built, run and checked.
func TestRun(t *testing.T) {
	f := func(o options) {
		t.Helper()
		o.events, o.runs, o.asJSON, o.sync, o.memory, o.dir = 3000, 1, true, "2m", "16MiB", t.TempDir()
		var out bytes.Buffer
		if err := run(o, &out, io.Discard); err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		var r struct {
			result
			Runs []result
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Stored != 3000 || r.Distinct != 3000 || r.EventsPerS <= 0 || r.AgentCPUPerEvent <= 0 || len(r.Runs) != 1 {
			t.Errorf("%+v: %s", o, out.String())
		}
	}
	const module = "../../examples/modules/envelope/c/envelope.wasm"
	f(options{module: module})
	f(options{module: module, stdin: true})
	f(options{module: "builtin", embedded: true})
}
