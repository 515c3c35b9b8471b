package wasm

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"edge/wasm/admit"
)

// snapshot is what reset goes back to: the state after configuration, with an input buffer.
type snapshot struct {
	image   *image   // nil when going back needs a start from the beginning
	globals []uint64 // in the order of admit.Module.Globals
	state   hostState
}

// start makes the instance ready, from nothing.
func (i *Instance) start() error {
	if err := i.prepare(); err != nil {
		return err
	}
	if i.m.admitted.Unresettable {
		return nil // its tables and segments change as well: no copy of memory and globals is all of it
	}
	i.snap.image = takeImage(i.mem)
	i.snap.globals = make([]uint64, len(i.globals))
	for k, g := range i.globals {
		i.snap.globals[k] = g.Get()
	}
	i.snap.state = i.state
	return nil
}

// prepare instantiates, initializes and configures, all on one budget.
func (i *Instance) prepare() error {
	if err := i.instantiate(); err != nil {
		return err
	}
	err := i.initialize()
	if err == nil {
		err = i.configure()
	}
	if err == nil {
		err = i.firstBuffer()
	}
	i.log.flush()
	var f *Fault
	if errors.As(err, &f) {
		i.quote(f)
	}
	return err
}

// instantiate makes a fresh memory with the module's own content. The start function runs, if there is one.
func (i *Instance) instantiate() (err error) {
	i.state = hostState{random: *rand.NewChaCha8(i.m.engine.seed(i.m.admitted.Digest))}
	i.begin(i.m.lim.LoadFuel, i.m.lim.LoadTime)
	if err := i.link(); err != nil {
		i.log.flush()
		if i.mem != nil && i.mem.err != nil {
			err = i.mem.err
		}
		return &LoadError{Stage: StageInstantiate, Err: errors.Join(err, i.drop())}
	}
	return nil
}

func (i *Instance) link() (err error) {
	defer recovered(&err)
	ctx := experimental.WithMemoryAllocator(i.ctx, experimental.MemoryAllocatorFunc(func(_, max uint64) experimental.LinearMemory {
		i.mem = newMemory(max)
		return i.mem
	}))
	// No name, so that a module can have several instances; no start functions, so that none runs unasked.
	mod, err := i.m.runtime.InstantiateModule(ctx, i.m.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return i.judge(err) // admission leaves little that can fail here but the start function
	}
	i.mod = mod
	i.bindMeter(mod)
	i.run, i.buffer = mod.ExportedFunction("edge_v1_run"), mod.ExportedFunction("edge_v1_buffer")
	for _, name := range i.m.admitted.Globals {
		i.globals = append(i.globals, mutable(mod, name))
	}
	return nil
}

func (i *Instance) initialize() error {
	if !i.m.admitted.Initialize {
		return nil
	}
	if f := i.call(i.mod.ExportedFunction("_initialize")); f != nil {
		return &LoadError{Stage: StageInitialize, Err: f}
	}
	return nil
}

// configure gives the module its configuration. One that takes it always gets it, so that it can miss something.
func (i *Instance) configure() error {
	cfg := i.cfg.Config
	if len(cfg) == 0 {
		cfg = []byte("{}")
	}
	fail := func(code uint32, err error) error { return &LoadError{Stage: StageConfig, Code: code, Err: err} }
	if !i.m.admitted.Config {
		if s := string(cfg); s != "{}" && s != "null" {
			return fail(0, errors.New("it takes no configuration (it does not export edge_v1_config): remove transform.config"))
		}
		return nil
	}
	if len(cfg) > i.m.lim.Batch {
		return fail(0, fmt.Errorf("%d bytes of configuration, at most %d are given to a module", len(cfg), i.m.lim.Batch))
	}
	dst, f := i.room(len(cfg))
	if f != nil {
		return fail(0, f)
	}
	copy(dst, cfg)
	i.stack = [2]uint64{uint64(i.state.ptr), uint64(len(cfg))}
	if f := i.call(i.mod.ExportedFunction("edge_v1_config")); f != nil {
		return fail(0, f)
	}
	if code := uint32(i.stack[0]); code != 0 {
		return fail(code, fmt.Errorf("it refuses its configuration with code %d: look at its documentation and at what it logged", code))
	}
	return nil
}

// The size of the input buffer in a snapshot, in bytes: 64 events of a KiB and their descriptors fit with room, so
// that few modules must grow theirs again after each reset. A guest that has less to give is asked for less.
const (
	firstBufferBytes = 128 << 10
	leastBufferBytes = 8 << 10
)

func (i *Instance) firstBuffer() error {
	for size := min(firstBufferBytes, i.m.lim.Batch); size >= leastBufferBytes && int(i.state.cap) < size; size /= 2 {
		if f := i.ask(size); f != nil && f.Kind != FaultRefused {
			return &LoadError{Stage: StageSnapshot, Err: f}
		}
	}
	return nil
}

// reset goes back to the snapshot. fresh asks for a new memory even where the old one could serve.
//
// A memory can not shrink, so one that has grown is replaced. The new one gets the image instead of running
// _initialize and configuration again: for a Go guest that saves milliseconds.
func (i *Instance) reset(fresh bool) error {
	if i.m == nil {
		return &ResetError{Cause: errClosed}
	}
	i.usage.Resets++
	im := i.snap.image
	if im == nil || fresh || i.mod == nil || len(i.mem.buf) != im.size {
		i.usage.Rebuilds++
		return i.rebuild()
	}
	if err := im.restore(i.mem); err != nil {
		return &ResetError{Cause: errors.Join(err, i.drop())}
	}
	i.rewind()
	return nil
}

func (i *Instance) rebuild() error {
	err := i.drop()
	im := i.snap.image
	if err == nil && im == nil {
		err = i.prepare()
	} else if err == nil {
		if err = i.instantiate(); err == nil {
			err = i.adopt(im)
		}
	}
	if err != nil {
		return &ResetError{Cause: errors.Join(err, i.drop())}
	}
	return nil
}

// adopt gives a fresh instance the memory of the snapshot.
func (i *Instance) adopt(im *image) error {
	if more := im.size - len(i.mem.buf); more > 0 {
		if _, ok := i.mod.Memory().Grow(uint32(more / admit.PageBytes)); !ok {
			return fmt.Errorf("grow memory to %d bytes: %w", im.size, i.mem.err)
		}
	}
	if err := im.adopt(i.mem); err != nil {
		return err
	}
	i.rewind()
	return nil
}

// rewind restores everything but the memory.
func (i *Instance) rewind() {
	for k, g := range i.globals {
		g.Set(i.snap.globals[k])
	}
	i.depth.Set(0)
	i.state = i.snap.state
	i.log.parts[0].n, i.log.parts[1].n = 0, 0
}
