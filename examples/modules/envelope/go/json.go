package main

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	maxDepth = 128  // containers inside one another
	maxPlain = 4096 // bytes of names that had escapes
)

// reader is a strict reader of JSON: RFC 8259, valid UTF-8, whole surrogate pairs. Its functions take a position and
// return the position behind what they read, or a negative number after bad has noted what is wrong where.
type reader struct {
	src   []byte
	why   string
	where int
}

func (r *reader) bad(i int, why string) int {
	r.why, r.where = why, i
	return -1
}

func (r *reader) space(i int) int {
	for i < len(r.src) && (r.src[i] == ' ' || r.src[i] == '\n' || r.src[i] == '\r' || r.src[i] == '\t') {
		i++
	}
	return i
}

// value reads any value; depth is the number of containers that are open around it.
func (r *reader) value(i, depth int) int {
	if i == len(r.src) {
		return r.bad(i, "the text ends too early")
	}
	switch c := r.src[i]; {
	case c == '"':
		end, _ := r.string(i + 1)
		return end
	case c == '{' || c == '[':
		return r.container(i, depth)
	case c == 't':
		return r.literal(i, "true")
	case c == 'f':
		return r.literal(i, "false")
	case c == 'n':
		return r.literal(i, "null")
	case c == '-' || c >= '0' && c <= '9':
		return r.number(i)
	}
	return r.bad(i, "a value was expected")
}

func (r *reader) container(i, depth int) int {
	open := r.src[i]
	end := open + 2 // { } and [ ] are two apart
	if depth == maxDepth {
		return r.bad(i, "too many containers inside one another")
	}
	i = r.space(i + 1)
	if i < len(r.src) && r.src[i] == end {
		return i + 1
	}
	for ; ; i = r.space(i + 1) {
		if open == '{' {
			if i == len(r.src) || r.src[i] != '"' {
				return r.bad(i, "a name in quotes was expected")
			}
			if i, _ = r.string(i + 1); i < 0 {
				return i
			}
			if i = r.colon(i); i < 0 {
				return i
			}
		}
		if i = r.value(i, depth+1); i < 0 {
			return i
		}
		i = r.space(i)
		if i < len(r.src) && r.src[i] == end {
			return i + 1
		}
		if i == len(r.src) || r.src[i] != ',' {
			return r.bad(i, "a comma or the closing bracket was expected")
		}
	}
}

func (r *reader) colon(i int) int {
	if i = r.space(i); i < len(r.src) && r.src[i] == ':' {
		return r.space(i + 1)
	}
	return r.bad(i, "a colon was expected")
}

func (r *reader) literal(i int, word string) int {
	if len(r.src)-i >= len(word) && string(r.src[i:i+len(word)]) == word {
		return i + len(word)
	}
	return r.bad(i, "a value was expected")
}

func (r *reader) number(i int) int {
	if r.src[i] == '-' {
		i++
	}
	if i < len(r.src) && r.src[i] == '0' {
		i++
	} else if i = r.digits(i); i < 0 {
		return i
	}
	if i < len(r.src) && r.src[i] == '.' {
		if i = r.digits(i + 1); i < 0 {
			return i
		}
	}
	if i < len(r.src) && r.src[i]|0x20 == 'e' {
		i++
		if i < len(r.src) && (r.src[i] == '+' || r.src[i] == '-') {
			i++
		}
		return r.digits(i)
	}
	return i
}

func (r *reader) digits(i int) int { // at least one
	start := i
	for i < len(r.src) && r.src[i] >= '0' && r.src[i] <= '9' {
		i++
	}
	if i == start {
		return r.bad(i, "a digit was expected")
	}
	return i
}

// string reads from behind the opening quote to behind the closing one.
func (r *reader) string(i int) (end int, escaped bool) {
	const ones = 0x0101010101010101
	for {
		// Eight bytes at a time, until one of them is a quote, a backslash, a control character or not ASCII. A borrow
		// can set a wrong bit only above a right one, so the lowest is exact.
		for len(r.src)-i >= 8 {
			w := binary.LittleEndian.Uint64(r.src[i:])
			if hit := ((w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones) | (w - ' '*ones) | w) & (ones << 7); hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		switch {
		case i == len(r.src):
			return r.bad(i, "the text ends too early"), escaped
		case r.src[i] == '"':
			return i + 1, escaped
		case r.src[i] < ' ':
			return r.bad(i, "control character in a string"), escaped
		case r.src[i] == '\\':
			escaped = true
			if _, i = r.escape(i); i < 0 {
				return i, escaped
			}
		default:
			c, n := utf8.DecodeRune(r.src[i:])
			if c == utf8.RuneError && n == 1 {
				return r.bad(i, "broken UTF-8"), escaped
			}
			i += n
		}
	}
}

// escape reads the escape at i, with both halves of a pair, and tells which character it is.
func (r *reader) escape(i int) (c rune, end int) {
	const names, values = "\"\\/bfnrt", "\"\\/\b\f\n\r\t"
	if len(r.src)-i < 2 {
		return 0, r.bad(len(r.src), "the text ends too early")
	}
	for k := range names {
		if r.src[i+1] == names[k] {
			return rune(values[k]), i + 2
		}
	}
	high := rune(-1)
	if r.src[i+1] == 'u' {
		high = r.hex4(i + 2)
	}
	switch {
	case high < 0:
		return 0, r.bad(i, "malformed escape")
	case high&0xf800 != 0xd800:
		return high, i + 6
	case high < 0xdc00 && len(r.src)-i >= 8 && r.src[i+6] == '\\' && r.src[i+7] == 'u':
		if low := r.hex4(i + 8); low >= 0xdc00 && low < 0xe000 {
			return 0x10000 + (high-0xd800)<<10 + low - 0xdc00, i + 12
		}
	}
	return 0, r.bad(i, "half of a surrogate pair")
}

func (r *reader) hex4(i int) (v rune) { // -1 if these are not four hex digits
	if len(r.src)-i < 4 {
		return -1
	}
	for _, c := range r.src[i : i+4] {
		switch l := c | 0x20; {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case l >= 'a' && l <= 'f':
			v = v<<4 | rune(l-'a'+10)
		default:
			return -1
		}
	}
	return v
}

// unescape appends the text of a string that has been read, from i to end, to plain.
func (r *reader) unescape(i, end int, plain *[]byte) bool {
	for i < end {
		if len(*plain)+4 > maxPlain {
			return r.bad(i, "too many names with escapes") >= 0
		}
		c := rune(r.src[i])
		if c != '\\' {
			*plain = append(*plain, r.src[i])
			i++
			continue
		}
		c, i = r.escape(i)
		*plain = utf8.AppendRune(*plain, c)
	}
	return true
}
