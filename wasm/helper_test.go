package wasm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// engine returns an engine without a cache.
func engine(t testing.TB) *Engine {
	t.Helper()
	e, err := NewEngine(EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// open makes an instance that is closed with the test. change may adjust the limits.
func open(t testing.TB, module []byte, cfg InstanceConfig, change ...func(*Limits)) *Instance {
	t.Helper()
	return openWith(t, engine(t), module, cfg, change...)
}

func openWith(t testing.TB, e *Engine, module []byte, cfg InstanceConfig, change ...func(*Limits)) *Instance {
	t.Helper()
	lim := DefaultLimits()
	for _, c := range change {
		c(&lim)
	}
	m, err := e.Load(context.Background(), module, lim)
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.NewInstance(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(i.Close(), m.Close()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// compiles says whether wazero has a compiler for this processor; elsewhere it interprets.
const compiles = runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"

// events makes a batch of events that have nothing but data.
func events(data ...string) []Input {
	var in []Input
	for k, d := range data {
		in = append(in, Input{IngestTime: int64(1000 + k), Data: []byte(d)})
	}
	return in
}

// show writes records as "index subject headers payload", a reject with a '!'.
func show(out *Output) string {
	var s []string
	for _, r := range out.Records {
		kind := ""
		if r.Reject {
			kind = "!"
		}
		s = append(s, fmt.Sprintf("%d%s %s %s %s", r.Index, kind, r.Subject, r.Headers, r.Payload))
	}
	return strings.Join(s, "|")
}

// kindOf answers the kind of fault in an error of Run, zero for none.
func kindOf(t testing.TB, err error) FaultKind {
	t.Helper()
	if err == nil {
		return 0
	}
	var f *Fault
	if !errors.As(err, &f) {
		t.Fatalf("not a fault: %v", err)
	}
	return f.Kind
}
