package wasm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"edge/wasm/admit"
	"edge/wasm/wasmtest"
)

func TestLoadRefuses(t *testing.T) {
	e := engine(t)
	f := func(name string, module []byte, change func(*Limits), want string) {
		t.Helper()
		lim := DefaultLimits()
		if change != nil {
			change(&lim)
		}
		_, err := e.Load(context.Background(), module, lim)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		var ae *admit.Error
		var le *LoadError
		if !errors.As(err, &ae) && !errors.As(err, &le) {
			t.Errorf("%s: error of type %T", name, err)
		}
	}
	echo := wasmtest.Echo()
	f("nothing", nil, nil, "admit")
	f("garbage", []byte("hello"), nil, "admit")
	f("too large", echo, func(l *Limits) { l.Module = len(echo) - 1 }, "admit")
	f("memory", echo, func(l *Limits) { l.Memory = 7 * 65536 }, "memory")
	f("no limit", echo, func(l *Limits) { l.Fuel = 0 }, "limit fuel")
	f("negative limit", echo, func(l *Limits) { l.Time = -1 }, "limit time")
	f("absurd limit", echo, func(l *Limits) { l.Batch = maxBytes + 1 }, "limit batch")
	f("batch below input", echo, func(l *Limits) { l.Input = l.Batch + 1 }, "limit input")
	// well formed for admission, but its operands do not fit: the compiler refuses it
	f("types", wasmtest.Guest(wasmtest.I64Const(1)+wasmtest.LocalSet(wasmtest.Temp)), nil, "compile module")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Load(ctx, echo, DefaultLimits()); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// guest is an echo with more: what a module may do before its first event.
func guest(extra func(b *wasmtest.Builder)) []byte { return wasmtest.Parts{Extra: extra}.Bytes() }

func start(body wasmtest.Code) []byte {
	return guest(func(b *wasmtest.Builder) { b.Start(b.Func(nil, nil, nil, body)) })
}

func initialize(body wasmtest.Code) []byte {
	return guest(func(b *wasmtest.Builder) { b.Export("_initialize", b.Func(nil, nil, nil, body)) })
}

func TestNewInstanceRefuses(t *testing.T) {
	f := func(name string, module []byte, config string, stage Stage, kind FaultKind, code uint32) {
		t.Helper()
		lim := DefaultLimits()
		lim.LoadFuel = 3 << 20
		m, err := engine(t).Load(context.Background(), module, lim)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = m.NewInstance(context.Background(), InstanceConfig{Config: []byte(config)})
		var le *LoadError
		if !errors.As(err, &le) || le.Stage != stage || le.Code != code {
			t.Fatalf("%s: %v, want stage %q and code %d", name, err, stage, code)
		}
		var fault *Fault
		if errors.As(err, &fault); kindOfFault(fault) != kind {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
		if m.uses != 0 {
			t.Errorf("%s: %d instances are open", name, m.uses)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	spin := wasmtest.Loop(wasmtest.Void, wasmtest.Br(0))
	f("start spins", start(spin), "", StageInstantiate, FaultFuel, 0)
	f("start traps", start(wasmtest.Unreachable), "", StageInstantiate, FaultTrap, 0)
	f("initialize spins", initialize(spin), "", StageInitialize, FaultFuel, 0)
	f("initialize traps", initialize(wasmtest.Unreachable), "", StageInitialize, FaultTrap, 0)
	f("config refused", wasmtest.EchoConfig(), "X", StageConfig, 0, 7)
	f("config traps", wasmtest.EchoConfig(), "T", StageConfig, FaultTrap, 0)
	f("config not taken", wasmtest.Echo(), `{"a":1}`, StageConfig, 0, 0)
	f("config too large", wasmtest.EchoConfig(), strings.Repeat(" ", 8<<20+1), StageConfig, 0, 0)
	buffer := func(answer int32) []byte {
		b := wasmtest.New()
		b.Memory(1, 1)
		b.ExportMemory("memory")
		b.Export("edge_v1_buffer", b.Func(wasmtest.Types{wasmtest.I32}, wasmtest.Types{wasmtest.I32}, nil, wasmtest.I32Const(answer)))
		b.Export("edge_v1_run", b.Func(wasmtest.Types{wasmtest.I32, wasmtest.I32}, wasmtest.Types{wasmtest.I64}, nil, wasmtest.I64Const(0)))
		return b.Bytes()
	}
	f("buffer not aligned", buffer(12), "", StageSnapshot, FaultFrame, 0)
	f("buffer outside memory", buffer(65536), "", StageSnapshot, FaultFrame, 0)
	f("buffer wraps", buffer(-8), "", StageSnapshot, FaultFrame, 0)

	// A guest that has no buffer now may have one later.
	i := open(t, buffer(0), InstanceConfig{})
	if err := i.Run(events("a"), new(Output)); kindOf(t, err) != FaultRefused {
		t.Errorf("no buffer: %v", err)
	}
}

func TestConfig(t *testing.T) {
	f := func(config, want string) {
		t.Helper()
		i := open(t, wasmtest.EchoConfig(), InstanceConfig{Config: []byte(config)})
		var out Output
		for range 2 { // a reset keeps the configuration
			if err := i.Run(events("a"), &out); err != nil {
				t.Fatal(err)
			}
			if got := string(out.Records[0].Payload); got != want {
				t.Errorf("%q: %q, want %q", config, got, want)
			}
			if err := i.Reset(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f(`{"a":1}`, `{"a":1}`)
	f("", "{}")
	open(t, wasmtest.Echo(), InstanceConfig{Config: []byte("{}")})
	open(t, wasmtest.Echo(), InstanceConfig{Config: []byte("null")})
}

// What a start function and _initialize did is part of the snapshot, also after the memory was made anew.
func TestSnapshot(t *testing.T) {
	const mark = wasmtest.Scratch + 100
	count := wasmtest.I32Const(mark) + wasmtest.I32Const(mark) + wasmtest.I32Load(0) + wasmtest.I32Const(1) + wasmtest.I32Add + wasmtest.I32Store(0)
	f := func(name string, grow int32, extra func(b *wasmtest.Builder), rebuilt bool) {
		t.Helper()
		module := wasmtest.Parts{
			Extra: func(b *wasmtest.Builder) {
				b.Start(b.Func(nil, nil, nil, count))
				b.Export("_initialize", b.Func(nil, nil, nil, count+wasmtest.I32Const(grow)+wasmtest.MemoryGrow+wasmtest.Drop))
				if extra != nil {
					extra(b)
				}
			},
			Hook: wasmtest.OnX(wasmtest.I32Const(1)+wasmtest.MemoryGrow+wasmtest.Drop+count+wasmtest.Unreachable) +
				wasmtest.Message(0, wasmtest.I32Const(mark), wasmtest.I32Const(4)) + wasmtest.I32Const(1) + wasmtest.LocalSet(wasmtest.Skip),
		}.Bytes()
		i := open(t, module, InstanceConfig{})
		pages := i.Usage().Pages
		var out Output
		for range 3 {
			if err := i.Run(events("a"), &out); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if p := string(out.Records[0].Payload); p != "\x02\x00\x00\x00" {
				t.Errorf("%s: %q", name, p)
			}
			if i.Usage().Pages != pages {
				t.Errorf("%s: %d pages, at first %d", name, i.Usage().Pages, pages)
			}
			if err := i.Run(events("X"), &out); kindOf(t, err) != FaultTrap {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if n := i.Usage().Rebuilds; n != 3 {
			t.Errorf("%s: %d rebuilds", name, n)
		}
		if (i.snap.image == nil) != rebuilt {
			t.Errorf("%s: image %v", name, i.snap.image)
		}
	}
	f("simple", 0, nil, false)
	f("grown before the snapshot", 9, nil, false)
	f("table changes", 2, func(b *wasmtest.Builder) {
		b.Table(2, 2)
		b.Func(nil, nil, nil, wasmtest.I32Const(0), wasmtest.RefNull(wasmtest.FuncRef), wasmtest.TableSet(0))
	}, true)
}

// The copy serves where nothing can be mapped.
func TestImageCopies(t *testing.T) {
	m := newMemory(4 * 65536)
	defer m.Free()
	m.Reallocate(2 * 65536)
	copy(m.buf[65530:], "0123456789")
	im := &image{size: len(m.buf), data: append([]byte{}, m.buf...)}
	f := func(m *memory, back func(*memory) error) {
		t.Helper()
		if err := back(m); err != nil {
			t.Fatal(err)
		}
		if string(m.buf[65530:65540]) != "0123456789" || m.buf[0] != 0 {
			t.Errorf("%q", m.buf[65530:65540])
		}
	}
	copy(m.buf, "xxx")
	clear(m.buf[65530:])
	f(m, im.restore)
	fresh := newMemory(4 * 65536)
	defer fresh.Free()
	fresh.Reallocate(2 * 65536)
	f(fresh, im.adopt)
}

func TestImage(t *testing.T) {
	m := newMemory(4 * 65536)
	defer m.Free()
	m.Reallocate(2 * 65536)
	copy(m.buf[65530:], "0123456789")
	im := takeImage(m)
	defer im.close()
	if runtime.GOOS == "linux" && im.data != nil {
		t.Error("the image was copied; it can be mapped here")
	}
	for range 3 {
		copy(m.buf[65530:], "xxxxxxxxxxxxxxxx")
		m.buf[0] = 1
		if err := im.restore(m); err != nil {
			t.Fatal(err)
		}
		if got := string(m.buf[65530:65541]); got != "0123456789\x00" || m.buf[0] != 0 {
			t.Errorf("%q", got)
		}
	}
	if b := m.Reallocate(3 * 65536); len(b) != 3*65536 || &b[0] != &m.res[0] || string(b[65530:65540]) != "0123456789" || b[3*65536-1] != 0 {
		t.Error("growth behind an image")
	}
	if m.Reallocate(5*65536) != nil || m.Reallocate(65536) != nil {
		t.Error("a size that can not be")
	}
}

func TestCacheDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "modules")
	load := func() {
		t.Helper()
		e, err := NewEngine(EngineConfig{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		i := openWith(t, e, wasmtest.Echo(), InstanceConfig{})
		if err := i.Run(events("a"), new(Output)); err != nil {
			t.Fatal(err)
		}
	}
	load()
	load()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || compiles && len(files) == 0 {
		t.Errorf("%d files in the cache, %v", len(files), err)
	}
	for _, file := range files { // damage costs time, not the module
		for _, content := range []string{"", "garbage", "WAZEVO"} {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			load()
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := NewEngine(EngineConfig{CacheDir: dir}); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory that others may write: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewEngine(EngineConfig{CacheDir: file}); err == nil {
		t.Error("a file as a directory")
	}
}
