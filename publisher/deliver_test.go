package publisher

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"edge/envelope"
	"edge/publisher/natstest"
)

// TestDeliver publishes one message at a time, from many goroutines, and also before the stream is bound.
func TestDeliver(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	r := run(t, srv, nil)
	if x := r.p.Deliver(t.Context(), message(0, "e.1")); x.Outcome != Accepted || x.Sequence != 1 || x.SentAt == 0 {
		t.Fatalf("before it was bound: %+v", x)
	}
	const each = 50
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for n := range each {
				if x := r.p.Deliver(t.Context(), message(1+g*each+n, "e.1")); x.Outcome != Accepted || x.Duplicate {
					t.Errorf("%+v", x)
				}
			}
		})
	}
	all.Wait()
	if x := r.p.Deliver(t.Context(), message(7, "e.1")); x.Outcome != Accepted || !x.Duplicate {
		t.Errorf("again: %+v", x)
	}
	if x := r.p.Deliver(t.Context(), message(1, "a..b")); x.Outcome != Permanent {
		t.Errorf("a bad subject: %+v", x)
	}
	if s := r.p.Status(); s.Counters.Accepted != 8*each+2 || s.Pending != 0 || len(r.p.Results()) != 0 {
		t.Errorf("%+v", s)
	}
	r.end()
	if x := r.p.Deliver(t.Context(), message(1, "e.1")); x.Outcome != Retryable || !errors.As(x.Err, new(*EndedError)) {
		t.Errorf("after the end: %+v", x)
	}
}

// TestDeliverOverload fills the window: the next message is answered at once, and nothing of it was sent.
func TestDeliverOverload(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, func(c *Config) { c.MaxInFlight = 2 })
	r.ready()
	srv.Pause()
	ended := make(chan Result, 2)
	for n := range 2 {
		go func() { ended <- r.p.Deliver(t.Context(), message(n, "e.1")) }()
	}
	r.until("a full window", func(s Status) bool { return s.Pending == 2 })
	x := r.p.Deliver(t.Context(), message(2, "e.1")) // the server is paused: only an answer at once can end this in time
	if x.Outcome != Retryable || !errors.Is(x.Err, ErrFull) || x.SentAt != 0 {
		t.Fatalf("overload: %+v", x)
	}
	if s := r.p.Status(); s.Pending != 2 {
		t.Fatalf("%+v", s)
	}
	srv.Resume()
	for range 2 {
		if x := <-ended; x.Outcome != Accepted {
			t.Errorf("%+v", x)
		}
	}
	if ids := stored(t, srv.JetStream(t), "EDGE"); len(ids) != 2 {
		t.Errorf("stored: %v", ids)
	}
	if x := r.p.Deliver(t.Context(), message(2, "e.1")); x.Outcome != Accepted || x.Duplicate {
		t.Errorf("after the overload: %+v", x)
	}
}

// TestDeliverDeadline: one deadline bounds look-up, publication and acknowledgement, and what was sent is unknown.
func TestDeliverDeadline(t *testing.T) {
	srv := natstest.Start(t)
	short := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 100*time.Millisecond)
	}

	srv.Pause() // the connection's first line does not come
	r := run(t, srv, nil)
	ctx, cancel := short()
	x := r.p.Deliver(ctx, message(1, "e.1"))
	cancel()
	if x.Outcome != Retryable || !errors.Is(x.Err, ErrNotReady) || !errors.Is(x.Err, context.DeadlineExceeded) || x.SentAt != 0 {
		t.Errorf("the look-up: %+v", x)
	}
	srv.Resume()
	r.ready()

	srv.Pause()
	ctx, cancel = short()
	x = r.p.Deliver(ctx, message(1, "e.1"))
	cancel()
	if x.Outcome != Unknown || !errors.Is(x.Err, context.DeadlineExceeded) || x.SentAt == 0 {
		t.Errorf("the acknowledgement: %+v", x)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if x := r.p.Deliver(ctx, message(2, "e.1")); x.Outcome == Accepted || x.Outcome == Permanent {
		t.Errorf("canceled: %+v", x)
	}
	srv.Resume()
	if x := r.p.Deliver(t.Context(), message(1, "e.1")); x.Outcome != Accepted || !x.Duplicate {
		t.Errorf("it was stored after its deadline, and its retry is a duplicate: %+v", x)
	}
	if ids := stored(t, srv.JetStream(t), "EDGE"); ids[string(envelope.AppendMsgID(nil, message(1, "").ID, 0))] != 1 {
		t.Errorf("stored: %v", ids)
	}

	bad := run(t, srv, func(c *Config) { c.Token = "wrong" })
	bad.fatal(CodeCredentials)
	x = bad.p.Deliver(t.Context(), message(3, "e.1"))
	var fe *FatalError
	if x.Outcome != Fatal || !errors.As(x.Err, &fe) || fe.Code != CodeCredentials {
		t.Errorf("credentials: %+v", x)
	}
}

// TestWriteWithdrawn cancels a Write whose messages wait behind others that were sent: those that were not are surely
// not stored, and never will be.
func TestWriteWithdrawn(t *testing.T) {
	p, err := New(Config{URL: "nats://127.0.0.1:4222", Stream: "EDGE", MaxInFlight: 8})
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.setLocked(Ready, "")
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	msgs, out := make([]envelope.Message, 6), make([]Result, 6)
	for i := range msgs {
		msgs[i] = *message(i, "e.1")
	}
	ended := make(chan error, 1)
	var b Batch
	go func() {
		var err error
		b, err = p.Write(ctx, msgs, out)
		ended <- err
	}()
	for p.Status().Pending < 6 {
		time.Sleep(time.Millisecond)
	}
	p.mu.Lock()
	p.window.take(1, 1) // the sender has two of them
	p.window.take(1, 1)
	p.mu.Unlock()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if b.Unknown != 2 || b.Retryable != 4 || b.ID == "" || b.ID != BatchID("EDGE", msgs) || b.ID == BatchID("EDGE", msgs[1:]) || b.ID == BatchID("OTHER", msgs) {
		t.Errorf("%+v", b)
	}
	for i, x := range out {
		if want := map[bool]Outcome{true: Unknown, false: Retryable}[i < 2]; x.Outcome != want || x.Tag != uint64(i) || (x.SentAt != 0) != (i < 2) {
			t.Errorf("%d: %+v", i, x)
		}
	}
	if s := p.Status(); s.Pending != 2 {
		t.Errorf("%+v", s)
	}
}
