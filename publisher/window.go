package publisher

import "fmt"

// slotState is where one slot of the window is.
type slotState uint8

const (
	slotFree    slotState = iota
	slotQueued            // admitted, not yet taken by the sender
	slotWriting           // the sender reads its bytes
	slotWritten           // handed to the connection
	slotSpent             // answered while the sender still reads its bytes: nothing may overwrite them
	slotStale             // to be sent again, while the sender still reads its bytes
	slotAgain             // to be sent again, singly: the burst that it was in has come to nothing
)

// slot is one place of the window. Times are nanoseconds on the publisher's clock.
type slot struct {
	state    slotState
	gen      uint32 // grows with each use; part of the reply subject, so that late answers are recognised
	answered uint32 // the generation that had an acknowledgement last
	prev     int32  // the slot admitted before and after this one; -1 at the ends
	next     int32
	session  uint32 // the connection that it was written on
	burst    uint64 // the burst that it travels in, 0 for none
	seq      uint32 // its number in there, from 1
	doubt    bool   // an earlier send of this attempt may have stored it
	tag      uint64
	call     *call // the Write that waits for it, or nil
	admitted int64
	deadline int64
	sent     int64 // Unix time when the sender took it first, 0 before
	size     int
	subject  string
	id       []byte // Nats-Msg-Id; like headers and payload a part of buf
	headers  []byte
	payload  []byte
	buf      []byte
}

// window is the table of messages that are admitted and unanswered. It has no lock and no clock; its owner has both.
//
// Invariant: the slots that are neither free nor spent form one list in order of admission, and their number is
// pending, their sizes sum up to bytes. Deadlines do not decrease along the list, so that the first one is the next to
// expire. The queued slots are the end of the list, and unsent is the first of them; queued and queuedBytes count them.
// The other slots are on the free list, unless they are spent. There is one sender, so at most one slot is writing,
// spent or stale. A slot in a burst is writing or written; alone is the number of those that are in none.
//
// What is in flight is pending and bytes. A spent slot is neither: nobody is told when it becomes free, so nobody may
// have to wait for that. This is why there are extraSlots.
type window struct {
	slots    []slot
	free     []uint32
	first    int32
	last     int32
	unsent   int32
	pending  int
	bytes    int
	most     int // pending up to which there is room
	maxBytes int // and bytes
	keep     int // a slot's buffer longer than this is given back

	queued      int
	queuedBytes int
	alone       int
	again       []use // to be sent again, in order; entries that are not true any more are passed over
	bursts
}

// use names a slot, and the use of it that is meant.
type use struct {
	slot int32
	gen  uint32
}

// extraSlots is how many slots there are beyond those that room promises: one that is spent, and one for a Send beside
// a Write that fills the window.
const extraSlots = 2

func newWindow(most, maxBytes int) window {
	n := most + extraSlots
	w := window{slots: make([]slot, n), first: -1, last: -1, unsent: -1, most: most, maxBytes: maxBytes, keep: maxBytes / most}
	w.bursts = bursts{live: make(map[uint64]*burst), longest: maxBurst}
	for i := range n {
		w.free = append(w.free, uint32(n-1-i)) // slot 0 is used first
	}
	return w
}

// room tells whether a message of this size may be added. One alone is let in whatever its size. If there is no room,
// something is pending: its end is when to look again.
func (w *window) room(size int) bool {
	return w.pending == 0 || w.pending < w.most && w.bytes+size <= w.maxBytes
}

// add takes a free slot and puts it at the end of the list. The caller fills in the rest, with a deadline that is not
// before that of any other slot. There is a slot as long as no more than one is added without room.
func (w *window) add(size int) (int32, *slot) {
	i := int32(w.free[len(w.free)-1])
	w.free = w.free[:len(w.free)-1]
	s := &w.slots[i]
	if s.state != slotFree {
		panic(fmt.Sprintf("BUG: slot %d on the free list is in state %d", i, s.state))
	}
	s.state, s.gen, s.size = slotQueued, s.gen+1, size
	s.burst, s.seq, s.doubt = 0, 0, false
	s.prev, s.next = w.last, -1
	if w.last >= 0 {
		w.slots[w.last].next = i
	} else {
		w.first = i
	}
	w.last = i
	if w.unsent < 0 {
		w.unsent = i
	}
	w.pending++
	w.bytes += size
	w.queued++
	w.queuedBytes += size
	return i, s
}

// take gives the sender the next slot to send singly, or -1: one that is sent again, else the first queued one. now is
// Unix time, 0 if it will not be written.
func (w *window) take(session uint32, now int64) int32 {
	i := w.nextAgain()
	if i >= 0 {
		w.again = w.again[1:]
	} else if i = w.unsent; i >= 0 {
		w.unqueue(i)
	} else {
		return -1
	}
	w.alone++
	w.hand(i, session, now)
	return i
}

