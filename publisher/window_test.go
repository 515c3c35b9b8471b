package publisher

import (
	"math/rand/v2"
	"testing"
	"time"
)

// check walks the whole table and holds it against its invariant.
func (w *window) check(t *testing.T) {
	t.Helper()
	n, bytes, queued, queuedBytes, alone, members := 0, 0, 0, 0, 0, 0
	prev := int32(-1)
	for i := w.first; i >= 0; i = w.slots[i].next {
		s := &w.slots[i]
		switch s.state {
		case slotQueued:
			if queued == 0 && w.unsent != i {
				t.Fatalf("unsent is %d, the first queued slot %d", w.unsent, i)
			}
			queued++
			queuedBytes += s.size
		case slotWriting, slotWritten:
			if s.burst == 0 {
				alone++
			}
			fallthrough
		case slotStale, slotAgain:
			if queued > 0 {
				t.Fatalf("slot %d was written before an earlier one", i)
			}
		default:
			t.Fatalf("slot %d in the list is in state %d", i, s.state)
		}
		if s.burst != 0 {
			members++
			if b := w.live[s.burst]; b == nil || b.members[s.seq-1] != i || s.state != slotWriting && s.state != slotWritten {
				t.Fatalf("slot %d in state %d is not number %d of burst %d", i, s.state, s.seq, s.burst)
			}
		}
		if s.prev != prev || prev >= 0 && w.slots[prev].deadline > s.deadline {
			t.Fatalf("slot %d does not follow slot %d", i, prev)
		}
		prev = i
		n++
		bytes += s.size
	}
	if queued == 0 && w.unsent != -1 {
		t.Fatalf("unsent is %d, nothing is queued", w.unsent)
	}
	if queued != w.queued || queuedBytes != w.queuedBytes || alone != w.alone {
		t.Fatalf("%d of %d bytes are queued and %d alone, counted are %d of %d and %d", queued, queuedBytes, alone, w.queued, w.queuedBytes, w.alone)
	}
	left := 0
	for number, b := range w.live {
		left += b.left
		if b.number != number || b.sealed == (b == w.open) || b.sealed && b.left == 0 || len(b.members) > max(w.most/atomicShare, minBurst) {
			t.Fatalf("burst %+v is live", b)
		}
	}
	if left != members || w.open != nil && w.live[w.open.number] != w.open {
		t.Fatalf("%d slots are in bursts, %d counted, %v is open", members, left, w.open)
	}
	busy, spent := 0, 0
	for i := range w.slots {
		switch w.slots[i].state {
		case slotSpent:
			spent++
			busy++
		case slotWriting, slotStale:
			busy++
		}
	}
	if w.last != prev || n != w.pending || bytes != w.bytes || n+len(w.free)+spent != len(w.slots) {
		t.Fatalf("%d slots of %d bytes are listed, %d of %d bytes counted, %d free, %d spent", n, bytes, w.pending, w.bytes, len(w.free), spent)
	}
	if busy > 1 || w.room(1) && len(w.free) == 0 {
		t.Fatalf("%d busy, %d free of %d, %d pending: there is no slot for what there is room for", busy, len(w.free), len(w.slots), w.pending)
	}
}

