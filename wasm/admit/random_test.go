package admit

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

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

// of is one of several pieces of code.
func (p *program) of(list ...w.Code) w.Code { return list[p.pick(len(list))] }

// variable is the index of one of the function's variables.
func (p *program) variable() uint32 { return uint32(p.pick(programVars)) }

// number is a constant, often one at which something changes.
func (p *program) number() int32 {
	list := []int32{0, 0, 0, 1, -1, 31, 32, 0x7f, 0xff, -0x80000000, 0x7fffffff, int32(p.rand.Uint32())}
	return list[p.pick(len(list))]
}

// expr leaves one i32.
func (p *program) expr() w.Code {
	if p.depth > 6 {
		return p.ins(w.LocalGet(p.variable()))
	}
	p.depth++
	defer func() { p.depth-- }()
	switch p.pick(18) {
	case 0, 1, 2:
		return p.ins(w.LocalGet(p.variable()))
	case 3:
		return p.ins(w.I32Const(p.number()))
	case 4:
		op := p.of(w.I32Add, w.I32Sub, w.I32Mul, w.I32Xor, w.I32Or, w.I32And, w.I32Shl, w.I32ShrU, "\x75", "\x77", "\x78")
		return p.expr() + p.expr() + p.ins(op)
	case 5:
		return p.order()
	case 6:
		load := p.of("\x28\x02", "\x2c\x00", "\x2d\x00", "\x2e\x01", "\x2f\x01") + w.Code(w.Uleb(uint64(p.pick(100))))
		return p.expr() + p.seq(w.I32Const(0xffc), w.I32And, load)
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
	case 11:
		return p.expr() + p.expr() + p.seq(w.I32Const(1), w.I32Or, p.of(w.I32DivU, w.I32RemU))
	case 12:
		return p.expr() + p.ins(w.LocalTee(p.variable()))
	case 13:
		return p.expr64() + p.ins(p.of(w.I32WrapI64, w.I64Eqz))
	case 14:
		return p.expr64() + p.expr64() + p.ins(w.Code([]byte{byte(0x51 + p.pick(10))}))
	case 15:
		return p.expr() + p.ins(w.I32Eqz)
	}
	return p.expr() + p.ins(p.of(w.I32Extend8S, "\xc1", "\x67", "\x68", "\x69"))
}

// order compares, often a mask with zero.
func (p *program) order() w.Code {
	side := func() w.Code {
		switch p.pick(3) {
		case 0:
			return p.ins(w.I32Const(0))
		case 1:
			return p.expr() + p.expr() + p.ins(w.I32And)
		}
		return p.expr()
	}
	return side() + side() + p.ins(w.Code([]byte{byte(0x46 + p.pick(10))}))
}

// expr64 leaves one i64.
func (p *program) expr64() w.Code {
	if p.depth > 6 {
		return p.seq(w.LocalGet(p.variable()), w.I64ExtendI32S)
	}
	p.depth++
	defer func() { p.depth-- }()
	switch p.pick(8) {
	case 0:
		return p.ins(w.I64Const(int64(p.number())))
	case 1:
		return p.ins(w.I64Const(int64(p.rand.Uint64())))
	case 2, 3:
		return p.expr() + p.ins(p.of(w.I64ExtendI32S, w.I64ExtendI32U))
	case 4:
		load := p.of("\x29\x03", "\x30\x00", "\x31\x00", "\x32\x01", "\x33\x01", "\x34\x02", "\x35\x02") + w.Code(w.Uleb(uint64(p.pick(100))))
		return p.expr() + p.seq(w.I32Const(0xff8), w.I32And, load)
	case 5:
		return p.expr64() + p.expr64() + p.expr() + p.ins(w.Select)
	}
	op := p.of(w.I64Add, w.I64Sub, w.I64Mul, w.I64And, w.I64Or, w.I64Xor, w.I64Shl, "\x87", w.I64ShrU, "\x89", "\x8a")
	return p.expr64() + p.expr64() + p.ins(op)
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

var (
	programs    = flag.Int("programs", 150, "how many random programs to run")
	programSeed = flag.Uint64("programseed", 0, "seed of the random programs; 0 draws one")
)

// Random programs compute the same with and without the meter in both engines, and it counts what the plain one
// counts. The interpreter's run of the plain one is the judge: the compiler may be wrong about what it is given.
func TestRandomPrograms(t *testing.T) {
	seed := *programSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	var judge, compiler *host
	ended, units := 0, int64(0)
	for n := range *programs {
		if n%25 == 0 {
			judge, compiler = newHost(t, interpreterConfig()), newHost(t, compilerConfig())
		}
		made := func(count bool) []byte {
			return (&program{rand: rand.New(rand.NewPCG(seed, uint64(n))), count: count}).build().Bytes()
		}
		m, err := Rewrite(made(false), DefaultLimits())
		if err != nil {
			t.Fatalf("seed %d, program %d: %v", seed, n, err)
		}
		plain := judge.compile(t, made(true))
		metered := map[*host]wazero.CompiledModule{judge: judge.compile(t, m.Code), compiler: compiler.compile(t, m.Code)}
		for _, arg := range []uint64{0, 1, 0xfffffff0} {
			name := fmt.Sprintf("seed %d, program %d, f(%d)", seed, n, arg)
			run := func(h *host) (outcome, error) {
				i := h.instance(t, metered[h])
				defer i.Close(ctx)
				res, spent, err := h.call(i, "f", 500_000, arg)
				return end(i, res, spent), err
			}
			got, err := run(judge)
			compiled, err2 := run(compiler)
			if errors.Is(err, errFuel) && errors.Is(err2, errFuel) {
				continue // it would take too long without the meter
			}
			if err != nil || err2 != nil {
				t.Errorf("%s: interpreter %v, compiler %v", name, err, err2)
				continue
			}
			i := judge.instance(t, plain)
			res, err := i.ExportedFunction("f").Call(ctx, arg)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := end(i, res, int64(i.ExportedGlobal("count").Get()))
			_ = i.Close(ctx)
			if got != want {
				t.Errorf("%s: rewritten, interpreter: %v, want %v", name, got, want)
			}
			if compiled != want {
				t.Errorf("%s: rewritten, compiler: %v, want %v", name, compiled, want)
			}
			ended++
			units += want.units
		}
		_, _, _ = plain.Close(ctx), metered[judge].Close(ctx), metered[compiler].Close(ctx)
	}
	if t.Logf("%d calls, %d units", ended, units); ended < 2**programs || units < 60*int64(*programs) {
		t.Errorf("seed %d: only %d calls came to an end, in %d units", seed, ended, units)
	}
}

// outcome is what a program leaves behind.
type outcome struct {
	result uint32
	units  int64
	memory [32]byte // its SHA-256
}

func end(i api.Module, res []uint64, units int64) outcome {
	mem, _ := i.Memory().Read(0, i.Memory().Size())
	o := outcome{units: units, memory: sha256.Sum256(mem)}
	if len(res) > 0 {
		o.result = api.DecodeU32(res[0])
	}
	return o
}
