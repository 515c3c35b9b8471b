package admit

import "encoding/binary"

// The names that the rewrite adds to a module. A guest that imports or exports a name which begins with MeterModule
// is refused.
const (
	// MeterModule is the module of the two imports.
	MeterModule = "edge_meter"

	// RefillName is the import edge_meter.refill (left i64) -> i64. It is called when the counter has become
	// negative; left is the counter, so that -left units have been spent beyond what was granted. What it returns
	// becomes the counter. The host grants a slice less what was overdrawn, or panics with an error to stop the guest.
	RefillName = "refill"

	// DeepName is the import edge_meter.deep (bytes i32), called with the estimated bytes when nested calls need
	// more than Limits.StackBytes. The host panics with an error; should it return, the guest traps.
	DeepName = "deep"

	// FuelGlobal is an exported mutable i64: units that may be spent before refill is called. The host sets it
	// before each call into the guest and may read and lower it inside host functions and after a call. After a
	// trap it does not contain what the functions that were cut off have spent since their last call.
	FuelGlobal = "edge_meter.fuel"

	// DepthGlobal is an exported mutable i32: estimated bytes of the nested calls that are open. The host sets it
	// to zero after a fault, because functions that were cut off have not given theirs back.
	DepthGlobal = "edge_meter.depth"
)

// added is the number of functions that the rewrite imports: refill and deep, in this order, behind the original's
// imports.
const added = 2

// renumber gives a function's index in the rewritten module.
func (s *source) renumber(f uint32) uint32 {
	if int(f) < s.imported() {
		return f
	}
	return f + added
}

// Estimated bytes of a call: what the compiler's code keeps per call in any case, and one slot per local and
// operand. The estimate is of the size of the truth, not exact; wazero's own ceiling is 50 MB.
const (
	frameBytes  = 64
	slotBytes   = 8
	vectorBytes = 16
)

// meter writes one function. Scratch is kept from one function to the next.
type meter struct {
	buf []byte

	src   *source
	fuel  uint32 // index of the local that holds the counter
	temp  uint32 // index of an i32 local for lengths and depths
	fuelG uint32 // indices of the two globals
	deepG uint32
	fills uint32 // index of the import refill; deep is the next
	leaf  bool
	frame int32 // estimated bytes; zero when the function calls nothing
}

// function appends the rewritten body of the function that src has just scanned.
func (m *meter) function(dst []byte, src *source) []byte {
	b := &src.scan
	m.src, m.leaf = src, b.leaf()
	m.fuel, m.temp = uint32(b.locals), uint32(b.locals)+1
	m.fuelG, m.deepG = uint32(len(src.globals)), uint32(len(src.globals))+1
	m.fills = uint32(src.imported())
	m.frame = 0
	if b.calls {
		slot := slotBytes
		if b.vector {
			slot = vectorBytes
		}
		m.frame = int32(frameBytes + slot*(b.locals+b.maxHeight))
	}
	out := m.locals(m.buf[:0], b)
	if !m.leaf {
		out = m.enter(out, b)
	}
	out = m.body(out, b)
	if !m.leaf {
		out = append(m.leave(out), opEnd)
	}
	m.buf = out
	return append(appendU32(dst, uint32(len(out))), out...)
}

func (m *meter) locals(out []byte, b *body) []byte {
	more := 0
	if !m.leaf {
		more = 1
	}
	if b.bulk || m.frame > 0 {
		more = 2
	}
	out = appendU32(out, uint32(b.groups+more))
	out = append(out, m.src.buf[b.groupSpan.from:b.groupSpan.to]...)
	if more > 0 {
		out = append(out, 1, 0x7e)
	}
	if more > 1 {
		out = append(out, 1, 0x7f)
	}
	return out
}

// enter writes what stands before the original's instructions: the depth, the counter, and a block around the rest
// so that every way out leads past leave.
func (m *meter) enter(out []byte, b *body) []byte {
	if m.frame > 0 {
		out = appendU32(append(out, opGlobalGet), m.deepG)
		out = appendS64(append(out, opI32Const), int64(m.frame))
		out = append(out, opI32Add)
		out = appendU32(append(out, opLocalTee), m.temp)
		out = appendU32(append(out, opGlobalSet), m.deepG)
		out = appendU32(append(out, opLocalGet), m.temp)
		out = appendS64(append(out, opI32Const), int64(min(m.src.lim.StackBytes, 1<<30)))
		out = append(out, opI32GtU, opIf, blockVoid)
		out = appendU32(append(out, opLocalGet), m.temp)
		out = appendU32(append(out, opCall), m.fills+1)
		out = append(out, opUnreachable, opEnd)
	}
	out = m.tee(m.load(out))
	out = append(out, opBlock)
	switch t := m.src.types[b.typ]; len(t.results) {
	case 0:
		return append(out, blockVoid)
	case 1:
		return append(out, t.results[0])
	}
	return appendS64(out, int64(len(m.src.types)+m.src.multi[b.typ]))
}

