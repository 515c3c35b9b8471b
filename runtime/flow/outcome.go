package flow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"edge/envelope"
	"edge/publisher"
	"edge/runtime/quarantine"
)

// UnlistedRefusals is how many refusals in a row by a number of a newer server make a message permanent. One may pass;
// after three it would only hold up the rest.
const UnlistedRefusals = 3

// next is what a lane does with a message after an answer.
type next uint8

const (
	done    next = iota // acknowledged
	again               // same id, after the gate opens
	refuse              // quarantine
	suspend             // nothing can be stored until somebody mends it: the message stays open
)

// decide is the whole policy after an answer, without clock, state or wire. o is as judged, see Lane.judge; unlisted is
// how many refusals by a number that nobody knows the message has had in a row, this one included.
func decide(o publisher.Outcome, unknown bool, refusals, unlisted int32) next {
	if o == publisher.Retryable && unlisted >= UnlistedRefusals {
		o = publisher.Permanent
	}
	switch o {
	case publisher.Accepted:
		return done
	case publisher.Retryable, publisher.Unknown:
		return again
	case publisher.Permanent:
		if unknown && refusals < UnknownRefusals {
			return again // proves nothing about the copy that may be stored
		}
		return refuse
	case publisher.Fatal:
		return suspend
	}
	panic(fmt.Sprintf("BUG: no outcome: %d", o))
}

// judge is the outcome of r for this sink: what the server denies is fatal, or permanent where the operator wants its
// event in quarantine.
func (l *Lane) judge(r *publisher.Result) publisher.Outcome {
	var denied *publisher.DeniedError
	if r.Outcome == publisher.Fatal && l.cfg.Denied == DeniedWaits && errors.As(r.Err, &denied) {
		return publisher.Permanent
	}
	return r.Outcome
}

// result applies one answer to the message that it belongs to.
func (l *Lane) result(r publisher.Result) {
	b, u := l.unit(r.Tag)
	l.flight--
	c := l.cfg.Counts
	c.InFlight.Store(int64(l.flight))
	o := l.judge(&r)
	if o == publisher.Unknown {
		c.Unknown.Add(1)
		if !u.unknown {
			u.unknown, u.first = true, u.sent
		}
	}
	strange := o == publisher.Retryable && unlisted(r.Err)
	if strange {
		u.unlisted++
	} else {
		u.unlisted = 0
	}
	if u.unknown && (strange || o == publisher.Permanent) {
		u.refusals++
	}
	switch decide(o, u.unknown, u.refusals, u.unlisted) {
	case done:
		l.mended(u.sent)
		l.gate.accepted(u.sent)
		if l.gate.rounds == 0 && c.Paused.Load() != nil {
			c.Paused.Store(nil)
		}
		c.Messages.Add(1)
		if r.Duplicate {
			c.Duplicates.Add(1)
		}
		if u.unknown {
			c.UnknownResolved.Add(1)
		}
		if r.Sequence > c.LastSequence.Load() {
			c.LastSequence.Store(r.Sequence)
		}
		l.finish(b, int(u.event))
	case again:
		if l.gate.refused(u.sent, l.now(), l.cfg.Dice()) {
			text := errorText(r.Err)
			c.Paused.Store(&text)
			l.cfg.Logger.Warn("sink pauses", "sink", l.cfg.Sink, "outcome", r.Outcome.String(), "cause", r.Err,
				"pause", time.Duration(l.gate.until-l.now()).Round(time.Millisecond), "window", l.gate.window)
		}
		l.sendAgain(r.Tag)
	case refuse:
		l.mended(u.sent)
		reason, detail := refusal(r.Err), errorText(r.Err)
		if u.unknown {
			reason, detail = "unresolved", "an earlier attempt was never answered, so it may have been stored: "+detail
		}
		l.refuseMessage(b, u, reason, detail)
	case suspend:
		l.suspend(&r, u)
	}
}

// sendAgain puts a message among those to be sent again, in their order.
func (l *Lane) sendAgain(tag uint64) {
	at, _ := slices.BinarySearch(l.resend, tag)
	l.resend = slices.Insert(l.resend, at, tag)
}

// suspend takes a fatal answer to u: the lane ends, or pauses and tries again. What the probes meet is logged when it
// is not what they met before.
func (l *Lane) suspend(r *publisher.Result, u *unit) {
	if l.cfg.Once {
		if l.halt == nil {
			l.halt = r.Err
		}
		return
	}
	l.sendAgain(r.Tag)
	first := l.gate.refused(u.sent, l.now(), l.cfg.Dice())
	text := errorText(r.Err)
	if text == l.failing || !first && l.failing != "" {
		return
	}
	l.failing = text
	l.cfg.Counts.Failing.Store(&text)
	l.cfg.Logger.Error("sink failed: it keeps its events, and tries one now and then until this is mended", "sink", l.cfg.Sink, "cause", r.Err)
}

