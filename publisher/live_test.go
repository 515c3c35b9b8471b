package publisher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/envelope"
	"edge/publisher/natstest"
)

// TestStored publishes through a created stream and reads everything back: bytes, subject, headers, id.
func TestStored(t *testing.T) {
	srv := natstest.Start(t)
	js := admin(t, srv)
	r := run(t, srv, func(c *Config) { c.DuplicateWindow = time.Minute })
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
	second := run(t, srv, func(c *Config) { c.DuplicateWindow = time.Hour })
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
func TestMany(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	r := run(t, srv, func(c *Config) { c.MaxInFlight = 64 })
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
		if x.Outcome != Accepted || x.Duplicate || seen[x.Tag] || seqs[x.Sequence] {
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
func TestFull(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, func(c *Config) { c.MaxInFlight, c.MaxInFlightBytes = 3, 1000 })
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

// TestRefusedStreams binds to streams that will not do.
func TestRefusedStreams(t *testing.T) {
	srv := natstest.Start(t)
	js := admin(t, srv)
	f := func(code string, stream *jetstream.StreamConfig, change func(c *Config)) {
		t.Helper()
		if stream != nil {
			stream.Name = "EDGE"
			if _, err := js.CreateStream(t.Context(), *stream); err != nil {
				t.Fatal(err)
			}
		}
		if stream != nil && stream.Sealed {
			t.Fatal("a stream cannot be created sealed")
		}
		run(t, srv, change).fatal(code)
		if stream != nil {
			if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
				t.Fatal(err)
			}
		}
	}
	subjects := []string{"e.>"}
	f(CodeMissing, nil, func(c *Config) { c.CreateStream = false })
	f(CodeStorage, &jetstream.StreamConfig{Subjects: subjects, Storage: jetstream.MemoryStorage}, nil)
	f(CodeNoAck, &jetstream.StreamConfig{Subjects: subjects, NoAck: true}, nil)
	f(CodeSubjects, &jetstream.StreamConfig{Subjects: []string{"e.*"}}, nil)
	f(CodeMirror, &jetstream.StreamConfig{Mirror: &jetstream.StreamSource{Name: "ORIGIN"}}, nil)

	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"e.x"}}); err != nil {
		t.Fatal(err)
	}
	f(CodeCreate, nil, nil) // its subjects overlap
	if err := js.DeleteStream(t.Context(), "OTHER"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: subjects}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.UpdateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: subjects, Sealed: true}); err != nil {
		t.Fatal(err)
	}
	f(CodeSealed, nil, nil)
}

// TestServerAnswers provokes refusals by changing the stream after it was bound.
func TestServerAnswers(t *testing.T) {
	srv := natstest.Start(t)
	js := admin(t, srv)
	base := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Discard: jetstream.DiscardNew}
	f := func(want Outcome, code int, change func(c *jetstream.StreamConfig)) {
		t.Helper()
		if _, err := js.CreateStream(t.Context(), base); err != nil {
			t.Fatal(err)
		}
		r := run(t, srv, nil)
		r.ready()
		r.one(message(1, "e.1"), Accepted)
		c := base
		change(&c)
		if _, err := js.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		m := message(2, "e.2")
		m.Payload = make([]byte, 1000)
		x := r.one(m, want)
		var ae *AckError
		if !errors.As(x.Err, &ae) || ae.ErrCode != code || ae.Code() != fmt.Sprintf("server_%d", code) {
			t.Errorf("%v, want %d", x.Err, code)
		}
		r.end()
		if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
			t.Fatal(err)
		}
	}
	f(Permanent, 10054, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 500 })
	f(Retryable, 10077, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 })
	f(Retryable, 10077, func(c *jetstream.StreamConfig) { c.MaxBytes = 500 })
	f(Fatal, 10109, func(c *jetstream.StreamConfig) { c.Sealed = true })
}

// TestStreamGone deletes the stream after it was bound, and then gives its subjects to another.
func TestStreamGone(t *testing.T) {
	srv := natstest.Start(t)
	js := admin(t, srv)
	r := run(t, srv, nil)
	r.ready()
	if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
		t.Fatal(err)
	}
	x := r.one(message(1, "e.1"), Retryable)
	var ae *AckError
	if !errors.As(x.Err, &ae) || ae.Status != 503 {
		t.Errorf("no stream: %v", x.Err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"e.>"}}); err != nil {
		t.Fatal(err)
	}
	x = r.one(message(1, "e.1"), Fatal)
	if !errors.As(x.Err, &ae) || ae.ErrCode != 10060 {
		t.Errorf("another stream: %v", x.Err)
	}
}

