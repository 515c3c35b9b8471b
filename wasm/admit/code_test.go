package admit

import (
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	w "edge/wasm/wasmtest"
)

func TestCode(t *testing.T) {
	f := func(name, want string, body ...w.Code) {
		t.Helper()
		b := w.New()
		b.Memory(1, -1)
		b.Table(1, -1)
		b.Global(w.I32, false, w.I32Const(0))
		b.Func(w.Types{w.I32}, w.Types{w.I32}, nil, body...)
		refused(t, name, edge(b).Bytes(), want)
	}
	f("table.grow", "table.grow is not admitted", w.RefNull(w.FuncRef), w.I32Const(1), w.TableGrow)
	f("table.grow padded", "table.grow is not admitted", w.RefNull(w.FuncRef), w.I32Const(1), "\xfc\x8f\x80\x00\x00")
	f("table.grow in dead code", "table.grow is not admitted", w.Unreachable, w.TableGrow)
	f("behind the misc instructions", "instruction 0xfc 0x12", w.Unreachable, "\xfc\x12")
	f("far behind", "instruction 0xfc 0xffffffff", w.Unreachable, "\xfc\xff\xff\xff\xff\x0f")
	f("atomics", "without threads", w.Unreachable, "\xfe\x00\x02\x00")
	f("return_call", "without tail calls", w.Unreachable, "\x12\x00")
	f("return_call_indirect", "without tail calls", w.Unreachable, "\x13\x00\x00")
	f("try", "without exceptions", w.Unreachable, "\x06\x40\x0b")
	f("try_table", "without exceptions", w.Unreachable, "\x1f\x40\x00\x0b")
	f("call_ref", "without typed references", w.Unreachable, "\x14\x00")
	f("garbage collection", "without typed references", w.Unreachable, "\xfb\x00")
	f("relaxed vectors", "without relaxed SIMD", w.Unreachable, "\xfd\x80\x02")
	f("unused vector", "is not supported", w.Unreachable, "\xfd\x9a\x01")
	f("unknown", "instruction 0xff", w.Unreachable, "\xff")
	f("second memory", "names a second memory", w.I32Const(0), "\x28\x42\x01\x00")
	f("alignment", "alignment 2^3 is larger", w.I32Const(0), "\x28\x03\x00")
	f("memory.size 1", "memory 1 does not exist", "\x3f\x01")
	f("memory.grow 1", "memory 1 does not exist", w.I32Const(0), "\x40\x01")
	f("memory.size padded", "memory 128 does not exist", "\x3f\x80\x00")
	f("set a constant", "global 0 is set", w.I32Const(0), w.GlobalSet(0))
	f("no data count", "there is no data count section", w.Unreachable, w.MemoryInit(0))
	f("block type", "block type 127 does not exist", w.Unreachable, "\x02\xff\x00\x0b")
	f("negative block type", "block type -1 does not exist", w.Unreachable, "\x02\xff\x7f\x0b")
	f("else", "else without if", w.Else)
	f("two elses", "else without if", w.LocalGet(0), "\x04\x40", w.Else, w.Else, w.End)
	f("end too early", "bytes stand behind the function's end", w.LocalGet(0), w.End, w.Nop)
	f("no end", "an instruction is cut off", w.Unreachable, "\x02\x40")
	f("cut float", "a constant needs 8 bytes", "\x44\x00\x00")
	f("select of two", "select with 2 types", w.Unreachable, "\x1c\x02\x7f\x7f")
	f("select of none", "value type 0x1", w.Unreachable, "\x1c\x01\x01")
	f("null of a number", "reference type 0x7f", "\xd0\x7f")
	f("no operands", "more operands than there are", w.Drop, w.I32Const(0))
	f("operands of the block outside", "more operands than there are", w.LocalGet(0), w.Block(w.Void, w.Drop, w.I32Const(0)))
	f("operands left", "a block ends with 2 operands, its type says 1", w.LocalGet(0), w.LocalGet(0))

	noMem := func(body w.Code) []byte {
		b := w.New()
		b.Func(nil, nil, nil, body)
		return b.Bytes()
	}
	refused(t, "load", noMem(w.Unreachable+w.I32Load(0)), "the module has no memory")
	refused(t, "size", noMem(w.MemorySize+w.Drop), "memory 0 does not exist")
	refused(t, "fill", noMem(w.Unreachable+w.MemoryFill), "memory 0 does not exist")
	refused(t, "indirect", noMem(w.Unreachable+w.CallIndirect(0, 0)), "table 0 does not exist")
}

// nests are functions of n blocks of a kind inside one another.
var nests = map[string]func(n int) *w.Builder{
	"nested blocks": func(n int) *w.Builder {
		return function(nil, nil, nil, repeat("\x02\x40", n), repeat(w.End, n))
	},
	"nested loops": func(n int) *w.Builder {
		return function(nil, nil, nil, repeat("\x03\x40", n), repeat(w.End, n))
	},
	"nested ifs": func(n int) *w.Builder {
		return function(w.Types{w.I32}, nil, nil, repeat(w.LocalGet(0)+"\x04\x40", n), repeat(w.End, n))
	},
}

