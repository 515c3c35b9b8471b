package publisher

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"edge/envelope"
	"edge/publisher/natstest"
)

// TestStored publishes through a created stream and reads everything back: bytes, subject, headers, id.
func TestStored(t *testing.T) { inModes(t, testStored) }

func testStored(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.DuplicateWindow = time.Minute })
	s := r.ready()
	if p := s.Profile; !p.Created || !p.Verified || p.DeliveryClass != IdempotentBatch || p.DuplicateWindow != time.Minute ||
		p.Storage != "file" || p.Replicas != 1 || p.Discard != "new" || len(p.Warnings) != 0 {
		t.Errorf("profile %+v", p)
	}
	if s.MaxPayload != 1<<20 || !strings.Contains(s.Server, "natstest 2.") || s.Err != "" {
		t.Errorf("status %+v", s)
	}
	f := func(n, copy int, subject, headers, payload string) {
		t.Helper()
		m := message(n, subject)
		m.Copy, m.Headers, m.Payload = copy, []byte(headers), []byte(payload)
		x := r.one(m, Accepted)
		stream, err := js.Stream(t.Context(), "EDGE")
		if err != nil {
			t.Fatal(err)
		}
		got, err := stream.GetMsg(t.Context(), x.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		if got.Subject != subject || string(got.Data) != payload || got.Header.Get(headerID) != string(envelope.AppendMsgID(nil, m.ID, copy)) ||
			got.Header.Get(headerStream) != "EDGE" || x.Duplicate {
			t.Errorf("stored %+v for %+v", got, m)
		}
		count := 2
		envelope.EachHeader(m.Headers, func(name, value []byte) {
			count++
			if vs := got.Header.Values(string(name)); len(vs) == 0 || vs[len(vs)-1] != string(value) && vs[0] != string(value) {
				t.Errorf("header %s is %q, want %q", name, vs, value)
			}
		})
		have := 0
		for _, vs := range got.Header {
			have += len(vs)
		}
		if have != count {
			t.Errorf("%d headers are stored, want %d: %v", have, count, got.Header)
		}
		if again := r.one(m, Accepted); !again.Duplicate || again.Sequence != x.Sequence {
			t.Errorf("the same id again: %+v, want a duplicate of %d", again, x.Sequence)
		}
	}
	f(1, 0, "e.1", "", `{"n":1}`)
	f(1, 1, "e.1", "", `{"n":1}`) // a copy of a fan-out is no duplicate
	f(2, 0, "e.2.größe", "x-a: 1\r\nX-B: two words\r\nx-a: 3\r\n", `false`)
	f(3, 0, "e.3", "Empty: \r\n", "")
	f(4, 0, "e.4", "", strings.Repeat("p", 300_000))
	f(5, 0, "e.5", "", "\x00\xff\r\nPUB e.6 0\r\n")
	s = r.p.Status()
	if c := s.Counters; c.Accepted != 12 || c.Duplicates != 6 || s.LastSequence != 6 || s.Pending != 0 || s.PendingBytes != 0 {
		t.Errorf("status %+v", s)
	}

	// A second publisher finds the stream and leaves it as it is.
	second := run(t, srv, func(c *Config) { c.Mode = mode; c.DuplicateWindow = time.Hour })
	if p := second.ready().Profile; p.Created || p.DuplicateWindow != time.Minute {
		t.Errorf("profile of the second %+v", p)
	}
	if x := second.one(message(1, "e.1"), Accepted); !x.Duplicate {
		t.Errorf("the same id from another publisher: %+v", x)
	}
}

// TestDomain has a server that names its domain in each acknowledgement.
func TestDomain(t *testing.T) {
	srv := natstest.Start(t, natstest.Domain("hub"))
	r := run(t, srv, nil)
	if p := r.ready().Profile; p.Domain != "hub" {
		t.Errorf("%+v", p)
	}
	r.one(message(1, "e.1"), Accepted)
	if x := r.one(message(1, "e.1"), Accepted); !x.Duplicate {
		t.Errorf("%+v", x)
	}
	if w := r.p.want.Load(); !strings.Contains(string(w.prefix), `"domain":"hub"`) {
		t.Errorf("the byte path expects %s", w.prefix)
	}
}

// TestMany keeps the window full.
func TestMany(t *testing.T) { inModes(t, testMany) }

func testMany(t *testing.T, mode Mode) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.MaxInFlight = 64 })
	r.ready()
	const n = 5000
	seen, seqs := make([]bool, n), make(map[uint64]bool)
	full, sent, done := 0, 0, 0
	for done < n {
		for sent < n {
			err := r.p.Send(message(sent, fmt.Sprintf("e.%d", sent%7)), uint64(sent))
			if errors.Is(err, ErrFull) {
				full++
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			sent++
		}
		x := r.result()
		if x.Outcome != Accepted || x.Duplicate || seen[x.Tag] || seqs[x.Sequence] && mode != ModeFast {
			t.Fatalf("%+v", x)
		}
		seen[x.Tag], seqs[x.Sequence] = true, true
		done++
	}
	if s := r.p.Status(); full == 0 || s.LastSequence != n || s.Counters.Accepted != n || s.Counters.LateAcks != 0 {
		t.Errorf("full %d times, status %+v", full, s)
	}
}

// TestFull does not take results: room is kept for each.
func TestFull(t *testing.T) { inModes(t, testFull) }

func testFull(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.MaxInFlight, c.MaxInFlightBytes = 3, 1000 })
	r.ready()
	full := func(m *envelope.Message) {
		t.Helper()
		if err := r.p.Send(m, 9); !errors.Is(err, ErrFull) {
			t.Fatalf("send into a full window: %v", err)
		}
	}
	r.send(message(1, "e.1"), 1)
	r.send(message(2, "other"), 2) // needs room too, though it is never sent
	r.send(message(3, "e.3"), 3)
	full(message(4, "e.4"))
	r.until("answers", func(s Status) bool { return s.Pending == 0 })
	full(message(4, "e.4")) // all answered, none taken
	full(message(4, "other"))
	r.result()
	r.send(message(4, "e.4"), 4)
	full(message(5, "e.5"))
	for range 3 {
		r.result()
	}

	big := message(6, "e.6")
	big.Payload = make([]byte, 5000)
	r.one(big, Accepted) // alone it is let in
	srv.Pause()
	r.send(message(7, "e.7"), 7)
	full(big)
	srv.Resume()
	r.result()
}

// TestEnd stops Run with messages on their way.
func TestEnd(t *testing.T) { inModes(t, testEnd) }

func testEnd(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	r := run(t, srv, travels(mode))
	if err := r.p.Send(message(1, "e.1"), 1); err != nil && !errors.Is(err, ErrNotReady) {
		t.Errorf("Send at the start: %v", err)
	}
	r.ready()
	srv.Pause()
	for i := range 5 {
		r.send(message(i, "e.1"), uint64(i))
	}
	r.end()
	for range 5 {
		x := r.result()
		// The end can also come as the connection's, in the middle of a batch.
		var (
			ee *EndedError
			se *SendError
		)
		if x.Outcome != Unknown && x.Outcome != Retryable || x.Outcome == Unknown && !errors.As(x.Err, &ee) && !errors.As(x.Err, &se) {
			t.Errorf("%+v", x)
		}
	}
	if s := r.p.Status(); s.State != Disconnected || s.Pending != 0 || s.Counters.Unknown+s.Counters.Retryable != 5 {
		t.Errorf("%+v", s)
	}
	if err := r.p.Send(message(9, "e.1"), 9); !errors.Is(err, ErrNotReady) {
		t.Errorf("Send after Run: %v", err)
	}
}
