package publisher

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// stage is a Publisher at rest that believes it is bound: the test plays sender and server.
type stage struct {
	t *testing.T
	*Publisher
	sent []cargo
}

func newStage(t *testing.T, mode Mode, most int) *stage {
	t.Helper()
	p := bound(t, most)
	p.maxBytes = 1 << 20
	p.session = &session{number: 1}
	p.profile = Profile{Mode: mode, DuplicateWindow: time.Minute, Replicas: 1}
	return &stage{t: t, Publisher: p}
}

// queue admits messages with these tags.
func (s *stage) queue(tags ...uint64) {
	s.t.Helper()
	for _, tag := range tags {
		if err := s.Send(message(int(tag), "e.1"), tag); err != nil {
			s.t.Fatal(err)
		}
	}
	s.check(s.t)
}

// write has the sender write until it finds nothing, and tells how: "a" and its number for a member of a batch, "!" for
// the last one, "s" for what goes singly, and its tag.
func (s *stage) write(want string) {
	s.t.Helper()
	var have []string
	for {
		c, wait := s.takeNext()
		if c.slot < 0 {
			if wait > 0 {
				have = append(have, "wait")
			}
			break
		}
		text := fmt.Sprintf("s:%d", s.slots[c.slot].tag)
		if c.mode != ModeSingle {
			text = fmt.Sprintf("%d.%d:%d", c.number, c.seq, s.slots[c.slot].tag)
		}
		if c.last {
			text += "!"
		}
		have = append(have, text)
		s.sent = append(s.sent, c)
		s.check(s.t)
		s.settleWrite(c, nil)
		s.check(s.t)
	}
	if got := strings.Join(have, " "); got != want {
		s.t.Fatalf("written is %q, want %q", got, want)
	}
}

// reply is the subject of burst number, and of seq in a fast one.
func (s *stage) reply(number uint64, seq uint32) string {
	dst := appendBatchID([]byte(s.inbox), s.random, number)
	if seq > 0 {
		dst = appendFast(dst, seq, false)
	}
	return string(dst)
}

// answers delivers what the server says. %ID stands for the batch's id.
func (s *stage) answers(number uint64, seq uint32, body string) {
	s.t.Helper()
	id := string(appendBatchID(nil, s.random, number))
	s.answer(&nats.Msg{Subject: s.reply(number, seq), Data: []byte(strings.ReplaceAll(body, "%ID", id))})
	s.check(s.t)
}

// single answers the newest copy of a message that went singly.
func (s *stage) single(tag uint64, body string) {
	s.t.Helper()
	for i := len(s.sent) - 1; i >= 0; i-- {
		c := s.sent[i]
		if slot := &s.slots[c.slot]; c.mode == ModeSingle && slot.tag == tag {
			s.answer(&nats.Msg{Subject: string(appendToken([]byte(s.inbox), uint32(c.slot), slot.gen)), Data: []byte(body)})
			s.check(s.t)
			return
		}
	}
	s.t.Fatalf("message %d did not go singly", tag)
}

// outcomes checks the results that have come, in order of tags: "1:accepted@7 2:unknown".
func (s *stage) outcomes(want string) {
	s.t.Helper()
	all := make(map[uint64]string)
	for len(s.results) > 0 {
		r := <-s.results
		text := fmt.Sprintf("%d:%v", r.Tag, r.Outcome)
		if r.Outcome == Accepted {
			text += fmt.Sprintf("@%d", r.Sequence)
		}
		if r.Duplicate {
			text += "d"
		}
		if all[r.Tag] != "" {
			s.t.Fatalf("message %d has two results", r.Tag)
		}
		all[r.Tag] = text
	}
	var have []string
	for tag := range uint64(100) {
		if all[tag] != "" {
			have = append(have, all[tag])
		}
	}
	if got := strings.Join(have, " "); got != want {
		s.t.Fatalf("results are %q, want %q", got, want)
	}
}

// TestBurstForms: what is queued becomes one batch, a lone message goes singly, and a batch has its limit.
func TestBurstForms(t *testing.T) {
	for _, mode := range []Mode{ModeAtomic, ModeFast} {
		s := newStage(t, mode, map[Mode]int{ModeAtomic: 8, ModeFast: 16}[mode]) // batches of four
		s.queue(1)
		s.write("s:1")
		s.queue(2, 3)
		s.write("1.1:2 1.2:3!")
		s.queue(4)
		s.write("wait") // two answers are awaited
		s.queue(5, 6, 7, 8)
		s.write("2.1:4 2.2:5 2.3:6 2.4:7! wait")
		s.single(1, `{"stream":"EDGE","seq":1}`)
		s.answers(1, seqOf(mode, 2), `{"stream":"EDGE","seq":3,"batch":"%ID","count":2}`)
		s.write("s:8")
		s.answers(2, seqOf(mode, 4), `{"stream":"EDGE","seq":7,"batch":"%ID","count":4}`)
		s.single(8, `{"stream":"EDGE","seq":8}`)
		if mode == ModeAtomic {
			s.outcomes("1:accepted@1 2:accepted@2 3:accepted@3 4:accepted@4 5:accepted@5 6:accepted@6 7:accepted@7 8:accepted@8")
		} else {
			s.outcomes("1:accepted@1 2:accepted@3 3:accepted@3 4:accepted@7 5:accepted@7 6:accepted@7 7:accepted@7 8:accepted@8")
		}
		if len(s.live) != 0 || s.alone != 0 || len(s.doubt) != 0 || s.count.Batches != 2 {
			t.Errorf("%d bursts are live, %d alone, %+v", len(s.live), s.alone, s.count)
		}
	}
	s := newStage(t, ModeSingle, 16)
	s.queue(1, 2, 3)
	s.write("s:1 s:2 s:3")
}

