package envelope_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"edge/wasm"
)

// modules are the two guests, admitted and compiled as an agent does it.
var modules struct{ c, golang *wasm.Module }

func TestMain(m *testing.M) {
	code, err := withModules(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withModules builds the Go guest, loads both, and runs f.
func withModules(f func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "envelope-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "envelope.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./go")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the Go module: %w\n%s", err, b)
	}
	engine, err := wasm.NewEngine(wasm.EngineConfig{})
	if err != nil {
		return 0, err
	}
	defer engine.Close()
	for _, x := range []struct {
		module **wasm.Module
		path   string
		memory int
	}{{&modules.c, "c/envelope.wasm", 16 << 20}, {&modules.golang, out, 64 << 20}} {
		binary, err := os.ReadFile(x.path)
		if err != nil {
			return 0, err
		}
		lim := wasm.DefaultLimits()
		lim.Memory, lim.Fuel = x.memory, 1<<30            // TestLinear looks at what is used
		lim.Time, lim.LoadTime = time.Minute, time.Minute // no test depends on the clock
		if *x.module, err = engine.Load(context.Background(), binary, lim); err != nil {
			return 0, fmt.Errorf("load %s: %w", x.path, err)
		}
		defer (*x.module).Close()
	}
	return f(), nil
}

type input struct{ data, prefix, subject string }

type output struct {
	index                     uint32
	reject                    bool
	subject, headers, payload string
}

// guest is one instance.
type guest struct {
	instance *wasm.Instance
	in       []wasm.Input
	out      wasm.Output
}

// open makes an instance with this configuration; "" is none.
func open(tb testing.TB, m *wasm.Module, config string) (*guest, error) {
	instance, err := m.NewInstance(context.Background(), wasm.InstanceConfig{Config: []byte(config)})
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { instance.Close() })
	return &guest{instance: instance}, nil
}

func load(tb testing.TB, m *wasm.Module, config string) *guest {
	tb.Helper()
	g, err := open(tb, m, config)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// run gives one batch to the guest; its records are in out.
func (g *guest) run(in []input) error {
	g.in = g.in[:0]
	for _, e := range in {
		g.in = append(g.in, wasm.Input{Data: []byte(e.data), Prefix: []byte(e.prefix), Subject: []byte(e.subject)})
	}
	return g.instance.Run(g.in, &g.out)
}

// call is run with records that can be compared.
func (g *guest) call(in []input) (out []output, err error) {
	if err := g.run(in); err != nil {
		return nil, err
	}
	for _, r := range g.out.Records {
		out = append(out, output{r.Index, r.Reject, string(r.Subject), string(r.Headers), string(r.Payload)})
	}
	return out, nil
}
