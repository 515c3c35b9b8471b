package wasm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"

	"edge/wasm/admit"
)

// InstanceConfig is what one instance gets beside its module.
type InstanceConfig struct {
	// Config is the module's own configuration, JSON; empty means {}. A module that takes none refuses any other.
	Config []byte

	// Log gets the guest's lines: at most 1 KiB each, 16 a run, called during Run on its goroutine. The text is
	// untrusted, may hold any byte, and is valid only during the call. nil drops the lines.
	Log func(level int, text []byte)
}

// Instance is one memory of a module, at its snapshot or behind a good run. It belongs to one goroutine at a time;
// two at once are a bug and panic.
type Instance struct {
	m   *Module
	cfg InstanceConfig
	ctx context.Context // carries the Instance to the host functions; never ends

	mod         api.Module // nil: a new one must be made before anything else
	mem         *memory
	run, buffer api.Function
	fuel, depth api.MutableGlobal
	globals     []api.MutableGlobal // in the order of admit.Module.Globals
	stack       [2]uint64           // arguments and results of calls

	meter meter
	log   guestLog
	state hostState
	snap  snapshot
	usage Usage
	busy  atomic.Bool
}

// hostState is what a guest can learn or rely on outside its memory. It is reset with the memory.
type hostState struct {
	now      int64  // ns since 1970, of the batch
	ticks    uint64 // of the clock that counts
	random   rand.ChaCha8
	ptr, cap uint32 // the guest's input buffer; cap is zero before there is one
}

// Usage counts what an instance has needed.
type Usage struct {
	Fuel     int64  // units of the last run; after a fault at least so many
	Pages    int    // of 64 KiB, of memory now
	Lines    uint64 // log lines beyond the budget, dropped
	Resets   uint64 // back to the snapshot, for any reason
	Rebuilds uint64 // of these, by making a new memory
}

// NewInstance instantiates the module, runs its _initialize, gives it its configuration and takes the snapshot. The
// error is a *LoadError, or ctx's; ctx is not looked at while the guest runs, LoadFuel and LoadTime bound that.
func (m *Module) NewInstance(ctx context.Context, cfg InstanceConfig) (*Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.acquire(); err != nil {
		return nil, &LoadError{Stage: StageInstantiate, Err: err}
	}
	i := &Instance{m: m, cfg: cfg}
	i.ctx = context.WithValue(context.Background(), instanceKey{}, i)
	i.log.emit = cfg.Log
	i.cfg.Config = append([]byte(nil), cfg.Config...)
	if err := i.start(); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// Usage may be called between runs.
func (i *Instance) Usage() Usage {
	u := i.usage
	u.Lines = i.log.dropped
	if i.mem != nil {
		u.Pages = len(i.mem.buf) / admit.PageBytes
	}
	return u
}

// Reset puts the instance back to its snapshot: memory, globals, clock and random numbers. After an error the next
// Run or Reset tries again.
func (i *Instance) Reset() error {
	i.enter()
	defer i.leave()
	return i.reset(false)
}

// Close frees the instance. A second call does nothing.
func (i *Instance) Close() error {
	i.enter()
	defer i.leave()
	if i.m == nil {
		return nil
	}
	err := i.drop()
	if i.snap.image != nil {
		i.snap.image.close()
	}
	err = errors.Join(err, i.m.release())
	i.m = nil
	return err
}

// drop gives the memory back; what is needed to make a new one stays.
func (i *Instance) drop() (err error) {
	defer recovered(&err)
	if i.mod != nil {
		err = i.mod.Close(i.ctx)
	}
	if i.mem != nil {
		i.mem.Free() // wazero does not when it could not instantiate
	}
	i.mod, i.mem, i.run, i.buffer, i.fuel, i.depth, i.globals = nil, nil, nil, nil, nil, nil, nil
	return err
}

func (i *Instance) enter() {
	if !i.busy.CompareAndSwap(false, true) {
		panic("BUG: an instance is used by two goroutines at once, or from its own log function")
	}
}

func (i *Instance) leave() { i.busy.Store(false) }

// bindMeter finds the meter's globals. The guest's start function runs before anybody else could.
func (i *Instance) bindMeter(mod api.Module) {
	if i.fuel != nil {
		return
	}
	i.fuel = mutable(mod, admit.FuelGlobal)
	i.depth = mutable(mod, admit.DepthGlobal)
}

func mutable(mod api.Module, name string) api.MutableGlobal {
	g, ok := mod.ExportedGlobal(name).(api.MutableGlobal)
	if !ok {
		panic(fmt.Sprintf("BUG: the rewrite exports no mutable global %q", name))
	}
	return g
}

// begin starts the budget of a call; its first slice becomes the guest's counter.
func (i *Instance) begin(fuel int64, wall time.Duration) {
	i.log.begin()
	first := i.meter.start(fuel, wall, time.Now())
	if i.fuel != nil {
		i.fuel.Set(uint64(first))
	}
}

// call runs a function of the guest with what is in the stack.
func (i *Instance) call(f api.Function) *Fault {
	err := f.CallWithStack(i.ctx, i.stack[:])
	if err == nil {
		return nil
	}
	return i.judge(err)
}

func (i *Instance) judge(err error) *Fault {
	f := classify(err)
	if f.Kind == FaultHost {
		i.m.engine.log.Error("a function that serves modules has a bug; please report it", "error", err)
	}
	return f
}
