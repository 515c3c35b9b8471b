package wasmtest

// Echo turns each event into one message: subject edge.test, no headers, payload = data.
func Echo() []byte { return Guest("") }

// RejectX rejects events that begin with 'X' with the reason "begins with X" and echoes the others.
func RejectX() []byte {
	const reason = "begins with X"
	p := Parts{
		Hook:  OnX(Join(Message(1, I32Const(scratchAt), I32Const(int32(len(reason)))), I32Const(1), LocalSet(Skip))),
		Extra: func(b *Builder) { b.Data(scratchAt, reason) },
	}
	return p.Bytes()
}

// DropX writes no record for events that begin with 'X'.
func DropX() []byte { return Guest(OnX(Join(I32Const(1), LocalSet(Skip)))) }

// FanOutX writes two equal messages for events that begin with 'X'.
func FanOutX() []byte { return Guest(OnX(Message(0, LocalGet(Data), LocalGet(DataLen)))) }

// CountEvents answers each event with a payload of eight bytes: the number of events so far since the instance was
// made, as u32 once from a global and once from memory. After a reset both begin at one again.
func CountEvents() []byte {
	at := I32Const(scratchAt)
	return Guest(Join(
		GlobalGet(Counter), I32Const(1), I32Add, GlobalSet(Counter),
		at, GlobalGet(Counter), I32Store(0),
		at, at, I32Load(4), I32Const(1), I32Add, I32Store(4),
		Message(0, at, I32Const(8)),
		I32Const(1), LocalSet(Skip),
	))
}

// EchoConfig answers each event with the configuration's text. edge_v1_config refuses
// with 7 when the text begins with 'X', traps when it begins with 'T', and keeps at most 1,024 bytes.
func EchoConfig() []byte {
	p := Parts{
		Hook: Join(Message(0, I32Const(scratchAt), GlobalGet(Counter)), I32Const(1), LocalSet(Skip)),
		Extra: func(b *Builder) {
			b.Export("edge_v1_config", b.Func(Types{I32, I32}, Types{I32}, nil,
				LocalGet(0), I32Load8U(0), I32Const('X'), I32Eq, If(Void, Join(I32Const(7), Return), ""),
				LocalGet(0), I32Load8U(0), I32Const('T'), I32Eq, If(Void, Unreachable, ""),
				LocalGet(1), I32Const(1024), I32GtU, If(Void, Join(I32Const(8), Return), ""),
				LocalGet(1), GlobalSet(Counter),
				I32Const(scratchAt), LocalGet(0), LocalGet(1), MemoryCopy,
				I32Const(0),
			))
		},
	}
	return p.Bytes()
}

// LogX writes the data of events that begin with 'X' to edge.log at level 1, and echoes all.
func LogX() []byte {
	p := Parts{
		Imports: func(b *Builder) { b.Import("edge", "log", Types{I32, I32, I32}, nil) },
		Hook:    OnX(Join(I32Const(1), LocalGet(Data), LocalGet(DataLen), Call(0))),
	}
	return p.Bytes()
}

// hostile returns a guest that runs code at each event, or with x only at those that begin with 'X'.
func hostile(code Code, x bool, extra func(*Builder)) []byte {
	if x {
		code = OnX(code)
	}
	return Parts{Hook: code, Extra: extra}.Bytes()
}

// Trap executes unreachable.
func Trap() []byte { return hostile(Unreachable, false, nil) }

// TrapX traps at 'X'.
func TrapX() []byte { return hostile(Unreachable, true, nil) }

// OutOfBounds stores behind the end of memory: a trap after the frame has been overwritten with zeros.
func OutOfBounds() []byte { return hostile(outOfBounds, false, nil) }

// OutOfBoundsX does so at 'X'.
func OutOfBoundsX() []byte { return hostile(outOfBounds, true, nil) }

var outOfBounds = Join(LocalGet(FramePtr), I32Const(0), LocalGet(FrameLen), MemoryFill,
	I32Const(-1), I32Const(1), I32Store(0))

// Spin runs an empty loop for ever.
func Spin() []byte { return hostile(Loop(Void, Br(0)), false, nil) }

// SpinX spins at 'X'.
func SpinX() []byte { return hostile(Loop(Void, Br(0)), true, nil) }

// Recurse calls itself for ever.
func Recurse() []byte { return hostile(Call(0), false, recursion) }

// RecurseX recurses at 'X'.
func RecurseX() []byte { return hostile(Call(0), true, recursion) }

func recursion(b *Builder) { b.Func(nil, nil, Types{I64, I64, I64, I64}, Call(0), Nop) }

// ExpTree makes 2^40 calls without a loop and never deeper than 40.
func ExpTree() []byte { return hostile(Join(I32Const(40), Call(0)), false, tree) }

// ExpTreeX does so at 'X'.
func ExpTreeX() []byte { return hostile(Join(I32Const(40), Call(0)), true, tree) }

func tree(b *Builder) {
	less := Join(LocalGet(0), I32Const(1), I32Sub, Call(0))
	b.Func(Types{I32}, nil, nil, LocalGet(0), If(Void, less+less, ""))
}

// Grow takes memory, page by page, until it gets no more, and then goes on as Echo.
func Grow() []byte { return hostile(grow, false, nil) }

// GrowX does so at 'X'.
func GrowX() []byte { return hostile(grow, true, nil) }

var grow = Loop(Void, I32Const(1), MemoryGrow, I32Const(-1), I32Ne, BrIf(0))

// Fill fills 256 KiB of its memory again and again: few instructions, much work.
func Fill() []byte { return hostile(fill, false, nil) }

// FillX does so at 'X'.
func FillX() []byte { return hostile(fill, true, nil) }

var fill = Loop(Void, I32Const(bufferAt), I32Const(1), I32Const(256<<10), MemoryFill, Br(0))

// WildResult returns a pointer and a length outside its memory.
func WildResult() []byte { return hostile(wild, false, nil) }

// WildResultX does so when the batch contains an event that begins with 'X'.
func WildResultX() []byte { return hostile(wild, true, nil) }

var wild = Join(Result(I32Const(-16), I32Const(4096)), Return)

// LyingRecord claims a payload of 4 GiB in its record.
func LyingRecord() []byte { return hostile(lying, false, nil) }

// LyingRecordX does so at 'X'.
func LyingRecordX() []byte { return hostile(lying, true, nil) }

// The message is written properly first, then its payload length is overwritten and the event's own is skipped.
var lying = Join(Message(0, LocalGet(Data), I32Const(0)),
	LocalGet(Out), I32Const(int32(header)), I32Sub, I32Const(-1), I32Store(12), I32Const(1), LocalSet(Skip))
