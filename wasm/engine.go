package wasm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"edge/wasm/admit"
)

// EngineConfig is what all modules of an agent share.
type EngineConfig struct {
	// CacheDir keeps compiled modules, so that a Go guest is there in 50 ms instead of 1.5 s. Its content is trusted
	// native code: it is created with mode 0700, and refused when others may write to it. Empty keeps nothing.
	CacheDir string

	// Secret seeds, with the module's digest, the random numbers that guests get.
	Secret [32]byte

	Logger *slog.Logger // bugs of ours are logged here; nil logs nothing
}

// Engine loads modules. It may be used by several goroutines at once.
type Engine struct {
	cfg     EngineConfig
	log     *slog.Logger
	runtime wazero.RuntimeConfig // compiles where wazero has a compiler, else interprets
}

// NewEngine checks the cache directory. It starts nothing.
func NewEngine(cfg EngineConfig) (*Engine, error) {
	if cfg.CacheDir != "" {
		if err := privateDir(cfg.CacheDir); err != nil {
			return nil, fmt.Errorf("open module cache: %w", err)
		}
	}
	e := &Engine{
		cfg:     cfg,
		log:     cfg.Logger,
		runtime: wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	return e, nil
}

// Close frees what the engine itself holds. Modules have their own Close and may outlive it.
func (e *Engine) Close() error { return nil }

// Load admits, rewrites and compiles a module. The error is an *admit.Error when the module is refused, else a
// *LoadError. The caller owns the Module and keeps module's bytes.
//
// A module that admission lets through compiles in well under two seconds; ctx is looked at before, not during.
// Each Module has a runtime of its own, though one for all would save a few hundred microseconds: a panic inside
// the compiler may leave locks held, and closing the Module surely gives all of its memory back.
func (e *Engine) Load(ctx context.Context, module []byte, lim Limits) (*Module, error) {
	if err := lim.check(); err != nil {
		return nil, &LoadError{Stage: StageLimits, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, &LoadError{Stage: StageCompile, Err: err}
	}
	a, err := admit.Rewrite(module, lim.admission())
	if err != nil {
		return nil, err
	}
	m := &Module{engine: e, lim: lim, admitted: a}
	err = m.compile(e.cfg.CacheDir)
	if err != nil && e.cfg.CacheDir != "" {
		// A damaged entry or a full disk must cost time, not the module. A bad module fails again.
		if first := errors.Join(err, m.free()); m.compile("") == nil {
			e.log.Warn("module cache is not usable, compiled without it; remove its files if this comes again", "dir", e.cfg.CacheDir, "error", first)
			err = nil
		}
	}
	if err != nil {
		return nil, &LoadError{Stage: StageCompile, Err: errors.Join(err, m.free())}
	}
	a.Code = nil // compiled; the instances need only what is known about it
	return m, nil
}

// compile fills m's runtime; dir is the cache, "" for none. The compiler runs on this goroutine alone, because a
// panic on a worker of its own could not be caught.
func (m *Module) compile(dir string) (err error) {
	defer recovered(&err)
	cfg := m.engine.runtime
	if dir != "" {
		if m.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return fmt.Errorf("open module cache: %w", err)
		}
		cfg = cfg.WithCompilationCache(m.cache)
	}
	ctx := context.Background()
	m.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	if err := hostModules(ctx, m.runtime, m.admitted.Imports); err != nil {
		return err
	}
	if m.code, err = m.runtime.CompileModule(ctx, m.admitted.Code); err != nil {
		return firstLine(err)
	}
	return nil
}

// recovered turns a panic of wazero's into an error: it must not end the agent for one module.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the runtime panicked: %v\n%s", r, debug.Stack())
	}
}

// seed makes the random numbers of a module's instances: the same at each start, different from agent to agent.
func (e *Engine) seed(digest [32]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("edge guest random\x00"))
	h.Write(e.cfg.Secret[:])
	h.Write(digest[:])
	return [32]byte(h.Sum(nil))
}
