package admit

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	w "edge/wasm/wasmtest"
)

// refused rewrites a module that must be refused with a text that contains want, cheaply.
func refused(t *testing.T, name string, module []byte, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Rewrite(module, DefaultLimits())
	runtime.ReadMemStats(&after)
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+16*uint64(len(module)) {
		t.Errorf("%s: %d bytes allocated for a module of %d", name, n, len(module))
	}
}

// none is the greatest count there is.
var none = []byte{0xff, 0xff, 0xff, 0xff, 0x0f}

// A module of a few bytes that announces billions of items is refused before anything is allocated for them.
func TestCountBombs(t *testing.T) {
	f := func(name, want string, sections ...[]byte) {
		t.Helper()
		refused(t, name, w.Module(sections...), want)
	}
	types := w.Section(1, []byte{1, 0x60, 0, 0})
	funcs := w.Section(3, []byte{1, 0})
	mem := w.Section(5, []byte{1, 0, 1})
	table := w.Section(4, []byte{1, 0x70, 0, 1})
	code := func(body ...byte) []byte { return w.Section(10, []byte{1}, w.Vec(body)) }
	cat := func(parts ...[]byte) []byte {
		var out []byte
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	f("types", "type section, offset 0xa: 4294967295 types", w.Section(1, none))
	f("parameters", "4294967295 parameters", w.Section(1, []byte{1, 0x60}, none, []byte{0}))
	f("results", "4294967295 results", w.Section(1, []byte{1, 0x60, 0}, none))
	f("imports", "4294967295 imports", w.Section(2, none))
	f("module name", "an import's module of 4294967295 bytes", w.Section(2, []byte{1}, none, []byte{0, 0, 0}))
	f("import name", "an import's name of 4294967295 bytes", w.Section(2, []byte{1, 1, 'a'}, none))
	f("functions", "4294967295 functions", w.Section(3, none))
	f("tables", "4294967295 tables", w.Section(4, none))
	f("table entries", "4294967295 entries", w.Section(4, []byte{1, 0x70, 0}, none))
	f("memories", "4294967295 memories", w.Section(5, none))
	f("pages", "begins with 4294967295 pages", w.Section(5, []byte{1, 0}, none))
	f("globals", "4294967295 globals", w.Section(6, none))
	f("exports", "4294967295 exports", w.Section(7, none))
	f("export name", "an export's name of 4294967295 bytes", w.Section(7, []byte{1}, none, []byte{0, 0}))
	f("elements", "4294967295 element segments", table, w.Section(9, none))
	f("entries", "4294967295 entries", table, w.Section(9, []byte{1, 0, 0x41, 0, 0x0b}, none))
	f("passive entries", "4294967295 entries", w.Section(9, []byte{1, 1, 0}, none))
	f("data count", "4294967295 segments are announced, 0 are there", w.Section(12, none))
	f("bodies", "4294967295 bodies", types, funcs, w.Section(10, none))
	f("body size", "a body of 4294967295 bytes", types, funcs, w.Section(10, []byte{1}, none, []byte{0, 11}))
	f("groups of locals", "4294967295 groups of locals", types, funcs, code(cat(none, []byte{0, 11})...))
	f("locals", "4294967295 parameters and locals", types, funcs, code(cat([]byte{1}, none, []byte{0x7f, 11})...))
	f("locals that wrap", "parameters and locals", types, funcs,
		code(cat([]byte{2}, none, []byte{0x7f}, none, []byte{0x7f, 11})...))
	f("branch targets", "4294967295 branch targets", types, funcs, code(cat([]byte{0, 0x41, 0, 0x0e}, none, []byte{0, 11})...))
	f("select", "select with 4294967295 types", types, funcs, code(cat([]byte{0, 0x1c}, none, []byte{0x7f, 11})...))
	f("data", "4294967295 data segments", mem, w.Section(11, none))
	f("data bytes", "4294967295 bytes", mem, w.Section(11, []byte{1, 0, 0x41, 0, 0x0b}, none))
	f("section", "4294967295 bytes are announced", cat([]byte{1}, none))
	f("custom name", "the section's name of 4294967295 bytes", w.Section(0, none))
	f("function names", "does not export its memory", w.Section(0, w.Name("name"), []byte{1, 5}, none)) // dropped unread
}

// good is a module with every section.
func good() *w.Builder {
	b := w.New()
	b.Import("edge", "log", w.Types{w.I32, w.I32, w.I32}, nil)
	b.Memory(1, 2)
	b.Table(4, 8)
	b.Global(w.I32, true, w.I32Const(1))
	b.Global(w.I64, false, w.I64Const(-1))
	b.PassiveData("abc")
	b.Data(16, "def")
	f := b.Func(w.Types{w.I32}, w.Types{w.I32}, w.Types{w.I64, w.F64, w.V128}, w.LocalGet(0))
	b.Elem(1, f, 0)
	b.PassiveElem(f)
	b.Start(b.Func(nil, nil, nil))
	b.ExportGlobal("g", 0)
	b.ExportRaw("t", 1, 0)
	return edge(b)
}

func TestGood(t *testing.T) {
	m := rewrite(t, good().Bytes())
	if m.MinPages != 1 || m.MaxPages != 2 || m.Initialize || m.Config || m.Unresettable || len(m.Imports) != 1 ||
		m.Imports[0] != (Import{"edge", "log"}) || len(m.Globals) != 1 {
		t.Errorf("%+v", m)
	}
	h := newHost(t, compilerConfig())
	if g := h.open(t, m.Code).ExportedGlobal(m.Globals[0]); g == nil || g.Get() != 1 {
		t.Errorf("global %q: %v", m.Globals[0], g)
	}
}

func TestTruncated(t *testing.T) {
	module := good().Bytes()
	for n := range module {
		refused(t, "cut", module[:n:n], "")
	}
}

func TestPreamble(t *testing.T) {
	refused(t, "empty", nil, "no Wasm binary")
	refused(t, "text", []byte("(module)"), "no Wasm binary")
	refused(t, "component", []byte("\x00asm\x0d\x00\x01\x00"), "components are not supported")
	refused(t, "large", make([]byte, 16<<20+1), "raise the module limit")
}

func TestSections(t *testing.T) {
	f := func(name, want string, sections ...[]byte) {
		t.Helper()
		refused(t, name, w.Module(sections...), want)
	}
	types := w.Section(1, []byte{1, 0x60, 0, 0})
	f("twice", "type section, offset 0xe: the section stands twice or out of order", types, types)
	f("order", "out of order", w.Section(5, []byte{1, 0, 1}), types)
	f("data before code", "out of order", w.Section(11, []byte{0}), w.Section(10, []byte{0}))
	f("data count behind code", "out of order", w.Section(10, []byte{0}), w.Section(12, []byte{0}))
	f("unknown", "section id 13 is not known", w.Section(13, []byte{0}))
	f("empty", "a count is cut off", w.Section(1))
	f("trailing", "1 bytes stand behind the section's end", w.Section(1, []byte{0, 0}))
	f("too short", "are left", types[:3])
	f("custom without a name", "is cut off", w.Section(0))
	f("custom name", "not valid UTF-8", w.Section(0, []byte{1, 0xff}))
	f("no type", "no function type", w.Section(1, []byte{1, 0x5f, 0, 0}))
	f("value type", "value type 0x6e is not known", w.Section(1, []byte{1, 0x60, 1, 0x6e, 0}))
	f("no code", "0 bodies for 1 functions", types, w.Section(3, []byte{1, 0}))
	f("no functions", "1 bodies for 0 functions", types, w.Section(10, []byte{1, 2, 0, 11}))
	f("one body too few", "1 bodies for 2 functions", types, w.Section(3, []byte{2, 0, 0}), w.Section(10, []byte{1, 2, 0, 11}))
	f("data count", "2 segments are announced, 1 are there", w.Section(12, []byte{2}), w.Section(11, []byte{1, 1, 0}))
	f("two tables", "2 tables, allowed are 1", w.Section(4, []byte{2, 0x70, 0, 1, 0x70, 0, 1}))
	f("table type", "table type 0x7f", w.Section(4, []byte{1, 0x7f, 0, 1}))
	f("large table", "65537 entries, allowed are 65536", w.Section(4, []byte{1, 0x70, 0}, w.Uleb(65537)))
	f("two memories", "2 memories, allowed are 1", w.Section(5, []byte{2, 0, 1, 0, 1}))
	f("shared memory", "threads are not supported", w.Section(5, []byte{1, 3, 1, 2}))
	f("64-bit memory", "build for wasm32", w.Section(5, []byte{1, 4, 1}))
	f("limit flag", "limit flag 0x8", w.Section(5, []byte{1, 8, 1}))
	f("minimum over maximum", "maximum 1 is below its minimum 2", w.Section(5, []byte{1, 1, 2, 1}))
	f("large memory", "raise limits.memory to 17 MiB", w.Section(5, []byte{1, 0}, w.Uleb(257)))
	f("maximum", "maximum is 65537 pages", w.Section(5, []byte{1, 1, 1}, w.Uleb(65537)))
	f("flags of a segment", "has flags 0x3", w.Section(5, []byte{1, 0, 1}), w.Section(11, []byte{1, 3, 0}))
	f("no memory for data", "does not exist", w.Section(11, []byte{1, 0, 0x41, 0, 0x0b, 0}))
	f("no table for elements", "does not exist", w.Section(9, []byte{1, 0, 0x41, 0, 0x0b, 0}))
	f("flags of elements", "has flags 0x8", w.Section(9, []byte{1, 8, 0}))
	f("element kind", "element type 0x1", w.Section(9, []byte{1, 1, 1, 0}))
	f("elements of another type", "holds externref, its table holds funcref", w.Section(4, []byte{1, 0x70, 0, 1}),
		w.Section(9, []byte{1, 6, 0, 0x41, 0, 0x0b, 0x6f, 0}))
}

// Numbers may be padded, as linkers do it, up to the bytes that their size can need and no further.
func TestNumbers(t *testing.T) {
	f := func(name, want string, fn func(r *reader) int64, value int64, bytes ...byte) {
		t.Helper()
		r := &reader{buf: bytes, end: len(bytes)}
		got := fn(r)
		if want == "" && (r.err != nil || got != value || r.pos != len(bytes)) {
			t.Errorf("%s: %d, %v, want %d", name, got, r.err, value)
		}
		if want != "" && (r.err == nil || !strings.Contains(r.err.Reason, want)) {
			t.Errorf("%s: %d, %v, want %q", name, got, r.err, want)
		}
	}
	u := func(r *reader) int64 { return int64(r.u32("it")) }
	s := func(bits int) func(r *reader) int64 { return func(r *reader) int64 { return r.signed(bits, "it") } }
	f("zero", "", u, 0, 0)
	f("padded", "", u, 5, 0x85, 0x80, 0x80, 0x80, 0x00)
	f("max", "", u, 1<<32-1, none...)
	f("33 bits", "not an unsigned number", u, 0, 0xff, 0xff, 0xff, 0xff, 0x1f)
	f("six bytes", "not an unsigned number", u, 0, 0x85, 0x80, 0x80, 0x80, 0x80, 0x00)
	f("cut", "it is cut off", u, 0, 0x85, 0x80)
	f("-1", "", s(32), -1, 0x7f)
	f("-1 padded", "", s(32), -1, 0xff, 0xff, 0xff, 0xff, 0x7f)
	f("64", "", s(32), 64, 0xc0, 0x00)
	f("-64", "", s(32), -64, 0x40)
	f("min32", "", s(32), -1<<31, 0x80, 0x80, 0x80, 0x80, 0x78)
	f("max32", "", s(32), 1<<31-1, 0xff, 0xff, 0xff, 0xff, 0x07)
	f("2^31", "not a signed number of 32", s(32), 0, 0x80, 0x80, 0x80, 0x80, 0x08)
	f("sign bits", "not a signed number of 32", s(32), 0, 0xff, 0xff, 0xff, 0xff, 0x4f)
	f("long32", "not a signed number of 32", s(32), 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00)
	f("2^31 in 33", "", s(33), 1<<31, 0x80, 0x80, 0x80, 0x80, 0x08)
	f("min33", "", s(33), -1<<32, 0x80, 0x80, 0x80, 0x80, 0x70)
	f("2^32 in 33", "not a signed number of 33", s(33), 0, 0x80, 0x80, 0x80, 0x80, 0x10)
	f("min64", "", s(64), -1<<63, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f)
	f("max64", "", s(64), 1<<63-1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00)
	f("65 bits", "not a signed number of 64", s(64), 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)
	f("long64", "not a signed number of 64", s(64), 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00)
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 8191, 8192, 1<<31 - 1, -1 << 31, 1 << 40, -1 << 63, 1<<63 - 1} {
		f("round", "", s(64), v, appendS64(nil, v)...)
	}
}

