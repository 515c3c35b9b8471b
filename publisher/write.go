package publisher

import (
	"context"
	"errors"
	"fmt"

	"edge/envelope"
)

// call is one Write at work.
type call struct {
	results chan Result // as many places as the window has
}

// Write publishes a batch and returns when every message has its outcome: out[i] is that of msgs[i], with Tag i. out
// is at least as long as msgs. Messages go out in order, at most MaxInFlight unanswered; none is sent twice, so what
// is not accepted is the caller's to send again, with the same ids.
//
// While the publisher is not ready Write waits for it. When ctx ends it returns at once with ctx's error: messages
// whose answers are outstanding are unknown then, those that were not sent are retryable. It ends the same way with
// the *FatalError when Run fails, and with an *EndedError when Run ends. Write may be called from several goroutines
// and beside Send; one works at a time.
func (p *Publisher) Write(ctx context.Context, msgs []envelope.Message, out []Result) error {
	if len(out) < len(msgs) {
		return fmt.Errorf("write batch: room for %d results is given for %d messages", len(out), len(msgs))
	}
	out = out[:len(msgs)]
	clear(out)
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		leave(out, 0, ctx.Err())
		return ctx.Err()
	}
	defer func() { <-p.writing }()
	c := &call{results: make(chan Result, cap(p.results))}
	sent, done := 0, 0
	for done < len(msgs) {
		err := p.fill(c, msgs, &sent, done)
		if err != nil {
			// Those on their way have their results in the channel, or will never be heard of again.
			done += c.drain(out)
			leave(out, sent, err)
			return err
		}
		select {
		case r := <-c.results:
			out[r.Tag] = r
			done++
		case <-p.free:
		case <-ctx.Done():
			done += c.drain(out)
			leave(out, sent, ctx.Err())
			return ctx.Err()
		}
	}
	return nil
}

// fill sends what there is room for. It fails only if nothing can be sent any more.
func (p *Publisher) fill(c *call, msgs []envelope.Message, sent *int, done int) error {
	for *sent < len(msgs) && *sent-done < cap(c.results) {
		err := p.send(&msgs[*sent], uint64(*sent), c)
		switch {
		case err == nil:
			*sent++
		case errors.Is(err, ErrNotReady):
			return p.gone(*sent - done)
		default:
			return nil // full: an answer or p.free will tell
		}
	}
	return nil
}

// gone tells whether the publisher will never be ready again. What is on its way is waited for first.
func (p *Publisher) gone(outstanding int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case outstanding > 0:
		return nil
	case p.failed != nil:
		return p.failed
	case p.ended:
		return &EndedError{}
	}
	return nil
}

// drain takes the results that are there.
func (c *call) drain(out []Result) int {
	for n := 0; ; n++ {
		select {
		case r := <-c.results:
			out[r.Tag] = r
		default:
			return n
		}
	}
}

// leave gives every message without a result one: unknown to the first sent ones, retryable to the rest.
func leave(out []Result, sent int, cause error) {
	for i := range out {
		if out[i].Outcome != 0 {
			continue
		}
		out[i] = Result{Tag: uint64(i), Outcome: Retryable, Err: &SendError{Err: cause}}
		if i < sent {
			out[i] = Result{Tag: uint64(i), Outcome: Unknown, Err: &SendError{Written: true, Err: cause}}
		}
	}
}
