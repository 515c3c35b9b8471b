package runtime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"edge/envelope"
	"edge/runtime/config"
	"edge/runtime/input"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
	"edge/runtime/status"
	"edge/transform"
	"edge/wasm"
)

// Options are what an agent takes from its surroundings instead of its configuration.
type Options struct {
	Once   bool // end when the inputs are at their end and everything is settled
	Stdin  io.Reader
	Logger *slog.Logger
}

// SetupError says that the configuration is well formed but names something that cannot be used: a module
// that is not admitted, an input that cannot be opened, sinks that contradict each other.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

// Agent is one configured agent. Summary may be called at any time, from any goroutine; everything else
// belongs to the goroutine that opened it.
type Agent struct {
	cfg    *config.Config
	opt    Options
	log    *slog.Logger
	spool  *spool.Spool
	quar   *quarantine.Store
	engine *wasm.Engine
	inputs []*input.Input
	counts []*input.Counts
	sinks  []*sink
	opened spool.Stats // what earlier runs left
	life   life
}

// sink is one configured destination with what it is made of.
type sink struct {
	cfg      *config.Sink
	template *envelope.Template // nil if a module names every subject
	digest   string             // of the module, hex; "" for the built-in envelope
	module   *wasm.Module
	render   *transform.Renderer
	reader   *spool.Reader
	counts   status.Sink
	link     link
}

// Checked is a module that CheckModules found usable.
type Checked struct {
	Sink, Path, Digest string // the digest is SHA-256 in hex
}

// CheckModules admits, compiles, initialises and closes every module of cfg without opening anything else: what
// validation does. The error is a *SetupError that joins the refusals of all sinks.
func CheckModules(ctx context.Context, cfg *config.Config, log *slog.Logger) (list []Checked, err error) {
	engine, err := wasm.NewEngine(wasm.EngineConfig{Logger: log})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	var all []error
	for i := range cfg.Sinks {
		s := &sink{cfg: &cfg.Sinks[i]}
		err := s.loadModule(ctx, engine, cfg, log)
		if err == nil {
			err = s.close()
		}
		all = append(all, err)
		if t := s.cfg.Transform; t != nil {
			list = append(list, Checked{Sink: s.cfg.ID, Path: t.Module, Digest: s.digest})
		}
	}
	if err := errors.Join(all...); err != nil {
		return nil, setup(ctx, err)
	}
	return list, nil
}

// setup makes err the configuration's fault, unless it only tells that ctx has ended.
func setup(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return &SetupError{err}
}

// Open admits the modules, opens spool and quarantine under the data folder and prepares the inputs. The caller
// closes the agent. A *SetupError is the configuration's fault; any other error is this machine's.
func Open(ctx context.Context, cfg *config.Config, opt Options) (a *Agent, err error) {
	a = &Agent{cfg: cfg, opt: opt, log: opt.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
			a = nil
		}
	}()
	dir := cfg.Agent.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return a, fmt.Errorf("open data folder: %w", err)
	}
	secret, err := openSecret(filepath.Join(dir, "secret"))
	if err != nil {
		return a, err
	}
	if a.engine, err = wasm.NewEngine(wasm.EngineConfig{CacheDir: filepath.Join(dir, "modules"), Secret: secret, Logger: a.log}); err != nil {
		return a, err
	}
	var names []string
	for i := range cfg.Sinks {
		s := &sink{cfg: &cfg.Sinks[i]}
		if err := s.loadModule(ctx, a.engine, cfg, a.log); err != nil {
			return a, setup(ctx, err)
		}
		a.sinks = append(a.sinks, s)
		names = append(names, s.cfg.ID)
	}
	if a.quar, err = quarantine.Open(filepath.Join(dir, "quarantine"), quarantine.Options{MaxBytes: cfg.Quarantine.MaxBytes, Logger: a.log}); err != nil {
		return a, err
	}
	// The spool after the modules: it forgets the cursors of sinks that are no longer configured, which a
	// configuration that is refused must not bring about.
	if a.spool, err = spool.Open(filepath.Join(dir, "spool"), spool.Options{MaxBytes: cfg.Spool.MaxBytes, Sinks: names, Logger: a.log}); err != nil {
		return a, err
	}
	a.opened = a.spool.Stats()
	for _, s := range a.sinks {
		if s.reader, err = a.spool.Reader(s.cfg.ID); err != nil {
			return a, err
		}
		s.counts.Passed.Store(uint64(s.reader.Floor()))
	}
	for i := range cfg.Inputs {
		counts := new(input.Counts)
		in, err := input.New(cfg.Inputs[i], *cfg.Dataset(cfg.Inputs[i].Dataset), input.Deps{
			Agent: cfg.Agent.ID, Spool: a.spool, Quarantine: a.quar, Stdin: opt.Stdin, Now: time.Now, Logger: a.log, Counts: counts,
		})
		if err != nil {
			return a, &SetupError{err}
		}
		a.inputs = append(a.inputs, in)
		a.counts = append(a.counts, counts)
	}
	return a, nil
}