// TestForeignAck has somebody else answer: nothing of that proves that the message is stored.
func TestForeignAck(t *testing.T) {
	srv := natstest.Start(t)
	js := admin(t, srv)
	r := run(t, srv, nil)
	r.ready()
	if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
		t.Fatal(err)
	}
	nc := srv.Connect(t)
	f := func(answer string) {
		t.Helper()
		sub, err := nc.Subscribe("e.>", func(m *nats.Msg) {
			if err := m.Respond([]byte(answer)); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		x := r.one(message(1, "e.1"), Unknown)
		var ue *UnexpectedAckError
		if !errors.As(x.Err, &ue) {
			t.Errorf("%s: %v", answer, x.Err)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	f(`{"stream":"OTHER","seq":1}`)
	f(`{"stream":"EDGE","seq":0}`)
	f(`{"stream":"EDGE","domain":"hub","seq":1}`)
	f(`ok`)
	f(``)
	if c := r.p.Status().Counters; c.UnexpectedAcks != 5 || c.Unknown != 5 {
		t.Errorf("%+v", c)
	}
}

// TestLocalPermanents never reach the server.
func TestLocalPermanents(t *testing.T) {
	srv := natstest.Start(t, natstest.Extra("max_payload: 4096"))
	js := admin(t, srv)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>", "big"}, MaxMsgSize: 2000}); err != nil {
		t.Fatal(err)
	}
	r := run(t, srv, nil)
	if s := r.ready(); s.MaxPayload != 4096 || s.Profile.MaxMsgSize != 2000 {
		t.Fatalf("%+v", s)
	}
	f := func(subject, headers string, payload int, code string) {
		t.Helper()
		m := message(1, subject)
		m.Headers, m.Payload = []byte(headers), make([]byte, payload)
		x := r.one(m, Permanent)
		var c interface{ Code() string }
		if !errors.As(x.Err, &c) || c.Code() != code {
			t.Errorf("%q: %v, want %s", subject, x.Err, code)
		}
	}
	f("a..b", "", 1, "bad_subject")
	f("", "", 1, "bad_subject")
	f("e.*", "", 1, "bad_subject")
	f("e.>", "", 1, "bad_subject")
	f("e. 1", "", 1, "bad_subject")
	f("$JS.API.STREAM.DELETE.EDGE", "", 1, "bad_subject")
	f("e.1", "Nats-Rollup: all\r\n", 1, "bad_subject")
	f("e.1", "no colon", 1, "bad_subject")
	f("e.1", "a(b): refused by the library\r\n", 1, "unsendable")
	f("other", "", 1, "subject_not_covered")
	f("e", "", 1, "subject_not_covered")
	f("e.1", "", 5000, "too_large")
	f("e.1", "", 2000, "too_large") // with its headers it is over max_msg_size
	f("e.1", strings.Repeat("h: "+strings.Repeat("v", 4000)+"\r\n", 17), 1, "bad_subject")

	// Our reckoning of a message's size is the server's, to the byte.
	m := message(2, "big")
	overhead := len("NATS/1.0\r\nNats-Msg-Id: \r\nNats-Expected-Stream: EDGE\r\n\r\n") + 32
	m.Payload = make([]byte, 2000-overhead)
	r.one(m, Accepted)
	m = message(3, "big")
	m.Payload = make([]byte, 2001-overhead)
	r.one(m, Permanent)
	if c := r.p.Status().Counters; c.Accepted != 1 || c.Permanent != 15 || c.Reconnects != 0 {
		t.Errorf("%+v", c)
	}
}

// TestDenied has a user who may not publish under some subjects: told at once, message by message.
func TestDenied(t *testing.T) {
	srv := natstest.Start(t, natstest.Authorization(`users [
		{ user: admin, password: a }
		{ user: edge, password: e, permissions: { publish: { deny: "e.no.>" } } }
	]`))
	js := admin(t, srv, nats.UserInfo("admin", "a"))
	r := run(t, srv, func(c *Config) { c.User, c.Password, c.RequestTimeout = "edge", "e", 300*time.Second })
	r.ready()
	const n = 40
	for i := range n {
		r.send(message(i, []string{"e.yes", "e.no.1", "e.no.größe"}[i%3]), uint64(i))
	}
	for range n {
		x := r.result()
		var de *DeniedError
		switch {
		case x.Tag%3 == 0 && x.Outcome != Accepted:
			t.Errorf("allowed: %+v", x)
		case x.Tag%3 != 0 && (x.Outcome != Fatal || !errors.As(x.Err, &de)):
			t.Errorf("denied: %+v", x)
		}
	}
	if ids := stored(t, js, "EDGE"); len(ids) != 14 {
		t.Errorf("%d messages are stored, want 14", len(ids))
	}
	if s := r.p.Status(); s.State != Ready || s.Counters.Reconnects != 0 {
		t.Errorf("%+v", s)
	}
}

// TestPermissions takes other rights away.
func TestPermissions(t *testing.T) {
	srv := natstest.Start(t, natstest.Authorization(`users [
		{ user: admin, password: a }
		{ user: blind, password: e, permissions: { publish: { deny: "$JS.>" } } }
		{ user: deaf, password: e, permissions: { subscribe: { deny: "_INBOX.>" } } }
		{ user: look, password: e, permissions: { publish: { deny: "$JS.API.STREAM.CREATE.>" } } }
		{ user: tight, password: e, permissions: { publish: [ "e.>", "$JS.API.STREAM.INFO.EDGE" ], subscribe: "_INBOX.my_edge.>" } }
	]`))
	js := admin(t, srv, nats.UserInfo("admin", "a"))
	as := func(user, password string) *rig {
		t.Helper()
		return run(t, srv, func(c *Config) { c.User, c.Password, c.Name = user, password, "my edge" })
	}
	as("look", "e").fatal(CodeCreate)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}}); err != nil {
		t.Fatal(err)
	}
	as("deaf", "e").fatal(CodeInbox)
	as("blind", "wrong").fatal(CodeCredentials)
	r := as("blind", "e")
	if p := r.ready().Profile; p.Verified || p.DeliveryClass != AtLeastOnce || len(p.Warnings) != 1 {
		t.Errorf("profile %+v", p)
	}
	r.one(message(1, "e.1"), Accepted)
	x := r.one(message(2, "nobody"), Retryable)
	var ae *AckError
	if !errors.As(x.Err, &ae) || ae.Status != 503 {
		t.Errorf("a subject without stream: %v", x.Err)
	}
	r = as("tight", "e")
	r.ready()
	r.one(message(3, "e.3"), Accepted)
}