func seqOf(mode Mode, seq uint32) uint32 {
	if mode == ModeAtomic {
		return 0
	}
	return seq
}

// TestGatherEnds: what waits for more does not wait for an answer that never comes.
func TestGatherEnds(t *testing.T) {
	s := newStage(t, ModeFast, 16)
	s.queue(1)
	s.write("s:1")
	s.queue(2)
	s.write("s:2")
	s.queue(3)
	_, wait := s.takeNext()
	if wait <= 0 || wait > gatherTime {
		t.Fatalf("it waits for %v", wait)
	}
	s.slots[s.unsent].admitted -= int64(gatherTime)
	s.write("s:3")
}

// TestBurstCutShort ends batches that are being written.
func TestBurstCutShort(t *testing.T) {
	half := func(mode Mode) *stage {
		s := newStage(t, mode, 16)
		s.queue(1, 2, 3)
		for range 2 {
			c, _ := s.takeNext()
			s.settleWrite(c, nil)
		}
		return s
	}
	// What should follow is withdrawn.
	gone := func(mode Mode, again, outcome string) {
		t.Helper()
		s := half(mode)
		s.finishLocked(s.unsent, Result{Outcome: Retryable})
		s.write(again)
		s.single(1, refused(400, 10054))
		s.outcomes("1:" + outcome + " 3:retryable")
	}
	gone(ModeAtomic, "s:1 s:2", "permanent")
	gone(ModeFast, "s:1 s:2", "unknown")

	// The connection is lost: an atomic batch is surely not stored, of a fast one nobody knows.
	lost := func(mode Mode, outcomes string) {
		t.Helper()
		s := half(mode)
		s.session = nil
		for {
			c, _ := s.takeNext()
			if c.slot < 0 {
				break
			}
			s.settleWrite(c, errNotConnected)
			s.check(t)
		}
		s.outcomes(outcomes)
	}
	lost(ModeAtomic, "1:retryable 2:retryable 3:retryable")
	lost(ModeFast, "3:retryable")

	// A write fails.
	fails := func(mode Mode, at int, err error, outcomes, wrote string) {
		t.Helper()
		s := newStage(t, mode, 16)
		s.queue(1, 2, 3)
		for k := 1; k <= at; k++ {
			c, _ := s.takeNext()
			if k < at {
				s.settleWrite(c, nil)
			} else {
				s.settleWrite(c, err)
			}
			s.check(t)
		}
		s.session.broken = false // so that the rest shows
		s.outcomes(outcomes)
		s.write(wrote)
	}
	fails(ModeAtomic, 2, nats.ErrBadHeaderMsg, "2:permanent", "1.2:3!") // it was never sent: the next has its number
	fails(ModeFast, 2, nats.ErrBadHeaderMsg, "2:permanent", "1.2:3!")
	fails(ModeAtomic, 3, nats.ErrBadHeaderMsg, "3:permanent", "s:1 s:2")
	fails(ModeFast, 3, nats.ErrBadHeaderMsg, "3:permanent", "s:1 s:2")
	fails(ModeAtomic, 2, nats.ErrTimeout, "2:retryable", "s:1 s:3")
	fails(ModeAtomic, 3, nats.ErrTimeout, "3:unknown", "")
	fails(ModeFast, 2, nats.ErrTimeout, "2:unknown", "s:3")
	fails(ModeFast, 3, nats.ErrTimeout, "3:unknown", "")
}

// TestBurstDenied: the server announces that it has not taken one member.
func TestBurstDenied(t *testing.T) {
	f := func(mode Mode, n int, wrote string) {
		t.Helper()
		s := newStage(t, mode, 16)
		s.queue(1, 2, 3)
		s.write("1.1:1 1.2:2 1.3:3!")
		s.slots[s.sent[n-1].slot].subject = "e.no"
		s.denied(s.session, "e.no", "denied")
		s.check(t)
		s.outcomes(fmt.Sprintf("%d:fatal", n))
		s.write(wrote)
	}
	f(ModeAtomic, 1, "") // the gap will be answered
	f(ModeAtomic, 3, "s:1 s:2")
	f(ModeFast, 2, "")
	f(ModeFast, 3, "s:1 s:2")
	s := newStage(t, ModeAtomic, 16)
	s.queue(1, 2)
	s.write("1.1:1 1.2:2!")
	s.deniedReply(s.reply(1, 0), "denied")
	s.outcomes("2:fatal")
	s.write("s:1")
}
