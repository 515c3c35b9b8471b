package wasm

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Error numbers of WASI preview 1.
const (
	wasiOK     = 0
	wasiBadF   = 8  // bad descriptor
	wasiFault  = 21 // bad address
	wasiInval  = 28 // invalid argument
	wasiNoSys  = 52 // not supported
	maxVectors = 1024
)

// wasi answers our own stub of a function of WASI preview 1, for language runtimes that cannot do without. Time is
// the batch's, random numbers are ours, what is written to descriptors 1 and 2 becomes log lines, ending oneself is
// a fault, and waiting is over at once. There are no arguments, no environment and no other descriptor.
func wasi(name string) hostCall {
	switch name {
	case "args_get", "environ_get", "sched_yield":
		return answer(wasiOK)
	case "args_sizes_get", "environ_sizes_get":
		return func(_ *Instance, mem []byte, s []uint64) {
			s[0] = put32(mem, s[0], 0) | put32(mem, s[1], 0)
		}
	case "clock_res_get":
		return func(_ *Instance, mem []byte, s []uint64) { s[0] = put64(mem, s[1], 1) }
	case "clock_time_get":
		return clockTime
	case "random_get":
		return random
	case "proc_exit":
		return func(_ *Instance, _ []byte, s []uint64) {
			panic(fault(FaultExit, "it ended itself with code %d", uint32(s[0])))
		}
	case "fd_write":
		return fdWrite
	case "fd_fdstat_get":
		return fdStat
	case "fd_fdstat_set_flags", "fd_close":
		return func(_ *Instance, _ []byte, s []uint64) {
			if fd := uint32(s[0]); fd > 2 {
				s[0] = wasiBadF
			} else {
				s[0] = wasiOK
			}
		}
	case "poll_oneoff":
		return pollOneoff
	case "proc_raise":
		return answer(wasiNoSys)
	}
	if strings.HasPrefix(name, "fd_") || strings.HasPrefix(name, "path_") {
		return answer(wasiBadF)
	}
	panic(fmt.Sprintf("BUG: no stub for %q", name))
}

func answer(code uint64) hostCall {
	return func(_ *Instance, _ []byte, s []uint64) { s[0] = code }
}

func put32(mem []byte, ptr uint64, v uint32) uint64 {
	b, ok := span(mem, uint64(uint32(ptr)), 4)
	if !ok {
		return wasiFault
	}
	binary.LittleEndian.PutUint32(b, v)
	return wasiOK
}

func put64(mem []byte, ptr, v uint64) uint64 {
	b, ok := span(mem, uint64(uint32(ptr)), 8)
	if !ok {
		return wasiFault
	}
	binary.LittleEndian.PutUint64(b, v)
	return wasiOK
}

// clockTime is clock_time_get(id, precision, ptr): the wall clock (0) stands at the ingest time of the batch's first
// event, and at zero while the module is made ready; every other clock counts how often it was asked.
func clockTime(i *Instance, mem []byte, s []uint64) {
	switch id := uint32(s[0]); {
	case id == 0:
		s[0] = put64(mem, s[2], uint64(i.state.now))
	case id <= 3:
		i.state.ticks = min(i.state.ticks+1, lastTick)
		s[0] = put64(mem, s[2], i.state.ticks)
	default:
		s[0] = wasiInval
	}
}

// random is random_get(ptr, len).
func random(i *Instance, mem []byte, s []uint64) {
	b, ok := span(mem, uint64(uint32(s[0])), uint64(uint32(s[1])))
	if !ok {
		s[0] = wasiFault
		return
	}
	i.charge(uint64(len(b)))
	i.state.random.Read(b) // never fails
	s[0] = wasiOK
}

// fdWrite is fd_write(fd, vectors, count, ptr of the number of bytes written).
func fdWrite(i *Instance, mem []byte, s []uint64) {
	fd, count := uint32(s[0]), uint64(uint32(s[2]))
	if fd != 1 && fd != 2 {
		s[0] = wasiBadF
		return
	}
	if count > maxVectors {
		s[0] = wasiInval
		return
	}
	vectors, ok := span(mem, uint64(uint32(s[1])), 8*count)
	if !ok {
		s[0] = wasiFault
		return
	}
	i.charge(8 * count)
	total := uint32(0)
	for ; len(vectors) > 0; vectors = vectors[8:] {
		n := binary.LittleEndian.Uint32(vectors[4:])
		text, ok := span(mem, uint64(binary.LittleEndian.Uint32(vectors)), uint64(n))
		if !ok || total+n < total {
			s[0] = wasiFault
			return
		}
		i.charge(uint64(n))
		i.log.write(int(fd-1), text)
		total += n
	}
	s[0] = put32(mem, s[3], total)
}

// fdStat is fd_fdstat_get(fd, ptr): descriptors 0 to 2 are terminals of which 1 and 2 may be written.
func fdStat(_ *Instance, mem []byte, s []uint64) {
	fd := uint32(s[0])
	if fd > 2 {
		s[0] = wasiBadF
		return
	}
	b, ok := span(mem, uint64(uint32(s[1])), 24)
	if !ok {
		s[0] = wasiFault
		return
	}
	clear(b)
	const characterDevice, mayWrite = 2, 1 << 6
	b[0] = characterDevice
	if fd > 0 {
		binary.LittleEndian.PutUint64(b[8:], mayWrite)
	}
	s[0] = wasiOK
}

// pollOneoff is poll_oneoff(subscriptions, events, count, ptr of the number of events). Nobody waits: each clock has
// gone off already, and the clock that counts moves on by what was waited for; each descriptor is a bad one. Go
// cannot do without: it sleeps a millisecond before it says why it panics.
func pollOneoff(i *Instance, mem []byte, s []uint64) {
	const subscription, event = 48, 32
	count := uint64(uint32(s[2]))
	if count == 0 || count > maxVectors {
		s[0] = wasiInval
		return
	}
	in, ok := span(mem, uint64(uint32(s[0])), subscription*count)
	out, ok2 := span(mem, uint64(uint32(s[1])), event*count)
	if !ok || !ok2 {
		s[0] = wasiFault
		return
	}
	i.charge(subscription * count)
	le := binary.LittleEndian
	for ; len(in) > 0; in, out = in[subscription:], out[event:] {
		user, tag := le.Uint64(in), in[8]
		clock, timeout, absolute := le.Uint32(in[16:]), le.Uint64(in[24:]), in[40]&1 != 0
		code := uint16(wasiOK)
		switch {
		case tag != 0: // a descriptor
			code = wasiBadF
		case clock > 3:
			code = wasiInval
		case clock > 0 && absolute:
			i.state.ticks = max(i.state.ticks, min(timeout, lastTick))
		default:
			i.state.ticks = min(i.state.ticks+min(timeout, lastTick), lastTick)
		}
		clear(out[:event])
		le.PutUint64(out, user)
		le.PutUint16(out[8:], code)
		out[10] = tag
	}
	s[0] = put32(mem, s[3], uint32(count))
}

// lastTick is where the clock that counts stops: guests read it as a signed number.
const lastTick = 1 << 62
