package flow

import (
	"errors"
	"fmt"
	"time"

	"edge/publisher"
)

// send hands over what the gate and the publisher take: retries first, then fresh messages in order. It tells
// whether anything was sent and, if the gate is shut, when it opens.
func (l *Lane) send() (sent bool, wake time.Duration, err error) {
	if !l.ready {
		return false, 0, nil
	}
	now := l.now()
	for l.gate.room(now, l.flight) > 0 {
		b, u, tag := l.nextUnit()
		if u == nil {
			break
		}
		err := l.cfg.Publisher.Send(&b.rendered.Messages[u.message], tag)
		if err != nil {
			if !errors.Is(err, publisher.ErrFull) && !errors.Is(err, publisher.ErrNotReady) {
				return sent, 0, fmt.Errorf("send message of sink %s: %w", l.cfg.Sink, err)
			}
			l.ready = errors.Is(err, publisher.ErrFull)
			return sent, 0, nil
		}
		l.sentUnit(b, u, now)
		sent = true
	}
	if wait := l.gate.until - now; wait > 0 {
		return sent, time.Duration(wait), nil
	}
	return sent, 0, nil
}

// nextUnit is the next message to send: the oldest retry, else the oldest fresh one.
func (l *Lane) nextUnit() (*block, *unit, uint64) {
	if len(l.resend) > 0 {
		b, u := l.unit(l.resend[0])
		return b, u, l.resend[0]
	}
	for k, b := range l.blocks {
		if b.next < len(b.units) {
			return b, &b.units[b.next], tagOf(l.first+uint64(k), b.next)
		}
	}
	return nil, nil, 0
}

// sentUnit notes that u, which nextUnit returned, is with the publisher.
func (l *Lane) sentUnit(b *block, u *unit, now int64) {
	if len(l.resend) > 0 {
		l.resend = l.resend[1:]
		l.cfg.Counts.Retries.Add(1)
		if u.unknown && l.window > 0 && time.Duration(now-u.first) > l.window {
			l.cfg.Counts.PastWindow.Add(1)
		}
	} else {
		b.next++
	}
	u.attempts++
	u.sent = now
	l.flight++
	l.cfg.Counts.InFlight.Store(int64(l.flight))
}

func (l *Lane) unit(tag uint64) (*block, *unit) {
	serial, i := splitTag(tag)
	if serial < l.first || serial-l.first >= uint64(len(l.blocks)) {
		panic(fmt.Sprintf("BUG: result for block %d, lane holds %d to %d", serial, l.first, l.first+uint64(len(l.blocks))))
	}
	b := l.blocks[serial-l.first]
	return b, &b.units[i]
}
