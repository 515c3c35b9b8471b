package admit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	w "edge/wasm/wasmtest"
)

// program writes random programs that end. With count set it puts in front of each instruction what adds one to a
// global: the plainest meter there is, against which the real one is held.
type program struct {
	rand    *rand.Rand
	count   bool
	funcs   []uint32 // may be called
	labels  []int    // open blocks, innermost last: -1 a block, otherwise the local that counts a loop's rounds
	counter int      // next free local for counting rounds
	depth   int
}

// Locals of every function: one parameter, three variables, and a counter for each loop.
const (
	programVars     = 4
	programCounters = 24
	countGlobal     = 1
)

// ins is one instruction.
func (p *program) ins(c w.Code) w.Code {
	if !p.count {
		return c
	}
	return w.Join(w.GlobalGet(countGlobal), w.I64Const(1), w.I64Add, w.GlobalSet(countGlobal), c)
}

// seq is several instructions.
func (p *program) seq(list ...w.Code) (out w.Code) {
	for _, c := range list {
		out += p.ins(c)
	}
	return out
}

// tick is what counts a loop instruction in each round.
func (p *program) tick() w.Code { return p.ins("") }

func (p *program) pick(n int) int { return p.rand.IntN(n) }

// expr leaves one i32.
func (p *program) expr() w.Code {
	if p.depth > 6 {
		return p.ins(w.LocalGet(uint32(p.pick(programVars))))
	}
	p.depth++
	defer func() { p.depth-- }()
	switch p.pick(13) {
	case 0, 1, 2:
		return p.ins(w.LocalGet(uint32(p.pick(programVars))))
	case 3:
		return p.ins(w.I32Const(int32(p.rand.Uint32())))
	case 4, 5:
		op := []w.Code{w.I32Add, w.I32Sub, w.I32Mul, w.I32Xor, w.I32Shl, w.I32LtS, w.I32And, w.I32Or}[p.pick(8)]
		return p.expr() + p.expr() + p.ins(op)
	case 6:
		return p.expr() + p.seq(w.I32Const(0xffc), w.I32And, w.I32Load(uint32(p.pick(100))))
	case 11:
		return p.expr() + p.expr() + p.seq(w.I32Const(1), w.I32Or, w.I32DivU)
	case 7:
		return p.expr() + p.expr() + p.expr() + p.ins(w.Select)
	case 8: // an if with a value
		cond := p.expr()
		p.labels = append(p.labels, -1)
		out := cond + p.ins(w.If(w.Of(w.I32), p.expr(), p.expr()))
		p.labels = p.labels[:len(p.labels)-1]
		return out
	case 9: // a block that a branch leaves with a value
		p.labels = append(p.labels, -1)
		body := p.expr() + p.expr() + p.ins(w.BrIf(0))
		p.labels = p.labels[:len(p.labels)-1]
		return p.ins(w.Block(w.Of(w.I32), body))
	case 10:
		if len(p.funcs) > 0 {
			return p.expr() + p.ins(w.Call(p.funcs[p.pick(len(p.funcs))]))
		}
	}
	return p.expr() + p.ins(w.I32Extend8S)
}

// forward returns a label that is a block's, counted from the innermost, if there is one.
func (p *program) forward() (uint32, bool) {
	for range 4 {
		if n := len(p.labels); n > 0 {
			if i := p.pick(n); p.labels[n-1-i] < 0 {
				return uint32(i), true
			}
		}
	}
	return 0, false
}

func (p *program) block(label int) w.Code {
	p.labels = append(p.labels, label)
	p.depth++
	var out w.Code
	for range p.pick(4) {
		out += p.stmt()
	}
	p.depth--
	p.labels = p.labels[:len(p.labels)-1]
	return out
}

// again repeats a loop if its counter, less one, is not zero.
func (p *program) again(label uint32, counter int) w.Code {
	c := uint32(counter)
	return p.seq(w.LocalGet(c), w.I32Const(1), w.I32Sub, w.LocalTee(c), w.I32Const(0), "\x4a" /* gt_s */, w.BrIf(label))
}

