package admit

// What follows an opcode in the binary.
type immediate uint8

const (
	immRefused immediate = iota // not an instruction of Core 2.0, or one that is not admitted
	immNone                     // nothing
	immControl                  // has its own case in the scan
	immMem                      // alignment, offset
	immMemLane                  // alignment, offset, lane
	immLane                     // one byte
	imm4                        // a float
	imm8                        // a float
	imm16                       // a vector constant or a shuffle
	immI32                      // a signed constant
	immI64                      //
	immLocal                    // indices
	immGlobal                   //
	immTable                    //
	immRefType                  // one byte
	immSelect                   // a vector of one type
	immMemory                   // the memory's index: one zero byte
	immFunc                     //
	immBulk                     // 0xfc: has its own case
)

// instruction is what the scan knows of an opcode: its immediates, how many values it takes from the operand stack
// and leaves there, and for memory accesses the natural alignment as a power of two.
type instruction struct {
	imm       immediate
	pop, push uint8
	align     uint8
}

const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableSet     = 0x26
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Ne        = 0x47
	opI32LtS       = 0x48
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI32GeU       = 0x4f
	opI64LtS       = 0x53
	opI64GeU       = 0x5a
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI32Shl       = 0x74
	opI32ShrS      = 0x75
	opI32ShrU      = 0x76
	opI64Sub       = 0x7d
	opI64And       = 0x83
	opI64Shl       = 0x86
	opI64ShrS      = 0x87
	opI64ShrU      = 0x88
	opExtendU      = 0xad
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	blockVoid = 0x40

	miscMemoryInit = 8
	miscDataDrop   = 9
	miscMemoryCopy = 10
	miscMemoryFill = 11
	miscTableInit  = 12
	miscElemDrop   = 13
	miscTableCopy  = 14
	miscTableGrow  = 15
	miscTableSize  = 16
	miscTableFill  = 17

	vectorConst = 12
)

// plain, misc and vector are the opcodes of one byte, behind 0xfc and behind 0xfd. They never change.
var (
	plain  = plainTable()
	misc   = miscTable()
	vector = vectorTable()
)

type opTable [256]instruction

func (t *opTable) set(first, last int, i instruction) {
	for op := first; op <= last; op++ {
		t[op] = i
	}
}

func plainTable() *opTable {
	t := new(opTable)
	for _, op := range []int{opUnreachable, opBlock, opLoop, opIf, opElse, opEnd, opBr, opBrIf, opBrTable, opReturn,
		opCall, opCallIndirect} {
		t.set(op, op, instruction{imm: immControl})
	}
	t.set(0x01, 0x01, instruction{imm: immNone}) // nop
	t.set(0x1a, 0x1a, instruction{imm: immNone, pop: 1})
	t.set(0x1b, 0x1b, instruction{imm: immNone, pop: 3, push: 1})
	t.set(0x1c, 0x1c, instruction{imm: immSelect, pop: 3, push: 1})
	t.set(0x20, 0x20, instruction{imm: immLocal, push: 1})
	t.set(0x21, 0x21, instruction{imm: immLocal, pop: 1})
	t.set(0x22, 0x22, instruction{imm: immLocal, pop: 1, push: 1})
	t.set(0x23, 0x23, instruction{imm: immGlobal, push: 1})
	t.set(0x24, 0x24, instruction{imm: immGlobal, pop: 1})
	t.set(0x25, 0x25, instruction{imm: immTable, pop: 1, push: 1})
	t.set(0x26, 0x26, instruction{imm: immTable, pop: 2})
	for i, align := range []uint8{2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2} { // loads
		t.set(0x28+i, 0x28+i, instruction{imm: immMem, pop: 1, push: 1, align: align})
	}
	for i, align := range []uint8{2, 3, 2, 3, 0, 1, 0, 1, 2} { // stores
		t.set(0x36+i, 0x36+i, instruction{imm: immMem, pop: 2, align: align})
	}
	t.set(0x3f, 0x3f, instruction{imm: immMemory, push: 1})
	t.set(0x40, 0x40, instruction{imm: immMemory, pop: 1, push: 1})
	t.set(0x41, 0x41, instruction{imm: immI32, push: 1})
	t.set(0x42, 0x42, instruction{imm: immI64, push: 1})
	t.set(0x43, 0x43, instruction{imm: imm4, push: 1})
	t.set(0x44, 0x44, instruction{imm: imm8, push: 1})
	unary, binary := instruction{imm: immNone, pop: 1, push: 1}, instruction{imm: immNone, pop: 2, push: 1}
	t.set(0x45, 0x45, unary)
	t.set(0x46, 0x4f, binary)
	t.set(0x50, 0x50, unary)
	t.set(0x51, 0x66, binary)
	t.set(0x67, 0x69, unary)
	t.set(0x6a, 0x78, binary)
	t.set(0x79, 0x7b, unary)
	t.set(0x7c, 0x8a, binary)
	t.set(0x8b, 0x91, unary)
	t.set(0x92, 0x98, binary)
	t.set(0x99, 0x9f, unary)
	t.set(0xa0, 0xa6, binary)
	t.set(0xa7, 0xc4, unary)
	t.set(0xd0, 0xd0, instruction{imm: immRefType, push: 1})
	t.set(0xd1, 0xd1, unary)
	t.set(0xd2, 0xd2, instruction{imm: immFunc, push: 1})
	return t
}

