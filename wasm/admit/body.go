package admit

// pointKind is what the rewrite does at one place of a body.
type pointKind uint8

const (
	pointCharge       pointKind = iota // take units from the counter
	pointLoop                          // a loop begins: ask for fuel when the counter is negative
	pointReturn                        // charge and leave through the epilogue
	pointCall                          // charge, write back, call by the new number, load
	pointCallIndirect                  // the same, the instruction stays as it is
	pointCallDead                      // a call that is never reached: only renumber
	pointRefFunc                       // renumber
	pointBulk                          // charge units and length/32, ask when negative
	pointGrow                          // charge units and 1,024 per page, ask when negative
	pointOrder                         // an order of a mask was just computed: keep the compiler from joining it with a branch
)

// point is one place of a body where the rewrite writes something: instead of the bytes [from, to) of the original,
// or before them when they are none.
type point struct {
	from, to int32
	units    uint32 // instructions since the last charge, this one included where it is executed before the charge's end
	arg      uint32 // function index, or for a return the number of open blocks
	kind     pointKind
}

// control is an open block.
type control struct {
	op       byte // opBlock, opLoop, opIf, opElse; opEnd for the function itself
	live     bool // its beginning can be reached
	targeted bool // a branch names it
	height   int  // operands below its parameters
	params   int
	results  int
}

// body is what the scan finds out about one function. It is reused from one function to the next.
//
// Invariant: units counts the instructions of the current basic block that no point has charged yet; it is zero
// while live is false.
type body struct {
	typ       uint32 // index of the function's type
	params    int
	locals    int  // parameters included
	groups    int  // groups of locals
	groupSpan span // the groups behind their count
	code      span // instructions, the last end included

	points []point
	stack  []control
	masks  masks

	live   bool
	units  uint32
	height int // operands on the stack

	maxHeight     int
	instrs        int // all of them, dead ones included
	blocks        int // see Limits.Blocks
	branchEntries int
	blockValues   int // see Limits.BlockValues
	calls         bool
	loops         bool
	bulk          bool
	vector        bool
}

// leaf reports that a function is so small that it needs neither a check nor a depth of its own: it calls nothing,
// repeats nothing and moves nothing in bulk. A caller's body can hold 65,536 calls of it, 4 million instructions,
// before the caller itself comes to a check.
func (b *body) leaf() bool { return !b.calls && !b.loops && !b.bulk && b.instrs <= leafInstrs }

const leafInstrs = 64

func (s *source) readCode() {
	end := s.end
	n := s.count("bodies", 3, s.lim.Functions)
	if own := len(s.funcs) - s.imported(); s.err == nil && n != own {
		s.fail(-1, "%d bodies for %d functions", n, own)
		return
	}
	s.code = make([]byte, 0, s.left()*7/4+64*n)
	total, work := 0, 0
	for i := 0; i < n && s.err == nil; i++ {
		s.fn = s.imported() + i
		at := s.pos
		size := s.u32("a body's size")
		switch {
		case s.err != nil:
			return
		case int64(size) > int64(end-s.pos):
			s.fail(at, "a body of %d bytes is announced, %d are left", size, end-s.pos)
			return
		case int64(size) > int64(s.lim.BodyBytes):
			s.fail(at, "the body has %d bytes, allowed are %d: split the function, or build with less inlining (-Os)", size, s.lim.BodyBytes)
			return
		}
		s.end = s.pos + int(size)
		s.readLocals(s.funcs[s.fn])
		if total += s.scan.locals; s.err == nil && total > s.lim.TotalLocals {
			s.fail(at, "the functions have more than %d locals together", s.lim.TotalLocals)
		}
		s.readBody()
		if work += s.scan.blocks * s.scan.blocks; s.err == nil && work > s.lim.BlockSquares {
			s.fail(at, "the functions have too many basic blocks together: split the largest ones, or build for size (-Os)")
		}
		if s.err != nil {
			return
		}
		s.code = s.meter.function(s.code, s)
		s.end = end
	}
	s.bodies, s.fn = n, -1
}

// readLocals prepares the scan of the function of type typ and reads its locals.
func (s *source) readLocals(typ uint32) {
	b := &s.scan
	t := &s.types[typ]
	*b = body{typ: typ, params: len(t.params), points: b.points[:0], stack: b.stack[:0], masks: b.masks, live: true}
	at := s.pos
	b.groups = s.count("groups of locals", 2, s.lim.Locals)
	b.groupSpan.from = s.pos
	total := uint64(b.params)
	for i := 0; i < b.groups && s.err == nil; i++ {
		total += uint64(s.u32("a group's size"))
		t := s.u8("a local's type")
		if s.err == nil && !isValue(t) {
			s.fail(s.pos-1, "value type %#x is not known", t)
		}
		b.vector = b.vector || t == 0x7b
	}
	if s.err == nil && total > uint64(s.lim.Locals) {
		s.fail(at, "%d parameters and locals, allowed are %d: split the function", total, s.lim.Locals)
	}
	b.groupSpan.to = s.pos
	b.locals = int(total)
	if s.err == nil {
		b.masks.reset(b.locals)
	}
	b.code = span{s.pos, s.end}
	b.stack = append(b.stack, control{op: opEnd, live: true, results: len(t.results)})
}

// point notes that something is to be written for the bytes [from, to), with all that is not charged yet.
func (b *body) point(kind pointKind, from, to int, arg uint32) {
	b.points = append(b.points, point{from: int32(from), to: int32(to), units: b.units, arg: arg, kind: kind})
	b.units = 0
}

// block counts n basic blocks that the compiler will make at this place, and carried values that lead there.
func (s *source) block(at, n, carried int) {
	b := &s.scan
	b.blocks += n
	b.blockValues += n * (b.locals + b.height + carried)
	if b.blocks > s.lim.Blocks {
		s.fail(at, "more than %d basic blocks: split the function", s.lim.Blocks)
	} else if b.blockValues > s.lim.BlockValues {
		s.fail(at, "%d basic blocks, %d locals, %d operands are more than the compiler is trusted with: split the function", b.blocks, b.locals, b.height)
	}
}

// charge notes a charge before the instruction at from, if there is something to charge.
func (b *body) charge(from int) {
	if b.units > 0 {
		b.point(pointCharge, from, from, 0)
	}
}

// dead begins code that is never reached.
func (b *body) dead() {
	b.live, b.units = false, 0
	b.masks.next()
	b.height = b.stack[len(b.stack)-1].height
}

// move takes pop operands from the stack and puts push there. Nothing is known of the stack in dead code.
func (s *source) move(at, pop, push int) {
	b := &s.scan
	if !b.live {
		return
	}
	b.height -= pop
	if b.height < b.stack[len(b.stack)-1].height {
		s.fail(at, "an instruction takes more operands than there are")
		return
	}
	b.masks.cut(b.height)
	b.height += push
	b.maxHeight = max(b.maxHeight, b.height)
}
