package admit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	w "edge/wasm/wasmtest"
)

var ctx = context.Background()

// errFuel and errDeep are what the test's host stops a guest with.
var (
	errFuel = errors.New("out of fuel")
	errDeep = errors.New("too deep")
)

// host is one runtime with the imports that a rewritten module needs.
type host struct {
	runtime wazero.Runtime
	budget  int64 // units that may still be handed out
	slice   int64
	refills int
	deep    uint32 // bytes of the last call of deep
}

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	h := &host{runtime: wazero.NewRuntimeWithConfig(ctx, config), slice: 1 << 20}
	t.Cleanup(func() { _ = h.runtime.Close(ctx) })
	_, err := h.runtime.NewHostModuleBuilder(MeterModule).
		NewFunctionBuilder().WithFunc(func(left int64) int64 {
		h.refills++
		h.budget += left // what was spent beyond the grant
		grant := min(h.slice, h.budget)
		if grant <= 0 {
			panic(errFuel)
		}
		h.budget -= grant
		return grant
	}).Export(RefillName).
		NewFunctionBuilder().WithFunc(func(bytes uint32) {
		h.deep = bytes
		panic(errDeep)
	}).Export(DeepName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, h.runtime); err != nil {
		t.Fatal(err)
	}
	if _, err := h.runtime.NewHostModuleBuilder("edge").NewFunctionBuilder().
		WithFunc(func(level, ptr, n uint32) {}).Export("log").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

func compilerConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2)
}

func interpreterConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2)
}

func (h *host) open(t testing.TB, code []byte) api.Module {
	t.Helper()
	return h.instance(t, h.compile(t, code))
}

func (h *host) compile(t testing.TB, code []byte) wazero.CompiledModule {
	t.Helper()
	c, err := h.runtime.CompileModule(ctx, code)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return c
}

func (h *host) instance(t testing.TB, c wazero.CompiledModule) api.Module {
	t.Helper()
	m, err := h.runtime.InstantiateModule(ctx, c, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	return m
}

// fuel sets the counter before a call and reads it after.
func (h *host) call(m api.Module, fn string, budget int64, args ...uint64) (res []uint64, spent int64, err error) {
	fuel := m.ExportedGlobal(FuelGlobal).(api.MutableGlobal)
	h.refills = 0
	h.budget = budget
	grant := min(h.slice, h.budget)
	h.budget -= grant
	fuel.Set(uint64(grant))
	m.ExportedGlobal(DepthGlobal).(api.MutableGlobal).Set(0)
	res, err = m.ExportedFunction(fn).Call(ctx, args...)
	return res, budget - h.budget - int64(fuel.Get()), err
}

// edge adds what every edge_v1 module must have: a memory, unless there is one, and the two functions.
func edge(b *w.Builder) *w.Builder {
	b.ExportMemory("memory")
	b.Export("edge_v1_buffer", b.Func(w.Types{w.I32}, w.Types{w.I32}, nil, w.I32Const(0)))
	b.Export("edge_v1_run", b.Func(w.Types{w.I32, w.I32}, w.Types{w.I64}, nil, w.I64Const(0)))
	return b
}

// withMemory returns a builder with one page of memory.
func withMemory() *w.Builder {
	b := w.New()
	b.Memory(1, 4)
	return b
}

func rewrite(t testing.TB, module []byte) *Module {
	t.Helper()
	m, err := Rewrite(module, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// same runs fn of the original and of the rewrite with each argument list, in both engines, and compares results,
// traps and memory. It returns the units that the last call took.
func same(t *testing.T, b *w.Builder, fn string, calls ...[]uint64) int64 {
	t.Helper()
	original := edge(b).Bytes()
	code := rewrite(t, original).Code
	var spent [2]int64
	for e, config := range []wazero.RuntimeConfig{compilerConfig(), interpreterConfig()} {
		h := newHost(t, config)
		a, m := h.open(t, original), h.open(t, code)
		for _, args := range calls {
			want, wantErr := a.ExportedFunction(fn).Call(ctx, args...)
			got, n, err := h.call(m, fn, 1<<40, args...)
			if fmt.Sprint(got) != fmt.Sprint(want) || (err == nil) != (wantErr == nil) {
				t.Errorf("%s%v: rewritten %v, %v; original %v, %v", fn, args, got, err, want, wantErr)
			}
			x, _ := a.Memory().Read(0, a.Memory().Size())
			y, _ := m.Memory().Read(0, m.Memory().Size())
			if !bytes.Equal(x, y) {
				t.Errorf("%s%v: the memories differ", fn, args)
			}
			if d := m.ExportedGlobal(DepthGlobal).Get(); err == nil && d != 0 {
				t.Errorf("%s%v: depth %d is left over", fn, args, d)
			}
			spent[e] = n
		}
	}
	if spent[0] != spent[1] {
		t.Errorf("%s: compiler counts %d units, interpreter %d", fn, spent[0], spent[1])
	}
	return spent[0]
}

// function returns a builder with one exported function "f".
func function(params, results, locals w.Types, body ...w.Code) *w.Builder {
	b := withMemory()
	b.Export("f", b.Func(params, results, locals, body...))
	return b
}
