package publisher

import (
	"fmt"
	"strconv"
	"strings"
)

// A burst is several messages that travel as one batch of the server's: atomic, or fast ingest. Its last message
// commits it, so that none stays open. The sender makes one of what is queued when it looks, and adds what is queued
// meanwhile.
//
// # What its answers prove (server 2.15.3)
//
// Atomic: only the last message asks for an answer. The acknowledgement with our batch id and count comes after all of
// them are stored, one after the other. Most refusals come before any is: proves says which.
//
// Fast: each message has a reply subject, because that is where the batch's data are. A refusal on a message's own
// subject says that this copy is not stored. The acknowledgement of the batch names a count: so many from the first are
// stored or duplicates, and nothing behind them is. It comes early if something is refused or missing. Flow
// acknowledgements are not believed: a duplicate counts for them that another attempt has only proposed to replicas.
//
// Whatever a burst's end leaves open goes again, singly, with the same ids and within the same deadlines.
type burst struct {
	number  uint64 // from 1, never used again; part of the batch id
	mode    Mode   // ModeAtomic or ModeFast
	session uint32 // the connection that all of it is written on
	bytes   int
	sealed  bool // the last member was given to the sender

	// members are the slots by sequence - 1, and -1 where one has left. left is how many have not.
	members []int32
	left    int
}

// bursts is the table of those that are unanswered.
//
// Invariant: live holds open, if there is one, and every sealed burst with left > 0; open is not sealed. A member's
// slot names the burst and its place in it.
type bursts struct {
	live    map[uint64]*burst
	open    *burst // being written
	issued  uint64 // number of the newest
	longest int    // messages that the server takes in one
}

// Limits of a burst. The shares of the window are what was fastest of a half and a quarter: an atomic batch costs the
// server three to five syncs however long it is, so that two are under way at most; fast ones are shorter and overlap.
const (
	maxBurst    = 1000 // messages; the server's default limit for atomic batches
	minBurst    = 2    // messages; fewer go singly
	atomicShare = 2
	fastShare   = 4
)

// share is how much of the window one burst may take. Bytes are passed by at most one message.
func (w *window) share(mode Mode) (slots, bytes int) {
	n := fastShare
	if mode == ModeAtomic {
		n = atomicShare
	}
	return min(max(w.most/n, minBurst), w.longest), w.maxBytes / n
}

// units is how many answers are awaited: of bursts and of messages that went singly.
func (w *window) units() int { return w.alone + len(w.live) }

// openBurst begins a burst.
func (w *window) openBurst(mode Mode, session uint32) {
	if w.open != nil {
		panic(fmt.Sprintf("BUG: burst %d is open", w.open.number))
	}
	w.issued++
	w.open = &burst{number: w.issued, mode: mode, session: session}
	w.live[w.open.number] = w.open
}

// join gives the sender the first queued slot as the next member of the open burst.
func (w *window) join(now int64) int32 {
	b, i := w.open, w.unsent
	s := &w.slots[i]
	w.unqueue(i)
	b.members = append(b.members, i)
	b.left++
	b.bytes += s.size
	s.burst, s.seq = b.number, uint32(len(b.members))
	w.hand(i, b.session, now)
	return i
}

// full tells whether nothing more may join the open burst.
func (w *window) full() bool {
	slots, bytes := w.share(w.open.mode)
	return len(w.open.members) >= slots || w.open.bytes >= bytes
}

// seal says that the open burst is complete.
func (w *window) seal() {
	b := w.open
	b.sealed, w.open = true, nil
	if b.left == 0 {
		delete(w.live, b.number)
	}
}

// unjoin takes the newest member out, which was never written: the next one has its place. The slot stays pending, in
// no burst.
func (w *window) unjoin(b *burst, i int32) {
	s := &w.slots[i]
	if int(s.seq) != len(b.members) || s.burst != b.number {
		panic(fmt.Sprintf("BUG: slot %d is not the newest of burst %d", i, b.number))
	}
	w.part(i)
	w.alone++
	b.members = b.members[:len(b.members)-1]
}

// leave takes slot i out of its burst.
func (w *window) leave(i int32) {
	b := w.live[w.slots[i].burst]
	w.part(i)
	if b.sealed && b.left == 0 {
		delete(w.live, b.number)
	}
}

// part undoes the two references between slot i and its burst.
func (w *window) part(i int32) {
	s := &w.slots[i]
	b := w.live[s.burst]
	if b == nil || b.members[s.seq-1] != i {
		panic(fmt.Sprintf("BUG: slot %d is not number %d of burst %d", i, s.seq, s.burst))
	}
	b.members[s.seq-1] = -1
	b.left--
	s.burst, s.seq = 0, 0
}

// drop forgets a burst that no member waits for.
func (w *window) drop(b *burst) {
	if b.left != 0 {
		panic(fmt.Sprintf("BUG: %d members of burst %d have no outcome", b.left, b.number))
	}
	if w.open == b {
		w.open = nil
	}
	delete(w.live, b.number)
}

// A burst's batch id is the random part of our inbox and its number, so that no two attempts of anybody share one. It
// is a token of its reply subjects, which a hyphen tells from the tokens of slots:
//
//	_INBOX.<name>.<random>.<random>-<number>                                  atomic
//	_INBOX.<name>.<random>.<random>-<number>.<flow>.fail.<seq>.<op>.$FI       fast
//
// The server's limit for an id is 64 characters; it has 24, 1 and at most 13.
func appendBatchID(dst []byte, random string, number uint64) []byte {
	return strconv.AppendUint(append(append(dst, random...), '-'), number, 36)
}

// Parts of a fast batch's reply subject. The flow is after how many messages a flow acknowledgement is wanted at the
// most: we want none. In mode "fail" a gap ends the batch.
const (
	flowMode   = ".1000.fail."
	flowStart  = ".0"
	flowAppend = ".1"
	flowCommit = ".2"
	flowSuffix = ".$FI"
)

// appendFast appends what follows the batch id in the reply subject of a fast batch's message.
func appendFast(dst []byte, seq uint32, last bool) []byte {
	dst = strconv.AppendUint(append(dst, flowMode...), uint64(seq), 10)
	switch {
	case last:
		dst = append(dst, flowCommit...)
	case seq == 1:
		dst = append(dst, flowStart...)
	default:
		dst = append(dst, flowAppend...)
	}
	return append(dst, flowSuffix...)
}

// parseBatchReply reads the part of a reply subject behind the inbox. seq is 0 for an atomic batch.
func parseBatchReply(random, s string) (number uint64, seq uint32, ok bool) {
	rest, ok := strings.CutPrefix(s, random)
	if !ok || !strings.HasPrefix(rest, "-") {
		return 0, 0, false
	}
	digits, fast, isFast := strings.Cut(rest[1:], ".")
	number, err := strconv.ParseUint(digits, 36, 64)
	if err != nil || number == 0 {
		return 0, 0, false
	}
	if !isFast {
		return number, 0, true
	}
	rest, ok = strings.CutPrefix(fast, flowMode[1:])
	place, rest, found := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(place, 10, 32)
	if !ok || !found || err != nil || n == 0 || !strings.HasSuffix(rest, flowSuffix) {
		return 0, 0, false
	}
	return number, uint32(n), true
}
