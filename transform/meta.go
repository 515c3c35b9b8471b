package transform

import (
	"strings"
	"unicode/utf8"

	"edge/envelope"
)

// appendMeta appends the frame's meta block of e: one "Name: value\r\n" line each for what a module may want
// to know and the body does not say.
//
//	Dataset: imu
//	Kind: record
//	Quality: good
//	Input: imu-log
//	Source: imu.ndjson:17
//	Identity-site: lab
//
// A line break or another control character in a value becomes a space, so that no value can add a line; the
// exact identity values are in the prefix.
func appendMeta(dst []byte, e *envelope.Event) []byte {
	dst = appendMetaLine(dst, "Dataset", nil, e.Dataset)
	dst = append(dst, "Kind: "...)
	dst = append(dst, e.Kind.String()...)
	dst = append(dst, "\r\nQuality: "...)
	dst = append(dst, e.Quality.String()...)
	dst = append(dst, "\r\n"...)
	dst = appendMetaLine(dst, "Input", nil, e.Input)
	if len(e.Source) > 0 {
		dst = appendMetaLine(dst, "Source", nil, e.Source)
	}
	for _, l := range e.Identity {
		dst = appendMetaLine(dst, "Identity-", l.Name, l.Value)
	}
	return dst
}

func appendMetaLine(dst []byte, name string, level, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, level...)
	dst = append(dst, ": "...)
	at := len(dst)
	dst = append(dst, value...)
	for i, c := range dst[at:] {
		if c < ' ' || c == 0x7f {
			dst[at+i] = ' '
		}
	}
	return append(dst, "\r\n"...)
}

// printable makes a text that a guest chose fit for a log or a terminal: valid UTF-8 without control characters.
func printable(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || (c >= 0x80 && c < 0xa0) || c == utf8.RuneError {
			return '\uFFFD'
		}
		return c
	}, s)
}
