package publisher

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"edge/publisher/natstest"
)

// TestPause lets every deadline pass while the server stands still, and then sends the same ids again: what came late
// is counted and never delivered, the retries are duplicates, and each message is stored once.
func TestPause(t *testing.T) { inModes(t, testPause) }

func testPause(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.RequestTimeout = 2 * time.Second })
	r.ready()
	const n = 10
	srv.Pause()
	for i := range n {
		r.send(message(i, "e.1"), uint64(i))
	}
	for range n {
		x := r.result()
		var te *TimeoutError
		if x.Outcome != Unknown || !errors.As(x.Err, &te) || te.After < 2*time.Second || te.Lost {
			t.Fatalf("%+v", x)
		}
	}
	srv.Resume()
	r.until("late acknowledgements", func(s Status) bool { return s.Counters.LateAcks == n || mode != ModeSingle && s.Counters.LateAcks > 0 })
	for i := range n {
		if x := r.one(message(i, "e.1"), Accepted); !x.Duplicate {
			t.Errorf("%+v", x)
		}
	}
	if ids := stored(t, js, "EDGE"); len(ids) != n {
		t.Errorf("%d are stored", len(ids))
	}
	if s := r.p.Status(); s.Counters.Reconnects != 0 || s.Counters.ExtraAcks != 0 || len(r.p.Results()) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestStalledWrite offers a paused server more than the kernel takes. Send never blocks, so that there is more than was
// ever written; the connection is given up, and everything has an outcome that is true afterwards.
func TestStalledWrite(t *testing.T) {
	t.Parallel()
	inModes(t, testStalledWrite)
}

func testStalledWrite(t *testing.T, mode Mode) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.MaxInFlight, c.MaxInFlightBytes = 400, 64<<20 })
	r.ready()
	srv.Pause()
	sent := 0
	for ; sent < 300; sent++ {
		m := message(sent, "e.1")
		m.Payload = make([]byte, 64<<10)
		err := r.p.Send(m, uint64(sent))
		if errors.Is(err, ErrNotReady) {
			break // the write has failed already
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.until("a lost connection", func(s Status) bool { return s.State != Ready })
	srv.Resume()
	r.ready()
	outcome := make(map[Outcome]int)
	fates := make(map[int]Outcome)
	for range sent {
		x := r.result()
		outcome[x.Outcome]++
		fates[int(x.Tag)] = x.Outcome
	}
	// Retryable is what was admitted behind the write that stalled: none if Send waited for the socket.
	// A batch that was not committed is not stored, so that of atomic ones nothing need be unknown.
	if outcome[Unknown] == 0 && mode != ModeAtomic || outcome[Retryable] == 0 || outcome[Permanent]+outcome[Fatal] != 0 {
		t.Errorf("%v", outcome)
	}
	ids := stored(t, js, "EDGE")
	for i, o := range fates {
		times := ids[message(i, "").ID.String()]
		if o == Retryable && times != 0 || o == Accepted && times != 1 {
			t.Errorf("message %d is %v and stored %d times", i, o, times)
		}
	}
}

// TestKill kills the server under load again and again. Retried with the same ids until accepted, every message is
// stored, and none twice.
func TestKill(t *testing.T) {
	t.Parallel()
	inModes(t, testKill)
}

func testKill(t *testing.T, mode Mode) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.MaxInFlight = 128 })
	r.ready()
	const n = 6000
	todo := make([]int, n)
	for i := range todo {
		todo[i] = i
	}
	accepted, flight, kills := 0, 0, 0
	seqs := make(map[uint64]int)
	outcome := make(map[Outcome]int)
	for accepted < n {
		for len(todo) > 0 {
			i := todo[len(todo)-1]
			if err := r.p.Send(message(i, fmt.Sprintf("e.%d", i%5)), uint64(i)); err != nil {
				break
			}
			todo = todo[:len(todo)-1]
			flight++
		}
		if kills < 3 && accepted > (kills+1)*n/5 {
			kills++
			srv.Kill()
			srv.Restart()
		}
		if flight == 0 {
			r.ready()
			continue
		}
		x := r.result()
		flight--
		outcome[x.Outcome]++
		switch x.Outcome {
		case Accepted:
			accepted++
			if before, ok := seqs[x.Sequence]; ok && mode != ModeFast {
				t.Fatalf("messages %d and %d have sequence %d", before, x.Tag, x.Sequence)
			}
			seqs[x.Sequence] = int(x.Tag)
		case Unknown, Retryable:
			todo = append(todo, int(x.Tag))
		default:
			t.Fatalf("%+v", x)
		}
	}
	s := r.p.Status()
	if s.Counters.Reconnects != 3 || outcome[Unknown] == 0 {
		t.Errorf("%v, %+v", outcome, s.Counters)
	}
	ids := stored(t, js, "EDGE")
	if len(ids) != n {
		t.Errorf("%d of %d are stored", len(ids), n)
	}
	for id, times := range ids {
		if times != 1 {
			t.Errorf("%s is stored %d times", id, times)
		}
	}
}

