package admit

import "bytes"

func isRef(t byte) bool   { return t == 0x70 || t == 0x6f }
func isValue(t byte) bool { return t >= 0x7b && t <= 0x7f || isRef(t) }

func typeName(t byte) string {
	switch t {
	case 0x7f:
		return "i32"
	case 0x7e:
		return "i64"
	case 0x7d:
		return "f32"
	case 0x7c:
		return "f64"
	case 0x7b:
		return "v128"
	case 0x70:
		return "funcref"
	}
	return "externref"
}

func signature(params, results []byte) string {
	list := func(b []byte, types []byte) []byte {
		b = append(b, '(')
		for i, t := range types {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(b, typeName(t)...)
		}
		return append(b, ')')
	}
	return string(list(append(list(nil, params), " -> "...), results))
}

// valueTypes reads a vector of value types and returns them; they alias the module.
func (s *source) valueTypes(what string, limit int) []byte {
	n := s.count(what, 1, limit)
	at := s.skip(n, what)
	if s.err != nil {
		return nil
	}
	t := s.buf[at : at+n : at+n]
	for i, v := range t {
		if !isValue(v) {
			s.fail(at+i, "value type %#x is not known", v)
		}
	}
	return t
}

func (s *source) readTypes() {
	n := s.count("types", 3, s.lim.Types)
	s.typeSpan = span{s.pos, s.end}
	s.types, s.multi = make([]funcType, 0, n), make([]int, 0, n)
	for i := 0; i < n && s.err == nil; i++ {
		if at := s.pos; s.u8("a type") != 0x60 {
			s.fail(at, "type %d is no function type: garbage collection and typed references are not supported", i)
			return
		}
		t := funcType{s.valueTypes("parameters", s.lim.Params), s.valueTypes("results", s.lim.Results)}
		s.types = append(s.types, t)
		s.addResultType(t)
	}
}

func (s *source) readImports() {
	allowed := s.lim.Allowed
	if allowed == nil {
		allowed = Allowed()
	}
	n := s.count("imports", 4, s.lim.Imports)
	s.importSpan = span{s.pos, s.end}
	for i := 0; i < n && s.err == nil; i++ {
		at := s.pos
		module, name := s.name("an import's module", s.lim.NameBytes), s.name("an import's name", s.lim.NameBytes)
		kind := s.u8("an import's kind")
		if s.err != nil {
			return
		}
		if kind != kindFunc {
			what := "thing of unknown kind"
			if int(kind) < len(kindNames) {
				what = kindNames[kind]
			}
			s.fail(at, "%q.%q imports a %s: only functions can be imported, memory, tables and globals must be the module's own", module, name, what)
			return
		}
		t := s.index("type", len(s.types))
		if s.err != nil {
			return
		}
		s.checkImport(at, module, name, s.types[t], allowed)
		s.imports = append(s.imports, Import{module, name})
		s.funcs = append(s.funcs, t)
	}
}

func (s *source) checkImport(at int, module, name string, t funcType, allowed []Function) {
	for _, f := range allowed {
		if f.Module != module || f.Name != name || reserved(module) {
			continue
		}
		if f.Params != string(t.params) || f.Results != string(t.results) {
			s.fail(at, "%q.%q is imported as %s, it is %s", module, name, signature(t.params, t.results),
				signature([]byte(f.Params), []byte(f.Results)))
		}
		return
	}
	hint := "a module may import edge.log and the files, clock and random functions of " + wasiModule
	switch module {
	case "env":
		hint = "a function that was declared and never linked usually ends here: define it, or build without it (AssemblyScript: --use abort=)"
	case "go", "gojs", "go_js", "wasi_unstable":
		hint = "this is another target: build Go with GOOS=wasip1 -buildmode=c-shared"
	}
	s.fail(at, "%q.%q can not be imported: %s", module, name, hint)
}

