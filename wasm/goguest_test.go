package wasm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// goGuest builds the guest of testdata with the Go that runs this test, and loads it.
func goGuest(t *testing.T) *Module {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "./testdata/goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, b)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lim := DefaultLimits()
	lim.Memory, lim.Fuel, lim.Time = 64<<20, 1<<28, 20*time.Second
	m, err := engine(t).Load(context.Background(), code, lim)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// A guest of a language with a runtime and a collector, from end to end: what it can see, and how its ways to go
// wrong end.
func TestGoGuest(t *testing.T) {
	m := goGuest(t)
	var log []string
	cfg := InstanceConfig{Config: []byte(`{"a":1}`), Log: func(level int, text []byte) { log = append(log, fmt.Sprint(level, string(text))) }}

	if _, err := m.NewInstance(context.Background(), InstanceConfig{Config: []byte("refuse"), Log: cfg.Log}); err == nil {
		t.Error("the configuration was not refused")
	} else if le := new(LoadError); !errors.As(err, &le) || le.Code != 3 || strings.Join(log, "") != "1this configuration is not for me" {
		t.Errorf("%v, log %q", err, log)
	}

	i, err := m.NewInstance(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var out Output
	input := func(data string) Input {
		return Input{IngestTime: 1_760_000_000_123_456_789, EventTime: math.MinInt64, Data: []byte(data), Prefix: []byte(`"p":0`), Subject: []byte("s.t")}
	}
	f := func(data, want string, kind FaultKind, logged string) {
		t.Helper()
		log = nil
		err := i.Run([]Input{input(`"d":1`), input(data)}, &out)
		if got := kindOf(t, err); got != kind {
			t.Fatalf("%s: %v, want %v, log %q", data, err, kind, log)
		}
		if logged != "" && kind != 0 && !strings.Contains(err.Error(), logged[1:]) {
			t.Errorf("%s: the fault does not quote the guest: %v", data, err)
		}
		if kind == 0 {
			first := `0 s.t  {"p":0,"d":1}{"a":1}`
			if got := show(&out); got != first+"|1 s.t  "+want {
				t.Errorf("%s: %q, want %q", data, got, want)
			}
		}
		if got := strings.Join(log, "|"); !strings.HasPrefix(got, logged) || logged == "" && got != "" {
			t.Errorf("%s: log %q, want %q", data, got, logged)
		}
	}
	f(`"e":2`, `{"p":0,"e":2}{"a":1}`, 0, "")
	f("LOOK", "1760000000123456789 0 0 [] true", 0, "")
	f("KEEP a", "[KEEP a start]", 0, "")
	f("KEEP b", "[KEEP a KEEP b start]", 0, "")
	f("PANIC", "", FaultTrap, "2panic: no idea what to do")
	f("KEEP c", "[KEEP c start]", 0, "") // after the fault: the snapshot
	f("EXIT", "", FaultExit, "")
	f("SPIN", "", FaultFuel, "")
	f("NEST", "", FaultDepth, "")
	f("HOARD", "", FaultTrap, "2runtime: out of memory")
	f("SLEEP", `{"p":0,SLEEP}{"a":1}`, 0, "")
	f("GARBAGE", "67535", 0, "")
	f(`"e":2`, `{"p":0,"e":2}{"a":1}`, 0, "")
	u := i.Usage()
	t.Logf("%+v", u)
	if u.Pages > 64<<20>>16 || u.Fuel == 0 {
		t.Errorf("%+v", u)
	}
}
