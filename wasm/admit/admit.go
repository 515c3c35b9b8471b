package admit

import "crypto/sha256"

// Module is an admitted and rewritten module.
type Module struct {
	Code   []byte   // the rewritten binary, ready to compile; it shares no memory with the original
	Digest [32]byte // SHA-256 of the original

	MinPages, MaxPages uint32 // of the memory, as written into Code: MaxPages is the declared maximum or the limit

	// Globals are the names under which Code exports the original's mutable globals, all of them i32, i64, f32 or
	// f64, so that the host can save and restore them.
	Globals []string

	Initialize, Config bool     // _initialize and edge_v1_config are exported
	Imports            []Import // as the original lists them

	// Unresettable says that code changes the table or drops a segment. Memory and globals are then not all of an
	// instance's state: to go back to an earlier state, make a new instance.
	Unresettable bool
}

// Import names an imported function.
type Import struct{ Module, Name string }

// Rewrite checks a module against lim and the guest interface and returns it with meters built in. The error is
// an *Error. It allocates in proportion to the module's size, whatever the module claims. Several calls may run at
// the same time.
func Rewrite(module []byte, lim Limits) (*Module, error) {
	s := &source{reader: reader{buf: module}, lim: lim}
	if err := s.read(); err != nil {
		return nil, err
	}
	m := &Module{
		Code:         s.write(),
		Digest:       sha256.Sum256(module),
		MinPages:     s.memory.min,
		MaxPages:     s.memory.max,
		Initialize:   s.find(exportInitialize) != nil,
		Config:       s.find(exportConfig) != nil,
		Imports:      s.imports,
		Unresettable: s.sticky,
	}
	m.Globals, _ = s.globalNames()
	return m, nil
}

// write puts the rewritten module together.
func (s *source) write() []byte {
	out := make([]byte, 0, len(s.buf)+len(s.code)+len(s.extra)+64*len(s.globals)+1024)
	out = append(out, s.buf[:8]...)
	var sec []byte
	span := func(x span) { sec = append(sec, s.buf[x.from:x.to]...) }
	flush := func(id byte) {
		out = appendU32(append(out, id), uint32(len(sec)))
		out = append(out, sec...)
		sec = sec[:0]
	}

	// Types: the original's, several results for the wrapping blocks, and those of refill and deep.
	refill := len(s.types) + s.added
	sec = appendU32(sec, uint32(refill+added))
	span(s.typeSpan)
	sec = append(sec, s.extra...)
	sec = append(sec, 0x60, 1, 0x7e, 1, 0x7e)
	sec = append(sec, 0x60, 1, 0x7f, 0)
	flush(secType)

	sec = appendU32(sec, uint32(s.imported()+added))
	span(s.importSpan)
	sec = appendU32(append(appendName(appendName(sec, MeterModule), RefillName), kindFunc), uint32(refill))
	sec = appendU32(append(appendName(appendName(sec, MeterModule), DeepName), kindFunc), uint32(refill+1))
	flush(secImport)

	if s.bodies > 0 {
		span(s.funcSpan)
		flush(secFunction)
	}
	if s.tables > 0 {
		sec = appendLimit(append(sec, 1, s.tableType), s.table)
		flush(secTable)
	}
	if s.memories > 0 {
		sec = appendLimit(append(sec, 1), s.memory)
		flush(secMemory)
	}

	sec = appendU32(sec, uint32(len(s.globals)+added))
	sec = append(sec, s.globalCode...)
	sec = append(appendS64(append(sec, 0x7e, 1, opI64Const), s.lim.StartFuel), opEnd)
	sec = append(sec, 0x7f, 1, opI32Const, 0, opEnd)
	flush(secGlobal)

	sec = s.writeExports(sec)
	flush(secExport)

	if s.start >= 0 {
		sec = appendU32(sec, s.renumber(uint32(s.start)))
		flush(secStart)
	}
	if s.elements > 0 {
		sec = append(appendU32(sec, uint32(s.elements)), s.elementCode...)
		flush(secElement)
	}
	if s.dataCount >= 0 {
		sec = appendU32(sec, uint32(s.dataCount))
		flush(secDataCount)
	}
	if s.bodies > 0 {
		n := appendU32(nil, uint32(s.bodies))
		out = appendU32(append(out, secCode), uint32(len(n)+len(s.code)))
		out = append(append(out, n...), s.code...)
	}
	if s.datas > 0 {
		span(s.dataSpan)
		flush(secData)
	}
	return out
}

func (s *source) writeExports(sec []byte) []byte {
	names, globals := s.globalNames()
	sec = appendU32(sec, uint32(len(s.exports)+len(names)+added))
	for _, e := range s.exports {
		if e.kind == kindFunc {
			e.index = s.renumber(e.index)
		}
		sec = appendU32(append(appendName(sec, e.name), e.kind), e.index)
	}
	for i, name := range names {
		sec = appendU32(append(appendName(sec, name), kindGlobal), globals[i])
	}
	sec = appendU32(append(appendName(sec, FuelGlobal), kindGlobal), uint32(len(s.globals)))
	return appendU32(append(appendName(sec, DepthGlobal), kindGlobal), uint32(len(s.globals)+1))
}

func appendName(dst []byte, name string) []byte {
	return append(appendU32(dst, uint32(len(name))), name...)
}

func appendLimit(dst []byte, l limit) []byte {
	return appendU32(appendU32(append(dst, 1), l.min), l.max)
}
