//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package wasm

import (
	"fmt"
	"math"
)

// reserve takes max bytes from Go's heap, which asks the system for zeroed pages that cost nothing until touched.
func reserve(max uint64) ([]byte, error) {
	if max > math.MaxInt {
		return nil, fmt.Errorf("reserve %d bytes of memory: more than this processor can address", max)
	}
	return make([]byte, max), nil
}

func allow([]byte) error { return nil }
func release([]byte)     {}
