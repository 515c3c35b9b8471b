package wasm

// memory is an instance's linear memory. It is reserved at its greatest size at once and becomes accessible as it
// grows: it never moves, growth copies nothing, and where the system allows it the collector does not see it.
//
// It is the allocator's answer to wazero, which calls Reallocate and Free. Only the goroutine that runs the
// instance may touch it.
//
// Invariant: buf is res[:len(buf)]; bytes behind buf are zero, or not accessible.
type memory struct {
	res []byte // the reservation
	buf []byte // what the guest has: len is its size
	err error  // why there is no reservation
}

// newMemory reserves max bytes. It cannot answer an error: wazero takes none. A memory without a reservation
// refuses its first Reallocate, and err says why.
func newMemory(max uint64) *memory {
	m := &memory{}
	m.res, m.err = reserve(max)
	return m
}

// Reallocate grows the memory to size bytes, or answers nil.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.res)) || size < uint64(len(m.buf)) {
		return nil
	}
	if err := allow(m.res[len(m.buf):size]); err != nil {
		m.err = err
		return nil
	}
	m.buf = m.res[:size:size]
	return m.buf
}

// Free gives everything back. A second call does nothing.
func (m *memory) Free() {
	release(m.res)
	m.res, m.buf = nil, nil
}

// span answers n bytes at ptr of a guest's memory, false when they do not lie in it.
func span(mem []byte, ptr, n uint64) ([]byte, bool) {
	if ptr > uint64(len(mem)) || n > uint64(len(mem))-ptr {
		return nil, false
	}
	return mem[ptr : ptr+n : ptr+n], true
}
