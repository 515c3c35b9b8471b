package wasm

import (
	"bytes"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"edge/wasm/admit"
)

// mapping is an image in a file that has no name. The zero value has none.
type mapping struct {
	file int // descriptor + 1
}

// fill makes the file and writes m into it; pages of zeros stay holes.
func (f *mapping) fill(m *memory) error {
	fd, err := unix.MemfdCreate("edge-wasm-snapshot", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("create snapshot: %w", err)
	}
	f.file = fd + 1
	if err := unix.Ftruncate(fd, int64(len(m.buf))); err != nil {
		return fmt.Errorf("size snapshot: %w", err)
	}
	var zero [4096]byte
	for at := 0; at < len(m.buf); at += admit.PageBytes {
		page := m.buf[at : at+admit.PageBytes]
		for off := 0; off < len(page); {
			if bytes.Equal(page[off:off+len(zero)], zero[:]) {
				off += len(zero)
				continue
			}
			n, err := unix.Pwrite(fd, page[off:], int64(at+off))
			if err != nil {
				return fmt.Errorf("write snapshot: %w", err)
			}
			off += n &^ (len(zero) - 1)
			if n < len(zero) {
				return fmt.Errorf("write snapshot: %d bytes taken", n)
			}
		}
	}
	return nil
}

// over maps the file privately over the first size bytes of m.
func (f *mapping) over(m *memory, size int) error {
	at := unsafe.Pointer(unsafe.SliceData(m.res))
	_, err := unix.MmapPtr(f.file-1, 0, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("map snapshot: %w", err)
	}
	return nil
}

// drop forgets what has been written to the first size bytes of m: the next access finds the file's content.
func (f *mapping) drop(m *memory, size int) error {
	if err := unix.Madvise(m.res[:size], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("drop written pages: %w", err)
	}
	return nil
}

func (f *mapping) close() {
	if f.file > 0 {
		unix.Close(f.file - 1) // a file in memory: closing it can not lose anything
	}
	f.file = 0
}
