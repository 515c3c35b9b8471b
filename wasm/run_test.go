package wasm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"edge/wasm/wasmtest"
)

func TestRun(t *testing.T) {
	f := func(name string, module []byte, want string) {
		t.Helper()
		i := open(t, module, InstanceConfig{})
		var out Output
		for range 3 {
			if err := i.Run(events("a", "", "Xyz"), &out); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := show(&out); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if err := i.Run(nil, &out); err != nil || len(out.Records) != 0 {
			t.Errorf("%s: empty batch: %v, %d records", name, err, len(out.Records))
		}
	}
	f("echo", wasmtest.Echo(), "0 edge.test  a|1 edge.test  |2 edge.test  Xyz")
	f("reject", wasmtest.RejectX(), "0 edge.test  a|1 edge.test  |2!   begins with X")
	f("drop", wasmtest.DropX(), "0 edge.test  a|1 edge.test  ")
	f("fan-out", wasmtest.FanOutX(), "0 edge.test  a|1 edge.test  |2 edge.test  Xyz|2 edge.test  Xyz")
	f("grow", wasmtest.GrowX(), "0 edge.test  a|1 edge.test  |2 edge.test  Xyz")
}

// Whatever a guest does at 'X', nothing of that run is left, and the next run answers as the first one did.
func TestFaults(t *testing.T) { testFaults(t, engine(t), !compiles) }

// Where wazero has no compiler, it interprets. Everything holds there too.
func TestFaultsInterpreted(t *testing.T) {
	e := engine(t)
	e.runtime = wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2)
	testFaults(t, e, true)
}

func testFaults(t *testing.T, e *Engine, interpreted bool) {
	f := func(name string, module []byte, want FaultKind, rebuilds uint64) {
		t.Helper()
		i := openWith(t, e, module, InstanceConfig{}, func(l *Limits) { l.Fuel, l.Time = 3<<20, 10*time.Second })
		var out Output
		for range 3 {
			began := time.Now()
			err := i.Run(events("a", "b", "Xyz", "c"), &out)
			if got := kindOf(t, err); got != want {
				t.Fatalf("%s: %v, want %v", name, err, want)
			}
			if len(out.Records) != 0 {
				t.Errorf("%s: %d records are left of a faulty run", name, len(out.Records))
			}
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("%s: stopped after %v", name, d)
			}
			if err := i.Run(events("a", "b"), &out); err != nil {
				t.Fatalf("%s: a good run after the fault: %v", name, err)
			}
			if got := show(&out); got != "0 edge.test  a|1 edge.test  b" {
				t.Errorf("%s: a good run after the fault: %q", name, got)
			}
		}
		if u := i.Usage(); u.Resets != 3 || u.Rebuilds != rebuilds && !(interpreted && want == FaultDepth) {
			t.Errorf("%s: %+v, want 3 resets, %d rebuilds", name, u, rebuilds)
		}
	}
	f("trap", wasmtest.TrapX(), FaultTrap, 0)
	f("store", wasmtest.OutOfBoundsX(), FaultMemory, 0)
	f("spin", wasmtest.SpinX(), FaultFuel, 0)
	f("recurse", wasmtest.RecurseX(), FaultDepth, 0)
	f("tree", wasmtest.ExpTreeX(), FaultFuel, 0)
	f("fill", wasmtest.FillX(), FaultFuel, 0)
	f("wild", wasmtest.WildResultX(), FaultFrame, 0)
	f("lying", wasmtest.LyingRecordX(), FaultRecord, 0)
	grow := wasmtest.OnX(wasmtest.Join(wasmtest.I32Const(1), wasmtest.MemoryGrow, wasmtest.Drop, wasmtest.Unreachable))
	f("grow and trap", wasmtest.Guest(grow), FaultTrap, 3)
}

func TestFaultTellsWhere(t *testing.T) {
	f := func(name string, module []byte, in []Input, event, progress int, detail string) {
		t.Helper()
		i := open(t, module, InstanceConfig{}, func(l *Limits) { l.Input = 100 })
		err := i.Run(in, new(Output))
		var f *Fault
		if !errors.As(err, &f) || f.Event != event || f.Progress != progress || !strings.Contains(f.Detail, detail) {
			t.Errorf("%s: %+v", name, err)
		}
	}
	f("trap", wasmtest.TrapX(), events("a", "b", "X"), -1, 2, "unreachable")
	f("recurse", wasmtest.RecurseX(), events("a", "X"), -1, 1, "stack")
	f("lying", wasmtest.LyingRecordX(), events("a", "X"), 1, -1, "lengths")
	f("input", wasmtest.Echo(), events("a", strings.Repeat("b", 101)), 1, -1, "limits.input")
}

