package publisher

import (
	"context"
	"errors"
	"testing"
	"time"

	"edge/envelope"
	"edge/publisher/natstest"
)

// TestWrite publishes batches over the window's size, also two at once and with messages that will not do.
func TestWrite(t *testing.T) { inModes(t, testWrite) }

func testWrite(t *testing.T, mode Mode) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.MaxInFlight = 16 })
	write := func(from, n int) []Result {
		msgs, out := make([]envelope.Message, n), make([]Result, n+1)
		for i := range msgs {
			msgs[i] = *message(from+i, "e.w")
		}
		msgs[3].Subject = []byte("other")
		if _, err := r.p.Write(t.Context(), msgs, out); err != nil {
			t.Errorf("write: %v", err)
		}
		return out[:n]
	}
	both := make(chan []Result, 2)
	go func() { both <- write(0, 500) }() // before it is ready
	go func() { both <- write(1000, 300) }()
	for range 2 {
		for i, x := range <-both {
			want := Accepted
			if i == 3 {
				want = Permanent
			}
			if x.Outcome != want || x.Tag != uint64(i) || x.Duplicate {
				t.Fatalf("%d: %+v", i, x)
			}
		}
	}
	for i, x := range write(0, 20) {
		if i != 3 && !x.Duplicate {
			t.Fatalf("%d again: %+v", i, x)
		}
	}
	if len(r.p.Results()) != 0 {
		t.Error("results of Write are in Results")
	}
	if _, err := r.p.Write(t.Context(), make([]envelope.Message, 2), make([]Result, 1)); err == nil {
		t.Error("there is no room for results")
	}
	if _, err := r.p.Write(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}

// TestWriteCutShort ends a Write by its context, by Run's end and by failure.
func TestWriteCutShort(t *testing.T) { inModes(t, testWriteCutShort) }

func testWriteCutShort(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	f := func(cut func(r *rig, cancel context.CancelFunc), isRight func(err error) bool) {
		t.Helper()
		r := run(t, srv, func(c *Config) { c.Mode = mode; c.MaxInFlight = 4 })
		r.ready()
		srv.Pause()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		msgs, out := make([]envelope.Message, 10), make([]Result, 10)
		for i := range msgs {
			msgs[i] = *message(i, "e.c")
		}
		ended := make(chan error, 1)
		go func() {
			_, err := r.p.Write(ctx, msgs, out)
			ended <- err
		}()
		r.until("a full window", func(s Status) bool { return s.Pending == 4 })
		cut(r, cancel)
		select {
		case err := <-ended:
			if !isRight(err) {
				t.Errorf("write: %v", err)
			}
		case <-time.After(patience):
			t.Fatalf("write does not end\n%s", stacks())
		}
		for i, x := range out {
			// The first four may have been written; the rest was never admitted.
			if x.Tag != uint64(i) || x.Err == nil || x.Outcome != Retryable && (x.Outcome != Unknown || i >= 4) {
				t.Errorf("%d: %+v", i, x)
			}
		}
		srv.Resume()
		r.end()
	}
	f(func(r *rig, cancel context.CancelFunc) { cancel() }, func(err error) bool { return errors.Is(err, context.Canceled) })
	f(func(r *rig, _ context.CancelFunc) { r.stop() }, func(err error) bool {
		var ee *EndedError
		return errors.As(err, &ee)
	})

	r := run(t, srv, func(c *Config) { c.Mode = mode; c.Token = "wrong" })
	out := make([]Result, 1)
	_, err := r.p.Write(t.Context(), []envelope.Message{*message(1, "e.1")}, out)
	var fe *FatalError
	if !errors.As(err, &fe) || out[0].Outcome != Fatal {
		t.Errorf("write: %v, %+v", err, out)
	}
	r.fatal(CodeCredentials)
}
