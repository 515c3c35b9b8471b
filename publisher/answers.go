package publisher

import (
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// answer takes one acknowledgement. The library calls it from one goroutine for each connection.
func (p *Publisher) answer(m *nats.Msg) {
	number, gen, ok := parseToken(m.Subject[len(p.inbox):])
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
		doubt := contradicts(&r)
		if r.Outcome == Accepted {
			s.answered = gen
			// First copies of one connection are stored in order: a sequence that falls back is another stream's.
			if !r.Duplicate && p.session != nil && s.session == p.session.number {
				doubt = r.Sequence <= p.newest
				p.newest = r.Sequence
			}
		}
		p.silent = 0
		if doubt {
			notify(p.doubt)
		} else if p.cause != "" && r.Outcome == Accepted {
			p.suspectLocked("")
		}
		p.finishLocked(i, r)
	case extra && r.Outcome == Accepted:
		p.count.ExtraAcks++
	default:
		p.count.LateAcks++
	}
}

// trouble takes what the server announces on the connection. The library calls it from one goroutine, in the order of
// the announcements.
func (p *Publisher) trouble(s *session, err error) {
	if strings.Contains(strings.ToLower(err.Error()), "maximum control line exceeded") {
		s.fail(&FatalError{Code: CodeControlLine, Field: "url", Detail: "publish", Err: err,
			Fix: "raise max_control_line of the server, whose default is 4096: a subject with its reply subject takes up to 400 bytes"})
	}
	if !errors.Is(err, nats.ErrPermissionViolation) {
		s.mu.Lock()
		if s.whyDead == nil {
			s.whyDead = err
		}
		s.mu.Unlock()
		p.cfg.Logger.Debug("connection trouble", "stream", p.cfg.Stream, "cause", err)
		return
	}
	text := strings.TrimPrefix(err.Error(), nats.ErrPermissionViolation.Error()+": ")
	v := parseViolation(text)
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

// denied ends the oldest pending message with this subject. The server works through a connection in order and
// announces each refusal once, so the oldest is the refused one.
func (p *Publisher) denied(s *session, subject, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.window.oldest(s.number, subject); i >= 0 {
		p.finishLocked(i, classify(p.want.Load(), evidence{err: &DeniedError{Subject: subject, Text: text}, written: true}))
	}
}

// deniedReply ends the message whose reply subject was refused.
func (p *Publisher) deniedReply(reply, text string) {
	token, ours := strings.CutPrefix(reply, p.inbox)
	number, gen, ok := parseToken(token)
	if !ours || !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, _ := p.window.find(number, gen); i >= 0 {
		s := &p.window.slots[i]
		p.finishLocked(i, classify(p.want.Load(), evidence{err: &DeniedError{Subject: s.subject, Text: text}, written: s.state != slotQueued}))
	}
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
