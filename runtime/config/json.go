package config

import (
	"math"
	"strconv"

	"edge/envelope"
)

// appendJSON appends a value of the file as JSON, keys in their order: what a module gets as its configuration.
// Numbers keep their digits where JSON has them.
func (w *walker) appendJSON(dst []byte, n *node, path string) []byte {
	switch n.kind {
	case mapping:
		dst = append(dst, '{')
		seen := make(map[string]pos, len(n.entries))
		for i, e := range n.entries {
			sub := join(path, e.key)
			if first, ok := seen[e.key]; ok {
				w.add(e.pos, sub, "key %q is given twice, first in line %d: keep one", e.key, first.line)
				continue
			}
			seen[e.key] = e.pos
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, e.key)
			dst = append(dst, ':')
			dst = w.appendJSON(dst, e.value, sub)
		}
		return append(dst, '}')
	case sequence:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.appendJSON(dst, item, path+"["+strconv.Itoa(i)+"]")
		}
		return append(dst, ']')
	}
	switch n.style {
	case null:
		return append(dst, "null"...)
	case boolean:
		return append(dst, n.text...)
	case number:
		return w.appendNumber(dst, n, path)
	}
	if n.style == plainText && !n.foreign && jsonNumber(n.text) {
		return append(dst, n.text...) // more digits than the library has a type for
	}
	return appendQuoted(dst, n.text)
}

func (w *walker) appendNumber(dst []byte, n *node, path string) []byte {
	if jsonNumber(n.text) {
		return append(dst, n.text...)
	}
	if i, err := strconv.ParseInt(n.text, 0, 64); err == nil { // 0x1f, 0o17, 1_000
		return strconv.AppendInt(dst, i, 10)
	}
	f, err := strconv.ParseFloat(n.text, 64) // .5, +1.5
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		w.fail(n, path, "%s%q is no number that JSON has: put it into quotes if it is a text", label(path), n.text)
		return append(dst, "null"...)
	}
	return envelope.AppendFloat(dst, f, 64)
}

// jsonNumber tells whether s is a number by JSON's grammar: -? int frac? exp?
func jsonNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	if s != "" && s[0] == '0' {
		s = s[1:]
	} else if !digits() {
		return false
	}
	if s != "" && s[0] == '.' {
		if s = s[1:]; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

func appendQuoted(dst []byte, s string) []byte {
	dst, err := envelope.AppendString(dst, s)
	if err != nil {
		panic("BUG: a text of the configuration is not UTF-8, although the file and every reference were checked")
	}
	return dst
}
