package publisher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"edge/envelope"
)

// call is one Write or Deliver at work.
type call struct {
	results chan Result // room for everything that it has in flight
	waits   bool        // it wants to hear of room in the window through Publisher.free
}

// Batch is what became of a Write as a whole.
type Batch struct {
	ID string // see BatchID

	Accepted, Duplicates, Retryable, Unknown, Permanent, Fatal int // Duplicates are among the Accepted
}

// BatchID names a batch in logs and ledgers: 32 hex digits made from the stream and the messages' ids in order, so the
// same batch has the same name in every process and at every retry.
func BatchID(stream string, msgs []envelope.Message) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s", len(stream), stream)
	var b []byte
	for i := range msgs {
		b = envelope.AppendMsgID(append(b[:0], '\n'), msgs[i].ID, msgs[i].Copy)
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Deliver publishes one message and returns its Result, with Tag 0. RequestTimeout, or the deadline of ctx if that is
// sooner, bounds everything: the wait for the stream to be looked up, the publication and its acknowledgement. A full
// window is answered at once: Retryable with ErrFull, and nothing was sent. When ctx ends, what was not sent yet is
// Retryable and never will be; what may have been sent is Unknown, and may be stored later than Deliver returns.
//
// Any number of goroutines may call it.
func (p *Publisher) Deliver(ctx context.Context, m *envelope.Message) Result {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.RequestTimeout)
	defer cancel()
	c := &call{results: make(chan Result, 1)}
	if err := ctx.Err(); err != nil {
		return unsent(0, err)
	}
	for {
		turn, gone := p.look()
		err := p.send(m, 0, c)
		if err == nil {
			break
		}
		if errors.Is(err, ErrFull) {
			return unsent(0, err)
		}
		if gone != nil {
			return unsent(0, gone)
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return unsent(0, fmt.Errorf("%w: %w", ErrNotReady, ctx.Err()))
		}
	}
	select {
	case r := <-c.results:
		return r
	case <-ctx.Done():
	}
	var r [1]Result
	p.withdraw(c, ctx.Err(), r[:])
	select {
	case r := <-c.results:
		return r
	default:
		return r[0]
	}
}

// Write publishes a batch and returns when every message has its outcome: out[i] is that of msgs[i], with Tag i. out
// is at least as long as msgs. Messages go out in order, at most MaxInFlight unanswered; none has a second attempt, so what
// is not accepted is the caller's to send again, with the same ids.
//
// While the publisher is not ready Write waits for it. When ctx ends it returns at once with ctx's error: messages
// that may have been sent are unknown then and can still be stored, those that were not sent are retryable and never
// will be. It ends the same way with the *FatalError when the publisher fails, and what was not sent is fatal then; and
// with an *EndedError when Run ends. A subject that the server denies to us is no error of Write but the outcome of its
// messages, Fatal with a *DeniedError: the others are not harmed. Write may be called from several goroutines and beside Send; one works at a time.
func (p *Publisher) Write(ctx context.Context, msgs []envelope.Message, out []Result) (Batch, error) {
	if len(out) < len(msgs) {
		return Batch{}, fmt.Errorf("write batch: room for %d results is given for %d messages", len(out), len(msgs))
	}
	out = out[:len(msgs)]
	clear(out)
	err := p.write(ctx, msgs, out)
	b := Batch{ID: BatchID(p.cfg.Stream, msgs)}
	for i := range out {
		b.add(&out[i])
	}
	return b, err
}

func (b *Batch) add(r *Result) {
	switch r.Outcome {
	case Accepted:
		b.Accepted++
		if r.Duplicate {
			b.Duplicates++
		}
	case Retryable:
		b.Retryable++
	case Unknown:
		b.Unknown++
	case Permanent:
		b.Permanent++
	case Fatal:
		b.Fatal++
	}
}

func (p *Publisher) write(ctx context.Context, msgs []envelope.Message, out []Result) error {
	if err := ctx.Err(); err != nil {
		leave(out, 0, err)
		return err
	}
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		leave(out, 0, ctx.Err())
		return ctx.Err()
	}
	defer func() { <-p.writing }()
	c := &call{results: make(chan Result, cap(p.results)), waits: true}
	sent, done := 0, 0
	for done < len(msgs) {
		turn, gone := p.look()
		err := p.fill(c, msgs, &sent, done)
		if errors.Is(err, ErrNotReady) && gone != nil && sent == done {
			leave(out, sent, gone)
			return gone
		}
		select {
		case r := <-c.results:
			out[r.Tag] = r
			done++
		case <-p.free:
		case <-turn:
		case <-ctx.Done():
			p.withdraw(c, ctx.Err(), out)
			c.drain(out)
			leave(out, sent, ctx.Err())
			return ctx.Err()
		}
	}
	return nil
}

// fill sends what there is room for, and returns why not all of it.
func (p *Publisher) fill(c *call, msgs []envelope.Message, sent *int, done int) error {
	for *sent < len(msgs) && *sent-done < cap(c.results) {
		if err := p.send(&msgs[*sent], uint64(*sent), c); err != nil {
			return err
		}
		*sent++
	}
	return nil
}

// look returns what is closed when the state changes next, and why the publisher takes nothing until somebody mends
// it, or for ever.
func (p *Publisher) look() (turn <-chan struct{}, gone error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		gone = &EndedError{}
	case p.fatal != nil:
		gone = p.fatal
	}
	return p.turn, gone
}

// withdraw takes back what c has admitted and what was not sent yet, and puts into out what is known of the rest: it may
// have been stored, and nobody waits for its answer.
func (p *Publisher) withdraw(c *call, cause error, out []Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.window.first; i >= 0; {
		s := &p.window.slots[i]
		next := s.next
		switch {
		case s.call != c:
		case s.state == slotQueued:
			p.finishLocked(i, classify(p.want.Load(), evidence{err: &EndedError{Err: cause}}))
		default:
			out[s.tag] = Result{Tag: s.tag, Outcome: Unknown, SentAt: s.sent, Err: &EndedError{Written: true, Err: cause}}
		}
		i = next
	}
}

// unsent is the result of a message that was not sent because of cause.
func unsent(tag uint64, cause error) Result {
	if fatal := (*FatalError)(nil); errors.As(cause, &fatal) {
		return Result{Tag: tag, Outcome: Fatal, Err: fatal}
	}
	return Result{Tag: tag, Outcome: Retryable, Err: &SendError{Err: cause}}
}

// drain takes the results that are there.
func (c *call) drain(out []Result) {
	for {
		select {
		case r := <-c.results:
			out[r.Tag] = r
		default:
			return
		}
	}
}

// leave gives every message without a result one: unknown to the first sent ones, for the rest it was not sent.
func leave(out []Result, sent int, cause error) {
	for i := range out {
		switch {
		case out[i].Outcome != 0:
		case i < sent:
			out[i] = Result{Tag: uint64(i), Outcome: Unknown, Err: &EndedError{Written: true, Err: cause}}
		default:
			out[i] = unsent(uint64(i), cause)
		}
	}
}
