package envelope

import (
	"encoding/binary"
	"fmt"
)

// The spool's form of an event, version 1, integers little-endian, lengths as unsigned varints:
//
//	0   u8      version = 1
//	1   u8      kind, low 4 bits; quality, high 4 bits
//	2   u8[16]  id, zero = by position
//	18  i64     ingest time, ns
//	26  i64     event time, ns, minimum = not known
//	34          dataset, input, source: each length, bytes
//	            levels: count; each length, name, length, value
//	            body: length, bytes, and nothing behind it
//
// There is no checksum: the store around it has one over more than one event.
const (
	eventVersion = 1
	eventHead    = 34 // bytes before the first length
)

// FormatError says that bytes are not an event in the spool's form. They were damaged, or written by a newer version.
type FormatError struct {
	Field  string // the field at which reading stopped
	Detail string
}

func (e *FormatError) Error() string { return fmt.Sprintf("parse event: %s: %s", e.Field, e.Detail) }

// AppendEvent appends e in the spool's form. Every event can be written; ParseEvent reads exactly that back.
func AppendEvent(dst []byte, e *Event) []byte {
	if e.Kind > Raw || e.Quality > Bad {
		panic(fmt.Sprintf("BUG: event with kind %d and quality %d", e.Kind, e.Quality))
	}
	dst = append(dst, eventVersion, byte(e.Kind)|byte(e.Quality)<<4)
	dst = append(dst, e.ID[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.IngestTime))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.EventTime))
	dst = appendBytes(dst, e.Dataset)
	dst = appendBytes(dst, e.Input)
	dst = appendBytes(dst, e.Source)
	dst = binary.AppendUvarint(dst, uint64(len(e.Identity)))
	for i := range e.Identity {
		dst = appendBytes(dst, e.Identity[i].Name)
		dst = appendBytes(dst, e.Identity[i].Value)
	}
	return appendBytes(dst, e.Body)
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// ParseEvent reads what AppendEvent wrote into e, all of src. The slices of e alias src; e.Identity is reused, and
// grows only with levels that are really there. After an error, a *FormatError, e is garbage but keeps its
// Identity slice for reuse.
func ParseEvent(src []byte, e *Event) error {
	levels := e.Identity[:0]
	*e = Event{Identity: levels}
	if len(src) < eventHead {
		return &FormatError{Field: "head", Detail: fmt.Sprintf("%d bytes, want at least %d", len(src), eventHead)}
	}
	if src[0] != eventVersion {
		return &FormatError{Field: "version", Detail: fmt.Sprintf("%d, this program reads %d", src[0], eventVersion)}
	}
	e.Kind, e.Quality = Kind(src[1]&15), Quality(src[1]>>4)
	if e.Kind > Raw || e.Quality > Bad {
		return &FormatError{Field: "kind", Detail: fmt.Sprintf("unknown kind %d or quality %d", e.Kind, e.Quality)}
	}
	e.ID = ID(src[2:18])
	e.IngestTime = int64(binary.LittleEndian.Uint64(src[18:]))
	e.EventTime = int64(binary.LittleEndian.Uint64(src[26:]))
	rest := src[eventHead:]

	var ok bool
	if e.Dataset, rest, ok = cutBytes(rest); !ok {
		return lengthError("dataset")
	}
	if e.Input, rest, ok = cutBytes(rest); !ok {
		return lengthError("input")
	}
	if e.Source, rest, ok = cutBytes(rest); !ok {
		return lengthError("source")
	}
	n, w := binary.Uvarint(rest)
	if w <= 0 || n > uint64(len(rest)-w)/2 { // a level takes two bytes at least
		return lengthError("levels")
	}
	rest = rest[w:]
	for range n {
		var l Level
		if l.Name, rest, ok = cutBytes(rest); !ok {
			return lengthError("level name")
		}
		if l.Value, rest, ok = cutBytes(rest); !ok {
			return lengthError("level value")
		}
		e.Identity = append(e.Identity, l)
	}
	if e.Body, rest, ok = cutBytes(rest); !ok {
		return lengthError("body")
	}
	if len(rest) != 0 {
		return &FormatError{Field: "body", Detail: fmt.Sprintf("%d bytes behind it", len(rest))}
	}
	return nil
}

// cutBytes reads a length and that many bytes; ok is false if they are not there.
func cutBytes(src []byte) (b, rest []byte, ok bool) {
	n, w := binary.Uvarint(src)
	if w <= 0 || n > uint64(len(src)-w) {
		return nil, nil, false
	}
	end := w + int(n)
	return src[w:end:end], src[end:], true
}

func lengthError(field string) error {
	return &FormatError{Field: field, Detail: "its length does not fit the bytes that are left"}
}
