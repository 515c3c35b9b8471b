package admit

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	w "edge/wasm/wasmtest"
)

// ordered says what the comparison number op, from eq to ge_u, gives for two numbers of some width.
func ordered(op int, s, t int64, x, y uint64) bool {
	return []bool{s == t, s != t, s < t, x < y, s > t, x > y, s <= t, x <= y, s >= t, x >= y}[op]
}

// Found by TestRandomPrograms, where the compiler took the other branch and so other units than the interpreter:
// 0 < (x & x) followed by an if. Here is every comparison of a mask with zero, the zero on each side, on every way
// that it takes into a branch. What must come out is computed in Go.
func TestMasksAndZero(t *testing.T) {
	none := w.Code("")
	for _, wide := range []bool{false, true} {
		typ, zero, and, shift, first := w.I32, w.I32Const(0), w.I32And, w.I32Const(32)+w.I32Shl, 0x46
		if wide {
			typ, zero, and, shift, first = w.I64, w.I64Const(0), w.I64And, w.I64Const(64)+w.I64ShrU, 0x51
		}
		mask := w.Join(w.LocalGet(0), w.LocalGet(1), and)
		unset := w.LocalGet(3) // a local that nobody has set is zero
		b := withMemory()
		pair := b.Type(w.Types{typ, typ}, w.Types{w.I32})
		type test struct {
			name string
			op   int
			swap bool
		}
		var tests []test
		for op := range 10 {
			cmp := w.Code([]byte{byte(first + op)})
			for way, code := range []w.Code{
				zero + mask + cmp,
				mask + zero + cmp,
				unset + mask + cmp,
				mask + unset + cmp,
				zero + mask + w.LocalTee(2) + cmp,
				zero + mask + w.LocalTee(2) + w.Drop + w.LocalGet(2) + cmp,
				mask + w.LocalSet(2) + zero + w.LocalGet(2) + cmp,
				mask + w.LocalSet(2) + w.LocalGet(2) + zero + cmp,
				zero + mask + shift + cmp,
				mask + shift + zero + cmp,
				zero + mask + w.Block(w.Sig(pair), cmp),
				mask + zero + w.Block(w.Sig(pair), cmp),
				zero + mask + cmp + w.LocalSet(4) + w.LocalGet(4),
			} {
				swap := way == 1 || way == 3 || way == 7 || way == 9 || way == 11
				for use, body := range []w.Code{
					code + w.If(w.Of(w.I32), w.I32Const(1), w.I32Const(0)),
					w.Block(w.Of(w.I32), w.I32Const(1), code, w.BrIf(0), w.Drop, w.I32Const(0)),
					w.I32Const(1) + w.I32Const(0) + code + w.Select,
					code + w.If(w.Void, w.I32Const(1)+w.Return, none) + w.I32Const(0),
					code + w.I32Eqz + w.I32Eqz + w.If(w.Of(w.I32), w.I32Const(1), w.I32Const(0)),
					code,
				} {
					name := fmt.Sprintf("%s op %#x way %d use %d", map[bool]string{false: "i32", true: "i64"}[wide], first+op, way, use)
					b.Export(name, b.Func(w.Types{typ, typ}, w.Types{w.I32}, w.Types{typ, typ, w.I32}, body))
					tests = append(tests, test{name, op, swap})
				}
			}
		}
		code := rewrite(t, edge(b).Bytes()).Code
		for _, config := range []wazero.RuntimeConfig{compilerConfig(), interpreterConfig()} {
			h := newHost(t, config)
			m := h.open(t, code)
			for _, c := range tests {
				for _, x := range []uint64{0, 1, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1} {
					if !wide {
						x = uint64(uint32(x))
					}
					s, zero := int64(x), int64(0)
					if !wide {
						s = int64(int32(x))
					}
					want := ordered(c.op, zero, s, 0, x)
					if c.swap {
						want = ordered(c.op, s, zero, x, 0)
					}
					res, _, err := h.call(m, c.name, 1<<20, x, x)
					if err != nil || (api.DecodeU32(res[0]) == 1) != want {
						t.Errorf("%s of %#x: %v, %v, want %v", c.name, x, res, err, want)
					}
				}
			}
		}
	}
}

// The program that the random one was reduced to: each way has its own number of units.
func TestMaskUnits(t *testing.T) {
	i := w.Types{w.I32}
	b := function(i, i, nil, w.I32Const(0), w.LocalGet(0), w.LocalGet(0), w.I32And, w.I32LtS,
		w.If(w.Of(w.I32), w.I32Const(-69864232), w.I32Const(-1)+w.I32Extend8S))
	code := rewrite(t, edge(b).Bytes()).Code
	for _, config := range []wazero.RuntimeConfig{compilerConfig(), interpreterConfig()} {
		h := newHost(t, config)
		m := h.open(t, code)
		f := func(arg uint64, want int64) {
			t.Helper()
			if _, got, err := h.call(m, "f", 1<<20, arg); err != nil || got != want {
				t.Errorf("f(%d): %d units, %v, want %d", arg, got, err, want)
			}
		}
		f(0, 8)
		f(1, 7)
		f(1<<31, 8)
	}
}

// Only orders that take a mask of their own basic block are kept from the compiler's join.
func TestOrdersKeptApart(t *testing.T) {
	f := func(name string, want int, body ...w.Code) {
		t.Helper()
		b := withMemory()
		b.Type(w.Types{w.I32, w.I32}, w.Types{w.I32, w.I32}) // type 0
		b.Func(w.Types{w.I32, w.I32}, nil, w.Types{w.I32}, append(body, w.Drop)...)
		code := rewrite(t, edge(b).Bytes()).Code
		if got := bytes.Count(code, []byte(w.I32Const(0)+w.I32Ne)); got != want {
			t.Errorf("%s: %d orders are kept apart, want %d", name, got, want)
		}
	}
	x, y := w.LocalGet(0), w.LocalGet(1)
	mask := x + y + w.I32And
	f("no mask", 0, x, y, w.I32LtS)
	f("right", 1, x, mask, w.I32LtS)
	f("left", 1, mask, x, w.I32LtS)
	f("both", 1, mask, mask, w.I32LtU)
	f("equality", 0, x, mask, w.I32Eq)
	f("below", 0, mask, x, y, w.I32GtS, w.Drop)
	f("further down", 1, mask, x, y, w.I32GtS, w.I32GtS)
	f("of something else", 0, x, mask, w.I32Xor, y, w.I32GeS)
	f("an order is no mask", 1, x, mask, w.I32LtS, y, w.I32LtS)
	f("shift", 1, mask, x, w.I32ShrU, y, w.I32LtS)
	f("tee", 1, mask, w.LocalTee(2), w.Drop, w.LocalGet(2), y, w.I32LtS)
	f("set twice", 0, mask, w.LocalSet(2), x, w.LocalSet(2), w.LocalGet(2), y, w.I32LtS)
	f("behind br_if", 0, mask, w.LocalSet(2), x, w.BrIf(0), w.LocalGet(2), y, w.I32LtS)
	f("behind an end", 0, w.Block(w.Of(w.I32), mask), y, w.I32LtS)
	f("inside a block", 1, mask, w.LocalSet(2), w.Block(w.Of(w.I32), w.LocalGet(2), y, w.I32LtS))
	f("through a block", 1, mask, x, w.Block(w.Sig(0), w.I32LtS, x), w.I32And)
	f("dead", 0, w.Return, mask, x, w.I32LtS)
}
