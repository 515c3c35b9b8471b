package input

import "bytes"

// splitter cuts a stream of chunks into lines. A line within one chunk is never copied; of an overlong line only
// the beginning is kept.
//
// Invariant: len(carry) <= max+1 (a carriage return may follow), or skipping and len(carry) <= kept.
type splitter struct {
	max      int // bytes of a line without its line break
	carry    []byte
	skipping bool
	size     int64 // bytes of the unfinished line so far
}

// kept is how much of an overlong line goes to quarantine, in bytes.
const kept = 64 << 10

// line is one line without its line break.
type line struct {
	text  []byte // valid until the splitter is fed again; the beginning only if it is cut
	size  int64  // bytes of the line, its line break included
	cut   bool   // longer than the limit
	ended bool   // with a line feed
}

// next returns the first line that ends in chunk and the rest of chunk. ok is false if none does: then the rest is
// empty, and what chunk held is remembered.
func (s *splitter) next(chunk []byte) (l line, rest []byte, ok bool) {
	i := bytes.IndexByte(chunk, '\n')
	if i < 0 {
		s.keep(chunk)
		return line{}, nil, false
	}
	if s.size == 0 {
		l = line{text: chunk[:i:i], size: int64(i) + 1, ended: true}
	} else {
		s.keep(chunk[:i])
		l = line{text: s.carry, size: s.size + 1, cut: s.skipping, ended: true}
	}
	s.finish(&l)
	return l, chunk[i+1:], true
}

// last returns what follows the last line feed of the stream, if anything does.
func (s *splitter) last() (l line, ok bool) {
	if s.size == 0 {
		return line{}, false
	}
	l = line{text: s.carry, size: s.size, cut: s.skipping}
	s.finish(&l)
	return l, true
}

// drop forgets the unfinished line.
func (s *splitter) drop() {
	s.carry, s.size, s.skipping = s.carry[:0], 0, false
}

func (s *splitter) keep(b []byte) {
	s.size += int64(len(b))
	if !s.skipping && len(s.carry)+len(b) > s.max+1 {
		s.skipping = true
	}
	if s.skipping {
		if room := min(kept, s.max) - len(s.carry); room <= 0 {
			s.carry = s.carry[:min(kept, s.max)]
			return
		} else if len(b) > room {
			b = b[:room]
		}
	}
	s.carry = append(s.carry, b...)
}

// finish takes the carriage return off, holds the line against the limit and begins the next.
func (s *splitter) finish(l *line) {
	if n := len(l.text); !l.cut && n > 0 && l.text[n-1] == '\r' {
		l.text = l.text[:n-1]
	}
	if len(l.text) > s.max {
		l.cut = true
	}
	if l.cut {
		l.text = l.text[:min(len(l.text), kept, s.max)]
	}
	if cap(s.carry) > 1<<20 {
		s.carry = nil // one huge line is no reason to keep its room; l.text still holds it
	}
	s.drop()
}
