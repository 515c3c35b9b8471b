package admit

import (
	"errors"
	"strings"
	"testing"

	w "edge/wasm/wasmtest"
)

// Counted by hand: one unit per instruction; "end" and "else" are none; "loop" counts in each round.
func TestUnits(t *testing.T) {
	f := func(name string, want int64, b *w.Builder, args ...uint64) {
		t.Helper()
		if got := same(t, b, "f", args); got != want {
			t.Errorf("%s: %d units, want %d", name, got, want)
		}
	}
	i, ii := w.Types{w.I32}, w.Types{w.I32, w.I32}
	pad := w.Join(repeat(w.Nop, 100)) // too many instructions for a leaf
	f("nothing", 0, function(nil, nil, nil))
	f("three", 3, function(nil, i, nil, w.I32Const(1), w.I32Const(2), w.I32Add))
	f("three and more", 103, function(nil, i, nil, pad, w.I32Const(1), w.I32Const(2), w.I32Add))
	f("dead code", 1, function(nil, nil, nil, w.Return, w.Nop, w.Nop))
	f("dead code, not leaf", 101, function(nil, nil, nil, pad, w.Return, w.Nop, w.Loop(w.Void, w.Br(0))))

	sides := w.Join(w.LocalGet(0), w.If(w.Of(w.I32), w.Join(w.I32Const(1), w.I32Const(2), w.I32Add), w.I32Const(9)))
	f("then", 5, function(i, i, nil, sides), 1)
	f("else", 3, function(i, i, nil, sides), 0)
	f("then, not leaf", 105, function(i, i, nil, pad, sides), 1)
	f("else, not leaf", 103, function(i, i, nil, pad, sides), 0)
	noElse := w.Join(w.LocalGet(0), w.If(w.Void, w.Nop+w.Nop, ""), w.Nop)
	f("if taken", 5, function(i, nil, nil, noElse), 1)
	f("if not taken", 3, function(i, nil, nil, noElse), 0)

	// block, get, br_if taken: 3, nop behind: 1. Not taken: two nops more.
	skip := w.Join(w.Block(w.Void, w.LocalGet(0), w.BrIf(0), w.Nop, w.Nop), w.Nop)
	f("branch over", 4, function(i, nil, nil, skip), 1)
	f("branch not taken", 6, function(i, nil, nil, skip), 0)
	f("early return", 3, function(i, nil, nil, w.LocalGet(0), w.If(w.Void, w.Return, ""), pad), 1)
	f("no early return", 102, function(i, nil, nil, w.LocalGet(0), w.If(w.Void, w.Return, ""), pad), 0)
	f("branch out of the function", 2, function(i, nil, nil, w.LocalGet(0), w.BrIf(0), pad), 1)
	f("no branch out", 102, function(i, nil, nil, w.LocalGet(0), w.BrIf(0), pad), 0)

	// A loop that counts down from n: loop, get, const, sub, tee, br_if = 6 a round.
	count := w.Loop(w.Void, w.LocalGet(0), w.I32Const(1), w.I32Sub, w.LocalTee(0), w.BrIf(0))
	f("one round", 6, function(i, nil, nil, count), 1)
	f("ten rounds", 60, function(i, nil, nil, count), 10)
	f("more than a slice", 6<<20, function(i, nil, nil, count), 1<<20)
	f("block around", 62, function(i, nil, nil, w.Block(w.Void, count), w.Nop), 10)

	// Switch: block*3, get, br_table = 5; arm 0: const, set, br = 3; arm 1: const, set = 2; default: none. Then get.
	table := w.Join(
		w.Block(w.Void, w.Block(w.Void, w.Block(w.Void, w.LocalGet(0), w.BrTable([]uint32{0, 1}, 2)),
			w.I32Const(10), w.LocalSet(1), w.Br(1)),
			w.I32Const(20), w.LocalSet(1)),
		w.LocalGet(1))
	f("arm 0", 9, function(i, i, i, table), 0)
	f("arm 1", 8, function(i, i, i, table), 1)
	f("default", 6, function(i, i, i, table), 77)

	// Calls: the callee's units are its own.
	b := withMemory()
	leaf := b.Func(ii, i, nil, w.LocalGet(0), w.LocalGet(1), w.I32Add)
	mid := b.Func(i, i, nil, w.LocalGet(0), w.LocalGet(0), w.Call(leaf))
	b.Export("f", b.Func(i, i, nil, w.LocalGet(0), w.Call(mid), w.LocalGet(0), w.Call(leaf)))
	f("calls", 4+3*3, b, 5)
}

