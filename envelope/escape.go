package envelope

import "unicode/utf8"

// scanEscape takes one escape, or both halves of a surrogate pair.
func scanEscape(src []byte, i int) (int, flaw) {
	if i+1 >= len(src) {
		return len(src), cutShort
	}
	switch src[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, fine
	case 'u':
	default:
		return i, badEscape
	}
	u, ok := hex4(src, i+2)
	if !ok {
		return i, badEscape
	}
	switch {
	case u&0xf800 != 0xd800:
		return i + 6, fine
	case u >= 0xdc00 || i+8 > len(src) || src[i+6] != '\\' || src[i+7] != 'u':
		return i, badSurrogate
	}
	if u, ok = hex4(src, i+8); !ok {
		return i + 6, badEscape
	}
	if u&0xfc00 != 0xdc00 {
		return i, badSurrogate
	}
	return i + 12, fine
}

// hex4 reads four hex digits at i.
func hex4(src []byte, i int) (rune, bool) {
	if len(src)-i < 4 {
		return 0, false
	}
	var u rune
	for _, c := range src[i : i+4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}

// appendUnescaped appends the text of a string that scanString has accepted, given without its quotes.
func appendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			dst = append(dst, s[i])
			i++
			continue
		}
		c := s[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			u, _ := hex4(s, i)
			i += 4
			if u&0xfc00 == 0xd800 {
				low, _ := hex4(s, i+2)
				u = 0x10000 + (u-0xd800)<<10 + (low - 0xdc00)
				i += 6
			}
			dst = utf8.AppendRune(dst, u)
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
