package wasm

import (
	"fmt"
	"math/bits"
)

// Run gives a batch of events to the guest, in one call, and takes its records. n events in a frame of b bytes may use
// Fuel + (n-1) * FuelNext + b * FuelByte units, and n * Time, and Time again per MiB. out is overwritten; in is only read.
//
// The error is a *Fault when the events or the module are to blame: then out holds no record, the instance is at its
// snapshot and can be used at once. The only other error is a *ResetError: the instance could not be made anew, by no
// fault of these events; the next Run tries again.
func (i *Instance) Run(in []Input, out *Output) error {
	i.enter()
	defer i.leave()
	out.reset()
	if i.m == nil {
		return &ResetError{Cause: errClosed}
	}
	lim := &i.m.lim
	size, f := frameSize(in, lim)
	if f != nil {
		return f
	}
	if len(in) == 0 {
		return nil
	}
	if i.mod == nil {
		if err := i.reset(true); err != nil {
			return err
		}
	}
	fuel, wall := lim.budget(len(in), size)
	i.begin(fuel, wall)
	i.state.now = in[0].IngestTime
	f = i.exchange(in, size, out)
	i.log.flush()
	i.usage.Fuel = i.meter.spent(int64(i.fuel.Get()))
	if f == nil && i.usage.Fuel > fuel { // the end came before the next check
		f = fault(FaultFuel, "more than its budget of %d units: do less per event or raise limits.fuel", fuel)
	}
	if f == nil {
		return nil
	}
	out.reset()
	i.quote(f)
	if frame, ok := span(i.mem.buf, uint64(i.state.ptr), headerBytes); ok && i.state.cap > 0 {
		f.Progress = progress(frame, len(in))
	}
	if err := i.reset(f.stale); err != nil {
		i.m.engine.log.Warn("module could not be reset after a fault; the next run tries again", "error", err)
	}
	return f
}

// quote adds a dying guest's own words to its fault: "unreachable" tells nobody what went wrong in a language
// runtime.
func (i *Instance) quote(f *Fault) {
	if said := i.log.said; len(said) > 0 && (f.Kind == FaultTrap || f.Kind == FaultMemory || f.Kind == FaultExit) {
		f.Detail = fmt.Sprintf("%s, after it wrote %q", f.Detail, said)
	}
}

// exchange is the run itself: frame in, records out.
func (i *Instance) exchange(in []Input, size int, out *Output) *Fault {
	frame, f := i.room(size)
	if f != nil {
		return f
	}
	putFrame(frame, in)
	i.stack = [2]uint64{uint64(i.state.ptr), uint64(size)}
	if f := i.call(i.run); f != nil {
		return f
	}
	ptr, n := i.stack[0]>>32, i.stack[0]&0xffffffff
	if n == 0 {
		return nil
	}
	src, ok := span(i.mem.buf, ptr, n)
	if !ok {
		return fault(FaultFrame, "%d bytes of records at %d, in a memory of %d", n, ptr, len(i.mem.buf))
	}
	return out.take(src, len(in), &i.m.lim)
}

// room answers the guest's input buffer, cut to size bytes. A larger one is asked for when it is needed, a power of
// two so that this ends soon.
func (i *Instance) room(size int) ([]byte, *Fault) {
	if size > int(i.state.cap) {
		more := min(1<<bits.Len(uint(size-1)), headerBytes+i.m.lim.Batch)
		f := i.ask(max(more, size))
		if f != nil && f.Kind == FaultRefused && more > size {
			f = i.ask(size)
		}
		if f != nil {
			return nil, f
		}
	}
	return i.mem.buf[i.state.ptr:][:size], nil
}

// ask calls edge_v1_buffer. After a refusal there is no buffer at all.
func (i *Instance) ask(size int) *Fault {
	i.state.ptr, i.state.cap = 0, 0
	i.stack = [2]uint64{uint64(uint32(size))}
	if f := i.call(i.buffer); f != nil {
		return f
	}
	ptr := uint32(i.stack[0])
	if ptr == 0 {
		return fault(FaultRefused, "edge_v1_buffer has no room for %d bytes: make smaller batches, or raise limits.memory", size)
	}
	if _, ok := span(i.mem.buf, uint64(ptr), uint64(size)); !ok || ptr%8 != 0 {
		return fault(FaultFrame, "edge_v1_buffer(%d) answers %d: it must be a multiple of 8 and lie in the memory of %d bytes", size, ptr, len(i.mem.buf))
	}
	i.state.ptr, i.state.cap = ptr, uint32(size)
	return nil
}
