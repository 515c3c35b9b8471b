package wasm

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"edge/wasm/admit"
)

// hostCall is one of our functions that a guest may import. mem is the guest's memory at the time of the call; s
// holds the arguments and takes the result. A panic with a *Fault stops the guest.
type hostCall func(i *Instance, mem []byte, s []uint64)

// hostUnits is what a call to the host costs beside its instructions: about as long as so many of them take. Work
// that depends on a length costs one unit per byte more, because a guest must not buy much time with few
// instructions.
const hostUnits = 128

// instanceKey is where a call's context carries the *Instance.
type instanceKey struct{}

func instanceOf(ctx context.Context) *Instance { return ctx.Value(instanceKey{}).(*Instance) }

// hostModules makes the modules from which a guest with these imports is served: nothing that it does not name.
func hostModules(ctx context.Context, rt wazero.Runtime, imports []admit.Import) error {
	builders := map[string]wazero.HostModuleBuilder{}
	add := func(f admit.Function, g api.GoModuleFunc) {
		b := builders[f.Module]
		if b == nil {
			b = rt.NewHostModuleBuilder(f.Module)
			builders[f.Module] = b
		}
		b.NewFunctionBuilder().WithGoModuleFunction(g, []api.ValueType(f.Params), []api.ValueType(f.Results)).Export(f.Name)
	}
	add(admit.Function{Module: admit.MeterModule, Name: admit.RefillName, Params: "\x7e", Results: "\x7e"}, refill)
	add(admit.Function{Module: admit.MeterModule, Name: admit.DeepName, Params: "\x7f"}, deep)
	wanted := map[admit.Import]bool{}
	for _, im := range imports {
		wanted[im] = true
	}
	for _, f := range admit.Allowed() {
		if im := (admit.Import{Module: f.Module, Name: f.Name}); wanted[im] {
			add(f, metered(serve(f)))
			delete(wanted, im)
		}
	}
	for im := range wanted {
		panic(fmt.Sprintf("BUG: import %s.%s was admitted and is not served", im.Module, im.Name))
	}
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("make host module %s: %w", name, err)
		}
	}
	return nil
}

// serve answers our function for an import that admission allows.
func serve(f admit.Function) hostCall {
	if f.Module == "edge" && f.Name == "log" {
		return edgeLog
	}
	if f.Module == "wasi_snapshot_preview1" {
		return wasi(f.Name)
	}
	panic(fmt.Sprintf("BUG: import %s.%s is allowed and not served", f.Module, f.Name))
}

func metered(call hostCall) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, s []uint64) {
		i := instanceOf(ctx)
		i.bindMeter(mod)
		i.charge(hostUnits)
		call(i, i.mem.buf, s)
	}
}

// refill serves the rewritten code when its slice is used up.
func refill(ctx context.Context, _ api.Module, s []uint64) {
	s[0] = uint64(instanceOf(ctx).refill(int64(s[0])))
}

// deep serves the rewritten code when calls are nested too deeply.
func deep(ctx context.Context, _ api.Module, s []uint64) {
	panic(fault(FaultDepth, "nested calls need %d bytes of stack, at most %d are given: recurse less deeply", uint32(s[0]), instanceOf(ctx).m.lim.Stack))
}

// refill asks the meter for more, after everybody else had a turn: the scheduler and the collector wait for it.
func (i *Instance) refill(left int64) int64 {
	runtime.Gosched()
	next, f := i.meter.refill(left, time.Now())
	if f != nil {
		panic(f)
	}
	return next
}

// charge takes units from the guest's counter, before the work for which it pays.
func (i *Instance) charge(units uint64) {
	left := int64(i.fuel.Get()) - int64(units)
	if left < 0 {
		left = i.refill(left)
	}
	i.fuel.Set(uint64(left))
}

// edgeLog is edge.log(level i32, ptr i32, len i32). A line outside memory is the guest's fault.
func edgeLog(i *Instance, mem []byte, s []uint64) {
	text, ok := span(mem, uint64(uint32(s[1])), uint64(uint32(s[2])))
	if !ok {
		panic(fault(FaultFrame, "edge.log with %d bytes at %d, outside its memory", uint32(s[2]), uint32(s[1])))
	}
	i.charge(uint64(min(len(text), lineBytes)))
	i.log.line(int(int32(s[0])), text)
}