func (m *meter) leave(out []byte) []byte {
	if m.frame > 0 {
		out = appendU32(append(out, opGlobalGet), m.deepG)
		out = appendS64(append(out, opI32Const), int64(m.frame))
		out = append(out, opI32Sub)
		out = appendU32(append(out, opGlobalSet), m.deepG)
	}
	out = appendU32(append(out, opLocalGet), m.fuel)
	return appendU32(append(out, opGlobalSet), m.fuelG)
}

// body copies the original's instructions and writes what the points say.
func (m *meter) body(out []byte, b *body) []byte {
	src := m.src.buf
	from := b.code.from
	for i := range b.points {
		p := &b.points[i]
		out = append(out, src[from:p.from]...)
		from = int(p.to)
		switch p.kind {
		case pointCharge:
			out = m.charge(out, p.units)
		case pointLoop:
			out = m.check(out)
		case pointReturn:
			out = m.charge(out, p.units)
			if m.leaf {
				out = append(out, opReturn)
			} else {
				out = appendU32(append(out, opBr), p.arg)
			}
		case pointCall, pointCallIndirect:
			out = m.minus(appendU32(append(out, opLocalGet), m.fuel), p.units)
			out = appendU32(append(out, opGlobalSet), m.fuelG)
			if p.kind == pointCall {
				out = appendU32(append(out, opCall), m.src.renumber(p.arg))
			} else {
				out = append(out, src[p.from:p.to]...)
			}
			out = m.load(out)
			out = appendU32(append(out, opLocalSet), m.fuel)
		case pointCallDead:
			out = appendU32(append(out, opCall), m.src.renumber(p.arg))
		case pointRefFunc:
			out = appendU32(append(out, opRefFunc), m.src.renumber(p.arg))
		case pointBulk, pointGrow:
			out = m.bulk(out, p)
		case pointOrder:
			out = append(out, opI32Const, 0, opI32Ne)
		}
	}
	return append(out, src[from:b.code.to]...)
}

// load leaves the global counter on the stack.
func (m *meter) load(out []byte) []byte { return appendU32(append(out, opGlobalGet), m.fuelG) }

// minus takes units from the number on the stack.
func (m *meter) minus(out []byte, units uint32) []byte {
	out = appendS64(append(out, opI64Const), int64(units))
	return append(out, opI64Sub)
}

// charge takes units from the counter. A leaf has no local for it.
func (m *meter) charge(out []byte, units uint32) []byte {
	if m.leaf {
		out = m.minus(m.load(out), units)
		return appendU32(append(out, opGlobalSet), m.fuelG)
	}
	out = m.minus(appendU32(append(out, opLocalGet), m.fuel), units)
	return appendU32(append(out, opLocalSet), m.fuel)
}

// check asks for more when the counter is negative.
func (m *meter) check(out []byte) []byte {
	return m.ask(appendU32(append(out, opLocalGet), m.fuel))
}

// tee puts the number on the stack into the counter, and asks for more when it is negative.
func (m *meter) tee(out []byte) []byte {
	return m.ask(appendU32(append(out, opLocalTee), m.fuel))
}

func (m *meter) ask(out []byte) []byte {
	out = append(out, opI64Const, 0, opI64LtS, opIf, blockVoid)
	out = appendU32(append(out, opLocalGet), m.fuel)
	out = appendU32(append(out, opCall), m.fills)
	out = appendU32(append(out, opLocalSet), m.fuel)
	return append(out, opEnd)
}

// bulk charges an instruction that has a length or a number of pages on top of the stack, before it is executed.
//
// A growth pays for its pages when they are from 1 to the memory's maximum, and for one page otherwise: it then
// grows by nothing or fails, but leaves native code all the same.
func (m *meter) bulk(out []byte, p *point) []byte {
	out = appendU32(append(out, opLocalTee), m.temp)
	out = m.minus(appendU32(append(out, opLocalGet), m.fuel), p.units)
	out = appendU32(append(out, opLocalGet), m.temp)
	if p.kind == pointGrow {
		out = append(out, opI32Const, 1)
		out = appendU32(append(out, opLocalGet), m.temp)
		out = append(out, opI32Const, 1, opI32Sub)
		out = appendS64(append(out, opI32Const), int64(m.src.memory.max))
		out = append(out, opI32LtU, opSelect, opExtendU, opI64Const, growShift, opI64Shl, opI64Sub)
	} else {
		out = append(out, opExtendU, opI64Const, bulkShift, opI64ShrU, opI64Sub)
	}
	return m.tee(out)
}

// A bulk instruction costs one unit per 32 bytes or entries, growing memory 1,024 per page: both are about what as
// many plain instructions take.
const (
	bulkShift = 5
	growShift = 10
)

func appendU32(dst []byte, v uint32) []byte { return binary.AppendUvarint(dst, uint64(v)) }

// appendS64 appends v in signed LEB128. It serves 32-bit constants as well.
func appendS64(dst []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(dst, c)
		}
		dst = append(dst, c|0x80)
	}
}
