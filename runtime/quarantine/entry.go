package quarantine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
	"unicode/utf8"

	"edge/envelope"
)

// Level is one identity level with its value.
type Level struct {
	Name, Value string
}

// Entry is one event that waits, or one line that was no event. Put only reads it; what Scan hands out belongs
// to its receiver.
type Entry struct {
	Time       time.Time // when it was quarantined
	Sink       string    // the sink that could not publish it; "" if an input refused it
	ID         envelope.ID
	Input      string
	Source     string // where the input found it: "imu.ndjson:17"
	Dataset    string
	Identity   []Level
	IngestTime int64 // nanoseconds since 1970 UTC, 0 if it never was an event
	EventTime  int64 // nanoseconds since 1970 UTC, or envelope.NoTime
	Quality    envelope.Quality
	Kind       envelope.Kind
	Reason     string // a stable code
	Detail     string // for people
	Module     string // SHA-256 of the module in hex, "" if there was none
	Attempts   int    // to publish it
	Raw        []byte // the event's body as it was captured
	Event      []byte // the spool's form of the event, nil for a refused line
	Subject    string // the rendered form, as far as there is one
	Headers    []byte
	Payload    []byte
}

// record is an Entry on disk.
type record struct {
	Time          string  `json:"time"`
	Sink          string  `json:"sink,omitempty"`
	ID            string  `json:"id,omitempty"`
	Reason        string  `json:"reason"`
	Detail        string  `json:"detail,omitempty"`
	Input         string  `json:"input,omitempty"`
	Source        string  `json:"source,omitempty"`
	Dataset       string  `json:"dataset,omitempty"`
	Identity      levels  `json:"identity,omitempty"`
	IngestTime    string  `json:"ingest_time,omitempty"`
	EventTime     *string `json:"event_time"`
	Quality       string  `json:"quality"`
	Kind          string  `json:"kind"`
	Module        string  `json:"module,omitempty"`
	Attempts      int     `json:"attempts,omitempty"`
	Raw           *string `json:"raw,omitempty"`
	RawBytes      []byte  `json:"raw_base64,omitempty"`
	EventHead     []byte  `json:"event_head_base64,omitempty"`
	Event         []byte  `json:"event_base64,omitempty"`
	Subject       string  `json:"subject,omitempty"`
	Headers       *string `json:"headers,omitempty"`
	HeadersBytes  []byte  `json:"headers_base64,omitempty"`
	Payload       *string `json:"payload,omitempty"`
	PayloadsBytes []byte  `json:"payload_base64,omitempty"`
}

// levels is an object that keeps the order of its members.
type levels []Level