// mended notes that a message sent at sent was judged by itself: what was fatal is no more, unless it was sent before
// that was told.
func (l *Lane) mended(sent int64) {
	if l.failing == "" || sent < l.gate.until {
		return
	}
	l.failing = ""
	l.cfg.Counts.Failing.Store(nil)
	l.gate.restored()
	l.cfg.Logger.Info("sink goes on", "sink", l.cfg.Sink)
}

// finish closes one message of an event; the last one decides the event.
func (l *Lane) finish(b *block, event int) {
	if b.open[event] <= 0 {
		panic(fmt.Sprintf("BUG: event %d has more outcomes than messages", uint64(b.raw.First)+uint64(event)))
	}
	b.open[event]--
	if b.open[event] > 0 {
		return
	}
	if b.state[event] == eventRefused {
		l.condemnLater(b, event, b.release(event))
		return
	}
	l.settleEvent(b, event)
	l.cfg.Counts.Accepted.Add(1)
}

// refuseMessage sends the event of u to quarantine, with the rendered form that was refused. An event with
// several refused messages gets one entry: the first tells why.
func (l *Lane) refuseMessage(b *block, u *unit, reason, detail string) {
	i := int(u.event)
	if b.state[i] == eventOpen {
		m := &b.rendered.Messages[u.message]
		e := l.entry(&b.events[i], b.raw.Records[i], reason, detail)
		e.Attempts = int(u.attempts)
		e.Subject, e.Headers, e.Payload = string(m.Subject), m.Headers, m.Payload
		b.held = append(b.held, held{i, e})
		b.state[i] = eventRefused
	}
	l.finish(b, i)
}

// condemnLater queues an entry; the event is settled when the entry is durable.
func (l *Lane) condemnLater(b *block, event int, e quarantine.Entry) {
	b.state[event] = eventCondemned
	l.entries = append(l.entries, e)
	l.marks = append(l.marks, mark{b, event})
}

// reject sends an event that was never rendered to quarantine.
func (l *Lane) reject(b *block, i int, e envelope.Event, reason, detail string) {
	l.condemnLater(b, i, l.entry(&e, b.raw.Records[i], reason, detail))
}

// condemn makes the pending quarantine entries durable, and only then settles their events. When the quarantine is
// full it settles those that are in it.
func (l *Lane) condemn() error {
	if len(l.entries) == 0 {
		return nil
	}
	stored := len(l.entries)
	_, err := l.cfg.Quarantine.Put(l.entries)
	if err != nil {
		stored = 0
		var full *quarantine.FullError
		if errors.As(err, &full) {
			stored = full.Stored
		}
		err = fmt.Errorf("quarantine events of sink %s: %w", l.cfg.Sink, err)
	}
	for i := range stored {
		l.tell(&l.entries[i])
		l.settleEvent(l.marks[i].block, l.marks[i].event)
		l.cfg.Counts.Quarantined.Add(1)
	}
	if err != nil {
		return err // the rest is still open: it stays in the spool
	}
	clear(l.entries)
	l.entries, l.marks = l.entries[:0], l.marks[:0]
	return nil
}

// tell logs the first quarantined event of each reason, and after that only every power of ten: a module that refuses
// everything must not fill the disk with its log.
func (l *Lane) tell(e *quarantine.Entry) {
	l.told[e.Reason]++
	n := l.told[e.Reason]
	for ten := 1; ten <= n; ten *= 10 {
		if n == ten {
			l.cfg.Logger.Warn("event quarantined; further ones of this reason are logged at 10, 100, 1000 and so on", "sink", l.cfg.Sink,
				"count", n, "id", e.ID.String(), "source", e.Source, "reason", e.Reason, "detail", e.Detail)
		}
	}
}

func (l *Lane) entry(e *envelope.Event, record []byte, reason, detail string) quarantine.Entry {
	q := quarantine.Entry{
		Time: time.Now(), Sink: l.cfg.Sink, ID: e.ID,
		Input: string(e.Input), Source: string(e.Source), Dataset: string(e.Dataset),
		IngestTime: e.IngestTime, EventTime: e.EventTime, Quality: e.Quality, Kind: e.Kind,
		Reason: reason, Detail: detail, Module: l.cfg.Module,
		Raw: e.Body, Event: record,
	}
	for _, v := range e.Identity {
		q.Identity = append(q.Identity, quarantine.Level{Name: string(v.Name), Value: string(v.Value)})
	}
	return q
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// unlisted tells whether the server refused by a number that nobody here knows.
func unlisted(err error) bool {
	var refused *publisher.AckError
	return errors.As(err, &refused) && refused.Unlisted
}

// refusal is the stable code of a permanent answer, for quarantine and counters.
func refusal(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return "refused"
}
