package publisher

import (
	"errors"
	"time"
)

// cargo is what the sender writes next.
type cargo struct {
	slot    int32    // -1 for nothing
	session *session // nil if there is no connection: the slot is settled unwritten
	part
}

// part is a message's place in a burst, zero if it goes singly.
type part struct {
	mode   Mode
	number uint64
	seq    uint32
	last   bool
}

// While enough answers are awaited, what is queued waits for more, but not longer than gatherTime: what is sent now would
// only stand in the stream's queue behind those, and make batches of two. With fewer under way nothing waits, so a lone
// message never does.
const (
	enoughUnits = 2
	gatherTime  = 5 * time.Millisecond
)

// batchHeaders is what an atomic batch adds to a message at the most, in bytes.
const batchHeaders = len(headerBatch) + len(headerBatchSeq) + len(headerCommit) + 3*headerExtra + 64 + len("1000") + len("1")

// takeNext gives the sender its next cargo. If there is none but wait is not 0, it looks again after that.
func (p *Publisher) takeNext() (c cargo, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.session
	if p.state != Ready || s != nil && s.broken {
		s = nil
	}
	p.closeLocked(s)
	p.gathering = false
	if s == nil {
		return cargo{slot: p.window.take(0, 0)}, 0
	}
	if p.open == nil && p.nextAgain() < 0 {
		if wait = p.gatherLocked(); wait > 0 {
			p.gathering = true
			return cargo{slot: -1}, wait
		}
		if p.worthLocked() {
			p.openBurst(p.profile.Mode, s.number)
			p.count.Batches++
		}
	}
	now := time.Now().UnixNano()
	b := p.open
	if b == nil {
		return cargo{slot: p.window.take(s.number, now), session: s}, 0
	}
	i := p.join(now)
	c = cargo{i, s, part{mode: b.mode, number: b.number, seq: uint32(len(b.members))}}
	if p.full() || p.unsent < 0 || !p.fitsLocked(&p.slots[p.unsent]) {
		c.last = true
		p.seal()
	}
	return c, 0
}

// closeLocked ends an open burst that cannot go on over s: what should have followed was withdrawn, or the connection is
// another. An atomic batch without its last message is never stored.
func (p *Publisher) closeLocked(s *session) {
	b := p.open
	switch {
	case b == nil:
	case b.mode == ModeAtomic && (s == nil || s.number != b.session || p.unsent < 0):
		p.breakUpLocked(b, false, nil)
	case s == nil || s.number != b.session:
		p.seal() // like everything on a lost connection, it waits for its deadline
	case p.unsent < 0:
		p.breakUpLocked(b, true, &SendError{Written: true, Err: errShort})
	}
}

var errShort = errors.New("its batch was not completed")

// gatherLocked is how long to wait for more, 0 for not at all.
func (p *Publisher) gatherLocked() time.Duration {
	if p.profile.Mode == ModeSingle || p.unsent < 0 || p.units() < enoughUnits || p.enoughLocked() {
		return 0
	}
	return max(0, gatherTime-time.Duration(p.now()-p.slots[p.unsent].admitted))
}

// enoughLocked tells whether what is queued fills a burst.
func (p *Publisher) enoughLocked() bool {
	slots, bytes := p.share(p.profile.Mode)
	return p.queued >= slots || p.queuedBytes >= bytes
}

// worthLocked tells whether a burst can be made of what is queued.
func (p *Publisher) worthLocked() bool {
	if p.profile.Mode == ModeSingle || p.queued < minBurst {
		return false
	}
	s := &p.slots[p.unsent]
	_, bytes := p.share(p.profile.Mode)
	return s.size < bytes && p.fitsLocked(s) && p.fitsLocked(&p.slots[s.next])
}

// fitsLocked tells whether a message is within the limits also with the headers of a batch. If not it goes singly.
func (p *Publisher) fitsLocked(s *slot) bool {
	return p.profile.Mode != ModeAtomic || p.sizeLocked(s.size+batchHeaders, s.size-len(s.payload)+batchHeaders) == nil
}

// breakUpLocked ends burst b and sends its remaining members again, singly. doubt says that b may have stored them: then
// the stream must surely know their ids yet, or they end unknown, because of err.
func (p *Publisher) breakUpLocked(b *burst, doubt bool, err error) {
	for _, i := range b.members {
		if i < 0 {
			continue
		}
		// Half of the window is left for the way and for the caller's own retries.
		age := time.Now().UnixNano() - p.slots[i].sent
		if doubt && time.Duration(age) >= p.profile.DuplicateWindow/2 {
			p.finishLocked(i, Result{Outcome: Unknown, Err: err})
			continue
		}
		p.part(i)
		p.resendLocked(i, doubt)
	}
	p.drop(b)
	notify(p.wake) // also if it was the answer to this burst that the next one waited for
}

// resendLocked sends slot i, which has left its burst, again, singly.
func (p *Publisher) resendLocked(i int32, doubt bool) {
	p.repeat(i, doubt)
	p.count.Resent++
	notify(p.wake)
}

// unwrittenLocked takes a burst's part of a write that failed. waits tells whether the slot still waits for an answer in
// it, written whether a byte may have left.
func (p *Publisher) unwrittenLocked(c cargo, waits, written bool) {
	b := p.live[c.number]
	if b == nil {
		return
	}
	if waits && !written {
		p.unjoin(b, c.slot)
	}
	switch {
	case !written && !c.last, written && c.last:
		// The next message takes its place, or nobody knows whether the batch is committed.
	case b.mode == ModeAtomic:
		if written && waits {
			p.finishLocked(c.slot, Result{Outcome: Retryable, Err: &SendError{Written: true, Err: errShort}})
		}
		p.breakUpLocked(b, false, nil)
	case written:
		if p.open == b {
			p.seal()
		}
	default:
		p.breakUpLocked(b, true, &SendError{Written: true, Err: errShort})
	}
}