// State that a fault leaves behind in memory and globals is gone after it; after a good run it may stay.
func TestReset(t *testing.T) {
	i := open(t, wasmtest.CountEvents(), InstanceConfig{})
	var out Output
	next := func(want byte) {
		t.Helper()
		if err := i.Run(events("a"), &out); err != nil {
			t.Fatal(err)
		}
		if p := out.Records[0].Payload; p[0] != want || p[4] != want {
			t.Fatalf("global %d, memory %d, want %d", p[0], p[4], want)
		}
	}
	next(1)
	next(2)
	for range 3 {
		if err := i.Reset(); err != nil {
			t.Fatal(err)
		}
		next(1)
	}
	if u := i.Usage(); u.Resets != 3 || u.Rebuilds != 0 {
		t.Errorf("%+v", u)
	}
	// a frame that makes the memory grow: the snapshot's size is exceeded
	if err := i.Run(events(strings.Repeat("z", 1<<20)), &out); err != nil {
		t.Fatal(err)
	}
	before := i.Usage().Pages
	if err := i.Reset(); err != nil {
		t.Fatal(err)
	}
	next(1)
	if u := i.Usage(); u.Rebuilds != 1 || u.Pages >= before {
		t.Errorf("%+v, before the reset %d pages", u, before)
	}
}