// At each limit a module is admitted and compiles; one more is refused.
func TestShapes(t *testing.T) {
	h := newHost(t, compilerConfig())
	f := func(name, want string, last int, build func(n int) *w.Builder) {
		t.Helper()
		m, err := Rewrite(edge(build(last)).Bytes(), DefaultLimits())
		if err != nil {
			t.Errorf("%s at %d: %v", name, last, err)
			return
		}
		if !underRace && name != "all blocks" { // the latter takes some 5 s
			c, err := h.runtime.CompileModule(ctx, m.Code)
			if err != nil {
				t.Errorf("%s at %d: compile: %v", name, last, err)
				return
			}
			_ = c.Close(ctx)
		}
		refused(t, name, edge(build(last+1)).Bytes(), want)
	}
	for name, build := range nests {
		f(name, "more than 1024 blocks inside one another", 1024, build)
	}
	i := w.Types{w.I32}
	locals := func(n int) (out w.Types) { return w.Types(strings.Repeat("\x7e", n)) }
	f("blocks", "more than 8192 basic blocks", 4096, func(n int) *w.Builder {
		return function(i, nil, nil, repeat(w.Join(w.LocalGet(0), w.If(w.Void, w.Nop, "")), n))
	})
	f("locals", "parameters and locals, allowed are 1000", 998, func(n int) *w.Builder {
		return function(w.Types{w.I32, w.I32}, nil, locals(n))
	})
	f("locals alternating", "1001 groups of locals", 1000, func(n int) *w.Builder {
		return function(nil, nil, w.Types(strings.Repeat("\x7e\x7f", 501)[:n]))
	})
	f("blocks and locals", "more than the compiler is trusted with", 87, func(n int) *w.Builder {
		return function(nil, nil, locals(1000), repeat(w.Loop(w.Void, w.Nop), n))
	})
	f("branch table", "4097 branch targets, allowed are 4096", 4096, func(n int) *w.Builder {
		return function(i, nil, nil, w.LocalGet(0), w.BrTable(make([]uint32, n), 0))
	})
	f("two branch tables", "branch tables of more than 4096 entries", 2048, func(n int) *w.Builder {
		return function(i, nil, nil, w.Block(w.Void, w.LocalGet(0), w.BrTable(make([]uint32, n), 0)),
			w.LocalGet(0), w.BrTable(make([]uint32, 2048), 0))
	})
	f("branch table with values", "more than the compiler is trusted with", 4096, func(n int) *w.Builder {
		b := withMemory()
		many := w.Types(strings.Repeat("\x7e", 63+n/4097))
		b.Export("f", b.Func(nil, many, nil, repeat(w.I64Const(0), len(many)), w.I32Const(0), w.BrTable(make([]uint32, min(n, 4096)), 0)))
		return b
	})
	f("conditional branches", "more than 8192 basic blocks", 8192, func(n int) *w.Builder {
		return function(i, nil, nil, repeat(w.LocalGet(0)+w.BrIf(0), n))
	})
	f("loops under operands", "more than the compiler is trusted with", 87, func(n int) *w.Builder {
		return function(i, nil, nil, repeat(w.LocalGet(0), 999), repeat(w.Loop(w.Void), n), repeat(w.Drop, 999))
	})
	f("bulk", "more than 8192 basic blocks", 2048, func(n int) *w.Builder {
		return function(i, nil, nil, repeat(w.LocalGet(0)+w.LocalGet(0)+w.LocalGet(0)+w.MemoryFill, n))
	})
	f("all blocks", "too many basic blocks together", 63, func(n int) *w.Builder {
		b := function(nil, nil, nil)
		for range n {
			b.Func(i, nil, nil, repeat(w.LocalGet(0)+w.BrIf(0), 2048))
		}
		b.Func(i, nil, nil, repeat(w.LocalGet(0)+w.BrIf(0), 2048))
		return b
	})
	f("body", "the body has 131073 bytes, allowed are 131072", 131072-2, func(n int) *w.Builder {
		return function(nil, nil, nil, repeat(w.Nop, n))
	})
	f("results", "65 results, allowed are 64", 64, func(n int) *w.Builder {
		return function(nil, w.Types(strings.Repeat("\x7e", n)), nil, w.Unreachable)
	})
	f("functions", "allowed are 50000", 50_000-3, func(n int) *w.Builder {
		b := function(nil, nil, nil)
		for range n {
			b.Func(nil, nil, nil)
		}
		return b
	})
	f("all locals", "more than 1048576 locals together", 1048, func(n int) *w.Builder {
		b := function(nil, nil, nil)
		for range n {
			b.Func(nil, nil, locals(1000))
		}
		b.Func(nil, nil, locals(576-3))
		return b
	})
}

