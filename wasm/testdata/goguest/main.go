//go:build wasip1

// A guest in plain Go without any kit: each event becomes one message whose payload is the prefix and the data in
// braces. Data that begins with a word in capitals makes it misbehave in Go's own ways.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"
)

var (
	in, out []byte
	suffix  string
	started = time.Now()
	kept    = map[string][]byte{"start": nil}
)

func main() {}

//go:wasmexport edge_v1_buffer
func buffer(n uint32) unsafe.Pointer {
	words := make([]uint64, (n+7)/8+1) // of words, so that it is aligned
	in = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
	return unsafe.Pointer(&words[0])
}

//go:wasmexport edge_v1_config
func config(_ unsafe.Pointer, n uint32) uint32 {
	suffix = string(in[:n])
	if strings.Contains(suffix, "refuse") {
		fmt.Println("this configuration is not for me")
		return 3
	}
	return 0
}

//go:wasmexport edge_v1_run
func run(_ unsafe.Pointer, _ uint32) uint64 {
	le := binary.LittleEndian
	out = out[:0]
	for k := range le.Uint32(in[4:]) {
		le.PutUint32(in[8:], k)
		d := in[16+64*k:]
		part := func(at int) []byte { return in[le.Uint32(d[at:]):][:le.Uint32(d[at+4:])] }
		data, prefix, subject := part(32), part(48), part(56)
		word, _, _ := bytes.Cut(data, []byte(" "))
		payload := fmt.Appendf(nil, "{%s,%s}%s", prefix, data, suffix)
		switch string(word) {
		case "PANIC":
			panic("no idea what to do")
		case "EXIT":
			os.Exit(3)
		case "SPIN":
			for {
			}
		case "NEST":
			payload = fmt.Append(nil, nest(1))
		case "HOARD":
			for n := 0; ; n++ {
				kept[fmt.Sprint(n)] = make([]byte, 1<<20)
			}
		case "GARBAGE": // far more than the memory, so that Go's collector has to work
			for n := range 2000 {
				kept["garbage"] = make([]byte, 64<<10+n)
			}
			payload = fmt.Append(nil, len(kept["garbage"]))
		case "LOOK":
			_, err := os.ReadFile("/etc/passwd")
			payload = fmt.Append(nil, time.Now().UnixNano(), started.Unix(), len(os.Args), os.Environ(), err != nil)
		case "KEEP":
			kept[string(data)] = data
			payload = fmt.Append(nil, slices.Sorted(maps.Keys(kept)))
		case "SLEEP":
			time.Sleep(time.Hour)
		}
		out = le.AppendUint32(out, k)
		out = append(out, 0, 0)
		out = le.AppendUint16(out, uint16(len(subject)))
		out = le.AppendUint32(out, 0)
		out = le.AppendUint32(out, uint32(len(payload)))
		out = append(append(out, subject...), payload...)
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(out))))<<32 | uint64(len(out))
}

//go:noinline
func nest(n int) int {
	var room [64]int
	room[n&63] = n
	return nest(n+1) + room[(n+1)&63]
}