// The limits of the frame and of the records, one below and one above.
func TestLimits(t *testing.T) {
	f := func(name string, change func(*Limits), module []byte, in []Input, want FaultKind) {
		t.Helper()
		i := open(t, module, InstanceConfig{}, change)
		if err := i.Run(in, new(Output)); kindOf(t, err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	echo, twice := wasmtest.Echo(), wasmtest.FanOutX()
	sized := func(batch int) func(*Limits) {
		return func(l *Limits) { l.Batch, l.Input, l.Output = batch, min(batch, 50), min(batch, 80) }
	}
	ten := strings.Repeat("x", 10)
	f("frame fits", sized(3*74), echo, events(ten, ten, ten), 0)
	f("frame too large", sized(3*74-1), echo, events(ten, ten, ten), FaultInput)
	f("data fits", sized(1000), echo, events(strings.Repeat("x", 50)), 0)
	f("data too large", sized(1000), echo, events(strings.Repeat("x", 51)), FaultInput)
	f("output fits", func(l *Limits) { l.Output = 19 }, echo, events(ten), 0)
	f("output too large", func(l *Limits) { l.Output = 18 }, echo, events(ten), FaultOutput)
	f("two records", func(l *Limits) { l.Records = 2 }, twice, events("a", "X"), 0)
	f("two records too many", func(l *Limits) { l.Records = 1 }, twice, events("a", "X"), FaultOutput)
	f("records too large", sized(90), wasmtest.Guest(wasmtest.Join(big, big)), events("a"), FaultOutput)
	f("no memory to give", func(l *Limits) { l.Memory = 8 * 65536 }, echo, events(strings.Repeat("x", 500_000)), FaultRefused)
	f("fuel", func(l *Limits) { l.Fuel, l.FuelByte = 1000, 1 }, counting, events("a"), FaultFuel)
	f("fuel of further events", func(l *Limits) { l.Fuel, l.FuelNext, l.FuelByte = 6000, 1, 1 }, counting, events("a", "b", "c", "d"), FaultFuel)
	f("fuel of bytes", func(l *Limits) { l.Fuel, l.FuelByte = 1000, 100 }, counting, events("a"), 0)
	f("time", func(l *Limits) { l.Fuel, l.Time = maxFuel, time.Millisecond }, wasmtest.Spin(), events("a"), FaultTime)
}

var big = wasmtest.Message(0, wasmtest.I32Const(0), wasmtest.I32Const(30))

// The same module and events use the same fuel to the unit, wherever the slices end, and a budget of exactly so
// much is enough while one unit less is not.
func TestFuelIsExact(t *testing.T) {
	f := func(name string, module []byte, in []Input) {
		t.Helper()
		i := open(t, module, InstanceConfig{}, func(l *Limits) { l.Fuel, l.Memory, l.Time = 1<<28, 32<<20, 10*time.Second })
		var out Output
		if err := i.Run(in, &out); err != nil { // the buffer has its size now
			t.Fatal(err)
		}
		if err := i.Run(in, &out); err != nil {
			t.Fatal(err)
		}
		used := i.Usage().Fuel
		for _, c := range []struct {
			fuel int64
			want FaultKind
		}{{used, 0}, {used - 1, FaultFuel}} {
			size, _ := frameSize(in, &i.m.lim)
			i.m.lim.Fuel, i.m.lim.FuelByte = c.fuel-int64(len(in)-1)*i.m.lim.FuelNext-int64(size), 1
			err := i.Run(in, &out)
			if got := kindOf(t, err); got != c.want || got == 0 && i.Usage().Fuel != used {
				t.Errorf("%s: %d of %d units: %v, used %d", name, c.fuel, used, err, i.Usage().Fuel)
			}
		}
		if used < 50 {
			t.Errorf("%s: %d units", name, used)
		}
	}
	f("echo", wasmtest.Echo(), events("a", "b"))
	f("counting", counting, events("a", "b"))
	f("many slices", wasmtest.Guest(wasmtest.Join(wasmtest.I32Const(1_000_000), wasmtest.LocalSet(wasmtest.Temp), countDown)), events("a", "b", "c"))
	f("large copies", wasmtest.Echo(), events(strings.Repeat("a", 1<<19), strings.Repeat("b", 1<<19)))
}

// counting spends some 4,000 units at each event.
var counting = wasmtest.Guest(wasmtest.Join(wasmtest.I32Const(1000), wasmtest.LocalSet(wasmtest.Temp), countDown))

var countDown = wasmtest.Loop(wasmtest.Void, wasmtest.LocalGet(wasmtest.Temp), wasmtest.I32Const(1), wasmtest.I32Sub,
	wasmtest.LocalTee(wasmtest.Temp), wasmtest.BrIf(0))

func TestRunDoesNotAllocate(t *testing.T) {
	i := open(t, wasmtest.Echo(), InstanceConfig{})
	in, out := events("a", "b", "c", "d"), new(Output)
	run := func() {
		if err := i.Run(in, out); err != nil {
			t.Fatal(err)
		}
	}
	run()
	want := 0.0
	if !compiles {
		want = 1 // the interpreter's own, for a call with results
	}
	if n := testing.AllocsPerRun(100, run); n > want {
		t.Errorf("%v allocations in a run", n)
	}
}

// An instance is one goroutine's. Its log function is called in the middle of a run.
func TestTwoAtOnce(t *testing.T) {
	var i *Instance
	i = open(t, wasmtest.LogX(), InstanceConfig{Log: func(int, []byte) { i.Reset() }})
	err := i.Run(events("X"), new(Output))
	if kindOf(t, err) != FaultHost || !strings.Contains(err.Error(), "BUG") {
		t.Fatalf("a reset inside a run: %v", err)
	}
	if err := i.Run(events("a"), new(Output)); err != nil {
		t.Fatal(err)
	}
}

// A bug of ours is not the guest's trap.
func TestHostBug(t *testing.T) {
	f := func(name string, bug func()) {
		t.Helper()
		i := open(t, wasmtest.LogX(), InstanceConfig{Log: func(int, []byte) { bug() }})
		if err := i.Run(events("X"), new(Output)); kindOf(t, err) != FaultHost {
			t.Errorf("%s: %v", name, err)
		}
		if err := i.Run(events("a"), new(Output)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f("nil map", func() { map[string]map[string]int{}["a"]["b"] = 1 })
	f("index", func() { _ = make([]int, 0)[len(name())] })
	f("text", func() { panic("no idea") })
	f("error", func() { panic(errors.New("no idea")) })
}

func name() string { return "x" }

// An instance that can not be made anew says so with another error than a fault, and recovers when it can.
func TestResetFails(t *testing.T) {
	i := open(t, wasmtest.TrapX(), InstanceConfig{})
	code := i.m.code
	rt := i.m.runtime
	i.mod.Close(i.ctx)
	i.mod, i.m.code = nil, nil // what wazero answers to nil is a panic: even that is an error
	err := i.Run(events("a"), new(Output))
	var re *ResetError
	var f *Fault
	if !errors.As(err, &re) || errors.As(err, &f) {
		t.Fatalf("without code: %v", err)
	}
	i.m.code, i.m.runtime = code, rt
	if err := i.Run(events("a"), new(Output)); err != nil {
		t.Fatal(err)
	}
}
