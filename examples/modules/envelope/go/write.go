package main

import (
	"encoding/binary"
	"strconv"
)

const (
	maxConfig    = 4096 // bytes of configuration
	maxConstants = 64   // members of the configuration
	maxNames     = 512  // different names in one message
	maxKind      = 64   // longest value of the header
)

// event is what this module reads of an event.
type event struct {
	data    []byte // the body
	prefix  []byte // JSON members without braces: lineage and identity
	subject []byte // the sink's template, rendered
}

// module is the state of the guest: the configuration, and scratch for the event in work.
type module struct {
	constants []member
	pieces    []member // of the message, in order
	names     names
	plain     []byte // names that had escapes, without them
	kind      []byte // what goes into the header
}

// config takes the members of one JSON object, for every payload. 1: not a JSON object; 2: more than maxConfig bytes
// or maxConstants members, or an escape in a name.
func (m *module) config(text []byte) uint32 {
	m.constants = nil
	if len(text) > maxConfig {
		return 2
	}
	r := reader{src: append([]byte(nil), text...)} // the host may use its buffer again
	i := r.space(0)
	if i == len(r.src) || r.src[i] != '{' {
		return 1
	}
	if end := r.container(i, 0); end < 0 || r.space(end) != len(r.src) {
		return 1
	}
	for i = r.space(i + 1); r.src[i] != '}'; {
		if len(m.constants) == maxConstants {
			return 2
		}
		c, end := r.member(i, 1, &m.plain)
		if end < 0 || len(m.plain) > 0 {
			return 2
		}
		m.constants = append(m.constants, c)
		if i = r.space(end); r.src[i] == ',' {
			i = r.space(i + 1)
		}
	}
	return 0
}

// collect reads an event's record into pieces. The answer is false when the record is no use; r says why.
func (m *module) collect(e event, r *reader) bool {
	m.pieces, m.plain, m.kind = m.pieces[:0], m.plain[:0], nil
	m.names.reset()
	p := reader{src: e.prefix}
	for i := 0; i < len(e.prefix); i++ { // the host made it, well formed: only its names matter here
		c, end := p.member(i, 1, &m.plain)
		if end < 0 {
			panic("malformed prefix")
		}
		if m.names.take(c.name, c.hash) == full {
			return r.bad(0, "too many identity levels") >= 0
		}
		i = end
	}
	for _, c := range m.constants {
		if !m.add(c) {
			return r.bad(0, "more than 512 names") >= 0
		}
	}
	i := r.space(0)
	if i == len(r.src) || r.src[i] != '{' {
		return r.bad(i, "an opening brace was expected") >= 0
	}
	i = r.space(i + 1)
	if i < len(r.src) && r.src[i] == '}' {
		return m.end(r, i+1)
	}
	for {
		c, end := r.member(i, 1, &m.plain)
		if end < 0 {
			return false
		}
		switch {
		case string(c.name) == "metric":
			c = member{text: c.value, name: []byte("data"), hash: hash([]byte("data")), renamed: true}
		case string(c.name) == "kind" && len(m.kind) == 0 && c.value[0] == '"' && len(c.value) <= maxKind+2:
			m.kind = plainWord(c.value[1 : len(c.value)-1])
		}
		if !m.add(c) {
			return r.bad(end, "more than 512 names") >= 0
		}
		i = r.space(end)
		if i == len(r.src) || r.src[i] != ',' && r.src[i] != '}' {
			return r.bad(i, "a comma or the closing brace was expected") >= 0
		}
		if r.src[i] == '}' {
			return m.end(r, i+1)
		}
		i = r.space(i + 1)
	}
}

func (m *module) end(r *reader, i int) bool {
	if i = r.space(i); i != len(r.src) {
		return r.bad(i, "more text behind the object") >= 0
	}
	return true
}

// add puts c into the message, unless its name is taken. It answers false when there are too many names.
func (m *module) add(c member) bool {
	switch m.names.take(c.name, c.hash) {
	case full:
		return false
	case free:
		m.pieces = append(m.pieces, c)
	}
	return true
}

// plainWord returns s if it is fit for a header as it is: printable ASCII without spaces and escapes.
func plainWord(s []byte) []byte {
	for _, c := range s {
		if c <= ' ' || c >= 0x7f || c == '\\' {
			return nil
		}
	}
	return s
}

// write appends the record of one event: its header of 16 bytes, subject, headers, payload.
func (m *module) write(dst []byte, index uint32, e event) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, 16)...)
	finish := func(kind byte, subject, headers, payload int) []byte {
		h := dst[start:]
		binary.LittleEndian.PutUint32(h, index)
		h[4] = kind
		binary.LittleEndian.PutUint16(h[6:], uint16(subject))
		binary.LittleEndian.PutUint32(h[8:], uint32(headers))
		binary.LittleEndian.PutUint32(h[12:], uint32(payload))
		return dst
	}
	r := reader{src: e.data}
	if !m.collect(e, &r) {
		dst = append(dst, "the record is not a usable JSON object: "...)
		dst = append(dst, r.why...)
		dst = append(dst, " at byte "...)
		dst = strconv.AppendInt(dst, int64(r.where), 10)
		return finish(1, 0, 0, len(dst)-start-16)
	}
	dst = append(dst, e.subject...)
	headers := len(dst)
	if len(m.kind) > 0 {
		dst = append(dst, "Edge-Kind: "...)
		dst = append(dst, m.kind...)
		dst = append(dst, "\r\n"...)
	}
	payload := len(dst)
	dst = append(dst, '{')
	dst = append(dst, e.prefix...)
	for i := range m.pieces {
		if len(dst)-payload > 1 {
			dst = append(dst, ',')
		}
		if m.pieces[i].renamed {
			dst = append(dst, `"data":`...)
		}
		dst = append(dst, m.pieces[i].text...)
	}
	dst = append(dst, '}')
	return finish(0, len(e.subject), payload-headers, len(dst)-payload)
}
