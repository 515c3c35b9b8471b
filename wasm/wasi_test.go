package wasm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"edge/wasm/admit"
	"edge/wasm/wasmtest"
)

// importer makes a guest that calls one import with constant arguments and answers each event with 64 bytes of
// memory from Scratch; an i32 result is stored at Scratch.
func importer(f admit.Function, before wasmtest.Code, args ...int64) []byte {
	body := before
	if f.Results != "" {
		body += wasmtest.I32Const(wasmtest.Scratch)
	}
	for k, p := range []byte(f.Params) {
		if p == byte(wasmtest.I64) {
			body += wasmtest.I64Const(args[k])
		} else {
			body += wasmtest.I32Const(int32(args[k]))
		}
	}
	body += wasmtest.Call(0)
	if f.Results != "" {
		body += wasmtest.I32Store(0)
	}
	body += wasmtest.Message(0, wasmtest.I32Const(wasmtest.Scratch), wasmtest.I32Const(64)) +
		wasmtest.I32Const(1) + wasmtest.LocalSet(wasmtest.Skip)
	types := func(s string) (out wasmtest.Types) {
		for _, b := range []byte(s) {
			out = append(out, wasmtest.Type(b))
		}
		return out
	}
	return wasmtest.Parts{
		Imports: func(b *wasmtest.Builder) { b.Import(f.Module, f.Name, types(f.Params), types(f.Results)) },
		Hook:    body,
	}.Bytes()
}

