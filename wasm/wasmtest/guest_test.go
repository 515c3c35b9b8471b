package wasmtest

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// open compiles a module and instantiates it with a host module edge that writes into log.
func open(t *testing.T, module []byte, log *[]string) api.Module {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { _ = r.Close(ctx) })
	_, err := r.NewHostModuleBuilder("edge").NewFunctionBuilder().
		WithFunc(func(_ context.Context, m api.Module, level, ptr, n uint32) {
			text, _ := m.Memory().Read(ptr, n)
			*log = append(*log, string(text))
		}).Export("log").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run sends one batch and returns the records as text: index, kind, subject, payload.
func run(t *testing.T, m api.Module, events ...string) (string, error) {
	t.Helper()
	ctx := context.Background()
	frame := binary.LittleEndian.AppendUint32([]byte("EDG1"), uint32(len(events)))
	frame = append(frame, make([]byte, 8+64*len(events))...)
	for i, e := range events {
		binary.LittleEndian.PutUint32(frame[16+64*i+32:], uint32(len(frame)))
		binary.LittleEndian.PutUint32(frame[16+64*i+36:], uint32(len(e)))
		frame = append(frame, e...)
	}
	ptr, err := m.ExportedFunction("edge_v1_buffer").Call(ctx, uint64(len(frame)))
	if err != nil {
		t.Fatal(err)
	}
	if ptr[0] == 0 || ptr[0]%8 != 0 || !m.Memory().Write(uint32(ptr[0]), frame) {
		t.Fatalf("no room for the frame at %d", ptr[0])
	}
	res, err := m.ExportedFunction("edge_v1_run").Call(ctx, ptr[0], uint64(len(frame)))
	if err != nil {
		return "", err
	}
	out, ok := m.Memory().Read(uint32(res[0]>>32), uint32(res[0]))
	if !ok {
		return "wild", nil
	}
	var s strings.Builder
	for len(out) >= 16 {
		sub, n := int(binary.LittleEndian.Uint16(out[6:])), int(binary.LittleEndian.Uint32(out[12:]))
		if 16+sub+n > len(out) {
			return "lying", nil
		}
		s.WriteString(string('0'+rune(out[0])) + string('0'+rune(out[4])) + " " +
			string(out[16:16+sub]) + " " + string(out[16+sub:16+sub+n]) + "\n")
		out = out[16+sub+n:]
	}
	if len(out) != 0 {
		t.Fatalf("%d bytes behind the last record", len(out))
	}
	return s.String(), nil
}

func TestGuests(t *testing.T) {
	f := func(name string, module []byte, want string) {
		t.Helper()
		var log []string
		got, err := run(t, open(t, module, &log), "a", "", "Xyz", strings.Repeat("b", 3))
		if err != nil {
			got = "error"
			if s := err.Error(); !strings.Contains(s, "wasm error") && !strings.Contains(s, "stack overflow") {
				t.Errorf("%s: %v", name, err)
			}
		}
		got += strings.Join(log, ",")
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	f("echo", Echo(), "00 edge.test a\n10 edge.test \n20 edge.test Xyz\n30 edge.test bbb\n")
	f("reject", RejectX(), "00 edge.test a\n10 edge.test \n21  begins with X\n30 edge.test bbb\n")
	f("drop", DropX(), "00 edge.test a\n10 edge.test \n30 edge.test bbb\n")
	f("fan-out", FanOutX(), "00 edge.test a\n10 edge.test \n20 edge.test Xyz\n20 edge.test Xyz\n30 edge.test bbb\n")
	f("log", LogX(), "00 edge.test a\n10 edge.test \n20 edge.test Xyz\n30 edge.test bbb\nXyz")
	f("trap", TrapX(), "error")
	f("trap always", Trap(), "error")
	f("store", OutOfBoundsX(), "error")
	f("recurse", RecurseX(), "error")
	f("grow", GrowX(), "00 edge.test a\n10 edge.test \n20 edge.test Xyz\n30 edge.test bbb\n")
	f("wild", WildResultX(), "wild")
	f("lying", LyingRecordX(), "lying")
	f("count", CountEvents(), "00 edge.test \x01\x00\x00\x00\x01\x00\x00\x00\n"+
		"10 edge.test \x02\x00\x00\x00\x02\x00\x00\x00\n20 edge.test \x03\x00\x00\x00\x03\x00\x00\x00\n"+
		"30 edge.test \x04\x00\x00\x00\x04\x00\x00\x00\n")
	for _, endless := range [][]byte{Spin(), SpinX(), Fill(), FillX(), ExpTree(), ExpTreeX()} {
		open(t, endless, nil) // valid; nobody here could stop it
	}
}

// A batch of the greatest size must find room, and what a guest can not take is refused with 0.
func TestBuffer(t *testing.T) {
	m := open(t, Echo(), nil)
	got, err := run(t, m, strings.Repeat("z", 5<<20))
	if err != nil || len(got) != 5<<20+len("00 edge.test \n") {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	ptr, err := m.ExportedFunction("edge_v1_buffer").Call(context.Background(), 9<<20)
	if err != nil || ptr[0] != 0 {
		t.Fatalf("9 MiB: %v, %v", ptr, err)
	}
}

func TestConfig(t *testing.T) {
	f := func(config string, code uint64, want string) {
		t.Helper()
		m := open(t, EchoConfig(), nil)
		m.Memory().WriteString(300000, config)
		res, err := m.ExportedFunction("edge_v1_config").Call(context.Background(), 300000, uint64(len(config)))
		if err != nil || res[0] != code {
			t.Fatalf("%q: %v, %v", config, res, err)
		}
		if got, err := run(t, m, "a"); code == 0 && (err != nil || got != want) {
			t.Errorf("%q: got %q, %v", config, got, err)
		}
	}
	f(`{"a":1}`, 0, "00 edge.test {\"a\":1}\n")
	f("X", 7, "")
}
