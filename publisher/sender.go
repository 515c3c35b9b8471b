package publisher

import (
	"time"

	"github.com/nats-io/nats.go"

	"edge/envelope"
)

// runSender is the only goroutine that publishes on a connection, because a stalled socket write blocks whoever
// publishes for up to writeTimeout, and everybody else who touches the connection with it.
func (p *Publisher) runSender(stop <-chan struct{}) {
	b := newBuilder(p.cfg.Stream, p.inbox)
	for {
		i, s := p.takeQueued()
		if i < 0 {
			select {
			case <-p.wake:
				continue
			case <-stop:
				return
			}
		}
		err := errNotConnected
		if s != nil {
			// The slot is in state writing, so its bytes are ours until settleWrite.
			err = s.conn.PublishMsg(b.build(uint32(i), &p.window.slots[i]))
		}
		p.settleWrite(i, s, err)
	}
}

// takeQueued gives the first queued slot, or -1, and the connection to write it on, which is nil if there is none.
func (p *Publisher) takeQueued() (int32, *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.session
	if p.state != Ready || s == nil || s.broken {
		return p.window.take(0, 0), nil
	}
	return p.window.take(s.number, time.Now().UnixNano()), s
}

// settleWrite ends the sender's use of slot i.
func (p *Publisher) settleWrite(i int32, s *session, err error) {
	p.mu.Lock()
	waits := p.window.written(i)
	var r Result
	if err != nil {
		r = classify(p.want.Load(), evidence{err: err, written: s != nil})
		if waits {
			p.finishLocked(i, r)
		}
	}
	broken := s != nil && r.Outcome == Unknown
	if broken {
		// The library drops its buffer on a failed write and may keep the connection: nothing on it can be trusted.
		s.broken = true
	}
	p.mu.Unlock()
	if broken {
		s.cut()
	}
}

// builder makes the library's form of a message out of a slot. Its parts are reused, because the library copies the
// command into its own buffer before PublishMsg returns.
type builder struct {
	msg   nats.Msg
	inbox []byte
	id    []string // value of the id header
	text  []byte
}

func newBuilder(stream, inbox string) *builder {
	b := &builder{inbox: []byte(inbox), id: make([]string, 1)}
	b.msg.Header = nats.Header{headerID: b.id, headerStream: {stream}}
	return b
}

// build returns a message that is valid until the next call. gen, id, headers, payload and subject of the slot do not
// change while it is in state writing.
func (b *builder) build(number uint32, s *slot) *nats.Msg {
	b.text = appendToken(append(b.text[:0], b.inbox...), number, s.gen)
	reply := len(b.text)
	b.text = append(b.text, s.id...)
	both := string(b.text) // one allocation for both
	b.msg.Reply, b.id[0] = both[:reply], both[reply:]
	b.msg.Subject, b.msg.Data = s.subject, s.payload
	if len(b.msg.Header) > 2 {
		for name := range b.msg.Header {
			if name != headerID && name != headerStream {
				delete(b.msg.Header, name)
			}
		}
	}
	envelope.EachHeader(s.headers, func(name, value []byte) {
		b.msg.Header[string(name)] = append(b.msg.Header[string(name)], string(value))
	})
	return &b.msg
}