func (l levels) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, v := range l {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := marshal(v.Name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(v.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

func (l *levels) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("identity is no object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		value, err := dec.Token()
		if err != nil {
			return err
		}
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("identity level %q is no text", name)
		}
		*l = append(*l, Level{Name: name.(string), Value: text})
	}
	return nil
}

// marshal is json.Marshal without the escapes for web pages.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// MarshalJSON writes e as it stands in the file, without the checksum.
func (e Entry) MarshalJSON() ([]byte, error) {
	r := record{
		Time: e.Time.UTC().Format(time.RFC3339Nano), Sink: e.Sink, Reason: e.Reason, Detail: e.Detail,
		Input: e.Input, Source: e.Source, Dataset: e.Dataset, Identity: e.Identity,
		Quality: e.Quality.String(), Kind: e.Kind.String(), Module: e.Module, Attempts: e.Attempts, Subject: e.Subject,
	}
	if e.ID != (envelope.ID{}) {
		r.ID = e.ID.String()
	}
	if e.IngestTime != 0 {
		r.IngestTime = timeText(e.IngestTime)
	}
	if e.EventTime != envelope.NoTime {
		t := timeText(e.EventTime)
		r.EventTime = &t
	}
	r.Raw, r.RawBytes = text(e.Raw)
	r.Headers, r.HeadersBytes = text(e.Headers)
	r.Payload, r.PayloadsBytes = text(e.Payload)
	if head, ok := bytes.CutSuffix(e.Event, e.Raw); ok && len(head) > 0 && len(e.Raw) > 0 {
		r.EventHead = head
	} else {
		r.Event = e.Event
	}
	return marshal(&r)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Entry) UnmarshalJSON(b []byte) error {
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	*e = Entry{
		Sink: r.Sink, Input: r.Input, Source: r.Source, Dataset: r.Dataset, Identity: r.Identity, EventTime: envelope.NoTime,
		Reason: r.Reason, Detail: r.Detail, Module: r.Module, Attempts: r.Attempts, Subject: r.Subject,
		Raw: untext(r.Raw, r.RawBytes), Headers: untext(r.Headers, r.HeadersBytes), Payload: untext(r.Payload, r.PayloadsBytes),
		Event: r.Event,
	}
	var err error
	if e.Time, err = time.Parse(time.RFC3339Nano, r.Time); err != nil {
		return err
	}
	if r.IngestTime != "" {
		if e.IngestTime, err = parseTime(r.IngestTime); err != nil {
			return err
		}
	}
	if r.EventTime != nil {
		if e.EventTime, err = parseTime(*r.EventTime); err != nil {
			return err
		}
	}
	if r.ID != "" {
		id, ok := envelope.ParseID([]byte(r.ID))
		if !ok {
			return fmt.Errorf("%q is no event id", r.ID)
		}
		e.ID = id
	}
	var ok bool
	if e.Quality, ok = envelope.ParseQuality([]byte(r.Quality)); !ok {
		return fmt.Errorf("%q is no quality", r.Quality)
	}
	switch r.Kind {
	case envelope.Record.String():
		e.Kind = envelope.Record
	case envelope.Raw.String():
		e.Kind = envelope.Raw
	default:
		return fmt.Errorf("%q is no kind", r.Kind)
	}
	if r.EventHead != nil {
		e.Event = append(r.EventHead, e.Raw...)
	}
	return nil
}

// text says under which of two members bytes go.
func text(b []byte) (*string, []byte) {
	if len(b) == 0 {
		return nil, nil
	}
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	return nil, b
}

func untext(s *string, b []byte) []byte {
	if s != nil {
		return []byte(*s)
	}
	return b
}

func timeText(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

func parseTime(s string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, err
	}
	ns := t.UnixNano()
	if !time.Unix(0, ns).Equal(t) {
		return 0, fmt.Errorf("time %s is out of range", s)
	}
	return ns, nil
}

const (
	sumStart = `,"crc32c":"`
	sumEnd   = `"}`
	sumLen   = len(sumStart) + 8 + len(sumEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendLine appends the line of e, with its newline.
func appendLine(dst []byte, e *Entry) ([]byte, error) {
	b, err := e.MarshalJSON()
	if err != nil {
		return dst, err
	}
	b = b[:len(b)-1] // the closing brace
	dst = append(dst, b...)
	return appendSum(dst, b), nil
}

func appendSum(dst, body []byte) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	dst = append(dst, sumStart...)
	dst = hex.AppendEncode(dst, sum[:])
	return append(dst, sumEnd+"\n"...)
}

// LineError says why a line of the file is no entry.
type LineError struct{ Why string }

func (e *LineError) Error() string { return "read quarantine entry: " + e.Why }

// parseLine reads a line, without its newline, into e. e shares nothing with line. The error is a *LineError.
func parseLine(line []byte, e *Entry) error {
	if len(line) < sumLen+1 {
		return &LineError{"it is too short for a checksum"}
	}
	body, sum := line[:len(line)-sumLen], line[len(line)-sumLen:]
	if !bytes.HasPrefix(sum, []byte(sumStart)) || !bytes.HasSuffix(sum, []byte(sumEnd)) {
		return &LineError{"it does not end with a checksum"}
	}
	want, err := strconv.ParseUint(string(sum[len(sumStart):len(sumStart)+8]), 16, 32)
	if err != nil || uint32(want) != crc32.Checksum(body, castagnoli) {
		return &LineError{"its checksum does not match"}
	}
	object := append(append(make([]byte, 0, len(body)+1), body...), '}')
	if err := json.Unmarshal(object, e); err != nil {
		return &LineError{err.Error()}
	}
	return nil
}

// key is what makes two entries the same. 128 bits of a hash are kept for each, because a collision would be a
// lost entry. Lines that never were events may have no id; what they say is their identity then.
type key [16]byte

func keyOf(e *Entry) key {
	h := sha256.New()
	var n [8]byte
	part := func(b []byte) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	part([]byte(e.Sink))
	part([]byte(e.Reason))
	part(e.ID[:])
	if e.ID == (envelope.ID{}) {
		part([]byte(e.Input))
		part([]byte(e.Source))
		part(e.Raw)
	}
	return key(h.Sum(nil)[:16])
}
