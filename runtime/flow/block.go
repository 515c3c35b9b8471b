package flow

import (
	"fmt"
	"slices"

	"edge/envelope"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
	"edge/transform"
)

// eventState is where one event of a block is. It only moves forward.
type eventState uint8

const (
	eventOpen      eventState = iota // has messages without a final outcome
	eventRefused                     // one of its messages was refused; its entry waits in held for the others
	eventCondemned                   // its quarantine entry is not durable yet
	eventSettled                     // the floor may pass it
)

// unit is one message on its way. Times are nanoseconds on the lane's clock, 0 for never.
type unit struct {
	event    int32 // in the block
	message  int32 // in the block's rendered messages
	attempts int32
	refusals int32 // permanent and unlisted answers after an unknown attempt
	unlisted int32 // refusals in a row by numbers that nobody knows
	unknown  bool  // an attempt ended without an answer: sticky until an acknowledgement
	first    int64 // first attempt that ended so: the stream remembers the id since then, if it has stored it
	sent     int64 // last attempt
}

// block is a run of consecutive events with all that belongs to them until the last is settled. Blocks are
// reused: nothing of a block outlives recycle.
//
// Invariant: settled <= len(events); events[:settled] are all eventSettled; units[:next] have been sent.
type block struct {
	raw      spool.Block
	events   []envelope.Event
	state    []eventState
	open     []int32 // messages of the event without a final outcome
	selected []envelope.Event
	index    []int // selected[k] is events[index[k]]
	rendered transform.Rendered
	units    []unit
	held     []held // entries of events in eventRefused
	next     int    // first unit that was never sent
	settled  int    // the floor may stand at raw.First + settled - 1
}

// held is a quarantine entry that waits until the last message of its event has an outcome.
type held struct {
	event int
	entry quarantine.Entry
}

// release takes the held entry of event out of b.
func (b *block) release(event int) quarantine.Entry {
	at := slices.IndexFunc(b.held, func(h held) bool { return h.event == event })
	if at < 0 {
		panic(fmt.Sprintf("BUG: refused event %d has no entry", uint64(b.raw.First)+uint64(event)))
	}
	e := b.held[at].entry
	b.held = slices.Delete(b.held, at, at+1)
	return e
}

// reset makes b ready for n events. What ParseEvent needs again is kept.
func (b *block) reset(n int) {
	b.events = resize(b.events, n)
	b.state = resize(b.state, n)
	b.open = resize(b.open, n)
	clear(b.state)
	clear(b.open)
	b.selected, b.index = b.selected[:0], b.index[:0]
	b.units, b.held = b.units[:0], b.held[:0]
	b.next, b.settled = 0, 0
}

// resize returns s with n elements, of which those that s had, also behind its end, keep their values.
func resize[T any](s []T, n int) []T {
	return slices.Grow(s[:0], n)[:n]
}

// split takes the events from n on away from b and gives them to rest, which keeps a copy of their bytes.
func (b *block) split(n int, rest *block) {
	size := 0
	for _, r := range b.raw.Records[n:] {
		size += len(r)
	}
	buf := make([]byte, 0, size)
	rest.raw = spool.Block{First: b.raw.First + spool.Seq(n)}
	for _, r := range b.raw.Records[n:] {
		at := len(buf)
		buf = append(buf, r...)
		rest.raw.Records = append(rest.raw.Records, buf[at:len(buf):len(buf)])
	}
	b.raw.Records = b.raw.Records[:n]
	b.events, b.state, b.open = b.events[:n], b.state[:n], b.open[:n]
}

// sweep advances settled and tells whether the whole block is.
func (b *block) sweep() bool {
	for b.settled < len(b.state) && b.state[b.settled] == eventSettled {
		b.settled++
	}
	return b.settled == len(b.state)
}

// A tag names a unit to the publisher: the block's serial number and the unit's index. A block never has more
// units than 2^tagBits: maxUnits below bounds the fan-out of a block.
const (
	tagBits  = 24
	maxUnits = 1 << tagBits
)

func tagOf(serial uint64, unit int) uint64 { return serial<<tagBits | uint64(unit) }

func splitTag(tag uint64) (serial uint64, unit int) {
	return tag >> tagBits, int(tag & (maxUnits - 1))
}
