package admit

// The sections of a module, by id.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start",
	"element", "code", "data", "data count"}

// sectionOrder is the place of each section: the data count stands before the code.
var sectionOrder = [...]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 10}

// funcType is a function's type; both slices alias the original and hold one byte per value type.
type funcType struct{ params, results []byte }

type span struct{ from, to int }

type limit struct {
	min, max uint32
	hasMax   bool
}

type global struct {
	typ     byte
	mutable bool
}

type export struct {
	name  string
	kind  byte
	index uint32
}

// The kinds of imports and exports.
const (
	kindFunc = iota
	kindTable
	kindMemory
	kindGlobal
)

var kindNames = [...]string{"function", "table", "memory", "global"}

// source is a module as it was read and checked. Everything in it is by the original's numbering.
//
// The parts that the rewrite changes are kept as values, the rest as spans of the original; elements, globals and
// code hold indices of functions and are therefore written anew while they are read.
type source struct {
	reader
	lim Limits

	types    []funcType
	typeSpan span // the types behind their count

	imports    []Import
	importSpan span // the imports behind their count

	funcs    []uint32 // type of each function, imported ones first
	funcSpan span     // the function section's content

	table     limit
	tableType byte
	tables    int // 0 or 1

	memory   limit
	memories int // 0 or 1

	globals    []global
	globalCode []byte // rewritten, without count

	exports []export
	start   int // function index, -1 when there is none

	elements    int
	elementCode []byte // rewritten, without count

	dataCount int // -1 when there is no such section
	datas     int
	dataSpan  span // the data section's content

	bodies int
	code   []byte // rewritten, without count

	sticky bool // code changes a table or drops a segment

	scan    body   // scratch for one function
	meter   meter  // scratch for one function
	scratch []byte // for constants that nobody keeps
	multi   []int  // for each type with several results, its position among the types that the rewrite adds; -1 otherwise
	extra   []byte // the types that the rewrite adds behind the original's, without count
	added   int    // how many
}

func (s *source) imported() int { return len(s.imports) }

// read walks over the whole binary.
func (s *source) read() *Error {
	s.section, s.fn, s.start, s.dataCount = "module", -1, -1, -1
	if len(s.buf) > s.lim.ModuleBytes {
		s.fail(-1, "%d bytes, allowed are %d: strip it, or raise the module limit", len(s.buf), s.lim.ModuleBytes)
		return s.err
	}
	s.end = len(s.buf)
	if len(s.buf) < 8 || string(s.buf[:4]) != "\x00asm" {
		s.fail(0, "this is no Wasm binary: it does not begin with the four bytes 0x00 \"asm\"")
		return s.err
	}
	if string(s.buf[4:8]) != "\x01\x00\x00\x00" {
		s.fail(4, "binary version %#x, known is only 1: components are not supported, build a core module", s.buf[4:8])
		return s.err
	}
	s.pos = 8
	last := 0
	for s.err == nil && s.pos < len(s.buf) {
		last = s.readSection(last)
	}
	if s.err == nil {
		s.finish()
	}
	return s.err
}

// readSection reads one section and returns its place in the order.
func (s *source) readSection(last int) int {
	s.section, s.fn, s.end = "module", -1, len(s.buf)
	at := s.pos
	id := s.u8("a section's id")
	if int(id) >= len(sectionNames) {
		s.fail(at, "section id %d is not known", id)
		return last
	}
	s.section = sectionNames[id]
	if id != secCustom {
		if sectionOrder[id] <= last {
			s.fail(at, "the section stands twice or out of order")
			return last
		}
		last = sectionOrder[id]
	}
	size := s.u32("the section's size")
	if s.err == nil && int64(size) > int64(s.left()) {
		s.fail(at, "%d bytes are announced, %d are left", size, s.left())
	}
	if s.err != nil {
		return last
	}
	s.end = s.pos + int(size)
	switch id {
	case secCustom:
		s.name("the section's name", s.lim.NameBytes)
		s.pos = s.end // dropped unread: nothing in it is needed to run
	case secType:
		s.readTypes()
	case secImport:
		s.readImports()
	case secFunction:
		s.readFuncs()
	case secTable:
		s.readTables()
	case secMemory:
		s.readMemories()
	case secGlobal:
		s.readGlobals()
	case secExport:
		s.readExports()
	case secStart:
		s.readStart()
	case secElement:
		s.readElements()
	case secDataCount:
		s.dataCount = int(s.u32("the count of data segments"))
	case secCode:
		s.readCode()
	case secData:
		s.readData()
	}
	if s.err == nil && s.pos != s.end {
		s.fail(s.pos, "%d bytes stand behind the section's end", s.left())
	}
	return last
}

// finish checks what only the whole module shows.
func (s *source) finish() {
	s.fn = -1
	own := len(s.funcs) - s.imported()
	if s.bodies != own {
		s.section = "code"
		s.fail(-1, "%d bodies for %d functions", s.bodies, own)
		return
	}
	if s.dataCount >= 0 && s.dataCount != s.datas {
		s.section = "data count"
		s.fail(-1, "%d segments are announced, %d are there", s.dataCount, s.datas)
		return
	}
	s.checkExports()
}
