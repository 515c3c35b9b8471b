package publisher

import (
	"errors"
	"testing"

	"edge/envelope"
	"edge/publisher/natstest"
)

// bound is a Publisher at rest that believes it is bound: the test plays sender and server.
func bound(t *testing.T, most int) *Publisher {
	t.Helper()
	p, err := New(Config{URL: "nats://127.0.0.1:4222", Stream: "EDGE", Subjects: []string{"e.>"}, MaxInFlight: most, MaxInFlightBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	p.state = Ready
	return p
}

// takeOne is the sender's first half.
func (p *Publisher) takeOne(t *testing.T) int32 {
	t.Helper()
	c, _ := p.takeNext()
	if c.slot < 0 {
		t.Fatal("nothing is queued")
	}
	return c.slot
}

// accept is the server's answer to slot i.
func (p *Publisher) accept(i int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finishLocked(i, Result{Outcome: Accepted, Sequence: 1})
}

// TestAnswerBeforeWriteEnds: the acknowledgement comes between PublishMsg and settleWrite. The place is free as soon
// as the Result is read, because nothing else would wake whoever waits for it.
func TestAnswerBeforeWriteEnds(t *testing.T) {
	p := bound(t, 1)
	send := func(want error) {
		t.Helper()
		if err := p.Send(message(1, "e.1"), 1); !errors.Is(err, want) {
			t.Fatalf("send: %v, want %v", err, want)
		}
	}
	send(nil)
	send(ErrFull) // outstanding
	i := p.takeOne(t)
	send(ErrFull) // outstanding
	p.accept(i)
	send(ErrFull) // unread
	<-p.Results()
	send(nil)
	p.settleWrite(cargo{slot: i}, nil)
	send(ErrFull)
	i = p.takeOne(t)
	p.settleWrite(cargo{slot: i}, nil)
	p.accept(i)
	<-p.Results()
	send(nil)
}

// TestSendBesideFullWrite: a Write that fills the window, by count and by bytes, does not keep a Send out that has
// nothing outstanding: no Result would tell it when to try again.
func TestSendBesideFullWrite(t *testing.T) {
	p := bound(t, 2)
	c := &call{results: make(chan Result, 2), waits: true}
	write := func(want error) {
		t.Helper()
		if err := p.send(message(1, "e.1"), 0, c); !errors.Is(err, want) {
			t.Fatalf("write: %v, want %v", err, want)
		}
	}
	send := func(want error) {
		t.Helper()
		if err := p.Send(message(2, "e.2"), 2); !errors.Is(err, want) {
			t.Fatalf("send: %v, want %v", err, want)
		}
	}
	write(nil)
	write(ErrFull) // by bytes: one alone is let in
	send(nil)      // although there are no bytes left
	send(ErrFull)
	first := p.takeOne(t)
	p.accept(first) // spent
	write(ErrFull)
	second := p.window.first
	p.settleWrite(cargo{slot: first}, nil)
	p.accept(p.takeOne(t))
	if len(p.free) != 1 {
		t.Error("a Write that waits is not told of room")
	}
	if r := <-p.Results(); r.Tag != 2 || p.window.slots[second].state != slotSpent {
		t.Errorf("%+v, slot in state %d", r, p.window.slots[second].state)
	}
	write(nil)
	send(nil)
	p.window.check(t)
}

// TestOneInFlight sends many messages with room for one, and never waits for anything but a Result.
func TestOneInFlight(t *testing.T) { inModes(t, testOneInFlight) }

func testOneInFlight(t *testing.T, mode Mode) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.MaxInFlight, c.MaxInFlightBytes = 1, 1 })
	r.ready()
	const n = 3000
	for i, read := 0, 0; read < n; {
		if i < n {
			err := r.p.Send(message(i, "e.1"), uint64(i))
			if err == nil {
				i++
				continue
			}
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
		}
		if x := r.result(); x.Outcome != Accepted || x.Tag != uint64(read) {
			t.Fatalf("%+v", x)
		}
		read++
	}
	msgs, out := make([]envelope.Message, n), make([]Result, n)
	for i := range msgs {
		msgs[i] = *message(i, "e.1")
	}
	ended := make(chan error, 1)
	go func() { _, err := r.p.Write(t.Context(), msgs, out); ended <- err }()
	if err := r.wait(ended); err != nil {
		t.Fatal(err)
	}
	for i, x := range out {
		if x.Outcome != Accepted || !x.Duplicate {
			t.Fatalf("%d: %+v", i, x)
		}
	}
}