func allowed(t *testing.T, name string) admit.Function {
	t.Helper()
	for _, f := range admit.Allowed() {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("%s may not be imported", name)
	panic("unreachable")
}

// Everything that admission allows is served, with exactly its type: wazero links it, and it answers.
func TestEveryImportIsServed(t *testing.T) {
	for _, f := range admit.Allowed() {
		i := open(t, importer(f, "", make([]int64, len(f.Params))...), InstanceConfig{})
		err := i.Run(events("a"), new(Output))
		want := FaultKind(0)
		if f.Name == "proc_exit" {
			want = FaultExit
		}
		if got := kindOf(t, err); got != want {
			t.Errorf("%s.%s: %v", f.Module, f.Name, err)
		}
	}
}

const (
	far = 1 << 30 // outside every guest's memory
	at  = wasmtest.Scratch + 16
)

func TestWasi(t *testing.T) {
	f := func(name string, errno uint32, want string, args ...int64) {
		t.Helper()
		i := open(t, importer(allowed(t, name), "", args...), InstanceConfig{})
		var out Output
		if err := i.Run(events("a", "b"), &out); err != nil {
			t.Fatalf("%s%v: %v", name, args, err)
		}
		got := out.Records[0].Payload
		if n := binary.LittleEndian.Uint32(got); n != errno {
			t.Errorf("%s%v answers %d, want %d", name, args, n, errno)
		}
		if s := strings.TrimRight(fmt.Sprintf("%x", got[16:]), "0"); s != want {
			t.Errorf("%s%v writes %q, want %q", name, args, s, want)
		}
	}
	f("args_sizes_get", wasiOK, "", at, at+4)
	f("args_sizes_get", wasiFault, "", at, far)
	f("environ_sizes_get", wasiFault, "", -1, at)
	f("args_get", wasiOK, "", far, far)
	f("environ_get", wasiOK, "", far, far)
	f("clock_res_get", wasiOK, "01", 0, at)
	f("clock_time_get", wasiOK, "e803", 0, 1, at) // 1000: the first event's
	f("clock_time_get", wasiOK, "01", 1, 1, at)
	f("clock_time_get", wasiOK, "01", 3, 1, at)
	f("clock_time_get", wasiInval, "", 4, 1, at)
	f("clock_time_get", wasiFault, "", 0, 1, 256*65536-7)
	f("random_get", wasiFault, "", at, far)
	f("random_get", wasiFault, "", -8, 16)
	f("sched_yield", wasiOK, "")
	f("poll_oneoff", wasiInval, "", at, at, 0, at)
	f("poll_oneoff", wasiInval, "", at, at, 1025, at)
	f("poll_oneoff", wasiFault, "", far, at, 1, at)
	f("poll_oneoff", wasiFault, "", at, far, 1, at)
	f("poll_oneoff", wasiFault, "", at, at+48, 1, far)
	f("fd_write", wasiBadF, "", 0, at, 0, at)
	f("fd_write", wasiBadF, "", 3, at, 0, at)
	f("fd_write", wasiInval, "", 1, at, 1025, at)
	f("fd_write", wasiFault, "", 1, far, 1, at)
	f("fd_write", wasiFault, "", 1, at, 0, far)
	f("fd_fdstat_get", wasiOK, "02000000000000004", 1, at)
	f("fd_fdstat_get", wasiOK, "02", 0, at)
	f("fd_fdstat_get", wasiBadF, "", 3, at)
	f("fd_fdstat_get", wasiFault, "", 2, far)
	f("fd_fdstat_set_flags", wasiOK, "", 1, 4)
	f("fd_fdstat_set_flags", wasiBadF, "", 3, 4)
	f("fd_close", wasiOK, "", 2)
	f("fd_close", wasiBadF, "", 9)
	f("fd_prestat_get", wasiBadF, "", 3, at)
	f("fd_prestat_dir_name", wasiBadF, "", 3, at, 1)
	f("fd_read", wasiBadF, "", 0, at, 1, at)
	f("fd_seek", wasiBadF, "", 1, 0, 0, at)
	f("path_open", wasiBadF, "", 3, 0, at, 1, 0, 0, 0, 0, at)
	f("proc_raise", wasiNoSys, "", 9)
}

func TestFdWrite(t *testing.T) {
	var got []string
	cfg := InstanceConfig{Log: func(level int, text []byte) { got = append(got, fmt.Sprint(level, string(text))) }}
	store := func(at, v int32) wasmtest.Code {
		return wasmtest.I32Const(at) + wasmtest.I32Const(v) + wasmtest.I32Store(0)
	}
	// two vectors, "hi\n" and "you"
	before := store(at, 4000) + store(at+4, 3) + store(at+8, 4003) + store(at+12, 3) + store(4000, 'h'|'i'<<8|'\n'<<16|'y'<<24) + store(4004, 'o'|'u'<<8)
	i := open(t, importer(allowed(t, "fd_write"), before, 2, at, 2, at+16), cfg)
	var out Output
	if err := i.Run(events("a"), &out); err != nil {
		t.Fatal(err)
	}
	p := out.Records[0].Payload
	if n := binary.LittleEndian.Uint32(p[32:]); binary.LittleEndian.Uint32(p) != 0 || n != 6 {
		t.Errorf("errno %d, %d bytes", p[0], n)
	}
	if s := strings.Join(got, "|"); s != "2hi|2you" {
		t.Errorf("%q", s)
	}
}

// Waiting takes no time; the clock that counts has moved on as if it had.
func TestPoll(t *testing.T) {
	f := func(name string, sub []byte, before, ticks uint64, code uint16) {
		t.Helper()
		i := &Instance{fuel: new(counter)}
		i.fuel.Set(1000)
		i.state.ticks = before
		mem := make([]byte, 100)
		copy(mem, sub)
		s := []uint64{0, 48, 1, 80}
		pollOneoff(i, mem, s)
		if s[0] != wasiOK || mem[80] != 1 || i.state.ticks != ticks {
			t.Errorf("%s: answer %d, %d events, clock at %d, want %d", name, s[0], mem[80], i.state.ticks, ticks)
		}
		if got := binary.LittleEndian.Uint16(mem[56:]); string(mem[48:56]) != string(sub[:8]) || got != code || mem[58] != sub[8] {
			t.Errorf("%s: event %x", name, mem[48:80])
		}
	}
	sub := func(tag byte, clock uint32, timeout uint64, flags byte) []byte {
		b := make([]byte, 48)
		copy(b, "userdata")
		b[8], b[40] = tag, flags
		binary.LittleEndian.PutUint32(b[16:], clock)
		binary.LittleEndian.PutUint64(b[24:], timeout)
		return b
	}
	f("relative", sub(0, 1, 1000, 0), 7, 1007, wasiOK)
	f("absolute", sub(0, 1, 1000, 1), 7, 1000, wasiOK)
	f("past", sub(0, 1, 3, 1), 7, 7, wasiOK)
	f("for ever", sub(0, 1, 1<<64-1, 0), 7, lastTick, wasiOK)
	f("after for ever", sub(0, 1, 1<<64-1, 0), lastTick, lastTick, wasiOK)
	f("no such clock", sub(0, 9, 1000, 0), 7, 7, wasiInval)
	f("descriptor", sub(1, 0, 0, 0), 7, 7, wasiBadF)
}

// counter is a global of its own.
type counter struct {
	api.MutableGlobal
	v uint64
}

func (c *counter) Get() uint64  { return c.v }
func (c *counter) Set(v uint64) { c.v = v }

// Random numbers are the same after each reset and in each instance, and differ between agents and modules.
func TestRandom(t *testing.T) {
	draw := func(secret byte, args ...int64) (first, second, again string) {
		t.Helper()
		e, err := NewEngine(EngineConfig{Secret: [32]byte{secret}})
		if err != nil {
			t.Fatal(err)
		}
		i := openWith(t, e, importer(allowed(t, "random_get"), "", args...), InstanceConfig{})
		var out Output
		for _, s := range []*string{&first, &second, &again} {
			if err := i.Run(events("a"), &out); err != nil {
				t.Fatal(err)
			}
			*s = string(out.Records[0].Payload[16:48])
			if s == &second {
				if err := i.Reset(); err != nil {
					t.Fatal(err)
				}
			}
		}
		return first, second, again
	}
	a, b, c := draw(1, at, 32)
	d, _, _ := draw(1, at, 32)
	other, _, _ := draw(2, at, 32)
	module, _, _ := draw(1, at, 31)
	if a == b || a != c || a != d || a == other || a[:31] == module[:31] || strings.Trim(a, "\x00") == "" {
		t.Errorf("%x\n%x\n%x\n%x\n%x\n%x", a, b, c, d, other, module)
	}
}

// Work that a host function does by length is paid by length: a guest can not buy seconds with a few instructions.
func TestHostWorkIsPaid(t *testing.T) {
	random := importer(allowed(t, "random_get"), "", 65536, 400_000)
	i := open(t, random, InstanceConfig{})
	if err := i.Run(events("a"), new(Output)); err != nil {
		t.Fatal(err)
	}
	if u := i.Usage().Fuel; u < 400_000 || u > 500_000 {
		t.Errorf("%d units for 400,000 random bytes", u)
	}
	i = open(t, random, InstanceConfig{}, func(l *Limits) { l.Fuel, l.FuelByte = 399_000, 1 })
	if err := i.Run(events("a"), new(Output)); kindOf(t, err) != FaultFuel {
		t.Errorf("400,000 random bytes for less than 400,000 units: %v", err)
	}
}
