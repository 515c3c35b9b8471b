package publisher

import (
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// answer takes one acknowledgement. The library calls it from one goroutine for each connection.
func (p *Publisher) answer(m *nats.Msg) {
	token, ours := strings.CutPrefix(m.Subject, p.inbox)
	if !ours {
		return // a server that delivers what we have not asked for
	}
	if burst, seq, ok := parseBatchReply(p.random, token); ok {
		p.answerBurst(burst, seq, m)
		return
	}
	number, gen, ok := parseToken(token)
	if !ok {
		return // somebody else publishes into our inbox; no attempt of ours can be meant
	}
	w := p.want.Load()
	a := parseAnswer(w, m.Header, m.Data)

	p.mu.Lock()
	defer p.mu.Unlock()
	i, extra := p.window.find(number, gen)
	e := evidence{ack: a, written: true}
	if i >= 0 {
		s := &p.window.slots[i]
		e.written, e.own = s.state != slotQueued, len(s.headers) > 0
	}
	r := classify(w, e)
	switch {
	case i >= 0:
		s := &p.window.slots[i]
		p.silent = 0
		if contradicts(&r) {
			notify(p.doubt)
		}
		if r.Outcome == Accepted {
			s.answered = gen
			if r.Duplicate {
				p.trustLocked(0, 0, 0)
			} else {
				p.trustLocked(r.Sequence, r.Sequence, s.session)
			}
		}
		p.finishLocked(i, r)
		p.settleDenialsLocked()
		p.nextLocked()
	case extra && r.Outcome == Accepted:
		p.count.ExtraAcks++
	default:
		p.count.LateAcks++
		p.silent = 0 // late, but the stream does answer
	}
}

// trustLocked takes an acknowledgement of first copies that were stored from sequence first to last and written on this
// session; 0 for a duplicate. First copies of one connection are stored in order: a sequence that falls back is another
// stream's.
func (p *Publisher) trustLocked(first, last uint64, session uint32) {
	if p.session != nil && session == p.session.number {
		back := first <= p.newest
		p.newest = last
		if back {
			notify(p.doubt)
			return
		}
	}
	p.suspectLocked("")
}

// nextLocked tells the sender that there is one answer less to wait for.
func (p *Publisher) nextLocked() {
	if p.unsent >= 0 && p.profile.Mode != ModeSingle {
		notify(p.wake)
	}
}

// trouble takes what the server announces on the connection. The library calls it from one goroutine, in the order of
// the announcements.
func (p *Publisher) trouble(s *session, err error) {
	if strings.Contains(strings.ToLower(err.Error()), "maximum control line exceeded") {
		s.fail(&FatalError{Code: CodeControlLine, Field: "url", Detail: "publish", Err: err,
			Fix: "raise max_control_line of the server, whose default is 4096: a subject with its reply subject takes up to 400 bytes"})
	}
	if errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
		s.fail(&FatalError{Code: CodeInbox, Field: "url", Detail: "listen for acknowledgements", Err: err,
			Fix: "allow the connection and its account at least two more subscriptions (max_subscriptions)"})
	}
	if !errors.Is(err, nats.ErrPermissionViolation) {
		s.mu.Lock()
		if s.whyDead == nil {
			s.whyDead = err
		}
		s.mu.Unlock()
		p.cfg.Logger.Debug("connection trouble", "stream", p.cfg.Stream, "cause", clippedError{err})
		return
	}
	text := strings.TrimPrefix(err.Error(), nats.ErrPermissionViolation.Error()+": ")
	v := parseViolation(text)
	text = clip(text)
	switch v.kind {
	case violatesPublish:
		if !s.denyRequest(v.subject, text) {
			p.denied(s, v.subject, text)
		}
	case violatesReply:
		p.deniedReply(v.subject, text)
	case violatesSubscribe:
		if strings.HasPrefix(v.subject, p.prefix+".") {
			s.fail(&FatalError{Code: CodeInbox, Field: "url", Detail: "listen for acknowledgements: " + text,
				Fix: "allow the user to subscribe to " + p.prefix + ".>"})
		}
	default:
		p.cfg.Logger.Warn("server announces what we cannot read", "stream", p.cfg.Stream, "text", text)
	}
}

// deniedReply ends the message whose reply subject was refused.
func (p *Publisher) deniedReply(reply, text string) {
	token, ours := strings.CutPrefix(reply, p.inbox)
	if !ours {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := int32(-1)
	if number, seq, ok := parseBatchReply(p.random, token); ok {
		if b := p.live[number]; b != nil && (seq > 0 || b.sealed) && uint64(seq) <= uint64(len(b.members)) {
			if seq == 0 {
				seq = uint32(len(b.members))
			}
			i = b.members[seq-1]
		}
	} else if number, gen, ok := parseToken(token); ok {
		i, _ = p.window.find(number, gen)
	}
	if i >= 0 && p.slots[i].state != slotQueued {
		p.deniedLocked(i, p.slots[i].subject, text)
	}
}

// deniedLocked ends the message in slot i, of which the server has refused a copy. In a burst its absence is a gap that
// the answer to the burst tells of, unless it was the one that asks for an answer.
func (p *Publisher) deniedLocked(i int32, subject, text string) {
	s := &p.slots[i]
	b := p.live[s.burst]
	end := b != nil && b.sealed && int(s.seq) == len(b.members)
	err := &DeniedError{Subject: subject, Text: text}
	p.finishLocked(i, classify(p.want.Load(), evidence{err: err, written: true}))
	if end && b.left > 0 {
		p.breakUpLocked(b, b.mode == ModeFast, &SendError{Written: true, Err: errShort})
	}
	p.nextLocked()
}

// violation is a "Permissions Violation", parsed.
type violation struct {
	kind    violationKind
	subject string
}

type violationKind uint8

const (
	violatesNothing violationKind = iota // not readable
	violatesPublish
	violatesReply
	violatesSubscribe
)

// parseViolation reads the texts of server 2.15, which quotes subjects as Go does:
//
//	Permissions Violation for Publish to "a.b"
//	Permissions Violation for Publish with Reply of "_INBOX.x"
//	Permissions Violation for Subscription to "a.*" (sid "3")
func parseViolation(text string) violation {
	for _, form := range [...]struct {
		words string
		kind  violationKind
	}{
		{"Permissions Violation for Publish to ", violatesPublish},
		{"Permissions Violation for Publish with Reply of ", violatesReply},
		{"Permissions Violation for Subscription to ", violatesSubscribe},
	} {
		rest, ok := strings.CutPrefix(text, form.words)
		if !ok {
			continue
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return violation{}
		}
		subject, err := strconv.Unquote(quoted)
		if err != nil {
			return violation{}
		}
		return violation{form.kind, subject}
	}
	return violation{}
}
