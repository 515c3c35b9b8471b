package admit

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero/api"

	w "edge/wasm/wasmtest"
)

// overrun is how many units a guest may execute behind the point where its fuel is used up: one body of leaves.
const overrun = 65_536 * leafInstrs

// Whatever a guest does, it is stopped, and no later than it is promised.
func TestRunaway(t *testing.T) {
	const budget = 1 << 22
	i := w.Types{w.I32}
	f := func(name string, want error, b *w.Builder, args ...uint64) {
		t.Helper()
		h := newHost(t, compilerConfig())
		m := h.open(t, rewrite(t, edge(b).Bytes()).Code)
		_, spent, err := h.call(m, "f", budget, args...)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if h.budget < -overrun {
			t.Errorf("%s: ran on for %d units", name, -h.budget)
		}
		if want == errDeep && (h.deep <= 1<<20 || h.deep > 1<<20+1<<17) {
			t.Errorf("%s: stopped at a depth of %d bytes", name, h.deep)
		}
		t.Logf("%s: %d units, %d refills, depth %d", name, spent, h.refills, h.deep)

		// The instance works on once the host has set the counters again.
		if _, spent, err = h.call(m, "edge_v1_buffer", 100, 1); err != nil || spent != 1 {
			t.Errorf("%s: afterwards %d units, %v", name, spent, err)
		}
	}
	f("empty loop", errFuel, function(nil, nil, nil, w.Loop(w.Void, w.Br(0))))
	f("loop by br_if", errFuel, function(nil, nil, nil, w.Loop(w.Void, w.I32Const(1), w.BrIf(0))))
	f("loop by br_table", errFuel, function(nil, nil, nil, w.Loop(w.Void, w.I32Const(1), w.BrTable([]uint32{1, 0}, 1)), w.Unreachable))
	f("loop with parameters", errFuel, func() *w.Builder {
		b := withMemory()
		sig := b.Type(i, i)
		b.Export("f", b.Func(nil, i, nil, w.I32Const(1), w.Loop(w.Sig(sig), w.I32Const(1), w.I32Add, w.Br(0))))
		return b
	}())
	f("loops that hide in loops", errFuel, function(nil, nil, nil,
		repeat("\x03\x40", 500), w.Br(499), repeat(w.End, 500)))
	f("loop in a loop that ends", errFuel, function(nil, nil, i, w.Loop(w.Void,
		w.I32Const(3), w.LocalSet(0), w.Loop(w.Void, w.LocalGet(0), w.I32Const(1), w.I32Sub, w.LocalTee(0), w.BrIf(0)), w.Br(0))))
	f("loop of calls of a leaf", errFuel, func() *w.Builder {
		b := withMemory()
		leaf := b.Func(nil, nil, nil, repeat(w.Nop, leafInstrs-1))
		b.Export("f", b.Func(nil, nil, nil, w.Loop(w.Void, repeat(w.Call(leaf), 1000), w.Br(0))))
		return b
	}())

	f("recursion", errDeep, function(nil, nil, nil, w.Call(0)))
	f("recursion, large frames", errDeep, function(nil, nil, nil, repeat(w.I64Const(1), 400), w.Call(0), repeat(w.Drop, 400)))
	f("recursion, many locals", errDeep, function(nil, nil, manyTypes(w.I64, 900), w.Call(0)))
	f("recursion, vectors", errDeep, function(nil, nil, manyTypes(w.V128, 900), w.Call(0)))
	f("mutual recursion through the table", errDeep, func() *w.Builder {
		b := withMemory()
		b.Table(2, -1)
		sig := b.Type(i, i)
		one := b.Func(i, i, nil, w.LocalGet(0), w.I32Const(1), w.CallIndirect(sig, 0))
		two := b.Func(i, i, nil, w.LocalGet(0), w.I32Const(0), w.CallIndirect(sig, 0))
		b.Elem(0, one, two)
		b.Export("f", one)
		return b
	}(), 7)
	f("one frame larger than the stack", errDeep, function(nil, nil, manyTypes(w.V128, 1000), repeat(w.V128Const(), 3_000),
		repeat(w.LocalGet(0), 31_000), w.Block(w.Void, w.Call(0)), w.Return))

	f("tree without loops", errFuel, tree(60), 60)
	f("wide tree of leaves", errFuel, func() *w.Builder { // 65,000 calls of 64 instructions a function
		b := withMemory()
		leaf := b.Func(nil, nil, nil, repeat(w.Nop, leafInstrs-1))
		wide := b.Func(nil, nil, nil, repeat(w.Call(leaf), 65_000))
		b.Export("f", b.Func(nil, nil, nil, repeat(w.Call(wide), 65_000)))
		return b
	}())
	f("chain that doubles", errFuel, func() *w.Builder { // function n calls function n-1 twice
		b := withMemory()
		fn := b.Func(nil, nil, nil, w.Nop)
		for range 60 {
			fn = b.Func(nil, nil, nil, w.Call(fn), w.Call(fn))
		}
		b.Export("f", fn)
		return b
	}())

	zero, all := w.I32Const(0), w.I32Const(65536)
	f("fill in a loop", errFuel, function(nil, nil, nil, w.Loop(w.Void, zero, zero, all, w.MemoryFill, w.Br(0))))
	f("fills in a row", errFuel, function(nil, nil, nil, repeat(w.Join(zero, zero, all, w.MemoryFill), 2047)))
	f("copies in a row", errFuel, function(nil, nil, nil, repeat(w.Join(zero, zero, all, w.MemoryCopy), 2047)))
	f("growth by nothing", errFuel, function(nil, nil, nil, w.Loop(w.Void, zero, w.MemoryGrow, w.Drop, w.Br(0))))
	f("growth by too much", errFuel, function(nil, nil, nil, w.Loop(w.Void, w.I32Const(-1), w.MemoryGrow, w.Drop, w.Br(0))))
	f("indirect loop", errFuel, func() *w.Builder {
		b := withMemory()
		b.Table(1, -1)
		sig := b.Type(nil, nil)
		b.Elem(0, b.Func(nil, nil, nil, w.Nop))
		b.Export("f", b.Func(nil, nil, nil, w.Loop(w.Void, zero, w.CallIndirect(sig, 0), w.Br(0))))
		return b
	}())
}