// repeat returns n copies of a piece of code.
func repeat(c w.Code, n int) w.Code { return w.Code(strings.Repeat(string(c), n)) }

// fib(n) = n < 2 ? n : fib(n-1) + fib(n-2): 5 units at a leaf of the tree of calls, 13 inside.
func TestFibonacci(t *testing.T) {
	b := withMemory()
	i := w.Types{w.I32}
	b.Export("f", b.Func(i, i, nil, w.LocalGet(0), w.I32Const(2), w.I32LtS,
		w.If(w.Of(w.I32), w.LocalGet(0), w.Join(
			w.LocalGet(0), w.I32Const(1), w.I32Sub, w.Call(0), w.LocalGet(0), w.I32Const(2), w.I32Sub, w.Call(0), w.I32Add))))
	// 1,973 calls for fib(15): 987 leaves of the tree and 986 inside.
	if got, want := same(t, b, "f", []uint64{15}), int64(987*5+986*13); got != want {
		t.Errorf("%d units, want %d", got, want)
	}
}

// Bulk instructions pay for their length, before they are executed.
func TestBulkUnits(t *testing.T) {
	f := func(name string, want int64, body w.Code, args ...uint64) {
		t.Helper()
		b := w.New()
		b.Memory(2, 4)
		b.Table(100, -1)
		b.PassiveData("0123456789012345678901234567890123456789")
		b.Export("f", b.Func(w.Types{w.I32}, nil, nil, body))
		b.PassiveElem(0, 0, 0)
		if got := same(t, b, "f", args); got != want {
			t.Errorf("%s: %d units, want %d", name, got, want)
		}
	}
	zero, n := w.I32Const(0), w.LocalGet(0)
	f("fill nothing", 4, w.Join(zero, zero, n, w.MemoryFill), 0)
	f("fill 31", 4, w.Join(zero, zero, n, w.MemoryFill), 31)
	f("fill 32", 5, w.Join(zero, zero, n, w.MemoryFill), 32)
	f("fill all", 4+2048, w.Join(zero, w.I32Const(7), n, w.MemoryFill), 65536)
	f("copy", 4+1024, w.Join(w.I32Const(100), zero, n, w.MemoryCopy), 32768)
	f("init", 5, w.Join(zero, zero, n, w.MemoryInit(0)), 40)
	f("drop", 1, w.DataDrop(0), 0)
	f("table init", 4, w.Join(zero, zero, n, w.TableInit(0, 0)), 3)
	f("table copy", 6, w.Join(zero, zero, n, w.TableCopy), 64)
	f("table fill", 7, w.Join(zero, w.RefNull(w.FuncRef), n, w.TableFill), 99)
	f("elem drop", 1, w.ElemDrop(0), 0)
	f("grow by nothing", 3+1024, w.Join(n, w.MemoryGrow, w.Drop), 0)
	f("grow by two", 3+2048, w.Join(n, w.MemoryGrow, w.Drop), 2)
	f("grow by too many", 3+4096, w.Join(n, w.MemoryGrow, w.Drop), 4)
	f("grow by far too many", 3+1024, w.Join(n, w.MemoryGrow, w.Drop), 5)
	f("grow by 2^32-1", 3+1024, w.Join(n, w.MemoryGrow, w.Drop), 1<<32-1)
	f("dead", 1, w.Join(w.Return, zero, zero, n, w.MemoryFill, n, w.MemoryGrow, w.Drop), 9)
}

// A length that traps is charged like any other; nothing overflows.
func TestBulkTraps(t *testing.T) {
	h := newHost(t, compilerConfig())
	b := function(w.Types{w.I32}, nil, nil, w.I32Const(0), w.I32Const(0), w.LocalGet(0), w.MemoryFill)
	m := h.open(t, rewrite(t, edge(b).Bytes()).Code)
	if _, _, err := h.call(m, "f", 1<<24, 1<<32-1); !errors.Is(err, errFuel) {
		t.Errorf("2^32-1 bytes within 2^24 units: %v", err)
	}
	if _, _, err := h.call(m, "f", 1<<40, 1<<32-1); err == nil || errors.Is(err, errFuel) {
		t.Errorf("2^32-1 bytes within 2^40 units: %v", err)
	}
}