func (s *source) readFuncs() {
	s.funcSpan = span{s.pos, s.end}
	n := s.count("functions", 1, s.lim.Functions-s.imported())
	s.funcs = append(make([]uint32, 0, n+len(s.funcs)), s.funcs...)
	for i := 0; i < n && s.err == nil; i++ {
		s.funcs = append(s.funcs, s.index("type", len(s.types)))
	}
}

// limits reads a minimum and an optional maximum.
func (s *source) limits(what string) limit {
	at := s.pos
	var l limit
	switch flag := s.u8("a limit"); flag {
	case 0:
		l.min = s.u32("a minimum")
	case 1:
		l = limit{s.u32("a minimum"), s.u32("a maximum"), true}
	case 2, 3:
		s.fail(at, "the %s is shared: threads are not supported, build without them", what)
	case 4, 5, 6, 7:
		s.fail(at, "the %s has 64-bit indices: build for wasm32", what)
	default:
		s.fail(at, "limit flag %#x is not known", flag)
	}
	if s.err == nil && l.hasMax && l.max < l.min {
		s.fail(at, "the %s's maximum %d is below its minimum %d", what, l.max, l.min)
	}
	return l
}

func (s *source) readTables() {
	s.tables = s.count("tables", 3, 1)
	if s.tables == 0 {
		return
	}
	at := s.pos
	if s.tableType = s.u8("a table's type"); s.err == nil && !isRef(s.tableType) {
		s.fail(at, "table type %#x is not known", s.tableType)
		return
	}
	s.table = s.limits("table")
	if s.err == nil && int64(s.table.min) > int64(s.lim.TableEntries) {
		s.fail(at, "the table has %d entries, allowed are %d", s.table.min, s.lim.TableEntries)
		return
	}
	if top := uint32(s.lim.TableEntries); !s.table.hasMax || s.table.max > top {
		s.table.max, s.table.hasMax = top, true
	}
}

func (s *source) readMemories() {
	s.memories = s.count("memories", 2, 1)
	if s.memories == 0 {
		return
	}
	at := s.pos
	s.memory = s.limits("memory")
	top := min(s.lim.MemoryBytes/PageBytes, 65536)
	if s.err == nil && int64(s.memory.min) > int64(top) {
		s.fail(at, "the memory begins with %d pages of 64 KiB, allowed are %d: raise limits.memory to %d MiB, or lower the module's initial memory",
			s.memory.min, top, (s.memory.min+15)/16)
		return
	}
	if s.err == nil && s.memory.max > 65536 {
		s.fail(at, "the memory's maximum is %d pages, 32-bit addresses reach 65536", s.memory.max)
		return
	}
	if !s.memory.hasMax || int64(s.memory.max) > int64(top) {
		s.memory.max, s.memory.hasMax = uint32(top), true
	}
}

func (s *source) readGlobals() {
	n := s.count("globals", 4, s.lim.Globals)
	s.globals = make([]global, 0, n)
	for i := 0; i < n && s.err == nil; i++ {
		at := s.pos
		typ, mut := s.u8("a global's type"), s.u8("a global's mutability")
		switch {
		case s.err != nil:
			return
		case !isValue(typ):
			s.fail(at, "value type %#x is not known", typ)
		case mut > 1:
			s.fail(at, "global %d: mutability %d is not known", i, mut)
		case mut == 1 && (isRef(typ) || typ == 0x7b):
			s.fail(at, "global %d is a mutable %s, which the host can not restore after a fault: keep it in memory or in the table", i, typeName(typ))
		}
		s.globalCode = append(s.globalCode, typ, mut)
		s.globalCode, _ = s.constant(s.globalCode, typ)
		s.globals = append(s.globals, global{typ, mut == 1})
	}
}