func manyTypes(t w.Type, n int) w.Types {
	out := make(w.Types, n)
	for i := range out {
		out[i] = t
	}
	return out
}

// tree calls itself twice with one less.
func tree(n int32) *w.Builder {
	less := w.Join(w.LocalGet(0), w.I32Const(1), w.I32Sub, w.Call(0))
	return function(w.Types{w.I32}, nil, nil, w.LocalGet(0), w.If(w.Void, less+less, ""))
}

// Stopping happens at the same unit and the same refill each time.
func TestDeterministic(t *testing.T) {
	f := func(b *w.Builder, args ...uint64) {
		t.Helper()
		code := rewrite(t, edge(b).Bytes()).Code
		var first [2]int64
		for n := range 3 {
			h := newHost(t, compilerConfig())
			_, _, err := h.call(h.open(t, code), "f", 1<<22, args...)
			got := [2]int64{h.budget, int64(h.refills)}
			if n == 0 {
				first = got
			}
			if got != first || !errors.Is(err, errFuel) {
				t.Errorf("run %d: %v, %v, first %v", n, got, err, first)
			}
		}
	}
	f(tree(60), 60)
	f(function(nil, nil, nil, w.Loop(w.Void, w.I32Const(0), w.I32Const(0), w.I32Const(1000), w.MemoryFill, w.Br(0))))
}

// A start function runs under the meter while the module is instantiated.
func TestStart(t *testing.T) {
	h := newHost(t, compilerConfig())
	f := func(name string, want error, budget int64, body ...w.Code) {
		t.Helper()
		b := withMemory()
		b.Start(b.Func(nil, nil, nil, body...))
		code := rewrite(t, edge(b).Bytes()).Code
		h.budget = budget
		m, err := h.runtime.Instantiate(ctx, code)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err == nil {
			left := m.ExportedGlobal(FuelGlobal).(api.MutableGlobal).Get()
			if int64(left) != DefaultLimits().StartFuel-102 {
				t.Errorf("%s: %d units left", name, left)
			}
			_ = m.Close(ctx)
		}
	}
	f("good", nil, 0, repeat(w.Nop, 100), w.I32Const(1), w.Drop)
	f("loop", errFuel, 1<<22, w.Loop(w.Void, w.Br(0)))
	f("loop, nothing granted", errFuel, 0, w.Loop(w.Void, w.Br(0)))
}

// The depth is given back on every way out of a function.
func TestDepth(t *testing.T) {
	i := w.Types{w.I32}
	for _, way := range []w.Code{w.Return, w.Br(1), w.I32Const(1) + w.BrIf(1), w.I32Const(0) + w.BrTable(nil, 1), w.Nop} {
		b := withMemory()
		leaf := b.Func(nil, nil, nil)
		exit := b.Func(i, nil, nil, w.Call(leaf), w.LocalGet(0), w.If(w.Void, way, ""))
		b.Export("f", b.Func(i, nil, nil, w.Loop(w.Void, w.LocalGet(0), w.Call(exit),
			w.LocalGet(0), w.I32Const(1), w.I32Sub, w.LocalTee(0), w.BrIf(0))))
		same(t, b, "f", []uint64{20_000})
	}
}

// Functions that return several values leave through the block that wraps them.
func TestSeveralResults(t *testing.T) {
	i := w.Types{w.I32}
	three := w.Types{w.I32, w.I64, w.F64}
	b := withMemory()
	leaf := b.Func(nil, nil, nil)
	values := w.Join(w.I32Const(1), w.I64Const(-2), w.F64Const(2.5))
	other := w.Join(w.I32Const(4), w.I64Const(5), w.F64Const(6.5))
	f := b.Func(i, three, nil, w.Call(leaf), w.LocalGet(0), w.If(w.Void, values+w.Return, ""),
		w.I32Const(9), other, w.LocalGet(0), w.I32Eqz, w.BrIf(0), w.Return)
	b.Export("f", f)
	b.Export("again", b.Func(i, three, nil, w.LocalGet(0), w.Call(f)))
	same(t, b, "f", []uint64{0}, []uint64{1})

}
