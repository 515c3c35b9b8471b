package natstest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// Limits of what frames holds back. Whatever is larger passes through as it comes.
const (
	maxLine = 64 << 10 // bytes of a line: INFO is the longest that a server sends, a few kilobytes
	maxAck  = 16 << 10 // bytes of an acknowledgement with its headers: real ones have a few hundred
)

// inbox begins the subjects on which acknowledgements arrive.
var inbox = []byte("_INBOX.")

// frames cuts what a server sends into pieces, wherever the network has cut it. What it does not understand it passes
// on as it is, from there to the end of the connection: TLS looks like that.
//
// Invariant: raw, or skip > 0, or held is the beginning of one frame. len(held) <= maxLine + maxAck + 2.
type frames struct {
	raw  bool  // no frames any more
	skip int64 // bytes of a payload that are still to pass
	held []byte
	head int // length of the line in held, 0 before its end has come
	body int // bytes that belong behind the line, the last two of them a line's end
	hdr  int // bytes of headers at the body's begin
	done bool
}

// next takes one piece from src and returns what is to be forwarded for it and what of src remains. ack is not nil if
// the piece is an acknowledgement, whole: its payload, which aliases out. Both are valid until the next call. An empty
// out with an empty rest means that more bytes are needed.
func (f *frames) next(src []byte) (out, ack, rest []byte) {
	if f.done {
		f.held, f.head, f.done = f.held[:0], 0, false
	}
	switch {
	case f.raw:
		return src, nil, nil
	case f.skip > 0:
		n := int(min(f.skip, int64(len(src))))
		f.skip -= int64(n)
		return src[:n:n], nil, src[n:]
	case f.head > 0:
		return f.ack(src)
	}
	n := bytes.IndexByte(src, '\n') + 1
	whole := n > 0
	if !whole {
		n = len(src)
	}
	if len(f.held)+n > maxLine {
		return f.giveUp(src)
	}
	f.held, src = append(f.held, src[:n]...), src[n:]
	if !known(f.held) {
		return f.giveUp(src)
	}
	if !whole {
		return nil, nil, nil
	}
	return f.line(src)
}

// line decides about the whole line in held.
func (f *frames) line(src []byte) (out, ack, rest []byte) {
	verb, args, _ := bytes.Cut(f.held, []byte(" "))
	switch string(verb) {
	case "INFO":
		f.done = true
		return withoutPeers(f.held), nil, src
	case "MSG", "HMSG":
	default: // PING, PONG, +OK, -ERR
		f.done = true
		return f.held, nil, src
	}
	subject, hdr, size, ok := messageArgs(args, len(verb) == len("HMSG"))
	if !ok {
		return f.giveUp(src)
	}
	if size <= maxAck && bytes.HasPrefix(subject, inbox) {
		f.head, f.hdr, f.body = len(f.held), int(hdr), int(size)+2
		return f.ack(src)
	}
	f.skip, f.done = size+2, true
	return f.held, nil, src
}

// ack goes on with a message that may be an acknowledgement.
func (f *frames) ack(src []byte) (out, ack, rest []byte) {
	n := min(f.head+f.body-len(f.held), len(src))
	f.held, src = append(f.held, src[:n]...), src[n:]
	if len(f.held) < f.head+f.body {
		return nil, nil, nil
	}
	payload, ok := bytes.CutSuffix(f.held[f.head:], []byte("\r\n"))
	if !ok {
		return f.giveUp(src)
	}
	f.done = true
	if payload = payload[f.hdr:]; isAck(payload) {
		return f.held, payload, src
	}
	return f.held, nil, src
}

// giveUp passes everything on, from here to the end.
func (f *frames) giveUp(src []byte) (out, ack, rest []byte) {
	out = append(f.held, src...)
	*f = frames{raw: true}
	return out, nil, nil
}

// known tells whether a line that begins so can be one of the server's.
func known(line []byte) bool {
	for _, verb := range [...]string{"MSG ", "HMSG ", "PING\r\n", "PONG\r\n", "+OK\r\n", "-ERR ", "INFO "} {
		n := min(len(verb), len(line))
		if string(line[:n]) == verb[:n] {
			return true
		}
	}
	return false
}

// messageArgs reads "subject sid [reply] [header-size] size". Sizes are claims: 0 <= hdr <= size <= 2 GiB.
func messageArgs(args []byte, headers bool) (subject []byte, hdr, size int64, ok bool) {
	field := bytes.Fields(args)
	if headers {
		if len(field) < 1 {
			return nil, 0, 0, false
		}
		i := max(0, len(field)-2)
		if hdr, ok = parseSize(field[i]); !ok {
			return nil, 0, 0, false
		}
		field = append(field[:i], field[i+1:]...)
	}
	if len(field) != 3 && len(field) != 4 {
		return nil, 0, 0, false
	}
	size, ok = parseSize(field[len(field)-1])
	return field[0], hdr, size, ok && hdr <= size
}

func parseSize(text []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil && n >= 0 && n <= math.MaxInt32
}

// isAck tells whether a payload is the answer to a publication: one that names stream and sequence, an error with
// them, or one of the flow of a batch. Answers of the JetStream API are not: they have another type.
func isAck(payload []byte) bool {
	if len(payload) == 0 || payload[0] != '{' {
		return false
	}
	var a struct {
		Type   string  `json:"type"`
		Stream string  `json:"stream"`
		Seq    *uint64 `json:"seq"`
	}
	if json.Unmarshal(payload, &a) != nil || a.Seq == nil {
		return false
	}
	switch a.Type {
	case "":
		return a.Stream != ""
	case "ack", "gap", "err":
		return true
	}
	return false
}

// withoutPeers takes the addresses of other servers out of an INFO line, so that a client stays with the proxy. A line
// that it can not read, and one that has none, it returns as it is.
func withoutPeers(line []byte) []byte {
	var info map[string]json.RawMessage
	if json.Unmarshal(line[len("INFO "):], &info) != nil {
		return line
	}
	before := len(info)
	delete(info, "connect_urls")
	delete(info, "ws_connect_urls")
	if len(info) == before {
		return line
	}
	out, err := json.Marshal(info)
	if err != nil {
		return line
	}
	return append(append([]byte("INFO "), out...), "\r\n"...)
}
