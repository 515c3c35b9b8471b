package wasmtest

import "encoding/binary"

// Type is a value type of Wasm.
type Type byte

// The value types of Core 2.0.
const (
	I32       Type = 0x7f
	I64       Type = 0x7e
	F32       Type = 0x7d
	F64       Type = 0x7c
	V128      Type = 0x7b
	FuncRef   Type = 0x70
	ExternRef Type = 0x6f
)

// Types is a list of value types: Types{I32, I64}.
type Types []Type

// Builder collects the parts of one module. The zero value is an empty module. Nothing is checked.
type Builder struct {
	types, imports, funcs, tables, memories, globals, exports, elems, codes, datas [][]byte

	start    []byte // the whole start section's content, nil when there is none
	dataNum  bool   // write a data count section
	imported uint32 // imported functions
	globalsN uint32 // imported and own globals
	tablesN  uint32
}

// New returns an empty module.
func New() *Builder { return &Builder{} }

// Type adds a function type, or finds an equal one, and returns its index.
func (b *Builder) Type(params, results Types) uint32 {
	t := append([]byte{0x60}, Vec(params)...)
	t = append(t, Vec(results)...)
	for i, old := range b.types {
		if string(old) == string(t) {
			return uint32(i)
		}
	}
	b.types = append(b.types, t)
	return uint32(len(b.types) - 1)
}

// Import adds an imported function and returns its function index. All imports come before the first Func.
func (b *Builder) Import(module, name string, params, results Types) uint32 {
	if len(b.funcs) > 0 {
		panic("BUG: Import after Func: the indices of the functions would shift")
	}
	b.ImportRaw(module, name, 0x00, Uleb(uint64(b.Type(params, results))))
	b.imported++
	return b.imported - 1
}

// ImportRaw adds an import of any kind with the description bytes given. No index is handed out or counted.
func (b *Builder) ImportRaw(module, name string, kind byte, desc []byte) {
	i := append(Name(module), Name(name)...)
	b.imports = append(b.imports, append(append(i, kind), desc...))
}

// Func adds a function and returns its index. The final end is added.
func (b *Builder) Func(params, results, locals Types, body ...Code) uint32 {
	return b.FuncType(b.Type(params, results), locals, body...)
}

// FuncType is Func with the index of a type that need not exist.
func (b *Builder) FuncType(typ uint32, locals Types, body ...Code) uint32 {
	var groups [][]byte
	for i := 0; i < len(locals); {
		n := i
		for n < len(locals) && locals[n] == locals[i] {
			n++
		}
		groups = append(groups, append(Uleb(uint64(n-i)), byte(locals[i])))
		i = n
	}
	c := Vecs(groups)
	for _, p := range body {
		c = append(c, p...)
	}
	c = append(c, 0x0b)
	b.funcs = append(b.funcs, Uleb(uint64(typ)))
	b.codes = append(b.codes, append(Uleb(uint64(len(c))), c...))
	return b.imported + uint32(len(b.funcs)-1)
}

// Memory adds a memory with a minimum and a maximum in pages of 64 KiB; a negative maximum means none.
func (b *Builder) Memory(min, max int) { b.memories = append(b.memories, limits(min, max)) }

// Table adds a table of function references and returns its index. A negative maximum means none.
func (b *Builder) Table(min, max int) uint32 {
	b.tables = append(b.tables, append([]byte{byte(FuncRef)}, limits(min, max)...))
	b.tablesN++
	return b.tablesN - 1
}

// Global adds a global and returns its index; the end of init is added.
func (b *Builder) Global(t Type, mutable bool, init Code) uint32 {
	g := []byte{byte(t), 0}
	if mutable {
		g[1] = 1
	}
	g = append(g, init...)
	b.globals = append(b.globals, append(g, 0x0b))
	b.globalsN++
	return b.globalsN - 1
}

// Export exports a function.
func (b *Builder) Export(name string, fn uint32) { b.ExportRaw(name, 0x00, fn) }

