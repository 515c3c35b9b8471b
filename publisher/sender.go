package publisher

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"edge/envelope"
)

// runSender is the only goroutine that publishes on a connection, because a stalled socket write blocks whoever
// publishes for up to writeTimeout, and everybody else who touches the connection with it.
func (p *Publisher) runSender(stop <-chan struct{}) {
	b := newBuilder(&p.cfg, p.inbox, p.random)
	gather := time.NewTimer(time.Hour)
	defer gather.Stop()
	for {
		c, wait := p.takeNext()
		if c.slot < 0 {
			var ripe <-chan time.Time
			if wait > 0 {
				gather.Reset(wait)
				ripe = gather.C
			}
			select {
			case <-p.wake:
			case <-ripe:
			case <-stop:
				return
			}
			continue
		}
		err := errNotConnected
		if c.session != nil {
			// The slot is in state writing, so its bytes are ours until settleWrite.
			err = c.session.conn.PublishMsg(b.build(c, &p.window.slots[c.slot]))
		}
		p.settleWrite(c, err)
	}
}

// settleWrite ends the sender's use of a slot.
func (p *Publisher) settleWrite(c cargo, err error) {
	s := c.session
	p.mu.Lock()
	waits := p.window.written(c.slot)
	var r Result
	if err != nil {
		r = classify(p.want.Load(), evidence{err: err, written: s != nil})
	}
	broken := s != nil && r.Outcome == Unknown
	if broken {
		// The library drops its buffer on a failed write and may keep the connection: nothing on it can be trusted.
		s.broken = true
	}
	if err != nil {
		if c.number != 0 {
			p.unwrittenLocked(c, waits, broken)
		}
		if waits && p.window.slots[c.slot].state == slotWritten {
			p.finishLocked(c.slot, r)
		}
	}
	p.mu.Unlock()
	if broken {
		s.cut()
	}
}

// builder makes the library's form of a message out of a slot. Its parts are reused, because the library copies the
// command into its own buffer before PublishMsg returns.
type builder struct {
	msg    nats.Msg
	inbox  []byte
	random string
	id     []string // value of the id header
	batch  []string // values of a batch's headers
	seq    []string
	commit []string
	own    int // headers that every message has
	text   []byte
}

func newBuilder(cfg *Config, inbox, random string) *builder {
	b := &builder{inbox: []byte(inbox), random: random, id: make([]string, 1), batch: make([]string, 1), seq: make([]string, 1), commit: []string{"1"}}
	b.msg.Header = nats.Header{headerID: b.id, headerStream: {cfg.Stream}}
	if cfg.MessageTTL > 0 {
		b.msg.Header[headerTTL] = []string{string(appendTTL(nil, cfg.MessageTTL))}
	}
	b.own = len(b.msg.Header)
	return b
}

// build returns a message that is valid until the next call. gen, id, headers, payload and subject of the slot do not
// change while it is in state writing.
func (b *builder) build(c cargo, s *slot) *nats.Msg {
	b.text = b.appendReply(append(b.text[:0], b.inbox...), c, s)
	reply := len(b.text)
	b.text = append(b.text, s.id...)
	both := string(b.text) // one allocation for both
	b.msg.Reply, b.id[0] = both[:reply], both[reply:]
	b.msg.Subject, b.msg.Data = s.subject, s.payload
	h := b.msg.Header
	if len(h) > b.own {
		for name := range h {
			if name != headerID && name != headerStream && name != headerTTL {
				delete(h, name)
			}
		}
	}
	if c.mode == ModeAtomic {
		if c.seq == 1 {
			b.batch[0] = string(appendBatchID(nil, b.random, c.number))
		}
		b.seq[0] = strconv.FormatUint(uint64(c.seq), 10)
		h[headerBatch], h[headerBatchSeq] = b.batch, b.seq
		if c.last {
			h[headerCommit] = b.commit
		} else {
			b.msg.Reply = "" // it would be answered by nothing but "staged"
		}
	}
	envelope.EachHeader(s.headers, func(name, value []byte) {
		h[string(name)] = append(h[string(name)], string(value))
	})
	return &b.msg
}

// appendReply appends what the answer to a message, or to its burst, is told by.
func (b *builder) appendReply(dst []byte, c cargo, s *slot) []byte {
	switch c.mode {
	case ModeAtomic:
		return appendBatchID(dst, b.random, c.number)
	case ModeFast:
		return appendFast(appendBatchID(dst, b.random, c.number), c.seq, c.last)
	}
	return appendToken(dst, uint32(c.slot), s.gen)
}

// appendTTL appends a time to live as the server reads it.
func appendTTL(dst []byte, d time.Duration) []byte {
	return append(strconv.AppendInt(dst, int64(d/time.Second), 10), 's')
}
