package envelope

import (
	"hash/maphash"
)

// names is the set of names that occurred in the objects of one record: a hash table with open addressing whose
// slots point into the record, or into the arena for names that were written with escapes.
//
// Invariant: a slot counts only if its round is the current one; used slots are at most half of all.
type names struct {
	slots []slot // a power of two of them, or none
	used  int
	round uint32
	arena []byte // unescaped names, one behind the other
}

type slot struct {
	round uint32
	hash  uint32 // of the name and the object it is in
	start uint32 // of the name in the record, or in the arena
	size  uint32 // in bytes, with inArena set or not
}

const (
	inArena    = 1 << 31
	firstSlots = 64      // enough for 32 names, which is most records
	keepSlots  = 4 << 10 // 64 KiB: what a Writer may keep for the next event
	keepArena  = 64 << 10
	maxRecord  = 1<<31 - 1 // bytes of a record, so that positions and sizes fit a slot
)

// seed is drawn at random for each process, so that nobody can choose names that all meet in one slot.
var seed = maphash.MakeSeed()

// reset forgets all names.
func (n *names) reset() {
	n.used, n.arena = 0, n.arena[:0]
	n.round++
	if n.round == 0 { // after 2^32 records the old rounds come again
		clear(n.slots)
		n.round = 1
	}
}

func (n *names) trim() {
	if len(n.slots) > keepSlots {
		n.slots = nil
	}
	if cap(n.arena) > keepArena {
		n.arena = nil
	}
}

// unescape returns the name that is written as s, in the arena. The next add decides whether it stays there.
func (n *names) unescape(s []byte) []byte {
	start := len(n.arena)
	n.arena = appendUnescaped(n.arena, s)
	end := len(n.arena)
	name := n.arena[start:end:end]
	n.arena = n.arena[:start]
	return name
}

// add notes a name of an object and tells whether it is new there. key is m's name as dedupe.key returned it.
func (n *names) add(src []byte, m *members, key []byte, object uint32) bool {
	if 2*n.used >= len(n.slots) {
		n.grow()
	}
	// The factor is odd, so equal names of two objects have unequal hashes: equal hash and equal name mean the same
	// object. It is 2^32 over the golden ratio, which spreads the names of a list's objects well.
	h := uint32(maphash.Bytes(seed, key)) + object*0x9e3779b9
	mask := uint32(len(n.slots) - 1)
	at := h & mask
	for ; n.slots[at].round == n.round; at = (at + 1) & mask {
		s := &n.slots[at]
		if s.hash == h && string(n.name(src, s)) == string(key) {
			return false
		}
	}
	s := slot{round: n.round, hash: h, start: uint32(m.keyStart), size: uint32(len(key))}
	if m.escaped {
		s.start, s.size = uint32(len(n.arena)), s.size|inArena
		n.arena = n.arena[:len(n.arena)+len(key)] // where unescape has left it
	}
	n.slots[at] = s
	n.used++
	return true
}

func (n *names) name(src []byte, s *slot) []byte {
	if s.size&inArena != 0 {
		return n.arena[s.start : s.start+s.size&^inArena]
	}
	return src[s.start : s.start+s.size]
}

// grow doubles the table.
func (n *names) grow() {
	old := n.slots
	n.slots = make([]slot, max(firstSlots, 2*len(old)))
	mask := uint32(len(n.slots) - 1)
	for i := range old {
		if old[i].round != n.round {
			continue
		}
		at := old[i].hash & mask
		for n.slots[at].round == n.round {
			at = (at + 1) & mask
		}
		n.slots[at] = old[i]
	}
}
