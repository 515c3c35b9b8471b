package admit

// readElements reads the element section and writes it anew, because it names functions.
//
// A segment's flags: bit 0 set, it is not copied at instantiation (then bit 1: it only declares); bit 0 clear, it is
// copied into table 0 (then bit 1: into the table named, with a type). Bit 2: items are expressions, not indices.
func (s *source) readElements() {
	s.elements = s.count("element segments", 2, s.lim.Segments)
	total := 0
	for i := 0; i < s.elements && s.err == nil; i++ {
		total += s.readElement(i)
		if total > s.lim.ElementEntries {
			s.fail(s.pos, "the segments have more than %d entries together", s.lim.ElementEntries)
		}
	}
}

func (s *source) readElement(i int) int {
	at := s.pos
	flags := s.u32("a segment's flags")
	if s.err == nil && flags > 7 {
		s.fail(at, "segment %d has flags %#x, which are not known", i, flags)
		return 0
	}
	dst := append(s.elementCode, byte(flags))
	active, exprs := flags&1 == 0, flags&4 != 0
	var offset uint32
	if active {
		if flags&2 != 0 {
			dst = appendU32(dst, s.index("table", s.tables))
		} else if s.err == nil && s.tables == 0 {
			s.fail(at, "segment %d is copied into a table that does not exist", i)
		}
		dst, offset = s.constant(dst, 0x7f)
	}
	typ := byte(0x70)
	if flags&3 != 0 {
		kind := s.u8("a segment's type")
		dst = append(dst, kind)
		if exprs {
			typ = kind
		}
		if s.err == nil && (exprs && !isRef(kind) || !exprs && kind != 0) {
			s.fail(at, "segment %d: element type %#x is not known", i, kind)
		}
	}
	if s.err == nil && active && typ != s.tableType {
		s.fail(at, "segment %d holds %s, its table holds %s", i, typeName(typ), typeName(s.tableType))
	}
	n := s.count("entries", 1, s.lim.ElementEntries)
	dst = appendU32(dst, uint32(n))
	for k := 0; k < n && s.err == nil; k++ {
		if exprs {
			dst, _ = s.constant(dst, typ)
		} else {
			dst = appendU32(dst, s.renumber(s.index("function", len(s.funcs))))
		}
	}
	if s.err == nil && active && int64(offset)+int64(n) > int64(s.table.min) {
		s.fail(at, "segment %d covers entries %d to %d of a table of %d", i, offset, int64(offset)+int64(n), s.table.min)
	}
	s.elementCode = dst
	return n
}