// bulkImmediates says how many indices follow the instructions behind 0xfc.
var bulkImmediates = map[int]int{miscMemoryInit: 2, miscDataDrop: 1, miscMemoryCopy: 2, miscMemoryFill: 1,
	miscTableInit: 2, miscElemDrop: 1, miscTableCopy: 2, miscTableSize: 1, miscTableFill: 1}

// The opcode tables say how many operands each instruction takes and leaves. wazero's validator is the judge: with
// exactly that many, of the right types, a function is valid, and only then.
func TestOpcodeTables(t *testing.T) {
	r := wazero.NewRuntimeWithConfig(ctx, interpreterConfig())
	defer r.Close(ctx)
	consts := map[w.Type]w.Code{
		w.I32: w.I32Const(0), w.I64: w.I64Const(0), w.F64: w.F64Const(0), w.F32: "\x43\x00\x00\x00\x00",
		w.V128: "\xfd\x0c" + w.Code(make([]byte, 16)), w.FuncRef: w.RefNull(w.FuncRef),
	}
	valid := func(body w.Code) bool {
		b := w.New()
		b.Memory(1, 1)
		b.Table(1, 1)
		b.Global(w.I32, true, w.I32Const(0))
		b.PassiveData("a")
		b.Func(nil, nil, w.Types{w.I32}, body)
		b.PassiveElem(0)
		c, err := r.CompileModule(ctx, b.Bytes())
		if err != nil {
			return false
		}
		_ = c.Close(ctx)
		_, err = Rewrite(edge(b).Bytes(), DefaultLimits())
		if err != nil {
			t.Errorf("%x: wazero takes it, %v", string(body), err)
		}
		return true
	}
	var operands func(n int, prefix w.Code, use func(w.Code) bool) bool
	operands = func(n int, prefix w.Code, use func(w.Code) bool) bool {
		if n == 0 {
			return use(prefix)
		}
		for _, typ := range []w.Type{w.I32, w.V128, w.I64, w.F64, w.F32, w.FuncRef} {
			if operands(n-1, prefix+consts[typ], use) {
				return true
			}
		}
		return false
	}
	f := func(name string, prefix w.Code, op int, i instruction) {
		code := prefix
		if prefix == "" {
			code = w.Code([]byte{byte(op)})
		} else {
			code += w.Code(w.Uleb(uint64(op)))
		}
		start := len(code)
		switch i.imm {
		case immMem:
			code += w.Code([]byte{i.align, 0})
		case immMemLane:
			code += w.Code([]byte{i.align, 0, 0})
		case immLane, immLocal, immGlobal, immTable, immMemory, immFunc, immI32, immI64:
			code += "\x00"
		case imm4:
			code += "\x00\x00\x00\x00"
		case imm8:
			code += w.Code(make([]byte, 8))
		case imm16:
			code += w.Code(make([]byte, 16))
		case immRefType:
			code += "\x70"
		case immSelect:
			code += "\x01\x7f"
		case immBulk:
			code += repeat("\x00", bulkImmediates[op])
		}
		if !operands(int(i.pop), "", func(args w.Code) bool { return valid(args + code + repeat(w.Drop, int(i.push))) }) {
			t.Errorf("%s %#x: no operands make it valid with %d in and %d out", name, op, i.pop, i.push)
		}
		if i.imm == immMem || i.imm == immMemLane { // one more would be too much alignment
			bad := []byte(code)
			bad[start] = i.align + 1
			if valid(w.Unreachable + w.Code(bad) + w.Unreachable) {
				t.Errorf("%s %#x: natural alignment is more than 2^%d", name, op, i.align)
			}
		}
	}
	for op := range 256 {
		if i := plain[op]; i.imm != immRefused && i.imm != immControl {
			f("plain", "", op, i)
		}
		if i := misc[op]; i.imm != immRefused {
			f("misc", "\xfc", op, i)
		}
		if i := vector[op]; i.imm != immRefused {
			f("vector", "\xfd", op, i)
		}
	}
}

// What may be imported of WASI has the types that WASI gives it.
func TestAllowed(t *testing.T) {
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	c, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defs := c.ExportedFunctions()
	seen := map[string]bool{}
	for _, f := range Allowed() {
		if f.Module != wasiModule {
			continue
		}
		d := defs[f.Name]
		if d == nil || string(d.ParamTypes()) != f.Params || string(d.ResultTypes()) != f.Results {
			t.Errorf("%s %x %x", f.Name, f.Params, f.Results)
		}
		seen[f.Name] = true
	}
	for name := range defs {
		if !seen[name] && !strings.HasPrefix(name, "sock_") {
			t.Errorf("%s is missing", name)
		}
	}
}