// TestWindow plays random histories, with bursts and without, against the invariant, and against a map of what must be
// found.
func TestWindow(t *testing.T) {
	const seed = 7
	dice := rand.New(rand.NewPCG(seed, seed))
	broken := 0
	for round := range 200 {
		most := 1 + dice.IntN(12)
		w := newWindow(most, 100)
		live := make(map[int32]uint32)
		now, writing, session := int64(0), int32(-1), uint32(1)
		for range 400 {
			now++
			switch dice.IntN(9) {
			case 0, 1:
				size := 1 + dice.IntN(60)
				room := w.room(size)
				if want := len(live) == 0 || len(live) < most && w.bytes+size <= 100; room != want {
					t.Fatalf("seed %d: room(%d) is %v", seed, size, room)
				}
				if room {
					i, s := w.add(size)
					s.deadline = now + 50
					live[i] = s.gen
				}
			case 2, 3:
				if writing >= 0 || w.open != nil {
					break
				}
				if round%2 == 0 && w.queued >= minBurst && w.nextAgain() < 0 {
					w.openBurst(ModeAtomic, session)
				} else {
					writing = w.take(session, 1)
				}
			case 4:
				if w.open != nil && writing < 0 && w.unsent >= 0 {
					writing = w.join(1)
					if w.full() || w.unsent < 0 || dice.IntN(3) == 0 {
						w.seal()
					}
				}
			case 5:
				if writing >= 0 {
					_, waits := live[writing]
					waits = waits && w.slots[writing].state == slotWriting
					if w.written(writing) != waits {
						t.Fatalf("seed %d: slot %d waits: %v", seed, writing, !waits)
					}
					s := &w.slots[writing]
					if b := w.live[s.burst]; b != nil && !b.sealed && dice.IntN(4) == 0 {
						w.unjoin(b, writing)
					}
					writing = -1
				}
			case 6:
				for i, gen := range live {
					s := &w.slots[i]
					awaits := s.burst == 0 && s.state != slotStale && s.state != slotAgain
					if got, extra := w.find(uint32(i), gen); (got == i) != awaits || extra {
						t.Fatalf("seed %d: slot %d in state %d is found: %d", seed, i, s.state, got)
					}
					s.answered = gen
					w.remove(i)
					delete(live, i)
					if got, extra := w.find(uint32(i), gen); got != -1 || !extra {
						t.Fatalf("seed %d: slot %d is found after its answer", seed, i)
					}
					break
				}
			case 7:
				session++
				w.shorten(session, now+10)
			case 8:
				for _, b := range w.live {
					for _, i := range b.members {
						if i >= 0 {
							w.part(i)
							w.repeat(i, dice.IntN(2) == 0)
							broken++
						}
					}
					w.drop(b)
					break
				}
			}
			w.check(t)
		}
	}
	if broken == 0 {
		t.Errorf("seed %d: no burst has come to nothing", seed)
	}
}

// TestSpentSlotTakesNoRoom: a message that is answered while the sender still reads its bytes is not in flight any
// more, by count or by bytes. Nobody would be told when the sender lets go.
func TestSpentSlotTakesNoRoom(t *testing.T) {
	f := func(most, maxBytes, size int) {
		t.Helper()
		w := newWindow(most, maxBytes)
		for range 3 {
			for range most {
				if !w.room(size) {
					t.Fatalf("%d of %d are pending, and there is no room", w.pending, most)
				}
				w.add(size)
				if w.pending == 1 {
					w.take(1, 1)
				}
			}
			if w.room(size) {
				t.Fatalf("there is room for more than %d", most)
			}
			spent := w.first
			w.remove(spent) // its answer is faster than the sender
			if !w.room(size) {
				t.Fatalf("a spent slot takes one of %d places", most)
			}
			i, _ := w.add(size)
			if i == spent {
				t.Fatalf("slot %d is overwritten while the sender reads it", i)
			}
			w.check(t)
			if w.written(spent) {
				t.Fatal("a spent slot waits for an answer")
			}
			for w.first >= 0 {
				if i := w.take(1, 1); i >= 0 {
					w.written(i)
				}
				w.remove(w.first)
			}
			w.check(t)
		}
	}
	f(1, 100, 1)
	f(1, 100, 1000) // one alone may be larger than all there is room for
	f(4, 100, 25)
}

func TestFindStrangers(t *testing.T) {
	w := newWindow(2, 100)
	i, s := w.add(1)
	f := func(slot, gen uint32, want int32) {
		t.Helper()
		if got, extra := w.find(slot, gen); got != want || extra {
			t.Errorf("find(%d, %d) is %d, %v", slot, gen, got, extra)
		}
	}
	f(uint32(i), s.gen, i)
	f(uint32(i), s.gen+1, -1)
	f(uint32(i), 0, -1)
	f(1, 0, -1)
	f(2, 1, -1)
	f(1<<31, 1, -1)
	f(1<<32-1, 1, -1)
}

func TestDelay(t *testing.T) {
	f := func(n int, dice float64, want time.Duration) {
		t.Helper()
		if got := reconnect.Delay(n, dice); got != want {
			t.Errorf("delay(%d, %v) is %v, want %v", n, dice, got, want)
		}
	}
	f(0, 0, 50*time.Millisecond)
	f(0, 0.5, 75*time.Millisecond)
	f(1, 0, 100*time.Millisecond)
	f(8, 0, 12800*time.Millisecond)
	f(9, 0, 15*time.Second) // 51.2 s is over the maximum
	f(31, 0, 15*time.Second)
	f(1<<40, 0, 15*time.Second)
	for n := range 64 {
		if d := reconnect.Delay(n, 0.999999); d <= 0 || d > reconnect.Max {
			t.Errorf("delay(%d) is %v", n, d)
		}
	}
}