// stmt leaves nothing.
func (p *program) stmt() w.Code {
	switch n := p.pick(14); {
	case n < 3 || p.depth > 5:
		return p.expr() + p.ins(w.LocalSet(uint32(p.pick(programVars))))
	case n == 3:
		return p.expr() + p.seq(w.I32Const(0xffc), w.I32And) + p.expr() + p.ins(w.I32Store(uint32(p.pick(64))))
	case n == 4:
		return p.ins(w.Block(w.Void, p.block(-1)))
	case n == 5:
		return p.expr() + p.ins(w.If(w.Void, p.block(-1), ""))
	case n == 6:
		return p.expr() + p.ins(w.If(w.Void, p.block(-1), p.block(-1)))
	case n < 9 && p.counter < programCounters:
		c := p.counter
		p.counter++
		body := p.block(c)
		out := p.seq(w.I32Const(int32(1+p.pick(3))), w.LocalSet(uint32(programVars+c)))
		return out + w.Loop(w.Void, p.tick()+body+p.again(0, programVars+c))
	case n == 9:
		if l, ok := p.forward(); ok {
			return p.expr() + p.ins(w.BrIf(l))
		}
	case n == 10: // back to an outer loop
		if i := len(p.labels); i > 0 {
			if l := p.pick(i); p.labels[i-1-l] >= 0 {
				return p.again(uint32(l), programVars+p.labels[i-1-l])
			}
		}
	case n == 11:
		a, ok := p.forward()
		b, ok2 := p.forward()
		if ok && ok2 {
			return p.ins(w.Block(w.Void, p.expr()+p.seq(w.I32Const(3), w.I32And)+p.ins(w.BrTable([]uint32{a + 1, 0, b + 1}, 0))))
		}
	case n == 12:
		return p.expr() + p.ins(w.If(w.Void, p.expr()+p.ins(w.Return), ""))
	}
	return p.seq(w.I32Const(int32(p.pick(4096))), w.I32Const(int32(p.pick(256))), w.I32Const(int32(p.pick(31))), w.MemoryFill)
}

// build returns a module of four functions, the last exported as "f".
func (p *program) build() *w.Builder {
	b := w.New()
	b.Memory(1, 2)
	b.Global(w.I32, true, w.I32Const(0))
	b.Global(w.I64, true, w.I64Const(0))
	b.ExportGlobal("count", countGlobal)
	i := w.Types{w.I32}
	for range 4 {
		p.counter, p.labels, p.depth = 0, nil, 0
		var body w.Code
		for range 2 + p.pick(4) {
			body += p.stmt()
		}
		body += p.expr()
		p.funcs = append(p.funcs, b.Func(i, i, manyTypes(w.I32, programVars-1+programCounters), body))
	}
	b.Export("f", p.funcs[3])
	return edge(b)
}

// Random programs compute the same with and without the meter, and it counts what the plain one counts.
func TestRandomPrograms(t *testing.T) {
	seed := rand.Uint64()
	ended, units := 0, int64(0)
	for n := range 150 {
		h := newHost(t, interpreterConfig())
		if n%8 == 0 {
			h = newHost(t, compilerConfig())
		}
		made := func(count bool) *w.Builder {
			return (&program{rand: rand.New(rand.NewPCG(seed, uint64(n))), count: count}).build()
		}
		name := fmt.Sprintf("seed %d, program %d", seed, n)
		original := made(false).Bytes()
		m, err := Rewrite(original, DefaultLimits())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plain := made(true).Bytes()
		for _, arg := range []uint64{0, 1, 0xfffffff0} {
			if _, _, err := h.call(h.open(t, m.Code), "f", 20_000_000, arg); errors.Is(err, errFuel) {
				continue // it would take too long without the meter
			}
			b := h.open(t, m.Code)
			want, err1 := h.open(t, original).ExportedFunction("f").Call(ctx, arg)
			got, spent, err2 := h.call(b, "f", 1<<40, arg)
			if err1 != nil || err2 != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: f(%d) is %v, %v, rewritten %v, %v", name, arg, want, err1, got, err2)
			}
			c := h.open(t, plain)
			if _, err := c.ExportedFunction("f").Call(ctx, arg); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := int64(c.ExportedGlobal("count").Get()); spent != want {
				t.Errorf("%s: f(%d) took %d units, the plain meter says %d", name, arg, spent, want)
			}
			ended++
			units += spent
		}
		_ = h.runtime.Close(ctx)
	}
	if t.Logf("%d calls, %d units", ended, units); ended < 300 || units < 10_000 {
		t.Errorf("seed %d: only %d calls came to an end, in %d units", seed, ended, units)
	}
}