func TestImportsAndExports(t *testing.T) {
	f := func(name, want string, change func(b *w.Builder)) {
		t.Helper()
		b := w.New()
		b.Memory(1, -1)
		change(b)
		refused(t, name, edge(b).Bytes(), want)
	}
	i := w.Types{w.I32}
	f("meter's module", `"edge_meter"."refill" can not be imported`, func(b *w.Builder) {
		b.Import("edge_meter", "refill", w.Types{w.I64}, w.Types{w.I64})
	})
	f("meter's prefix", `can not be imported`, func(b *w.Builder) { b.Import("edge_meter2", "x", nil, nil) })
	f("unknown", `"env"."abort" can not be imported`, func(b *w.Builder) { b.Import("env", "abort", i, nil) })
	f("js", `GOOS=wasip1`, func(b *w.Builder) { b.Import("gojs", "runtime.wasmExit", i, nil) })
	f("socket", `"wasi_snapshot_preview1"."sock_send" can not be imported`, func(b *w.Builder) {
		b.Import("wasi_snapshot_preview1", "sock_send", nil, i)
	})
	f("type", `"edge"."log" is imported as (i32) -> (), it is (i32 i32 i32) -> ()`, func(b *w.Builder) { b.Import("edge", "log", i, nil) })
	f("result", `it is () -> (i32)`, func(b *w.Builder) { b.Import("wasi_snapshot_preview1", "sched_yield", nil, nil) })
	f("memory", `imports a memory`, func(b *w.Builder) { b.ImportRaw("env", "memory", 2, []byte{0, 1}) })
	f("table", `imports a table`, func(b *w.Builder) { b.ImportRaw("env", "t", 1, []byte{0x70, 0, 1}) })
	f("global", `imports a global`, func(b *w.Builder) { b.ImportRaw("env", "g", 3, []byte{0x7f, 1}) })
	f("tag", `imports a thing of unknown kind`, func(b *w.Builder) { b.ImportRaw("env", "g", 4, []byte{0, 0}) })
	f("many", `257 imports, allowed are 256`, func(b *w.Builder) {
		for range 257 {
			b.Import("wasi_snapshot_preview1", "sched_yield", nil, i)
		}
	})

	f("exports fuel", `names that begin with "edge_meter" belong to the host`, func(b *w.Builder) {
		b.Global(w.I64, true, w.I64Const(0))
		b.ExportGlobal("edge_meter.fuel", 0)
	})
	f("exports a saved global", `belong to the host`, func(b *w.Builder) {
		b.Global(w.I64, true, w.I64Const(0))
		b.ExportGlobal("edge_meter.g0", 0)
	})
	f("twice", `"memory" is exported twice`, func(b *w.Builder) { b.ExportMemory("memory") })
	f("program", `build a reactor instead`, func(b *w.Builder) { b.Export("_start", b.Func(nil, nil, nil)) })
	f("kind", `"x" is exported with kind 4`, func(b *w.Builder) { b.ExportRaw("x", 4, 0) })
	f("config's type", `edge_v1_config has type () -> (), it must be (i32 i32) -> (i32)`, func(b *w.Builder) {
		b.Export("edge_v1_config", b.Func(nil, nil, nil))
	})
	f("initialize's type", `_initialize has type () -> (i32), it must be () -> ()`, func(b *w.Builder) {
		b.Export("_initialize", b.Func(nil, i, nil, w.I32Const(0)))
	})
	f("initialize is a memory", `does not export the function _initialize`, func(b *w.Builder) { b.ExportMemory("_initialize") })
	f("start's type", `the start function has type (i32) -> ()`, func(b *w.Builder) { b.Start(b.Func(i, nil, nil)) })
	f("vector global", `mutable v128`, func(b *w.Builder) {
		b.Global(w.V128, true, "\xfd\x0c"+w.Code(make([]byte, 16)))
	})
	f("reference global", `mutable funcref`, func(b *w.Builder) { b.Global(w.FuncRef, true, w.RefNull(w.FuncRef)) })
	f("constant's type", `the constant is of type i64, wanted is i32`, func(b *w.Builder) { b.Global(w.I32, true, w.I64Const(0)) })
	f("extended constant", `extended constants are not supported`, func(b *w.Builder) {
		b.Global(w.I32, true, w.Join(w.I32Const(1), w.I32Const(1), w.I32Add))
	})
	f("constant from a global", `reads a global`, func(b *w.Builder) {
		b.Global(w.I32, false, w.I32Const(0))
		b.Global(w.I32, false, w.GlobalGet(0))
	})
	f("data behind the end", `segment 0 covers bytes 65535 to 65537`, func(b *w.Builder) { b.Data(65535, "ab") })
	f("data at -1", `segment 0 covers bytes 4294967295 to 4294967296`, func(b *w.Builder) { b.Data(-1, "a") })
	f("elements behind the end", `segment 0 covers entries 1 to 3 of a table of 2`, func(b *w.Builder) {
		b.Table(2, -1)
		b.Elem(1, 0, 0)
	})

	b := w.New()
	refused(t, "nothing", b.Bytes(), "does not export its memory")
	b = w.New()
	b.Memory(1, 1)
	b.ExportMemory("memory")
	refused(t, "memory only", b.Bytes(), "does not export the function edge_v1_buffer (i32) -> (i32)")
	b.Export("edge_v1_buffer", b.Func(i, i, nil, w.I32Const(0)))
	refused(t, "no run", b.Bytes(), "does not export the function edge_v1_run (i32 i32) -> (i64)")
}

