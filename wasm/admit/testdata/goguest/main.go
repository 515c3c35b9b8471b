// Command goguest is a guest with all that the Go runtime brings along: a collector, a scheduler, reflection.
package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unsafe"
)

var buffer []byte

//go:wasmexport edge_v1_buffer
func edgeBuffer(n int32) int32 {
	if int(n) > cap(buffer) {
		buffer = make([]byte, n)
	}
	buffer = buffer[:n]
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(buffer))))
}

var out []byte

// edge_v1_run answers the JSON text in the buffer, decoded, sorted and printed again, with the n-th Fibonacci
// number in front that a recursion without loops finds.
//
//go:wasmexport edge_v1_run
func edgeRun(ptr, n int32) int64 {
	var v map[string]any
	if err := json.Unmarshal(buffer[:n], &v); err != nil {
		out = []byte(err.Error())
	} else {
		b, err := json.Marshal(v)
		out = []byte(fmt.Sprintf("%d %s %v %s", fib(len(v)), b, err, strings.ToUpper(string(b))))
	}
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(out))))<<32 | int64(len(out))
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:wasmexport edge_v1_config
func edgeConfig(ptr, n int32) int32 {
	if n == 0 {
		for {
		}
	}
	return deep(n)
}

//go:noinline
func deep(n int32) int32 {
	if n == 0 {
		return 0
	}
	return deep(n-1) + 1
}

func main() {}