// TestLossGrace: what was on its way when the connection broke waits for one second on the next one, not for its
// whole deadline.
func TestLossGrace(t *testing.T) { inModes(t, testLossGrace) }

func testLossGrace(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.RequestTimeout = 300 * time.Second })
	r.ready()
	srv.Pause()
	r.send(message(1, "e.1"), 1)
	srv.Kill()
	srv.Restart()
	x := r.result()
	var te *TimeoutError
	var se *SendError
	switch {
	case x.Outcome == Unknown && errors.As(x.Err, &te) && te.Lost:
	case x.Outcome == Retryable && errors.As(x.Err, &se) && !se.Written: // the sender was slower than the kill
	default:
		t.Errorf("%+v", x)
	}
	r.ready()
	r.one(message(1, "e.1"), Accepted)
}

// TestUnreachable starts without a server.
func TestUnreachable(t *testing.T) {
	srv := natstest.Start(t)
	srv.Stop()
	nobody := "nats://127.0.0.1:1" // in the pool for all of this test: it is passed over
	r := run(t, srv, func(c *Config) { c.URL = nobody + ", " + srv.URL() })
	s := r.until("a reason", func(s Status) bool { return s.Err != "" })
	if s.State != Connecting || s.MaxPayload != 0 || !strings.Contains(s.Err, "connection refused") {
		t.Errorf("%+v", s)
	}
	if err := r.p.Send(message(1, "e.1"), 1); !errors.Is(err, ErrNotReady) {
		t.Errorf("Send: %v", err)
	}
	srv.Restart()
	r.ready()
	r.one(message(1, "e.1"), Accepted)
	srv.Stop()
	r.until("loss", func(s Status) bool { return s.State == Disconnected && s.Err != "" })
	srv.Restart()
	if s := r.ready(); s.Counters.Reconnects != 1 || s.Err != "" {
		t.Errorf("%+v", s)
	}
	if x := r.one(message(1, "e.1"), Accepted); !x.Duplicate {
		t.Errorf("%+v", x)
	}
}

// TestSilentServer takes connections and says nothing: Run ends all the same.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 16)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	srv := natstest.Start(t)
	r := run(t, srv, func(c *Config) { c.URL = "nats://" + l.Addr().String() })
	c := <-accepted
	r.end()
	c.Close()
	l.Close()
	for c := range accepted {
		c.Close()
	}
}

// TestMaxPayloadLowered: the server tells clients nothing of its new limit. The next large message costs the
// connection, and after that the limit is known.
func TestMaxPayloadLowered(t *testing.T) { inModes(t, testMaxPayloadLowered) }

func testMaxPayloadLowered(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	r := run(t, srv, travels(mode))
	r.ready()
	srv.Reload(natstest.Extra("max_payload: 4096"))
	m := message(1, "e.1")
	m.Payload = make([]byte, 100_000)
	r.send(m, 1)
	if x := r.result(); x.Outcome != Unknown {
		t.Errorf("%+v", x)
	}
	r.until("the new limit", func(s Status) bool { return s.State == Ready && s.MaxPayload == 4096 })
	x := r.one(m, Permanent)
	var se *SizeError
	if !errors.As(x.Err, &se) || se.Limit != 4096 {
		t.Errorf("%v", x.Err)
	}
	r.one(message(2, "e.2"), Accepted)
}