// The rewrite adds a type, functions, globals and locals behind the original's. An index that points there is
// refused, wherever it may stand, and the last legal one is not.
func TestIndices(t *testing.T) {
	i := w.Types{w.I32}
	f := func(name, want string, last uint32, build func(b *w.Builder, index uint32)) {
		t.Helper()
		module := func(index uint32) []byte {
			b := w.New()
			b.Import("edge", "log", w.Types{w.I32, w.I32, w.I32}, nil) // function 0, type 0
			b.Memory(1, -1)
			b.Table(1, -1)
			b.Global(w.I64, true, w.I64Const(0))
			b.PassiveData("a")
			edge(b) // functions 1 and 2, types 1 and 2
			b.PassiveElem(0, 1, 2)
			build(b, index)
			return b.Bytes()
		}
		if _, err := Rewrite(module(last), DefaultLimits()); err != nil {
			t.Errorf("%s %d: %v", name, last, err)
		}
		for past := last + 1; past < last+6; past++ {
			refused(t, name, module(past), fmt.Sprintf("%s %d does not exist", want, past))
		}
		refused(t, name, module(1<<32-1), "")
	}
	code := func(c func(x uint32) w.Code) func(b *w.Builder, x uint32) {
		return func(b *w.Builder, x uint32) { b.Func(i, nil, w.Types{w.I64}, c(x)) } // function 3, type 3
	}
	f("local.get", "local", 1, code(func(x uint32) w.Code { return w.LocalGet(x) + w.Drop }))
	f("local.set", "local", 1, code(func(x uint32) w.Code { return w.I64Const(9) + w.LocalSet(x) }))
	f("local.tee", "local", 1, code(func(x uint32) w.Code { return w.I64Const(9) + w.LocalTee(x) + w.Drop }))
	f("global.get", "global", 0, code(func(x uint32) w.Code { return w.GlobalGet(x) + w.Drop }))
	f("global.set", "global", 0, code(func(x uint32) w.Code { return w.I64Const(9) + w.GlobalSet(x) }))
	f("call", "function", 3, code(func(x uint32) w.Code { return w.Unreachable + w.Call(x) }))
	f("call in live code", "function", 3, code(func(x uint32) w.Code { return w.LocalGet(0) + w.Call(x) }))
	f("ref.func", "function", 3, code(func(x uint32) w.Code { return w.RefFunc(x) + w.Drop }))
	f("call_indirect's type", "type", 3, code(func(x uint32) w.Code { return w.Unreachable + w.CallIndirect(x, 0) }))
	f("call_indirect's table", "table", 0, code(func(x uint32) w.Code { return w.Unreachable + w.CallIndirect(0, x) }))
	f("block's type", "type", 3, code(func(x uint32) w.Code { return w.Unreachable + w.Block(w.Sig(x), w.Unreachable) }))
	f("table.get", "table", 0, code(func(x uint32) w.Code { return w.I32Const(0) + w.TableGet(x) + w.Drop }))
	f("table.set", "table", 0, code(func(x uint32) w.Code { return w.Unreachable + w.TableSet(x) }))
	f("table.init", "element segment", 0, code(func(x uint32) w.Code { return w.Unreachable + w.TableInit(x, 0) }))
	f("table.init's table", "table", 0, code(func(x uint32) w.Code { return w.Unreachable + w.TableInit(0, x) }))
	f("elem.drop", "element segment", 0, code(func(x uint32) w.Code { return w.ElemDrop(x) }))
	f("memory.init", "data segment", 0, code(func(x uint32) w.Code { return w.Unreachable + w.MemoryInit(x) }))
	f("data.drop", "data segment", 0, code(func(x uint32) w.Code { return w.DataDrop(x) }))
	f("br", "label", 1, code(func(x uint32) w.Code { return w.Block(w.Void, w.Br(x)) }))
	f("br_if", "label", 1, code(func(x uint32) w.Code { return w.Block(w.Void, w.I32Const(0), w.BrIf(x)) }))
	f("br_table", "label", 1, code(func(x uint32) w.Code { return w.Block(w.Void, w.I32Const(0), w.BrTable([]uint32{x}, 0)) }))
	f("br_table's default", "label", 1, code(func(x uint32) w.Code { return w.Block(w.Void, w.I32Const(0), w.BrTable(nil, x)) }))
	f("function's type", "type", 2, func(b *w.Builder, x uint32) { b.FuncType(x, nil, w.Unreachable) })
	for name, kind := range map[string]struct {
		kind byte
		last uint32
	}{"function": {0, 2}, "table": {1, 0}, "memory": {2, 0}, "global": {3, 0}} {
		f("export", name, kind.last, func(b *w.Builder, x uint32) { b.ExportRaw("x", kind.kind, x) })
	}
	f("elements", "function", 2, func(b *w.Builder, x uint32) { b.PassiveElem(x) })
	f("element expression", "function", 2, func(b *w.Builder, x uint32) {
		b.ElemRaw([]byte{5, 0x70, 1, 0xd2}, w.Uleb(uint64(x)), []byte{0x0b})
	})
	f("element's table", "table", 0, func(b *w.Builder, x uint32) {
		b.ElemRaw([]byte{2}, w.Uleb(uint64(x)), []byte{0x41, 0, 0x0b, 0, 0})
	})
	f("global's ref.func", "function", 2, func(b *w.Builder, x uint32) { b.Global(w.FuncRef, false, w.RefFunc(x)) })
	f("start", "function", 3, func(b *w.Builder, x uint32) {
		b.Func(nil, nil, nil)
		b.Start(x)
	})
	refused(t, "import's type", w.Module(w.Section(1, []byte{1, 0x60, 0, 0}),
		w.Section(2, []byte{1, 1, 'a', 1, 'b', 0, 1})), "type 1 does not exist")
}
