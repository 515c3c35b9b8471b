//go:build wasip1

package main

import (
	"encoding/binary"
	"unsafe"
)

// The interface edge_v1. The host writes only into in, and only between calls; out is ours until the next call.
var (
	in, out []byte
	m       module
)

const maxFrame = 16 << 20 // bytes; more input than this is refused

func main() {} // never runs: the host calls _initialize and then the functions below

//go:wasmexport edge_v1_buffer
func buffer(n uint32) unsafe.Pointer {
	if n > maxFrame {
		return nil
	}
	if int(n) > len(in) {
		in = make([]byte, n+8) // eight bytes or more are aligned to eight
	}
	return unsafe.Pointer(unsafe.SliceData(in))
}

//go:wasmexport edge_v1_config
func config(_ unsafe.Pointer, n uint32) uint32 { return m.config(in[:n]) }

//go:wasmexport edge_v1_run
func run(_ unsafe.Pointer, n uint32) uint64 {
	out = appendFrame(out[:0], &m, in[:n])
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(out))))<<32 | uint64(len(out))
}

// appendFrame appends the records of one frame. README.md, one folder up, draws it.
func appendFrame(dst []byte, m *module, frame []byte) []byte {
	u32 := binary.LittleEndian.Uint32
	if string(frame[:4]) != "EDG1" {
		panic("not a frame of edge_v1")
	}
	for i := range u32(frame[4:]) {
		binary.LittleEndian.PutUint32(frame[8:], i) // progress: if this event does harm, the host can name it
		d := frame[16+64*i:][:64]
		cut := func(at int) []byte { return frame[u32(d[at:]):][:u32(d[at+4:])] }
		dst = m.write(dst, i, event{data: cut(32), prefix: cut(48), subject: cut(56)})
	}
	return dst
}
