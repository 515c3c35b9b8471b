//go:build linux || darwin || freebsd || netbsd || openbsd

package wasm

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// reserve takes max bytes of address space, none of it accessible.
func reserve(max uint64) ([]byte, error) {
	if max == 0 {
		return nil, nil
	}
	if max > math.MaxInt {
		return nil, fmt.Errorf("reserve %d bytes of memory: more than this processor can address", max)
	}
	b, err := unix.Mmap(-1, 0, int(max), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of memory: %w", max, err)
	}
	return b, nil
}

// allow makes a part of a reservation accessible. Its bytes are zero.
func allow(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("make %d bytes of memory accessible: %w", len(b), err)
	}
	return nil
}

func release(b []byte) {
	if len(b) == 0 {
		return
	}
	if err := unix.Munmap(b); err != nil {
		panic(fmt.Sprintf("BUG: give back %d bytes of memory: %v", len(b), err))
	}
}
