package flow

import (
	"errors"
	"fmt"
	"io"

	"edge/envelope"
	"edge/runtime/spool"
	"edge/transform"
)

// Sizes of a lane. A block bounds what one durable read, one render and one quarantine write handle. Eight of 256
// events keep a window of 1,024 full while the oldest block waits for its last answer. Messages may be far larger
// than their events: a block is cut where its messages pass renderBytes, and nothing is read while the lane's blocks
// hold laneBytes, or Config.Bytes if that is more, so that a lane holds at most these, renderBytes and the records of one guest call.
const (
	blockEvents = 256
	blockBytes  = 1 << 20
	maxBlocks   = 8
	renderBytes = 2 << 20
	laneBytes   = 8 << 20
)

// hasRoom tells whether one more block may be read.
func (l *Lane) hasRoom() bool {
	held, unsent := 0, 0
	for _, b := range l.blocks {
		held += b.rendered.Size()
		unsent += len(b.units) - b.next
	}
	return len(l.blocks) < maxBlocks && held < max(laneBytes, l.cfg.Bytes) && unsent < l.cfg.Window
}

// fill reads and renders one more block if there is room for it. It tells whether it did.
func (l *Lane) fill() (bool, error) {
	if l.ended && l.rest == nil || !l.hasRoom() {
		return false, nil
	}
	b := l.rest
	l.rest = nil
	if b == nil {
		b = l.take()
		n, err := l.cfg.Reader.Read(&b.raw, blockEvents, blockBytes)
		if err != nil || n == 0 {
			l.free = append(l.free, b)
			switch {
			case errors.Is(err, io.EOF):
				l.ended = true
				return true, nil
			case err != nil:
				return false, fmt.Errorf("read spool: %w", err)
			}
			return false, nil
		}
	}
	b.reset(len(b.raw.Records))
	l.blocks = append(l.blocks, b)
	return true, l.render(b)
}

// take returns a block that nobody uses.
func (l *Lane) take() *block {
	if n := len(l.free); n > 0 {
		b := l.free[n-1]
		l.free = l.free[:n-1]
		return b
	}
	return new(block)
}

// broken is a record that is no event.
type broken struct {
	event int
	err   error
}

// render parses the records of b, asks the renderer, and opens a unit for every message. Events beyond the byte
// budget become the lane's rest.
func (l *Lane) render(b *block) error {
	var damaged []broken
	for i, rec := range b.raw.Records {
		e := &b.events[i]
		if err := envelope.ParseEvent(rec, e); err != nil {
			damaged = append(damaged, broken{i, err})
			continue
		}
		if e.ID == (envelope.ID{}) {
			e.ID = envelope.PositionID(l.cfg.Epoch, uint64(b.raw.First)+uint64(i))
		}
		if l.takes == nil || l.takes[string(e.Dataset)] {
			b.selected = append(b.selected, *e)
			b.index = append(b.index, i)
		}
	}
	if err := l.cfg.Renderer.Render(b.selected, renderBytes, &b.rendered); err != nil {
		return fmt.Errorf("render events of sink %s: %w", l.cfg.Sink, err)
	}
	if done := len(b.rendered.Verdicts); done < len(b.selected) {
		l.rest = l.take()
		b.split(b.index[done], l.rest)
	}
	next := 0
	for i := range b.events {
		switch {
		case next < len(b.rendered.Verdicts) && b.index[next] == i:
			l.verdict(b, i, b.rendered.Verdicts[next])
			next++
		case len(damaged) > 0 && damaged[0].event == i:
			l.reject(b, i, envelope.Event{Body: b.raw.Records[i], Kind: envelope.Raw, EventTime: envelope.NoTime}, "damaged", damaged[0].err.Error())
			damaged = damaged[1:]
		default: // of a dataset that the sink does not take
			l.settleEvent(b, i)
			l.cfg.Counts.Skipped.Add(1)
		}
	}
	if len(b.units) > maxUnits {
		panic(fmt.Sprintf("BUG: %d messages in one block", len(b.units)))
	}
	return nil
}

// verdict starts event i of b on its way.
func (l *Lane) verdict(b *block, i int, v transform.Verdict) {
	switch v.Kind {
	case transform.Emit:
		b.open[i] = int32(v.Count)
		for m := range v.Count {
			b.units = append(b.units, unit{event: int32(i), message: int32(v.First + m)})
		}
	case transform.Drop:
		l.settleEvent(b, i)
		l.cfg.Counts.Dropped.Add(1)
	case transform.Reject:
		l.reject(b, i, b.events[i], string(v.Reason), v.Detail)
	default:
		panic(fmt.Sprintf("BUG: event %d of sink %s has no verdict", b.raw.First+spool.Seq(i), l.cfg.Sink))
	}
}