// Close frees everything that Open made. It is safe after a failed Open and after Run.
func (a *Agent) Close() error {
	var all []error
	for _, s := range a.sinks {
		all = append(all, s.close())
	}
	if a.engine != nil {
		all = append(all, a.engine.Close())
	}
	if a.spool != nil {
		all = append(all, a.spool.Close())
	}
	if a.quar != nil {
		all = append(all, a.quar.Close())
	}
	a.sinks, a.engine, a.spool, a.quar = nil, nil, nil, nil
	return errors.Join(all...)
}

// loadModule gives s its renderer: the module's if one is configured, else the built-in envelope's.
func (s *sink) loadModule(ctx context.Context, engine *wasm.Engine, cfg *config.Config, log *slog.Logger) error {
	if err := s.parseSubject(cfg); err != nil {
		return err
	}
	rc := transform.Config{Template: s.template, Allow: s.cfg.NATS.Allowed()}
	if t := s.cfg.Transform; t != nil {
		rc.Limits = limitsOf(t.Limits)
		m, err := transform.Load(ctx, engine, t.Module, t.SHA256, rc.Limits)
		if err != nil {
			return fmt.Errorf("sink %s: %w", s.cfg.ID, err)
		}
		s.module = m
		digest := m.Digest()
		s.digest = hex.EncodeToString(digest[:])
		log := log.With("sink", s.cfg.ID, "module", s.digest[:12])
		rc.Instance, err = m.NewInstance(ctx, wasm.InstanceConfig{Config: t.Config, Log: func(level int, text []byte) {
			log.Log(ctx, moduleLevel(level), "module says", "text", string(text))
		}})
		if err != nil {
			return fmt.Errorf("sink %s: load module %s: %w", s.cfg.ID, t.Module, errors.Join(err, m.Close()))
		}
	}
	s.render = transform.New(rc)
	return nil
}

// parseSubject reads the sink's template if there is one.
func (s *sink) parseSubject(cfg *config.Config) (err error) {
	if s.cfg.NATS.Subject == "" {
		return nil
	}
	if s.template, err = envelope.ParseTemplate(s.cfg.NATS.Subject, cfg.Levels(s.cfg)); err != nil {
		return fmt.Errorf("sink %s: %w", s.cfg.ID, err)
	}
	return nil
}

func (s *sink) close() error {
	var all []error
	if s.render != nil {
		all = append(all, s.render.Close())
	}
	if s.module != nil {
		all = append(all, s.module.Close())
	}
	return errors.Join(all...)
}

// moduleLevel maps the guest interface's log levels (0 debug, 1 info, 2 warning, 3 error) to ours.
func moduleLevel(level int) slog.Level {
	switch {
	case level <= 0:
		return slog.LevelDebug
	case level == 1:
		return slog.LevelInfo
	case level == 2:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// limitsOf lays what is configured over the defaults.
func limitsOf(c config.TransformLimits) wasm.Limits {
	lim := wasm.DefaultLimits()
	set := func(to *int, from int) {
		if from > 0 {
			*to = from
		}
	}
	set(&lim.Memory, c.Memory)
	set(&lim.Input, c.Input)
	set(&lim.Output, c.Output)
	if c.Time > 0 {
		lim.Time = c.Time
	}
	if c.Fuel > 0 {
		lim.Fuel = c.Fuel
	}
	return lim
}

// openSecret returns the agent's own secret, drawn once: it seeds what guests may call random. A file of another
// length is no secret of ours; it is replaced, which changes nothing but what guests draw.
func openSecret(path string) (secret [32]byte, err error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return secret, fmt.Errorf("read agent secret: %w", err)
	case len(b) == len(secret):
		return [32]byte(b), nil
	}
	rand.Read(secret[:])
	f, err := os.CreateTemp(filepath.Dir(path), "secret-*") // mode 0600
	if err != nil {
		return secret, fmt.Errorf("write agent secret: %w", err)
	}
	_, err = f.Write(secret[:])
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return secret, fmt.Errorf("write agent secret: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return secret, nil
}
