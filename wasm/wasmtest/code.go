package wasmtest

import (
	"encoding/binary"
	"math"
	"strings"
)

// Code is the bytes of one or more instructions. It is a string, so that opcodes are constants and pieces are
// joined with +.
type Code string

// Instructions without an immediate.
const (
	Unreachable Code = "\x00"
	Nop         Code = "\x01"
	Else        Code = "\x05"
	End         Code = "\x0b"
	Return      Code = "\x0f"
	Drop        Code = "\x1a"
	Select      Code = "\x1b"

	MemorySize Code = "\x3f\x00"
	MemoryGrow Code = "\x40\x00"

	I32Eqz  Code = "\x45"
	I32Eq   Code = "\x46"
	I32Ne   Code = "\x47"
	I32LtS  Code = "\x48"
	I32LtU  Code = "\x49"
	I32GtS  Code = "\x4a"
	I32GtU  Code = "\x4b"
	I32LeU  Code = "\x4d"
	I32GeS  Code = "\x4e"
	I32GeU  Code = "\x4f"
	I64Eqz  Code = "\x50"
	I64Eq   Code = "\x51"
	I64LtS  Code = "\x53"
	I32Add  Code = "\x6a"
	I32Sub  Code = "\x6b"
	I32Mul  Code = "\x6c"
	I32DivS Code = "\x6d"
	I32DivU Code = "\x6e"
	I32RemU Code = "\x70"
	I32And  Code = "\x71"
	I32Or   Code = "\x72"
	I32Xor  Code = "\x73"
	I32Shl  Code = "\x74"
	I32ShrU Code = "\x76"
	I64Add  Code = "\x7c"
	I64Sub  Code = "\x7d"
	I64Mul  Code = "\x7e"
	I64And  Code = "\x83"
	I64Or   Code = "\x84"
	I64Xor  Code = "\x85"
	I64Shl  Code = "\x86"
	I64ShrU Code = "\x88"
	F64Add  Code = "\xa0"
	F64Mul  Code = "\xa2"

	I32WrapI64    Code = "\xa7"
	I64ExtendI32S Code = "\xac"
	I64ExtendI32U Code = "\xad"
	I32Extend8S   Code = "\xc0"

	// Bulk memory and table instructions, all on memory 0 and table 0.
	MemoryCopy Code = "\xfc\x0a\x00\x00"
	MemoryFill Code = "\xfc\x0b\x00"
	TableCopy  Code = "\xfc\x0e\x00\x00"
	TableGrow  Code = "\xfc\x0f\x00"
	TableSize  Code = "\xfc\x10\x00"
	TableFill  Code = "\xfc\x11\x00"
)

// Void is the block type of a block without parameters and results; a Type or a type index may stand there too.
const Void = Code("\x40")

// Of is the block type with one result of type t.
func Of(t Type) Code { return Code([]byte{byte(t)}) }

// Sig is the block type given by a type index: parameters and several results.
func Sig(typ uint32) Code { return Code(Sleb(int64(typ))) }

func op(o string, imm ...uint32) Code {
	b := []byte(o)
	for _, i := range imm {
		b = binary.AppendUvarint(b, uint64(i))
	}
	return Code(b)
}

// Block, Loop and If wrap a body and add its end. A branch to depth 0 inside leaves a Block and repeats a Loop.
func Block(bt Code, body ...Code) Code { return "\x02" + bt + Join(body...) + End }

// Loop is a loop: see Block.
func Loop(bt Code, body ...Code) Code { return "\x03" + bt + Join(body...) + End }

// If takes a condition from the stack. An empty other writes no else.
func If(bt Code, then Code, other Code) Code {
	if other == "" {
		return "\x04" + bt + then + End
	}
	return "\x04" + bt + then + Else + other + End
}

// Join concatenates pieces of code.
func Join(parts ...Code) Code {
	var s strings.Builder
	for _, p := range parts {
		s.WriteString(string(p))
	}
	return Code(s.String())
}

// Instructions with immediates, by their names in the specification.
func Br(depth uint32) Code              { return op("\x0c", depth) }
func BrIf(depth uint32) Code            { return op("\x0d", depth) }
func Call(fn uint32) Code               { return op("\x10", fn) }
func CallIndirect(typ, tbl uint32) Code { return op("\x11", typ, tbl) }
func LocalGet(i uint32) Code            { return op("\x20", i) }
func LocalSet(i uint32) Code            { return op("\x21", i) }
func LocalTee(i uint32) Code            { return op("\x22", i) }
func GlobalGet(i uint32) Code           { return op("\x23", i) }
func GlobalSet(i uint32) Code           { return op("\x24", i) }
func TableGet(t uint32) Code            { return op("\x25", t) }
func TableSet(t uint32) Code            { return op("\x26", t) }
func RefFunc(fn uint32) Code            { return op("\xd2", fn) }
func MemoryInit(data uint32) Code       { return op("\xfc\x08", data) + "\x00" }
func DataDrop(data uint32) Code         { return op("\xfc\x09", data) }
func TableInit(elem, tbl uint32) Code   { return op("\xfc\x0c", elem, tbl) }
func ElemDrop(elem uint32) Code         { return op("\xfc\x0d", elem) }

// BrTable branches by an index to one of targets, or to def.
func BrTable(targets []uint32, def uint32) Code {
	return "\x0e" + Code(Indices(targets...)) + op("", def)
}

// RefNull is ref.null of a reference type.
func RefNull(t Type) Code { return "\xd0" + Of(t) }

// I32Const is i32.const; a value above 2^31 is written as int32(v).
func I32Const(v int32) Code { return "\x41" + Code(Sleb(int64(v))) }

// I64Const is i64.const.
func I64Const(v int64) Code { return "\x42" + Code(Sleb(v)) }

// F64Const is f64.const.
func F64Const(v float64) Code {
	return "\x44" + Code(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
}

// Loads and stores at a byte offset, without an alignment hint.
func I32Load(off uint32) Code    { return op("\x28", 0, off) }
func I64Load(off uint32) Code    { return op("\x29", 0, off) }
func I32Load8U(off uint32) Code  { return op("\x2d", 0, off) }
func I32Store(off uint32) Code   { return op("\x36", 0, off) }
func I64Store(off uint32) Code   { return op("\x37", 0, off) }
func I32Store8(off uint32) Code  { return op("\x3a", 0, off) }
func I32Store16(off uint32) Code { return op("\x3b", 0, off) }

// V128Const is a vector of zeros.
func V128Const() Code { return "\xfd\x0c" + Code(make([]byte, 16)) }
