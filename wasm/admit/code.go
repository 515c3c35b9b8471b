package admit

// readBody scans the instructions of one function: it checks what can be checked without types, and notes where the
// meter has to write. Types are checked later by the compiler, on the rewritten module.
func (s *source) readBody() {
	b := &s.scan
	for s.err == nil {
		at := s.pos
		op := s.u8("an instruction")
		if s.err != nil {
			return
		}
		b.instrs++
		if b.live && op != opEnd && op != opElse {
			b.units++ // "else" and "end" end a sequence of instructions, they are none themselves
		}
		i := plain[op]
		switch {
		case i.imm == immControl:
			if s.control(at, op); len(b.stack) == 0 {
				if s.err == nil && s.pos != s.end {
					s.fail(s.pos, "%d bytes stand behind the function's end", s.left())
				}
				return
			}
		case i.imm != immRefused:
			s.plain(at, op, i, s.immediate(at, i, op))
		case op == opMisc:
			s.misc(at)
		case op == opVector:
			b.vector = true
			sub := s.u32("an instruction")
			if sub > 255 || vector[sub].imm == immRefused {
				s.fail(at, "vector instruction %#x is not supported: build without relaxed SIMD", sub)
				return
			}
			i = vector[sub]
			s.immediate(at, i, 0)
			s.move(at, int(i.pop), int(i.push))
		default:
			s.fail(at, "instruction %#x is not supported: %s", op, refusedHint(op))
		}
	}
}

func refusedHint(op byte) string {
	switch {
	case op == 0xfe:
		return "build without threads and atomics"
	case op == 0x12 || op == 0x13:
		return "build without tail calls"
	case op >= 0x06 && op <= 0x0a || op == 0x18 || op == 0x19 || op == 0x1f:
		return "build without exceptions"
	case op == 0x14 || op == 0x15 || op >= 0xd3 && op <= 0xd6 || op == 0xfb:
		return "build without typed references and garbage collection"
	}
	return "only Core Wasm 2.0 is"
}

// immediate reads what follows an opcode. It returns the local that is named there, if one is.
func (s *source) immediate(at int, i instruction, op byte) (local uint32) {
	b := &s.scan
	switch i.imm {
	case immMem, immMemLane:
		if s.memories == 0 {
			s.fail(at, "the module has no memory")
		}
		if align := s.u32("an alignment"); s.err == nil && align > uint32(i.align) {
			s.fail(at, "alignment 2^%d is larger than the access of 2^%d bytes (or names a second memory)", align, i.align)
		}
		s.u32("an offset")
		if i.imm == immMemLane {
			s.u8("a lane")
		}
	case immLane:
		s.u8("a lane")
	case imm4:
		s.skip(4, "a constant")
	case imm8:
		s.skip(8, "a constant")
	case imm16:
		s.skip(16, "a constant")
	case immI32:
		s.signed(32, "a constant")
	case immI64:
		s.signed(64, "a constant")
	case immLocal:
		local = s.index("local", b.locals)
	case immGlobal:
		g := s.index("global", len(s.globals))
		if s.err == nil && op == opGlobalSet && !s.globals[g].mutable {
			s.fail(at, "global %d is set, but it is a constant", g)
		}
	case immTable:
		s.index("table", s.tables)
		s.sticky = s.sticky || op == opTableSet
	case immRefType:
		if t := s.u8("a reference type"); s.err == nil && !isRef(t) {
			s.fail(at, "reference type %#x is not known", t)
		}
	case immSelect:
		if n := s.u32("a count of types"); s.err == nil && n != 1 {
			s.fail(at, "select with %d types", n)
		}
		if t := s.u8("a type"); s.err == nil && !isValue(t) {
			s.fail(at, "value type %#x is not known", t)
		}
	case immMemory:
		s.memoryIndex(at)
		if op == opMemoryGrow && b.live {
			b.bulk = true
			b.point(pointGrow, at, at, 0)
			s.block(at, growCost, 0)
		}
	case immFunc:
		f := s.index("function", len(s.funcs))
		b.points = append(b.points, point{from: int32(at), to: int32(s.pos), arg: f, kind: pointRefFunc})
	}
	return local
}

func (s *source) memoryIndex(at int) {
	if i := s.u8("a memory's index"); s.err == nil && (i != 0 || s.memories == 0) {
		s.fail(at, "memory %d does not exist", i)
	}
}

// misc reads the instructions behind 0xfc.
func (s *source) misc(at int) {
	b := &s.scan
	sub := s.u32("an instruction")
	if s.err == nil && sub == miscTableGrow {
		s.fail(at, "table.grow is not admitted: a table has a fixed size")
		return
	}
	if sub > 255 || misc[sub].imm == immRefused {
		s.fail(at, "instruction 0xfc %#x is not supported: only Core Wasm 2.0 is", sub)
		return
	}
	switch sub {
	case miscMemoryInit, miscDataDrop:
		if s.dataCount < 0 {
			s.fail(at, "a data segment is named, but there is no data count section")
			return
		}
		s.index("data segment", s.dataCount)
		if sub == miscMemoryInit {
			s.memoryIndex(at)
		}
	case miscMemoryCopy:
		s.memoryIndex(at)
		s.memoryIndex(at)
	case miscMemoryFill:
		s.memoryIndex(at)
	case miscTableInit:
		s.index("element segment", s.elements)
		s.index("table", s.tables)
	case miscElemDrop:
		s.index("element segment", s.elements)
	case miscTableCopy:
		s.index("table", s.tables)
		s.index("table", s.tables)
	case miscTableSize, miscTableFill:
		s.index("table", s.tables)
	}
	switch sub {
	case miscDataDrop, miscElemDrop, miscTableInit, miscTableCopy, miscTableFill:
		s.sticky = true
	}
	i := misc[sub]
	if i.pop == 3 && b.live { // all that take a length have it on top of the stack
		b.bulk = true
		b.point(pointBulk, at, at, 0)
		s.block(at, bulkCost, 0)
	}
	s.move(at, int(i.pop), int(i.push))
}
