package admit

// control reads the rest of a control instruction.
func (s *source) control(at int, op byte) {
	b := &s.scan
	switch op {
	case opUnreachable:
		b.dead()
	case opBlock, opLoop, opIf:
		s.open(at, op)
	case opElse:
		top := &b.stack[len(b.stack)-1]
		if top.op != opIf {
			s.fail(at, "else without if")
			return
		}
		b.charge(at)
		top.op = opElse
		b.live, b.height, b.units = top.live, top.height+top.params, 0
		b.masks.next()
	case opEnd:
		s.closeBlock(at)
	case opBr:
		s.target(at)
		b.charge(at)
		b.dead()
	case opBrIf:
		s.move(at, 1, 0)
		s.block(at, 1, s.target(at))
		b.charge(at)
		b.masks.next()
	case opBrTable:
		s.move(at, 1, 0)
		s.branchTable(at)
		b.charge(at)
		b.dead()
	case opReturn:
		if b.live {
			b.point(pointReturn, at, s.pos, uint32(len(b.stack)-1))
		}
		b.dead()
	case opCall:
		f := s.index("function", len(s.funcs))
		if s.err != nil {
			return
		}
		kind := pointCall
		if !b.live {
			kind = pointCallDead
		}
		b.call(kind, at, s.pos, f)
		t := &s.types[s.funcs[f]]
		s.move(at, len(t.params), len(t.results))
	case opCallIndirect:
		t := s.index("type", len(s.types))
		s.index("table", s.tables)
		if s.err != nil {
			return
		}
		if b.live {
			b.call(pointCallIndirect, at, s.pos, 0)
		}
		s.move(at, len(s.types[t].params)+1, len(s.types[t].results))
	}
}

func (b *body) call(kind pointKind, from, to int, arg uint32) {
	b.calls = true
	b.point(kind, from, to, arg)
}

// open begins a block.
func (s *source) open(at int, op byte) {
	b := &s.scan
	c := control{op: op, live: b.live}
	c.params, c.results = s.blockType(at)
	if op == opIf {
		s.move(at, 1, 0)
	}
	kept := b.masks.slots
	s.move(at, c.params, 0)
	if s.err != nil {
		return
	}
	c.height = b.height
	b.height += c.params
	if b.masks.slots = kept; op != opBlock {
		b.masks.next() // a block's parameters stay what they are, the others begin a basic block
	}
	if len(b.stack) > s.lim.Nesting {
		s.fail(at, "more than %d blocks inside one another: split the function", s.lim.Nesting)
	}
	s.block(at, blockCost[op], c.results)
	switch {
	case op == opLoop && b.live:
		b.loops = true
		b.units-- // the loop instruction is executed in each round: it belongs to the loop's own first block
		b.charge(at)
		b.point(pointLoop, s.pos, s.pos, 0)
		b.units = 1
	case op == opIf:
		b.charge(at)
	}
	b.stack = append(b.stack, c)
}

// blockCost is the number of basic blocks that the compiler makes of an instruction, together with what the meter
// adds; bulk instructions contain loops.
var blockCost = [256]int{opBlock: 1, opLoop: 3, opIf: 2}

const (
	bulkCost = 4
	growCost = 2
)

// closeBlock ends a block. What stands behind an end can be reached as far as validation knows whenever the block's
// beginning can.
func (s *source) closeBlock(at int) {
	b := &s.scan
	c := b.stack[len(b.stack)-1]
	b.stack = b.stack[:len(b.stack)-1]
	if b.live && b.height != c.height+c.results {
		s.fail(at, "a block ends with %d operands, its type says %d", b.height-c.height, c.results)
		return
	}
	// Only where several ways meet must each have paid for its own part.
	if c.targeted && c.op != opLoop || c.op == opIf || c.op == opElse || c.op == opEnd {
		b.charge(at)
	}
	b.live, b.height = c.live, c.height+c.results
	b.masks.next()
	b.maxHeight = max(b.maxHeight, b.height)
}

// blockType reads a block's type and returns how many parameters and results it has.
func (s *source) blockType(at int) (params, results int) {
	if s.pos < s.end {
		switch t := s.buf[s.pos]; {
		case t == blockVoid:
			s.pos++
			return 0, 0
		case isValue(t):
			s.pos++
			return 0, 1
		}
	}
	t := s.signed(33, "a block's type")
	if s.err == nil && (t < 0 || t >= int64(len(s.types))) {
		s.fail(at, "block type %d does not exist, there are %d types", t, len(s.types))
	}
	if s.err != nil {
		return 0, 0
	}
	return len(s.types[t].params), len(s.types[t].results)
}

// target reads the label of a branch and returns the number of values that the branch carries.
func (s *source) target(at int) int {
	b := &s.scan
	l := s.u32("a label")
	if s.err != nil {
		return 0
	}
	if int64(l) >= int64(len(b.stack)) {
		s.fail(at, "label %d does not exist, there are %d", l, len(b.stack))
		return 0
	}
	c := &b.stack[len(b.stack)-1-int(l)]
	c.targeted = true
	if c.op == opLoop {
		return c.params
	}
	return c.results
}

func (s *source) branchTable(at int) {
	b := &s.scan
	n := s.count("branch targets", 1, s.lim.BranchEntries)
	b.branchEntries += n
	if s.err == nil && b.branchEntries > s.lim.BranchEntries {
		s.fail(at, "branch tables of more than %d entries together: split the function", s.lim.BranchEntries)
	}
	for i := 0; i <= n && s.err == nil; i++ {
		b.blockValues += s.target(at)
	}
	s.block(at, 1, 0)
}
