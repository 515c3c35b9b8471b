package envelope

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// MaxNesting is how many containers may be open at once in a record, its own object counted. encoding/json allows
// 10,000; 128 keeps the recursion here, and that of whoever reads the envelope, small, and no machine's record comes
// near it.
const MaxNesting = 128

// This file is the grammar of JSON (RFC 8259), strict, over bytes that are already known to be valid UTF-8. Every
// function takes the whole text and a position, and returns the position behind what it took; with a flaw, the
// position is where the flaw was seen. Nothing here allocates, and nothing reads behind the text.

// flaw is what is wrong with a JSON text; the zero value is nothing.
type flaw uint8

const (
	fine flaw = iota
	cutShort
	badValue
	badNumber
	badEscape
	badControl
	badKey
	badColon
	badComma
	badSurrogate
	tooDeep
	badTail
	badMark
)

// flawTexts go into the detail of a reject, before " at offset N".
var flawTexts = [...]string{
	cutShort:     "the text ends too early",
	badValue:     "a value was expected",
	badNumber:    "malformed number",
	badEscape:    "malformed escape",
	badControl:   "control character in a string",
	badKey:       "a key in quotes was expected",
	badColon:     "a colon was expected",
	badComma:     "a comma or the closing bracket was expected",
	badSurrogate: "half of a surrogate pair",
	tooDeep:      "too many containers inside one another",
	badTail:      "more text behind the object",
	badMark:      "a byte order mark stands before the object",
}

func (f flaw) reject(at int) error {
	r := NotJSON
	switch f {
	case fine:
		panic("BUG: reject without a flaw")
	case badSurrogate:
		r = InvalidUTF8
	case tooDeep:
		r = TooDeep
	}
	return &RejectError{Reason: r, Detail: fmt.Sprintf("%s at offset %d", flawTexts[f], at)}
}

// openRecord checks the UTF-8 of a whole record and returns the position of its opening brace.
func openRecord(src []byte) (int, error) {
	if !utf8.Valid(src) {
		return 0, reject(InvalidUTF8, "broken UTF-8 at offset %d", validPrefix(src))
	}
	i := skipSpace(src, 0)
	switch {
	case i == len(src):
		return 0, cutShort.reject(i)
	case src[i] == '{':
		return i, nil
	case i == 0 && len(src) >= 3 && string(src[:3]) == "\xef\xbb\xbf":
		return 0, badMark.reject(0)
	}
	end, f := scanValue(src, i, 0)
	if f != fine {
		return 0, f.reject(end)
	}
	if end = skipSpace(src, end); end != len(src) {
		return 0, badTail.reject(end)
	}
	return 0, reject(NotAnObject, "the record is a JSON value, but not an object")
}

// closeRecord checks that nothing stands behind the record's closing brace.
func closeRecord(src []byte, i int) error {
	if i = skipSpace(src, i); i != len(src) {
		return badTail.reject(i)
	}
	return nil
}

func validPrefix(src []byte) int {
	i := 0
	for i < len(src) {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		i += n
	}
	return i
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\r' || src[i] == '\t') {
		i++
	}
	return i
}

// scanValue takes one value of any kind. depth is the number of containers that are open around it.
func scanValue(src []byte, i, depth int) (int, flaw) {
	if i >= len(src) {
		return i, cutShort
	}
	switch c := src[i]; c {
	case '"':
		end, _, f := scanString(src, i+1)
		return end, f
	case '{':
		m, f := openObject(src, i, depth)
		for f == fine && m.next(&f) {
			m.i, f = scanValue(src, m.i, depth+1)
		}
		return m.i, f
	case '[':
		l, f := openList(src, i, depth)
		for f == fine && l.next(&f) {
			l.i, f = scanValue(src, l.i, depth+1)
		}
		return l.i, f
	default:
		return scanScalar(src, i)
	}
}

// scanScalar takes a number or one of the three words.
func scanScalar(src []byte, i int) (int, flaw) {
	switch c := src[i]; {
	case c == '-' || c-'0' <= 9:
		return scanNumber(src, i)
	case c == 't':
		return scanWord(src, i, "true")
	case c == 'f':
		return scanWord(src, i, "false")
	case c == 'n':
		return scanWord(src, i, "null")
	}
	return i, badValue
}

func scanWord(src []byte, i int, word string) (int, flaw) {
	if len(src)-i >= len(word) && string(src[i:i+len(word)]) == word {
		return i + len(word), fine
	}
	return i, badValue
}

func scanNumber(src []byte, i int) (int, flaw) {
	if src[i] == '-' {
		i++
	}
	if i < len(src) && src[i] == '0' {
		i++
	} else {
		end := skipDigits(src, i)
		if end == i {
			return i, badNumber
		}
		i = end
	}
	if i < len(src) && src[i] == '.' {
		end := skipDigits(src, i+1)
		if end == i+1 {
			return end, badNumber
		}
		i = end
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		end := skipDigits(src, i)
		if end == i {
			return i, badNumber
		}
		i = end
	}
	return i, fine
}

func skipDigits(src []byte, i int) int {
	for i < len(src) && src[i]-'0' <= 9 {
		i++
	}
	return i
}

const (
	everyByte = 0x0101010101010101
	topBits   = 0x8080808080808080
)

// scanString takes the rest of a string behind its opening quote and returns the position behind the closing one.
// escaped tells whether a backslash occurred.
func scanString(src []byte, i int) (end int, escaped bool, f flaw) {
	for {
		// Eight bytes at a time: the top bit of each byte that is a quote, a backslash or below 0x20. A borrow can
		// set a wrong bit only above a right one, so the lowest is exact.
		for len(src)-i >= 8 {
			w := binary.LittleEndian.Uint64(src[i:])
			q, b := w^('"'*everyByte), w^('\\'*everyByte)
			hit := ((q-everyByte)&^q | (b-everyByte)&^b | (w-' '*everyByte)&^w) & topBits
			if hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' {
			i++
		}
		switch {
		case i >= len(src):
			return i, escaped, cutShort
		case src[i] == '"':
			return i + 1, escaped, fine
		case src[i] != '\\':
			return i, escaped, badControl
		}
		escaped = true
		if i, f = scanEscape(src, i); f != fine {
			return i, escaped, f
		}
	}
}
