package admit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// goGuest builds testdata/goguest once per process.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "goguest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "guest.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "./testdata/goguest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, errors.New(string(text))
	}
	return os.ReadFile(file)
})

func buildGoGuest(t testing.TB) []byte {
	t.Helper()
	module, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func goLimits() Limits {
	lim := DefaultLimits()
	lim.MemoryBytes = 64 << 20
	return lim
}

// A guest with a whole language runtime passes under the default limits of code, and behaves as before.
func TestGoGuest(t *testing.T) {
	original := buildGoGuest(t)
	m, err := Rewrite(original, goLimits())
	if err != nil {
		t.Fatal(err)
	}
	if !m.Initialize || !m.Config || len(m.Imports) < 10 || len(m.Globals) != 8 || m.MaxPages != 1024 {
		t.Errorf("initialize %v, config %v, %d imports, globals %v, %d pages", m.Initialize, m.Config, len(m.Imports), m.Globals, m.MaxPages)
	}
	t.Logf("%d bytes, rewritten %d", len(original), len(m.Code))
	config := compilerConfig()
	if underRace {
		config = interpreterConfig()
	}
	h := newHost(t, config)
	// The original runs in the interpreter, which is ready sooner.
	a, b := newHost(t, interpreterConfig()).open(t, original), h.open(t, m.Code)
	if _, err := a.ExportedFunction("_initialize").Call(ctx); err != nil {
		t.Fatal(err)
	}
	if _, spent, err := h.call(b, "_initialize", 1<<30); err != nil || spent < 10_000 {
		t.Fatalf("initialize: %d units, %v", spent, err)
	}
	read := func(m api.Module, res []uint64) string {
		text, _ := m.Memory().Read(uint32(res[0]>>32), uint32(res[0]))
		return string(text)
	}
	for _, text := range []string{`{}`, `{"b":[1,2,{"c":null}],"a":"x\u00e9","n":-1.5e3,"t":true,"f":false,"s":"y"}`, `{"a":}`, `[`} {
		put := func(m api.Module, ptr []uint64) {
			if !m.Memory().WriteString(uint32(ptr[0]), text) {
				t.Fatal("no room")
			}
		}
		ptr, err := a.ExportedFunction("edge_v1_buffer").Call(ctx, uint64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		put(a, ptr)
		want, err := a.ExportedFunction("edge_v1_run").Call(ctx, ptr[0], uint64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if ptr, _, err = h.call(b, "edge_v1_buffer", 1<<24, uint64(len(text))); err != nil {
			t.Fatal(err)
		}
		put(b, ptr)
		got, spent, err := h.call(b, "edge_v1_run", 1<<24, ptr[0], uint64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if x, y := read(a, want), read(b, got); x != y || x == "" {
			t.Errorf("%s: original %q, rewritten %q", text, x, y)
		}
		t.Logf("%d units for %s", spent, text)
	}
	if res, _, err := h.call(b, "edge_v1_config", 1<<24, 0, 1000); err != nil || res[0] != 1000 {
		t.Errorf("1,000 nested calls: %v, %v", res, err)
	}
	if _, spent, err := h.call(b, "edge_v1_config", 1<<22, 0, 0); !errors.Is(err, errFuel) {
		t.Errorf("endless loop: %d units, %v", spent, err)
	}
}
