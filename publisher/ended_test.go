package publisher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"edge/envelope"
	"edge/publisher/natstest"
)

// TestDeliverHearsOfTheEnd waits for a stream when Run ends, in a state that the end does not change.
func TestDeliverHearsOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{URL: "nats://127.0.0.1:1", Stream: "EDGE"})
		if err != nil {
			t.Fatal(err)
		}
		p.detach(nil)
		result := make(chan Result, 1)
		go func() { result <- p.Deliver(t.Context(), message(1, "e.1")) }()
		synctest.Wait()
		p.abandon()
		if r := <-result; r.Outcome != Retryable || !errors.As(r.Err, new(*EndedError)) {
			t.Errorf("%+v", r)
		}
	})
}

// TestEndedContext sends nothing for a context that has ended before.
func TestEndedContext(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, nil)
	r.ready()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	msgs, out := make([]envelope.Message, 100), make([]Result, 100)
	for i := range msgs {
		msgs[i] = *message(i, "e.1")
		if x := r.p.Deliver(ctx, &msgs[i]); x.Outcome != Retryable {
			t.Errorf("deliver: %+v", x)
		}
	}
	for range 10 {
		if b, err := r.p.Write(ctx, msgs, out); b.Retryable != len(msgs) || !errors.Is(err, context.Canceled) {
			t.Errorf("write: %+v, %v", b, err)
		}
	}
}
