package envelope

import (
	"math"
	"unicode/utf8"

	"github.com/goccy/go-json/jsontext"
)

// The built-in envelope is one JSON object of three regions, in this order:
//
//	{"_event_id":"..","_ingest_time":"..","_event_time":..,"_quality_status":"..", "robot":"r7", "temp":43.25}
//	 └ lineage                                                                     └ identity    └ the record's own
//
// A name that has occurred is taken: a later member of the same name is left out, also within a region, so that no
// identity level and no record can shadow the lineage.
const (
	nameEventID    = "_event_id"
	nameIngestTime = "_ingest_time"
	nameEventTime  = "_event_time"
	nameQuality    = "_quality_status"
)

// isLineage tells whether a name belongs to the lineage.
func isLineage(name []byte) bool {
	if len(name) == 0 || name[0] != '_' {
		return false
	}
	switch string(name) {
	case nameEventID, nameIngestTime, nameEventTime, nameQuality:
		return true
	}
	return false
}

// taken tells whether a name occurs in the prefix of e, looking at the first n identity levels only.
func taken(name []byte, e *Event, n int) bool {
	if isLineage(name) {
		return true
	}
	for i := range n {
		if string(e.Identity[i].Name) == string(name) {
			return true
		}
	}
	return false
}

// AppendPrefix appends the members of the native envelope that stand before the record's own, lineage and identity,
// without braces and without a comma at the end, ready to be put before a record's members. Invalid UTF-8 in an
// identity level is a *RejectError, and dst comes back as it was.
func AppendPrefix(dst []byte, e *Event) ([]byte, error) { return appendPrefix(dst, e, math.MaxInt) }

// appendPrefix returns at most limit bytes more; the lineage, which has about 160, may have been written before that
// is known, identity levels are measured first.
func appendPrefix(dst []byte, e *Event, limit int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, `"_event_id":"`...)
	dst = AppendID(dst, e.ID)
	dst = append(dst, `","_ingest_time":`...)
	dst = AppendTime(dst, e.IngestTime)
	dst = append(dst, `,"_event_time":`...)
	dst = AppendTime(dst, e.EventTime)
	dst = append(dst, `,"_quality_status":"`...)
	dst = append(dst, e.Quality.String()...)
	dst = append(dst, '"')
	if len(dst)-start > limit {
		return dst[:start], tooLarge(limit)
	}
	for i := range e.Identity {
		l := &e.Identity[i]
		if taken(l.Name, e, i) {
			continue
		}
		room := limit - (len(dst) - start) - len(`,"":""`)
		room -= quotedSize(l.Name, room)
		if room < quotedSize(l.Value, room) {
			return dst[:start], tooLarge(limit)
		}
		if !utf8.Valid(l.Name) || !utf8.Valid(l.Value) {
			return dst[:start], reject(InvalidUTF8, "identity level %q", l.Name)
		}
		dst = append(dst, ',')
		dst, _ = jsontext.AppendQuote(dst, l.Name) // its only error is invalid UTF-8
		dst = append(dst, ':')
		dst, _ = jsontext.AppendQuote(dst, l.Value)
	}
	return dst, nil
}

func tooLarge(limit int) error {
	return reject(TooLarge, "the envelope would pass the limit of %d bytes", limit)
}

// quotedSize returns the size of s as a JSON string without its quotes, exactly or anything above limit.
func quotedSize(s []byte, limit int) int {
	n := len(s)
	if n > limit {
		return n
	}
	for _, c := range s {
		switch {
		case c == '"' || c == '\\' || c >= '\b' && c <= '\r' && c != '\v':
			n++
		case c < ' ':
			n += 5
		}
	}
	return n
}

// Writer makes native envelopes. It holds scratch for one event at a time, so each goroutine has its own; the zero
// Writer is ready. Its scratch grows with the number of names in a record and is given back after an unusual one.
type Writer struct {
	prefix []byte
	names  names
	cuts   []cut
}

// cut is a stretch of the record that is left out: a member whose name is taken, with the comma before it.
type cut struct{ from, to int }

// AppendNative appends the whole native envelope of e, at most limit bytes. A *RejectError says why there is none:
// NotARecord for a raw event, NotAnObject, NotJSON, InvalidUTF8, TooDeep for its body, TooLarge when the envelope
// would pass the limit; dst then comes back as it was, and its buffer has not grown.
//
// The record is checked as strictly as Extract does, although an input has done so before: what is on disk may be older
// than the rules. Its values are copied as bytes. Of members with equal names, compared without their escapes, the
// first one stays, in the record and in every object inside it.
func (w *Writer) AppendNative(dst []byte, e *Event, limit int) ([]byte, error) {
	if e.Kind != Record {
		return dst, reject(NotARecord, "a %s event has no fields: give the sink a module that renders it", e.Kind)
	}
	if limit < len("{}") { // also keeps what is computed from it from overflowing
		return dst, tooLarge(limit)
	}
	if len(e.Body) > maxRecord {
		return dst, reject(TooLarge, "the record has %d bytes", len(e.Body))
	}
	body, err := openRecord(e.Body)
	if err != nil {
		return dst, err
	}
	if w.prefix, err = appendPrefix(w.prefix[:0], e, limit-len("{}")); err != nil {
		return dst, err
	}
	d := dedupe{event: e, src: e.Body, names: &w.names, cuts: w.cuts[:0], room: limit - len("{,}") - len(w.prefix)}
	w.names.reset()
	end, f := d.record(body)
	w.cuts = d.cuts
	defer w.trim()
	if f != fine {
		return dst, f.reject(end)
	}
	if err := closeRecord(e.Body, end); err != nil {
		return dst, err
	}
	if d.full() {
		return dst, tooLarge(limit)
	}
	return w.join(dst, &d), nil
}

// join writes what AppendNative has found to fit.
func (w *Writer) join(dst []byte, d *dedupe) []byte {
	dst = append(dst, '{')
	dst = append(dst, w.prefix...)
	if d.start < d.end {
		dst = append(dst, ',')
		at := d.start
		for _, c := range d.cuts {
			dst = append(dst, d.src[at:c.from]...)
			at = c.to
		}
		dst = append(dst, d.src[at:d.end]...)
	}
	return append(dst, '}')
}

// trim gives back scratch that an unusual event has made large: keeping up to 64 KiB of each kind costs a lane
// little, and 1 MiB of record can ask for a hundred times that.
func (w *Writer) trim() {
	if cap(w.prefix) > 64<<10 {
		w.prefix = nil
	}
	if cap(w.cuts) > 4<<10 {
		w.cuts = nil
	}
	w.names.trim()
}
