package input

import (
	"edge/envelope"
	"edge/runtime/quarantine"
)

// Bounds of a batch: what a commit is shared by. 512 events of a machine are some 100 KiB; more of them make a
// commit longer without making an event cheaper.
const (
	batchEvents = 512
	batchBytes  = 1 << 20 // passed by at most one line
)

// batch is what becomes durable at once: events, refused lines, and the position behind them.
type batch struct {
	arena   []byte // the events in the spool's form, one behind the other
	ends    []int  // of each event in arena
	records [][]byte
	refused []quarantine.Entry
	bytes   int      // of events and refused lines
	pos     position // behind the last line
	moved   bool     // pos is not what the spool has
}

func (b *batch) reset() {
	if cap(b.arena) > 4*batchBytes {
		b.arena = nil // one huge event is no reason to keep its room
	}
	clear(b.refused)
	b.arena, b.ends, b.refused, b.bytes, b.moved = b.arena[:0], b.ends[:0], b.refused[:0], 0, false
}

func (b *batch) add(e *envelope.Event) {
	from := len(b.arena)
	b.arena = envelope.AppendEvent(b.arena, e)
	b.ends = append(b.ends, len(b.arena))
	b.bytes += len(b.arena) - from
}

func (b *batch) refuse(e quarantine.Entry) {
	b.refused = append(b.refused, e)
	b.bytes += len(e.Raw)
}

func (b *batch) lines() int { return len(b.ends) + len(b.refused) }

func (b *batch) full() bool { return b.lines() >= batchEvents || b.bytes >= batchBytes }

// cut returns the events one by one; they alias the arena.
func (b *batch) cut() [][]byte {
	b.records = b.records[:0]
	from := 0
	for _, end := range b.ends {
		b.records = append(b.records, b.arena[from:end:end])
		from = end
	}
	return b.records
}