// unqueue makes the slot after i, the first queued one, the first.
func (w *window) unqueue(i int32) {
	s := &w.slots[i]
	w.queued--
	w.queuedBytes -= s.size
	w.unsent = s.next
}

func (w *window) hand(i int32, session uint32, now int64) {
	s := &w.slots[i]
	s.state, s.session = slotWriting, session
	if s.sent == 0 {
		s.sent = now
	}
}

// nextAgain is the slot to be sent again first, or -1.
func (w *window) nextAgain() int32 {
	for len(w.again) > 0 {
		r := w.again[0]
		if s := &w.slots[r.slot]; s.gen == r.gen && s.state == slotAgain {
			return r.slot
		}
		w.again = w.again[1:]
	}
	return -1
}

// repeat has slot i, which has left its burst, sent again. doubt says that its first send may have stored it.
func (w *window) repeat(i int32, doubt bool) {
	s := &w.slots[i]
	s.doubt = s.doubt || doubt
	switch s.state {
	case slotWriting:
		s.state = slotStale
	case slotWritten:
		s.state = slotAgain
		w.again = append(w.again, use{i, s.gen})
	default:
		panic(fmt.Sprintf("BUG: slot %d in state %d is to be sent again", i, s.state))
	}
}

// written says that the sender does not need slot i any more. It tells whether the slot still waits for an answer to
// what was written.
func (w *window) written(i int32) bool {
	s := &w.slots[i]
	switch s.state {
	case slotWriting:
		s.state = slotWritten
		return true
	case slotStale:
		s.state = slotAgain
		w.again = append(w.again, use{i, s.gen})
		return false
	case slotSpent:
		w.release(i)
		return false
	}
	panic(fmt.Sprintf("BUG: slot %d in state %d was written", i, s.state))
}

// mayBeStored tells whether a copy of the slot's message may have reached the stream.
func (s *slot) mayBeStored() bool {
	return s.doubt || s.state == slotWriting || s.state == slotWritten
}

// remove takes slot i out of the list: it has its outcome.
func (w *window) remove(i int32) {
	s := &w.slots[i]
	if s.state == slotFree || s.state == slotSpent {
		panic(fmt.Sprintf("BUG: slot %d has two outcomes", i))
	}
	if s.prev >= 0 {
		w.slots[s.prev].next = s.next
	} else {
		w.first = s.next
	}
	if s.next >= 0 {
		w.slots[s.next].prev = s.prev
	} else {
		w.last = s.prev
	}
	switch {
	case s.state == slotQueued:
		w.queued--
		w.queuedBytes -= s.size
		if w.unsent == i {
			w.unsent = s.next
		}
	case s.burst != 0:
		w.leave(i)
	case s.state == slotWriting, s.state == slotWritten:
		w.alone--
	}
	w.pending--
	w.bytes -= s.size
	s.call = nil
	if s.state == slotWriting || s.state == slotStale {
		s.state = slotSpent
		return
	}
	w.release(i)
}

func (w *window) release(i int32) {
	s := &w.slots[i]
	s.state, s.subject = slotFree, ""
	s.id, s.headers, s.payload = nil, nil, nil
	if cap(s.buf) > w.keep {
		s.buf = nil
	}
	w.free = append(w.free, uint32(i))
}

// find returns the slot that a token names if it waits for its answer, else -1. A slot in a burst waits for the answer
// to the burst, and one that is to be sent again for none. extra is true if that very message has been acknowledged
// before.
func (w *window) find(number, gen uint32) (i int32, extra bool) {
	if uint64(number) >= uint64(len(w.slots)) {
		return -1, false
	}
	s := &w.slots[number]
	if s.gen != gen || s.state == slotFree || s.state == slotSpent {
		return -1, gen != 0 && s.answered == gen
	}
	if s.burst != 0 || s.state == slotAgain || s.state == slotStale {
		return -1, false
	}
	return int32(number), false
}

// onWire returns the slots with this subject that were written on the session and have no answer.
func (w *window) onWire(session uint32, subject string) (all []use) {
	for i := w.first; i >= 0; i = w.slots[i].next {
		s := &w.slots[i]
		if (s.state == slotWriting || s.state == slotWritten) && s.session == session && s.subject == subject {
			all = append(all, use{i, s.gen})
		}
	}
	return all
}

// shorten brings the deadlines of everything written before this session forward to at. Nothing is written on it yet.
func (w *window) shorten(session uint32, at int64) {
	for i := w.first; i >= 0; i = w.slots[i].next {
		s := &w.slots[i]
		if s.state == slotQueued {
			return // so is the rest, and none of it was written
		}
		if s.session != session {
			s.deadline = min(s.deadline, at)
		}
	}
}