// constant reads a constant expression of one instruction that leaves a value of type typ, and appends it to dst
// with its functions renumbered. It returns the value of an i32.const as well. Reading another global is not
// possible: only imported ones may be read there, and globals can not be imported.
func (s *source) constant(dst []byte, typ byte) ([]byte, uint32) {
	at := s.pos
	var value int64
	var got byte
	op := s.u8("a constant expression")
	switch op {
	case opI32Const:
		got, value = 0x7f, s.signed(32, "a constant")
	case opI64Const:
		got = 0x7e
		s.signed(64, "a constant")
	case opF32Const:
		got = 0x7d
		s.skip(4, "a constant")
	case opF64Const:
		got = 0x7c
		s.skip(8, "a constant")
	case opVector:
		got = 0x7b
		if s.u32("an instruction") != vectorConst {
			s.fail(at, "this is no constant expression")
		}
		s.skip(16, "a constant")
	case opRefNull:
		if got = s.u8("a reference type"); s.err == nil && !isRef(got) {
			s.fail(at, "reference type %#x is not known", got)
		}
	case opRefFunc:
		got = 0x70
		f := s.index("function", len(s.funcs))
		dst = appendU32(append(dst, opRefFunc), s.renumber(f))
	case opGlobalGet:
		s.fail(at, "a constant expression reads a global: link without relocation (no shared or position independent code)")
	default:
		s.fail(at, "instruction %#x in a constant expression", op)
	}
	if s.err != nil {
		return dst, 0
	}
	if op != opRefFunc {
		dst = append(dst, s.buf[at:s.pos]...)
	}
	if got != typ {
		s.fail(at, "the constant is of type %s, wanted is %s", typeName(got), typeName(typ))
	}
	end := s.pos
	if s.u8("the end of a constant expression") != opEnd {
		s.fail(end, "a constant expression has more than one instruction: extended constants are not supported")
	}
	return append(dst, opEnd), uint32(value)
}

func (s *source) readStart() {
	at := s.pos
	s.start = int(s.index("function", len(s.funcs)))
	if s.err != nil {
		return
	}
	if t := s.types[s.funcs[s.start]]; len(t.params)+len(t.results) != 0 {
		s.fail(at, "the start function has type %s, it must have no parameters and no results", signature(t.params, t.results))
	}
}

func (s *source) readData() {
	s.dataSpan = span{s.pos, s.end}
	s.datas = s.count("data segments", 2, s.lim.Segments)
	for i := 0; i < s.datas && s.err == nil; i++ {
		at := s.pos
		flag := s.u32("a segment's flags")
		if flag == 2 {
			s.index("memory", s.memories)
		} else if flag > 2 {
			s.fail(at, "segment %d has flags %#x, which are not known", i, flag)
		}
		var offset uint32
		if flag != 1 {
			if s.err == nil && s.memories == 0 {
				s.fail(at, "segment %d is copied into a memory that does not exist", i)
			}
			s.scratch, offset = s.constant(s.scratch[:0], 0x7f)
		}
		n := s.count("bytes", 1, s.lim.ModuleBytes)
		s.skip(n, "a segment")
		if size := int64(s.memory.min) * PageBytes; s.err == nil && flag != 1 && int64(offset)+int64(n) > size {
			s.fail(at, "segment %d covers bytes %d to %d of a memory of %d", i, offset, int64(offset)+int64(n), size)
		}
	}
}

// addResultType remembers that a function of type t will be wrapped in a block with its results. One result or none
// can be said in a block type; several need a type of their own, which the rewrite adds behind the original's.
func (s *source) addResultType(t funcType) {
	if s.err != nil || len(t.results) < 2 {
		s.multi = append(s.multi, -1)
		return
	}
	for i, old := range s.types[:len(s.types)-1] {
		if s.multi[i] >= 0 && bytes.Equal(old.results, t.results) {
			s.multi = append(s.multi, s.multi[i])
			return
		}
	}
	s.multi = append(s.multi, s.added)
	s.added++
	s.extra = append(s.extra, 0x60, 0)
	s.extra = appendU32(s.extra, uint32(len(t.results)))
	s.extra = append(s.extra, t.results...)
}