// TestCredentialsRevoked changes the token under a bound publisher.
func TestCredentialsRevoked(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, nil)
	r.ready()
	srv.Reload(natstest.Authorization(`token: "another"`))
	r.fatal(CodeCredentials)
}

// TestEnd stops Run with messages on their way.
func TestEnd(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, nil)
	if err := r.p.Send(message(1, "e.1"), 1); err != nil && !errors.Is(err, ErrNotReady) {
		t.Errorf("Send at the start: %v", err)
	}
	r.ready()
	srv.Pause()
	for i := range 5 {
		r.send(message(i, "e.1"), uint64(i))
	}
	r.end()
	if r.err != nil {
		t.Fatalf("Run: %v", r.err)
	}
	for range 5 {
		x := r.result()
		var ee *EndedError
		if x.Outcome != Unknown && x.Outcome != Retryable || x.Outcome == Unknown && !errors.As(x.Err, &ee) {
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

// TestWrite publishes batches over the window's size, also two at once and with messages that will not do.
func TestWrite(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("2m"))
	r := run(t, srv, func(c *Config) { c.MaxInFlight = 16 })
	write := func(from, n int) []Result {
		msgs, out := make([]envelope.Message, n), make([]Result, n+1)
		for i := range msgs {
			msgs[i] = *message(from+i, "e.w")
		}
		msgs[3].Subject = []byte("other")
		if err := r.p.Write(t.Context(), msgs, out); err != nil {
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
	if err := r.p.Write(t.Context(), make([]envelope.Message, 2), make([]Result, 1)); err == nil {
		t.Error("there is no room for results")
	}
	if err := r.p.Write(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}

// TestWriteCutShort ends a Write by its context, by Run's end and by failure.
func TestWriteCutShort(t *testing.T) {
	srv := natstest.Start(t)
	f := func(cut func(r *rig, cancel context.CancelFunc), isRight func(err error) bool) {
		t.Helper()
		r := run(t, srv, func(c *Config) { c.MaxInFlight = 4 })
		r.ready()
		srv.Pause()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		msgs, out := make([]envelope.Message, 10), make([]Result, 10)
		for i := range msgs {
			msgs[i] = *message(i, "e.c")
		}
		ended := make(chan error, 1)
		go func() { ended <- r.p.Write(ctx, msgs, out) }()
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

	r := run(t, srv, func(c *Config) { c.Token = "wrong" })
	out := make([]Result, 1)
	err := r.p.Write(t.Context(), []envelope.Message{*message(1, "e.1")}, out)
	var fe *FatalError
	if !errors.As(err, &fe) || out[0].Outcome != Retryable {
		t.Errorf("write: %v, %+v", err, out)
	}
	r.fatal(CodeCredentials)
}
