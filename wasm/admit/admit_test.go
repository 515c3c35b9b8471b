package admit

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	w "edge/wasm/wasmtest"
)

// The guests that other packages test with are admitted and valid.
func TestGuests(t *testing.T) {
	h := newHost(t, compilerConfig())
	for name, g := range guests() {
		m := rewrite(t, g)
		if m.Digest != sha256.Sum256(g) {
			t.Errorf("%s: digest %x", name, m.Digest)
		}
		if m.MinPages != 8 || m.MaxPages != 256 || m.Config != (name == "config") || m.Unresettable {
			t.Errorf("%s: %+v", name, m)
		}
		_ = h.open(t, m.Code).Close(ctx)
	}
}

// What the module says of itself.
func TestModule(t *testing.T) {
	f := func(change func(b *w.Builder, lim *Limits), check func(m *Module) bool) {
		t.Helper()
		b, lim := w.New(), DefaultLimits()
		change(b, &lim)
		m, err := Rewrite(edge(b).Bytes(), lim)
		if err != nil || !check(m) {
			t.Errorf("%+v, %v", m, err)
		}
	}
	memory := func(lo, hi, limit int) func(b *w.Builder, lim *Limits) {
		return func(b *w.Builder, lim *Limits) { b.Memory(lo, hi); lim.MemoryBytes = limit }
	}
	pages := func(lo, hi uint32) func(m *Module) bool {
		return func(m *Module) bool { return m.MinPages == lo && m.MaxPages == hi }
	}
	f(memory(1, -1, 16<<20), pages(1, 256))
	f(memory(1, 2, 16<<20), pages(1, 2))
	f(memory(0, 65536, 64<<20), pages(0, 1024))
	f(memory(3, -1, 4<<16-1), pages(3, 3))
	code := func(c w.Code) func(b *w.Builder, lim *Limits) {
		return func(b *w.Builder, _ *Limits) {
			b.Memory(1, 1)
			b.Table(1, 1)
			b.PassiveData("a")
			b.Func(nil, nil, nil, c)
			b.PassiveElem(0)
		}
	}
	sticky := func(want bool) func(m *Module) bool { return func(m *Module) bool { return m.Unresettable == want } }
	f(code(w.Unreachable+w.TableGet(0)+w.TableSize+w.MemoryInit(0)), sticky(false))
	f(code(w.Unreachable+w.TableSet(0)), sticky(true))
	f(code(w.Unreachable+w.TableFill), sticky(true))
	f(code(w.Unreachable+w.TableCopy), sticky(true))
	f(code(w.Unreachable+w.TableInit(0, 0)), sticky(true))
	f(code(w.ElemDrop(0)), sticky(true))
	f(code(w.DataDrop(0)), sticky(true))
	f(func(b *w.Builder, _ *Limits) {
		b.Memory(1, 1)
		b.Global(w.I32, true, w.I32Const(1))
		b.Global(w.F32, false, "\x43\x00\x00\x00\x00")
		b.Global(w.F64, true, w.F64Const(1))
		b.Export("_initialize", b.Func(nil, nil, nil))
	}, func(m *Module) bool {
		return m.Initialize && slices.Equal(m.Globals, []string{"edge_meter.g0", "edge_meter.g2"})
	})
	f(func(b *w.Builder, lim *Limits) {
		b.Memory(1, 1)
		lim.Allowed = []Function{{Module: "edge", Name: "test", Params: i64}}
		b.Import("edge", "test", w.Types{w.I64}, nil)
	}, func(m *Module) bool { return slices.Equal(m.Imports, []Import{{"edge", "test"}}) })

	var none Limits
	if _, err := Rewrite(w.Echo(), none); err == nil || !strings.Contains(err.Error(), "allowed are 0") {
		t.Errorf("no limits: %v", err)
	}
}

// What the rewrite sends through every index: functions called, named by elements, exports, globals and start,
// with imports before them.
func TestRenumber(t *testing.T) {
	i := w.Types{w.I32}
	b := w.New()
	yield := b.Import("wasi_snapshot_preview1", "sched_yield", nil, i)
	b.Memory(1, 1)
	b.Table(4, 4)
	get := func(n int32) uint32 { return b.Func(nil, i, nil, w.I32Const(n)) }
	one, two, three := get(1), get(2), get(3)
	b.Global(w.FuncRef, false, w.RefFunc(three))
	b.Elem(0, one, two)
	b.ElemRaw([]byte{6, 0}, []byte(w.I32Const(2)), []byte{0x0b, 0x70, 2, 0xd2, byte(three), 0x0b, 0xd2, byte(yield), 0x0b})
	b.PassiveElem(two)
	sig := b.Type(nil, i)
	b.Start(b.Func(nil, nil, nil, w.I32Const(0), w.Call(two), w.I32Store(0)))
	b.Export("f", b.Func(i, i, nil, w.LocalGet(0), w.CallIndirect(sig, 0), w.Call(one), w.I32Add, w.Call(yield), w.I32Add,
		w.I32Const(10), w.I32Mul, w.I32Const(0), w.I32Load(0), w.I32Add))
	b.Export("g", b.Func(nil, i, nil, w.I32Const(0), w.GlobalGet(0), w.TableSet(0), w.I32Const(0), w.CallIndirect(sig, 0)))
	b.Export("h", b.Func(nil, i, nil, w.I32Const(0), w.RefFunc(two), w.TableSet(0), w.I32Const(0), w.CallIndirect(sig, 0)))
	b.Export("three", three)
	same(t, b, "f", []uint64{0}, []uint64{1}, []uint64{2}, []uint64{3}, []uint64{4})
}
