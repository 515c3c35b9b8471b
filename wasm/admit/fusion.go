package admit

// The compiler that rewritten modules are made for, wazero 1.12.0, turns an order like 0 < (x & y) into one
// instruction that sets the processor's flags when a branch consumes it, and forgets on which side the zero stood:
// on amd64 the branch goes by (x & y) < 0, on arm64 unsigned orders are wrong with the zero on either side. The result
// is a wrong branch, not a fault. Equality is the same from both sides and comes out right.
//
// It does so only when the "and", the order and the branch stand in one basic block. The scan therefore follows,
// inside a basic block, which operands and locals may be the result of an "and", and the meter writes "!= 0" behind
// an order that takes one of them: the branch then consumes that, and the order is compiled on its own, rightly. The
// zero is not looked for, since it may come from afar. Such orders are rare: 317 in a Go guest of 3.2 MB.

// masks are the values of the current basic block that may be the result of an "and" as the compiler sees it: moves
// through locals, and shifts, which it drops when they shift by nothing, do not hide one.
//
// Invariant: slots ascends, and each is below body.height.
type masks struct {
	slots  []int    // positions on the operand stack
	locals []uint32 // for each local the basic block in which it was last given such a value
	block  uint32   // number of the current basic block, from 1
}

// reset begins a function. The scratch stays.
func (m *masks) reset(locals int) {
	if cap(m.locals) < locals {
		m.locals = make([]uint32, locals)
	}
	m.locals = m.locals[:locals]
	clear(m.locals)
	m.block = 0
	m.next()
}

// next begins a basic block: the compiler joins nothing across its border.
func (m *masks) next() {
	m.slots = m.slots[:0]
	m.block++
}

// cut forgets the operands from height upwards.
func (m *masks) cut(height int) {
	for n := len(m.slots); n > 0 && m.slots[n-1] >= height; n-- {
		m.slots = m.slots[:n-1]
	}
}

// above says whether one of the operands from height upwards may be the result of an "and".
func (m *masks) above(height int) bool {
	n := len(m.slots)
	return n > 0 && m.slots[n-1] >= height
}

// plain moves the operands of an instruction of one byte and follows masks through it. local is the one that it
// names, if it names one.
func (s *source) plain(at int, op byte, i instruction, local uint32) {
	b := &s.scan
	pop, push := int(i.pop), int(i.push)
	if !b.live || s.err != nil {
		return
	}
	takes := b.masks.above(b.height - pop)
	s.move(at, pop, push)
	leaves := false
	switch op {
	case opI32And, opI64And:
		leaves = true
	case opI32Shl, opI32ShrS, opI32ShrU, opI64Shl, opI64ShrS, opI64ShrU:
		leaves = takes
	case opLocalGet:
		leaves = b.masks.locals[local] == b.masks.block
	case opLocalSet, opLocalTee:
		b.masks.locals[local] = 0
		if takes {
			b.masks.locals[local] = b.masks.block
		}
		leaves = takes && op == opLocalTee
	default:
		if takes && isOrder(op) {
			b.points = append(b.points, point{from: int32(s.pos), to: int32(s.pos), kind: pointOrder})
		}
	}
	if leaves && s.err == nil {
		b.masks.slots = append(b.masks.slots, b.height-1)
	}
}

// isOrder reports whether op is one of lt, gt, le, ge, signed or not, of i32 or i64.
func isOrder(op byte) bool {
	return op >= opI32LtS && op <= opI32GeU || op >= opI64LtS && op <= opI64GeU
}
