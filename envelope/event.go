package envelope

import (
	"math"
	"strconv"
)

// NoTime is the EventTime of an event whose source time is not known in UTC.
const NoTime int64 = math.MinInt64

// Quality says how far an event's values may be trusted, as its source said.
type Quality uint8

// The three qualities. The zero value is good: a source that says nothing does not doubt itself.
const (
	Good Quality = iota
	Uncertain
	Bad
)

// Kind says what an event's body is.
type Kind uint8

const (
	// Record is a decoded record: the body is one JSON object that the input has validated.
	Record Kind = iota
	// Raw is bytes that nobody has looked at. Only a module can render it.
	Raw
)

// Level is one identity level with its value: who the event is about.
type Level struct {
	Name, Value []byte
}

// Event is what an input delivered. Its slices alias the buffer that it was parsed from (or that its
// input read into) and are valid exactly as long as that buffer is left alone.
type Event struct {
	ID         ID      // zero: derived from the spool's epoch and the event's position by whoever reads the spool
	Dataset    []byte  // the named kind of event
	Input      []byte  // the input that captured it
	Source     []byte  // where the input found it, for people: "imu.ndjson:17"; may be empty
	IngestTime int64   // nanoseconds since 1970 UTC, when the edge received it
	EventTime  int64   // nanoseconds since 1970 UTC, or NoTime
	Quality    Quality //
	Kind       Kind    //
	Identity   []Level // in the order the dataset declares
	Body       []byte  //
}

// String is the word on the wire: good, uncertain or bad.
func (q Quality) String() string {
	switch q {
	case Good:
		return "good"
	case Uncertain:
		return "uncertain"
	case Bad:
		return "bad"
	}
	panic("BUG: unknown quality " + strconv.Itoa(int(q)))
}

// ParseQuality reads the word that String writes; ok is false for anything else.
func ParseQuality(s []byte) (q Quality, ok bool) {
	switch string(s) {
	case "good":
		return Good, true
	case "uncertain":
		return Uncertain, true
	case "bad":
		return Bad, true
	}
	return Good, false
}

// String is the word on the wire: record or raw.
func (k Kind) String() string {
	switch k {
	case Record:
		return "record"
	case Raw:
		return "raw"
	}
	panic("BUG: unknown kind " + strconv.Itoa(int(k)))
}

// Level returns the value of the identity level with this name; ok is false if the event has no such level. The
// first level of a name counts.
func (e *Event) Level(name string) (value []byte, ok bool) {
	for i := range e.Identity {
		if string(e.Identity[i].Name) == name {
			return e.Identity[i].Value, true
		}
	}
	return nil, false
}
