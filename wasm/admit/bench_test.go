package admit

import (
	"testing"

	w "edge/wasm/wasmtest"
)

func BenchmarkRewrite(b *testing.B) {
	f := func(name string, module []byte) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(module)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Rewrite(module, goLimits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	f("go", buildGoGuest(b))
	f("small", edge(function(nil, nil, nil)).Bytes())
}

// What the meter costs while a guest runs.
func BenchmarkMeter(b *testing.B) {
	f := func(name string, build *w.Builder, arg uint64) {
		original := edge(build).Bytes()
		for _, kind := range []string{"plain", "metered"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				h := newHost(b, compilerConfig())
				code := original
				if kind == "metered" {
					code = rewrite(b, original).Code
				}
				m := h.open(b, code)
				fn := m.ExportedFunction("f")
				stack := make([]uint64, 1)
				for b.Loop() {
					stack[0], h.budget = arg, 1<<40
					if err := fn.CallWithStack(ctx, stack); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	i := w.Types{w.I32}
	count := w.Join(w.LocalGet(0), w.I32Const(1), w.I32Sub, w.LocalTee(0), w.BrIf(0))
	f("hash", function(i, i, i, w.Loop(w.Void, w.LocalGet(1), w.LocalGet(0), w.I32Const(0xffff), w.I32And, w.I32Load8U(0),
		w.I32Xor, w.I32Const(16777619), w.I32Mul, w.LocalSet(1), count), w.LocalGet(1)), 100_000)
	f("spin", function(i, i, nil, w.Loop(w.Void, count), w.I32Const(0)), 100_000)
	f("fib", function(i, i, nil, w.LocalGet(0), w.I32Const(2), w.I32LtS,
		w.If(w.Of(w.I32), w.LocalGet(0), w.Join(
			w.LocalGet(0), w.I32Const(1), w.I32Sub, w.Call(0), w.LocalGet(0), w.I32Const(2), w.I32Sub, w.Call(0), w.I32Add))), 20)
}
