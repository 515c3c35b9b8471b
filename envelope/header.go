package envelope

import (
	"bytes"
	"unicode/utf8"
)

// Limits of the headers that a module or a template may add. A server refuses a block over 64 KiB, its own two
// headers included; sixteen are more than anybody was seen to use, and no limit has an "off".
const (
	MaxHeaders     = 16       // default for maxCount of CheckHeaders
	MaxHeaderBytes = 32 << 10 // default for maxBytes of CheckHeaders
	MaxHeaderName  = 128      // bytes
	MaxHeaderValue = 4096     // bytes
)

// CheckHeaders tells whether a block of header lines may be sent. Each line is
//
//	Name: value\r\n
//
// with a name of printable ASCII without blanks and separators (the token of RFC 9110), exactly one blank behind the colon (part of the line, not of
// the value), and a value of valid UTF-8 without control characters, which may be empty. Names that begin with Nats-
// in any case are refused, because the server obeys some of them (Nats-Rollup erases a stream) and the rest are ours.
// At most maxCount lines and maxBytes bytes, MaxHeaderName and MaxHeaderValue each. A name may occur again. The empty
// block is fine. The error is a *RejectError.
func CheckHeaders(block []byte, maxCount, maxBytes int) error {
	if len(block) > maxBytes {
		return reject(HeadersTooLarge, "%d bytes, the limit is %d", len(block), maxBytes)
	}
	for n := 1; len(block) > 0; n++ {
		if n > maxCount {
			return reject(HeadersTooLarge, "more than %d headers", maxCount)
		}
		colon := bytes.IndexByte(block, ':')
		if colon < 0 {
			return reject(BadHeader, "header %d has no colon", n)
		}
		name, rest := block[:colon], block[colon+1:]
		if err := checkHeaderName(name, n); err != nil {
			return err
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 2 || rest[end-1] != '\r' || rest[0] != ' ' {
			return reject(BadHeader, "header %d, %s: want one blank behind the colon and \\r\\n at the end", n, name)
		}
		if err := checkHeaderValue(rest[1:end-1], n, name); err != nil {
			return err
		}
		block = rest[end+1:]
	}
	return nil
}

// headerSeparators are the characters that no header name may have by RFC 9110, section 5.6.2. NATS clients follow it.
var headerSeparators = []byte(`"(),/:;<=>?@[\]{}`)

func checkHeaderName(name []byte, n int) error {
	if len(name) == 0 {
		return reject(BadHeader, "header %d has no name", n)
	}
	if len(name) > MaxHeaderName {
		return reject(HeadersTooLarge, "header %d has a name of %d bytes, the limit is %d", n, len(name), MaxHeaderName)
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte(headerSeparators, c) >= 0 {
			return reject(BadHeader, "header %d has a name with character %#02x", n, c)
		}
	}
	if len(name) >= 5 && bytes.EqualFold(name[:5], []byte("Nats-")) {
		return reject(ReservedHeader, "header %d, %s: names that begin with Nats- are the agent's and the server's", n, name)
	}
	return nil
}

func checkHeaderValue(value []byte, n int, name []byte) error {
	if len(value) > MaxHeaderValue {
		return reject(HeadersTooLarge, "header %d, %s: %d bytes, the limit is %d", n, name, len(value), MaxHeaderValue)
	}
	for _, c := range value {
		if c < ' ' || c == 0x7f {
			return reject(BadHeader, "header %d, %s: value with control character %#02x", n, name, c)
		}
	}
	if !utf8.Valid(value) {
		return reject(InvalidUTF8, "header %d, %s", n, name)
	}
	return nil
}

// EachHeader calls f for each header of a block that CheckHeaders has accepted, in order. name and value alias block.
func EachHeader(block []byte, f func(name, value []byte)) {
	for len(block) > 0 {
		colon := bytes.IndexByte(block, ':')
		end := bytes.IndexByte(block, '\n')
		if colon < 0 || end < colon+3 {
			panic("BUG: header block was not checked")
		}
		f(block[:colon:colon], block[colon+2:end-1:end-1])
		block = block[end+1:]
	}
}
