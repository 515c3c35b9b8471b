package envelope_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

type input struct{ data, prefix, subject string }

type output struct {
	index                     uint32
	kind                      byte
	subject, headers, payload string
}

type guest struct {
	mod         api.Module
	buffer, run api.Function
	config      api.Function
	ptr, have   uint32
}

var modules struct{ c, golang []byte }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "envelope-test-")
	if err != nil {
		panic(err)
	}
	code := func() int {
		defer os.RemoveAll(dir)
		out := filepath.Join(dir, "envelope.wasm")
		build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./go")
		build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if b, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the Go module: %v\n%s", err, b)
			return 1
		}
		if modules.golang, err = os.ReadFile(out); err == nil {
			modules.c, err = os.ReadFile("c/envelope.wasm")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}()
	os.Exit(code)
}

var cache = wazero.NewCompilationCache()

var errConfig = errors.New("configuration refused")

func load(tb testing.TB, code []byte, config string) *guest {
	tb.Helper()
	g, err := open(tb, code, config)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func open(tb testing.TB, code []byte, config string) (*guest, error) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(1024).WithCompilationCache(cache))
	tb.Cleanup(func() { rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	mod, err := rt.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithStartFunctions("_initialize").WithStderr(os.Stderr))
	if err != nil {
		return nil, err
	}
	g := &guest{mod: mod, buffer: mod.ExportedFunction("edge_v1_buffer"), run: mod.ExportedFunction("edge_v1_run"), config: mod.ExportedFunction("edge_v1_config")}
	if config != "" {
		if err := g.write([]byte(config)); err != nil {
			return nil, err
		}
		res, err := g.config.Call(ctx, uint64(g.ptr), uint64(len(config)))
		if err != nil {
			return nil, err
		}
		if res[0] != 0 {
			return nil, errConfig
		}
	}
	return g, nil
}

func (g *guest) bench(b *testing.B, in []input) {
	f := frame(in)
	if err := g.write(f); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		stack := [2]uint64{uint64(g.ptr), uint64(len(f))}
		if err := g.run.CallWithStack(b.Context(), stack[:]); err != nil {
			b.Fatal(err)
		}
	}
}

func (g *guest) write(b []byte) error {
	if uint32(len(b)) > g.have {
		res, err := g.buffer.Call(context.Background(), uint64(len(b)))
		if err != nil {
			return err
		}
		g.ptr, g.have = uint32(res[0]), uint32(len(b))
		if g.ptr == 0 || g.ptr%8 != 0 {
			return errors.New("no buffer")
		}
	}
	if !g.mod.Memory().Write(g.ptr, b) {
		return errors.New("buffer outside of memory")
	}
	return nil
}

func frame(in []input) []byte {
	le := binary.LittleEndian
	f := make([]byte, 16+64*len(in))
	copy(f, "EDG1")
	le.PutUint32(f[4:], uint32(len(in)))
	for i, e := range in {
		d := 16 + 64*i
		for k, s := range []string{e.data, "", e.prefix, e.subject} {
			le.PutUint32(f[d+32+8*k:], uint32(len(f)))
			le.PutUint32(f[d+36+8*k:], uint32(len(s)))
			f = append(f, s...)
		}
	}
	return f
}

func (g *guest) call(in []input) ([]output, error) {
	f := frame(in)
	if err := g.write(f); err != nil {
		return nil, err
	}
	res, err := g.run.Call(context.Background(), uint64(g.ptr), uint64(len(f)))
	if err != nil {
		return nil, err
	}
	b, ok := g.mod.Memory().Read(uint32(res[0]>>32), uint32(res[0]))
	if !ok {
		return nil, errors.New("records outside of memory")
	}
	var out []output
	for len(b) > 0 {
		le := binary.LittleEndian
		s, h, p := int(le.Uint16(b[6:])), int(le.Uint32(b[8:])), int(le.Uint32(b[12:]))
		out = append(out, output{le.Uint32(b), b[4], string(b[16:][:s]), string(b[16+s:][:h]), string(b[16+s+h:][:p])})
		b = b[16+s+h+p:]
	}
	return out, nil
}
