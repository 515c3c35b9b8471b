package publisher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

// want is who must acknowledge. It never changes; a new bind makes a new one.
type want struct {
	stream string
	domain string // checked only if known
	known  bool   // the stream was looked up, so the domain is known, "" for none
	prefix []byte // the common acknowledgement up to the digits of its sequence
}

// newWant prepares the byte prefix of the common acknowledgement. Stream names need no escapes in JSON.
func newWant(stream, domain string, known bool) *want {
	w := &want{stream: stream, domain: domain, known: known}
	if domain == "" {
		w.prefix = fmt.Appendf(nil, `{"stream":"%s","seq":`, stream)
	} else {
		quoted, err := json.Marshal(domain)
		if err != nil {
			panic("BUG: marshal a string: " + err.Error())
		}
		w.prefix = fmt.Appendf(nil, `{"stream":"%s","domain":%s,"seq":`, stream, quoted)
	}
	return w
}

func (w *want) String() string { return place(w.stream, w.domain) }

func place(stream, domain string) string {
	if domain == "" {
		return strconv.Quote(stream)
	}
	return fmt.Sprintf("%q in domain %q", stream, domain)
}

// form is what kind of answer an ack is.
type form uint8

const (
	silence      form = iota // none: the zero ack
	positive                 // stream, domain, seq, duplicate
	negative                 // errCode, status, text
	noResponders             // the server's own "nobody is there"
	garbage                  // text: the beginning of what could not be read
)

// ack is an answer, parsed.
type ack struct {
	form      form
	stream    string
	domain    string
	seq       uint64
	duplicate bool
	errCode   int
	status    int
	text      string
}

// parseAck reads the body of an answer. The forms that server 2.15 writes from a template are recognised as
// bytes, without an allocation:
//
//	{"stream":"EDGE","seq":4711}
//	{"stream":"EDGE","domain":"hub","seq":4711,"duplicate": true}
//
// Everything else goes to the JSON parser, so a server that writes another form costs time, not correctness.
func parseAck(w *want, data []byte) ack {
	if seq, duplicate, ok := commonAck(w.prefix, data); ok {
		return ack{form: positive, stream: w.stream, domain: w.domain, seq: seq, duplicate: duplicate}
	}
	var m struct {
		Stream    string `json:"stream"`
		Domain    string `json:"domain"`
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
		Error     *struct {
			Code        int    `json:"code"`
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	err := json.Unmarshal(data, &m)
	switch {
	case err == nil && m.Error != nil && (m.Error.ErrCode != 0 || m.Error.Code != 0):
		return ack{form: negative, errCode: m.Error.ErrCode, status: m.Error.Code, text: clip(m.Error.Description)}
	case err == nil && m.Error == nil && m.Stream != "":
		return ack{form: positive, stream: m.Stream, domain: m.Domain, seq: m.Seq, duplicate: m.Duplicate}
	}
	const shown = 200 // bytes
	return ack{form: garbage, text: fmt.Sprintf("answer %q", data[:min(len(data), shown)])}
}

// parseAnswer reads an answer as a whole. A common acknowledgement has no headers. The server adds a status where it
// speaks for nobody (503, without a body) and where a stream's queue is full (429, with the refusal as body).
func parseAnswer(w *want, h nats.Header, data []byte) ack {
	if len(h) == 0 && len(data) > 0 {
		return parseAck(w, data)
	}
	status := h.Get("Status")
	var a ack
	if len(data) > 0 {
		a = parseAck(w, data)
	}
	switch {
	case a.form == negative, a.form == positive && status == "":
		return a
	case status == "503" && len(data) == 0:
		return ack{form: noResponders}
	case status == "429" && a.form != positive:
		return ack{form: negative, status: 429, text: "too many requests"}
	case len(data) == 0:
		return ack{form: garbage, text: "an empty answer with status " + strconv.Quote(status)}
	case a.form == positive:
		return ack{form: garbage, text: "an acknowledgement with status " + strconv.Quote(status)}
	}
	return a
}

func commonAck(prefix, data []byte) (seq uint64, duplicate, ok bool) {
	rest, ok := bytes.CutPrefix(data, prefix)
	if !ok {
		return 0, false, false
	}
	i := 0
	const most = 19 // digits that cannot overflow
	for ; i < len(rest) && i <= most && '0' <= rest[i] && rest[i] <= '9'; i++ {
		seq = seq*10 + uint64(rest[i]-'0')
	}
	if i == 0 || i > most || rest[0] == '0' {
		return 0, false, false
	}
	switch string(rest[i:]) {
	case `}`:
		return seq, false, true
	case `,"duplicate": true}`, `,"duplicate":true}`:
		return seq, true, true
	}
	return 0, false, false
}

// A token is the last part of a reply subject: slot number and the slot's generation, in base 36.
//
//	_INBOX.<name>.<random>.<slot<<32 | generation>
func appendToken(dst []byte, slot, gen uint32) []byte {
	return strconv.AppendUint(dst, uint64(slot)<<32|uint64(gen), 36)
}

func parseToken(s string) (slot, gen uint32, ok bool) {
	n, err := strconv.ParseUint(s, 36, 64)
	return uint32(n >> 32), uint32(n), err == nil
}
