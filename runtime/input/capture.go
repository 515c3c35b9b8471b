package input

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"edge/envelope"
	"edge/runtime/config"
)

// LineTooLong is the reason of a line over the input's max_line. Other reasons of refused lines are envelope's.
const LineTooLong envelope.Reason = "line_too_long"

// capture makes events of lines. It holds scratch for one line at a time.
type capture struct {
	dataset []byte
	scope   string // agent and input: what ids of other numberings are hashed with
	name    string // of the file, for people
	raw     bool
	maxLine int

	extract *envelope.Extractor // nil for raw
	values  [][]byte            // of one record: the pointers in the order below
	id      int                 // where in values; -1 if it is not mapped
	time    int
	quality int
	levels  []int // of the dataset's levels, in their order
	unit    timeUnit

	event envelope.Event // reused; Identity has the dataset's levels
	text  []byte         // what event's values alias
}

func newCapture(cfg config.Input, ds config.Dataset, agent, name string) (*capture, error) {
	c := &capture{
		scope: agent + "/" + cfg.ID, dataset: []byte(ds.Name), name: name, raw: cfg.Format == config.FormatRaw, maxLine: cfg.MaxLine,
		id: -1, time: -1, quality: -1,
	}
	c.event = envelope.Event{Dataset: c.dataset, Input: []byte(cfg.ID), Kind: envelope.Record}
	for _, level := range ds.Identity {
		c.event.Identity = append(c.event.Identity, envelope.Level{Name: []byte(level)})
		c.levels = append(c.levels, -1)
	}
	if c.raw {
		c.event.Kind = envelope.Raw
		return c, nil
	}
	var pointers []string
	use := func(at *int, pointer string) {
		if pointer != "" {
			*at = len(pointers)
			pointers = append(pointers, pointer)
		}
	}
	use(&c.id, cfg.Map.ID)
	use(&c.time, cfg.Map.Time)
	use(&c.quality, cfg.Map.Quality)
	for i, level := range ds.Identity {
		use(&c.levels[i], cfg.Map.Identity[level])
	}
	var ok bool
	if c.unit, ok = timeUnitOf(cfg.Map.TimeFormat); !ok {
		return nil, fmt.Errorf("unknown time format %q", cfg.Map.TimeFormat)
	}
	var err error
	c.extract, err = envelope.NewExtractor(pointers)
	c.values = make([][]byte, len(pointers))
	return c, err
}

// empty tells whether a line is nothing at all.
func (c *capture) empty(text []byte) bool {
	if c.raw {
		return len(text) == 0
	}
	for _, b := range text {
		if b != ' ' && b != '\t' && b != '\r' {
			return false
		}
	}
	return true
}

// read makes the event of one line, valid until the next call. The error is an *envelope.RejectError: the line is
// no event.
//
// An id that is missing, null, empty or no text leaves the zero ID, so that the position names the event: equal ids
// of different events would be taken for repeats. One that is 32 hex digits is taken as it is; another is hashed with
// the agent's and the input's id, because a fleet's producers all count from one. A time that is missing or null is not known; one that cannot be
// read is not known and makes the quality uncertain, as does a quality that is none of the three words.
func (c *capture) read(l line, number int64, now time.Time) (*envelope.Event, error) {
	if l.cut {
		return nil, &envelope.RejectError{Reason: LineTooLong, Detail: fmt.Sprintf("it is longer than max_line, %d bytes", c.maxLine)}
	}
	e := &c.event
	e.ID, e.EventTime, e.Quality = envelope.ID{}, envelope.NoTime, envelope.Good
	e.IngestTime = now.UnixNano()
	e.Body = l.text
	c.text = c.appendSource(c.text[:0], number)
	e.Source = c.text
	if c.raw {
		return e, nil
	}
	if err := c.extract.Extract(l.text, c.values); err != nil {
		return nil, err
	}
	// Text grows with each value and may move; what was cut from it before stays whole, only at its old place.
	if c.id >= 0 {
		if v := c.take(c.values[c.id]); len(v) > 0 {
			var ok bool
			if e.ID, ok = envelope.ParseID(v); !ok {
				e.ID = envelope.HashID(c.scope, v)
			}
		}
	}
	if c.time >= 0 && !missing(c.values[c.time]) {
		var ok bool
		if e.EventTime, ok = c.unit.parse(c.take(c.values[c.time])); !ok {
			e.EventTime, e.Quality = envelope.NoTime, envelope.Uncertain
		}
	}
	if c.quality >= 0 && !missing(c.values[c.quality]) {
		q, ok := envelope.ParseQuality(c.take(c.values[c.quality]))
		if !ok {
			q = envelope.Uncertain
		}
		e.Quality = max(e.Quality, q)
	}
	for i, at := range c.levels {
		e.Identity[i].Value = nil
		if at >= 0 {
			e.Identity[i].Value = c.take(c.values[at])
		}
	}
	return e, nil
}

// take returns the text of a JSON value, nil if it has none.
func (c *capture) take(value []byte) []byte {
	if missing(value) {
		return nil
	}
	from := len(c.text)
	text, err := envelope.AppendText(c.text, value)
	if err != nil {
		return nil
	}
	c.text = text
	return text[from:len(text):len(text)]
}

func missing(value []byte) bool { return value == nil || bytes.Equal(value, null) }

var null = []byte("null")

func (c *capture) appendSource(dst []byte, number int64) []byte {
	dst = append(dst, c.name...)
	dst = append(dst, ':')
	return strconv.AppendInt(dst, number, 10)
}

// reason takes an error of read apart.
func reason(err error) (code, detail string) {
	var r *envelope.RejectError
	if !errors.As(err, &r) {
		panic("BUG: a line was refused without a reason: " + err.Error())
	}
	return string(r.Reason), r.Detail
}
