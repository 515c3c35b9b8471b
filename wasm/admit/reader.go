package admit

import (
	"fmt"
	"unicode/utf8"
)

// reader walks over a module. After the first mistake it keeps the error, stands at its end and answers zeros, so
// that a caller may read several fields before it looks at err. A loop over a count must look each time.
//
// Invariant: 0 <= pos <= end <= len(buf).
type reader struct {
	buf      []byte
	pos, end int

	section string // for errors
	fn      int
	err     *Error
}

func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Section: r.section, Func: r.fn, Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	r.pos = r.end
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) u8(what string) byte {
	if r.pos >= r.end {
		r.fail(r.pos, "%s is cut off", what)
		return 0
	}
	b := r.buf[r.pos]
	r.pos++
	return b
}

// skip passes over n bytes and returns where they begin.
func (r *reader) skip(n int, what string) int {
	if n > r.left() {
		r.fail(r.pos, "%s needs %d bytes, %d are left", what, n, r.left())
		return r.pos
	}
	r.pos += n
	return r.pos - n
}

// u32 reads an unsigned number of at most 32 bits in at most five bytes. Padding inside the five is legal: linkers
// leave it where they have patched an index.
func (r *reader) u32(what string) uint32 {
	if r.pos < r.end && r.buf[r.pos] < 0x80 {
		r.pos++
		return uint32(r.buf[r.pos-1])
	}
	at := r.pos
	var v uint32
	for shift := 0; ; shift += 7 {
		b := r.u8(what)
		if r.err != nil {
			return 0
		}
		if shift == 28 && b > 0x0f {
			r.fail(at, "%s is not an unsigned number of 32 bits", what)
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// signed reads a signed number of 32, 33 or 64 bits. The bits of the last possible byte that do not belong to the
// number must repeat its sign.
func (r *reader) signed(bits int, what string) int64 {
	at := r.pos
	var v int64
	for shift := 0; ; shift += 7 {
		b := r.u8(what)
		if r.err != nil {
			return 0
		}
		if shift+7 >= bits { // the last byte that there may be
			sign := int8(b<<1) >> (bits - shift) // payload bits above the sign bit, and the sign: all equal
			if b >= 0x80 || sign != 0 && sign != -1 {
				r.fail(at, "%s is not a signed number of %d bits", what, bits)
				return 0
			}
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if used := shift + 7; used < 64 {
				v = v << (64 - used) >> (64 - used)
			}
			return v
		}
	}
}

// count reads how many items follow, each of at least size bytes, and holds it against the bytes left and a limit.
func (r *reader) count(what string, size, limit int) int {
	at := r.pos
	n := r.u32("a count")
	if int64(n)*int64(size) > int64(r.left()) {
		r.fail(at, "%d %s are announced, %d bytes are left", n, what, r.left())
		return 0
	}
	if int64(n) > int64(limit) {
		r.fail(at, "%d %s, allowed are %d", n, what, limit)
		return 0
	}
	return int(n)
}

// index reads an index that must be below n.
func (r *reader) index(what string, n int) uint32 {
	at := r.pos
	i := r.u32(what)
	if r.err == nil && int64(i) >= int64(n) {
		r.fail(at, "%s %d does not exist, there are %d", what, i, n)
	}
	return i
}

func (r *reader) name(what string, limit int) string {
	at := r.pos
	n := r.u32(what)
	if int64(n) > int64(r.left()) {
		r.fail(at, "%s of %d bytes is announced, %d bytes are left", what, n, r.left())
		return ""
	}
	if int64(n) > int64(limit) {
		r.fail(at, "%s of %d bytes, allowed are %d", what, n, limit)
		return ""
	}
	b := r.buf[r.pos : r.pos+int(n)]
	if !utf8.Valid(b) {
		r.fail(at, "%s is not valid UTF-8", what)
		return ""
	}
	r.pos += int(n)
	return string(b)
}
