package admit

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"

	w "edge/wasm/wasmtest"
)

// guests are all ready-made ones.
func guests() map[string][]byte {
	return map[string][]byte{
		"echo": w.Echo(), "reject": w.RejectX(), "drop": w.DropX(), "fan-out": w.FanOutX(), "count": w.CountEvents(),
		"config": w.EchoConfig(), "log": w.LogX(), "trap": w.TrapX(), "store": w.OutOfBoundsX(), "spin": w.SpinX(),
		"recurse": w.RecurseX(), "tree": w.ExpTreeX(), "grow": w.GrowX(), "fill": w.FillX(), "wild": w.WildResultX(),
		"lying": w.LyingRecordX(),
	}
}

// What is admitted is valid after the rewrite exactly when it was valid before: the compiler's judgement of the
// rewritten module is a judgement of the original.
func FuzzRewrite(f *testing.F) {
	for _, g := range guests() {
		f.Add(g)
	}
	f.Add(good().Bytes())
	f.Add(edge(tree(5)).Bytes())
	f.Add(w.Module(w.Section(1, none)))
	b := function(w.Types{w.I32}, w.Types{w.I32, w.I64}, w.Types{w.V128}, w.LocalGet(0), w.Block(w.Void, w.LocalGet(0),
		w.BrTable([]uint32{0}, 0)), w.I64Const(5), w.Return)
	b.Table(3, 3)
	b.PassiveData("abc")
	b.PassiveElem(0, 0)
	b.Func(nil, nil, nil, w.RefFunc(0), w.Drop, w.I32Const(0), w.I32Const(0), w.I32Const(0), w.TableInit(0, 0),
		w.I32Const(0), w.I32Const(0), w.I32Const(0), w.MemoryInit(0), w.DataDrop(0))
	f.Add(edge(b).Bytes())

	check := judge(f)
	f.Fuzz(func(t *testing.T, module []byte) { check(t, module) })
}

// The same for the instructions of one function, in a module that has something of everything to name.
func FuzzBody(f *testing.F) {
	f.Add([]byte(w.Join(w.LocalGet(0), w.Call(1))))
	f.Add([]byte(w.Join(w.Block(w.Sig(1), w.LocalGet(0), w.LocalGet(0), w.BrIf(0)), w.Loop(w.Void, w.LocalGet(0), w.BrIf(0)))))
	f.Add([]byte(w.Join(w.LocalGet(0), w.If(w.Of(w.I32), w.I32Const(1), w.Join(w.I32Const(2), w.Return)))))
	f.Add([]byte(w.Join(w.LocalGet(0), w.LocalGet(0), w.LocalGet(0), w.MemoryFill, w.LocalGet(0), w.MemoryGrow)))
	f.Add([]byte(w.Join(w.LocalGet(0), w.LocalGet(0), w.CallIndirect(1, 0), w.LocalTee(1), w.BrTable([]uint32{0, 0}, 0))))
	f.Add([]byte(w.Join(w.GlobalGet(0), w.GlobalSet(0), w.RefFunc(0), w.Drop, w.V128Const(), w.LocalSet(2), w.LocalGet(0))))
	f.Add([]byte(w.Join(w.I32Const(0), w.I32Const(0), w.I32Const(0), w.TableInit(0, 0), w.ElemDrop(0), w.DataDrop(0), w.I32Const(0))))
	f.Add([]byte(w.Join(w.Unreachable, w.Loop(w.Void, w.Call(1), w.Call(0), w.Return, w.RefFunc(1), w.Br(0)))))
	f.Add([]byte(w.Join(w.I32Const(0), w.LocalGet(0), w.LocalGet(1), w.I32And, w.LocalTee(1), w.Block(w.Sig(1), w.I32LtS,
		w.LocalGet(1), w.LocalGet(0), w.I32GeU), w.If(w.Of(w.I32), w.I32Const(1), w.I32Const(0)), w.I32LtU)))
	check := judge(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		b := w.New()
		b.Import("edge", "log", w.Types{w.I32, w.I32, w.I32}, nil)
		i := w.Types{w.I32}
		b.Type(i, i)
		b.Type(w.Types{w.I32, w.I32}, w.Types{w.I32, w.I32})
		b.Memory(1, 1)
		b.Table(2, 2)
		b.Global(w.I64, true, w.I64Const(0))
		b.Global(w.F32, false, "\x43\x00\x00\x00\x00")
		b.PassiveData("a")
		b.Func(i, i, w.Types{w.I32, w.V128, w.FuncRef, w.F64}, w.Code(body))
		b.PassiveElem(0, 1)
		check(t, edge(b).Bytes())
	})
}

// judge returns the check of both fuzz targets.
func judge(f *testing.F) func(t *testing.T, module []byte) {
	r := wazero.NewRuntimeWithConfig(ctx, interpreterConfig())
	f.Cleanup(func() { _ = r.Close(ctx) })
	valid := func(code []byte) error {
		c, err := r.CompileModule(ctx, code)
		if err == nil {
			_ = c.Close(ctx)
		}
		return err
	}
	return func(t *testing.T, module []byte) {
		kept := bytes.Clone(module)
		m, err := Rewrite(module, DefaultLimits())
		if !bytes.Equal(kept, module) {
			t.Fatal("the original was changed")
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason == "" || e.Section == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if len(module) > 8<<10 {
			return
		}
		before, after := valid(module), valid(m.Code)
		if (before == nil) != (after == nil) {
			t.Fatalf("original: %v\nrewritten: %v", before, after)
		}
		if _, err := Rewrite(m.Code, DefaultLimits()); err == nil {
			t.Fatal("a rewritten module was admitted")
		}
	}
}
