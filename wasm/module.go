package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"

	"edge/wasm/admit"
)

// Module is compiled code. It may be used by several goroutines at once.
type Module struct {
	engine   *Engine
	lim      Limits
	admitted *admit.Module // without its code
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil without a cache directory
	code     wazero.CompiledModule

	mu     sync.Mutex
	uses   int  // open instances; guarded by mu
	closed bool // guarded by mu; freed when closed and uses is zero
}

// Digest returns the SHA-256 of the module as it was given to Load.
func (m *Module) Digest() [32]byte { return m.admitted.Digest }

// Limits returns the limits that the module was loaded with.
func (m *Module) Limits() Limits { return m.lim }

// Imports lists what the module imports, as its author wrote it.
func (m *Module) Imports() []admit.Import { return append([]admit.Import(nil), m.admitted.Imports...) }

// Close frees the module as soon as its last instance is closed; no new instance can be made. A second call does
// nothing.
func (m *Module) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	if m.uses > 0 {
		return nil
	}
	return m.free()
}

func (m *Module) acquire() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errors.New("the module is closed")
	}
	m.uses++
	return nil
}

func (m *Module) release() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uses--; m.uses < 0 {
		panic(fmt.Sprintf("BUG: %d instances of a module are open", m.uses))
	}
	if m.uses > 0 || !m.closed {
		return nil
	}
	return m.free()
}

// free closes the runtime and with it the code, then the cache that the runtime may have used.
func (m *Module) free() (err error) {
	defer recovered(&err)
	ctx := context.Background()
	if m.runtime != nil {
		err = m.runtime.Close(ctx)
	}
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close(ctx))
	}
	m.runtime, m.cache, m.code = nil, nil, nil
	return err
}

// firstLine cuts the stack of the guest off an error of wazero's.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}
