package wasmtest

// What a guest's memory looks like: a subject at subjectAt, an area for hooks at scratchAt, the input buffer from
// bufferAt, the records behind the input.
const (
	subject   = "edge.test"
	subjectAt = 1024
	scratchAt = 2048
	bufferAt  = 65536
	header    = 16 + len(subject) // a record's fixed part and its subject
)

// Locals of edge_v1_run that a hook may read, and the two that it may change: out and skip.
const (
	FramePtr  = 0 // i32, the frame
	FrameLen  = 1 // i32
	Count     = 2 // i32, number of events
	Index     = 3 // i32, index of this event
	Desc      = 4 // i32, this event's descriptor
	Data      = 5 // i32, this event's data
	DataLen   = 6 // i32
	Out       = 7 // i32, where the next record begins
	Skip      = 8 // i32, non-zero: no message for this event
	Temp      = 9 // i32, free for hooks
	Temp64    = 10
	inEnd     = 0 // global: end of the input buffer, beginning of the records
	Counter   = 1 // global i32, mutable, free for hooks
	Scratch   = scratchAt
	MemoryMax = 256 // pages of every guest here
)

// Parts of a guest: what it does besides echoing.
type Parts struct {
	Hook    Code             // runs once per event, before its message is written; empty stack before and after
	Before  Code             // runs once per call of edge_v1_run
	Imports func(b *Builder) // adds imports; the first has function index 0
	Extra   func(b *Builder) // adds functions, exports, data; called before the guest's own functions are made
}

// Guest returns an edge_v1 guest that writes one message per event (subject edge.test, no headers, payload = data)
// and runs hook before each.
func Guest(hook Code) []byte { return Parts{Hook: hook}.Bytes() }

// OnX returns code that runs only when the event's data begins with 'X'.
func OnX(code Code) Code {
	return Join(LocalGet(DataLen), If(Void, Join(
		LocalGet(Data), I32Load8U(0), I32Const('X'), I32Eq, If(Void, code, ""),
	), ""))
}

// Bytes returns the guest.
func (p Parts) Bytes() []byte {
	b := New()
	if p.Imports != nil {
		p.Imports(b)
	}
	b.Memory(8, MemoryMax)
	b.ExportMemory("memory")
	b.Data(subjectAt, subject)
	b.Global(I32, true, I32Const(bufferAt))
	b.Global(I32, true, I32Const(0))
	if p.Extra != nil {
		p.Extra(b)
	}
	b.Export("edge_v1_buffer", b.Func(Types{I32}, Types{I32}, Types{I32}, bufferBody))
	b.Export("edge_v1_run", b.Func(Types{I32, I32}, Types{I64},
		Types{I32, I32, I32, I32, I32, I32, I32, I32, I64}, runBody(p)))
	return b.Bytes()
}

// bufferBody grows memory so that len bytes of input and their records fit: a record is its event's data and 25
// bytes, and each event brings a descriptor of 64, so that the records are shorter than the frame. Fan-out to two
// needs twice that.
var bufferBody = Join(
	LocalGet(0), I32Const(MemoryMax*65536/3-2*65536), I32GtU, If(Void, Join(I32Const(0), Return), ""),
	LocalGet(0), I32Const(bufferAt+7), I32Add, I32Const(-8), I32And, GlobalSet(inEnd),
	// pages needed = (2*64 KiB + 3*len + 64 KiB) >> 16
	LocalGet(0), I32Const(3), I32Mul, I32Const(3*65536), I32Add, I32Const(16), I32ShrU,
	MemorySize, I32Sub, LocalTee(1), I32Const(0), I32GtS,
	If(Void, Join(LocalGet(1), MemoryGrow, I32Const(-1), I32Eq, If(Void, Join(I32Const(0), Return), "")), ""),
	I32Const(bufferAt),
)

func runBody(p Parts) Code {
	return Join(
		LocalGet(FramePtr), I32Load(4), LocalSet(Count),
		GlobalGet(inEnd), LocalSet(Out),
		p.Before,
		Block(Void, Loop(Void,
			LocalGet(Index), LocalGet(Count), I32GeU, BrIf(1),
			LocalGet(FramePtr), I32Const(16), I32Add, LocalGet(Index), I32Const(64), I32Mul, I32Add, LocalSet(Desc),
			LocalGet(FramePtr), LocalGet(Desc), I32Load(32), I32Add, LocalSet(Data),
			LocalGet(Desc), I32Load(36), LocalSet(DataLen),
			I32Const(0), LocalSet(Skip),
			p.Hook,
			LocalGet(Skip), I32Eqz, If(Void, Message(0, LocalGet(Data), LocalGet(DataLen)), ""),
			LocalGet(Index), I32Const(1), I32Add, LocalSet(Index),
			LocalGet(FramePtr), LocalGet(Index), I32Store(8),
			Br(0),
		)),
		Result(GlobalGet(inEnd), Join(LocalGet(Out), GlobalGet(inEnd), I32Sub)),
	)
}

// Message writes one record of a kind for this event at Out, with the bytes at ptr, and moves Out behind it. A
// record of kind 1 (reject) has no subject.
func Message(kind int32, ptr, n Code) Code {
	sub := int32(len(subject))
	if kind != 0 {
		sub = 0
	}
	return Join(
		LocalGet(Out), LocalGet(Index), I32Store(0),
		LocalGet(Out), I32Const(kind), I32Store16(4),
		LocalGet(Out), I32Const(sub), I32Store16(6),
		LocalGet(Out), I32Const(0), I32Store(8),
		LocalGet(Out), n, I32Store(12),
		LocalGet(Out), I32Const(16), I32Add, I32Const(subjectAt), I32Const(sub), MemoryCopy,
		LocalGet(Out), I32Const(16+sub), I32Add, ptr, n, MemoryCopy,
		LocalGet(Out), I32Const(16+sub), I32Add, n, I32Add, LocalSet(Out),
	)
}

// Result packs a pointer and a length as edge_v1_run returns them.
func Result(ptr, n Code) Code {
	return Join(ptr, I64ExtendI32U, I64Const(32), I64Shl, n, I64ExtendI32U, I64Or)
}