// ExportMemory exports memory 0.
func (b *Builder) ExportMemory(name string) { b.ExportRaw(name, 0x02, 0) }

// ExportGlobal exports a global.
func (b *Builder) ExportGlobal(name string, global uint32) { b.ExportRaw(name, 0x03, global) }

// ExportRaw adds an export of any kind.
func (b *Builder) ExportRaw(name string, kind byte, index uint32) {
	b.exports = append(b.exports, append(append(Name(name), kind), Uleb(uint64(index))...))
}

// Start names the start function.
func (b *Builder) Start(fn uint32) { b.start = Uleb(uint64(fn)) }

// Elem fills table 0 from offset with functions when the module is instantiated.
func (b *Builder) Elem(offset int32, fns ...uint32) {
	b.ElemRaw([]byte{0x00}, []byte(I32Const(offset)), []byte{0x0b}, Indices(fns...))
}

// PassiveElem adds a passive element segment and returns its index. The functions count as declared, so that
// ref.func may name them.
func (b *Builder) PassiveElem(fns ...uint32) uint32 {
	b.ElemRaw([]byte{0x01, 0x00}, Indices(fns...))
	return uint32(len(b.elems) - 1)
}

// ElemRaw adds an element segment of any form.
func (b *Builder) ElemRaw(parts ...[]byte) { b.elems = append(b.elems, join(parts...)) }

// Data copies bytes into memory 0 at offset when the module is instantiated.
func (b *Builder) Data(offset int32, bytes string) {
	d := append([]byte{0x00}, I32Const(offset)...)
	d = append(d, 0x0b)
	b.datas = append(b.datas, append(d, Name(bytes)...))
}

// PassiveData adds a passive data segment and a data count section, and returns the segment's index.
func (b *Builder) PassiveData(bytes string) uint32 {
	b.dataNum = true
	b.datas = append(b.datas, append([]byte{0x01}, Name(bytes)...))
	return uint32(len(b.datas) - 1)
}

// Bytes returns the module.
func (b *Builder) Bytes() []byte {
	var s [][]byte
	add := func(id byte, parts [][]byte) {
		if len(parts) > 0 {
			s = append(s, Section(id, Vecs(parts)))
		}
	}
	add(1, b.types)
	add(2, b.imports)
	add(3, b.funcs)
	add(4, b.tables)
	add(5, b.memories)
	add(6, b.globals)
	add(7, b.exports)
	if b.start != nil {
		s = append(s, Section(8, b.start))
	}
	add(9, b.elems)
	if b.dataNum {
		s = append(s, Section(12, Uleb(uint64(len(b.datas)))))
	}
	add(10, b.codes)
	add(11, b.datas)
	return Module(s...)
}

// Module joins sections behind the preamble.
func Module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), join(sections...)...)
}

// Section returns a section with its id and its true length.
func Section(id byte, content ...[]byte) []byte {
	c := join(content...)
	return append(append([]byte{id}, Uleb(uint64(len(c)))...), c...)
}

// Uleb returns v in unsigned LEB128.
func Uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// Sleb returns v in signed LEB128.
func Sleb(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

// Name returns a name: its length and its bytes.
func Name(s string) []byte { return append(Uleb(uint64(len(s))), s...) }

// Vec returns a vector of one-byte items.
func Vec[T ~byte](items []T) []byte {
	out := Uleb(uint64(len(items)))
	for _, i := range items {
		out = append(out, byte(i))
	}
	return out
}

// Vecs returns a vector of items that are encoded already.
func Vecs(items [][]byte) []byte { return append(Uleb(uint64(len(items))), join(items...)...) }

// Indices returns a vector of indices.
func Indices(list ...uint32) []byte {
	out := Uleb(uint64(len(list)))
	for _, i := range list {
		out = append(out, Uleb(uint64(i))...)
	}
	return out
}

func limits(min, max int) []byte {
	if max < 0 {
		return append([]byte{0}, Uleb(uint64(min))...)
	}
	return join([]byte{1}, Uleb(uint64(min)), Uleb(uint64(max)))
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