func miscTable() *opTable {
	t := new(opTable)
	t.set(0, 7, instruction{imm: immNone, pop: 1, push: 1})
	t.set(miscMemoryInit, miscMemoryInit, instruction{imm: immBulk, pop: 3})
	t.set(miscDataDrop, miscDataDrop, instruction{imm: immBulk})
	t.set(miscMemoryCopy, miscMemoryFill, instruction{imm: immBulk, pop: 3})
	t.set(miscTableInit, miscTableInit, instruction{imm: immBulk, pop: 3})
	t.set(miscElemDrop, miscElemDrop, instruction{imm: immBulk})
	t.set(miscTableCopy, miscTableCopy, instruction{imm: immBulk, pop: 3})
	t.set(miscTableSize, miscTableSize, instruction{imm: immBulk, push: 1})
	t.set(miscTableFill, miscTableFill, instruction{imm: immBulk, pop: 3})
	return t
}

func vectorTable() *opTable {
	t := new(opTable)
	unary, binary := instruction{imm: immNone, pop: 1, push: 1}, instruction{imm: immNone, pop: 2, push: 1}
	t.set(13, 255, binary)
	for _, op := range []int{154, 162, 165, 166, 175, 176, 178, 179, 180, 187, 194, 197, 198, 207, 208, 210, 211, 212,
		226, 238} { // never given out
		t.set(op, op, instruction{})
	}
	for _, r := range [][2]int{{15, 20}, {77, 77}, {83, 83}, {94, 100}, {103, 106}, {116, 117}, {122, 122}, {124, 129},
		{131, 132}, {135, 138}, {148, 148}, {160, 161}, {163, 164}, {167, 170}, {192, 193}, {195, 196}, {199, 202},
		{224, 225}, {227, 227}, {236, 237}, {239, 239}, {248, 255}} {
		t.set(r[0], r[1], unary)
	}
	for op, align := range []uint8{4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3} { // loads
		t.set(op, op, instruction{imm: immMem, pop: 1, push: 1, align: align})
	}
	t.set(11, 11, instruction{imm: immMem, pop: 2, align: 4})
	t.set(vectorConst, vectorConst, instruction{imm: imm16, push: 1})
	t.set(13, 13, instruction{imm: imm16, pop: 2, push: 1}) // shuffle
	t.set(21, 34, instruction{imm: immLane, pop: 1, push: 1})
	for _, op := range []int{23, 26, 28, 30, 32, 34} { // replace a lane
		t.set(op, op, instruction{imm: immLane, pop: 2, push: 1})
	}
	t.set(82, 82, instruction{imm: immNone, pop: 3, push: 1})
	for i := range 4 {
		t.set(84+i, 84+i, instruction{imm: immMemLane, pop: 2, push: 1, align: uint8(i)})
		t.set(88+i, 88+i, instruction{imm: immMemLane, pop: 2, align: uint8(i)})
	}
	t.set(92, 92, instruction{imm: immMem, pop: 1, push: 1, align: 2})
	t.set(93, 93, instruction{imm: immMem, pop: 1, push: 1, align: 3})
	return t
}
