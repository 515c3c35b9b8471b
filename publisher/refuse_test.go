package publisher

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

// TestRefusedStreams binds to streams that will not do.
func TestRefusedStreams(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	f := func(code string, stream *jetstream.StreamConfig, change func(c *Config)) {
		t.Helper()
		if stream != nil {
			stream.Name = "EDGE"
			if _, err := js.CreateStream(t.Context(), *stream); err != nil {
				t.Fatal(err)
			}
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
	f(CodeCreate, nil, func(c *Config) { c.Subjects = []string{">"} })
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
	js := srv.JetStream(t)
	base := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Discard: jetstream.DiscardNew}
	f := func(want Outcome, code int, change func(c *jetstream.StreamConfig)) {
		t.Helper()
		if _, err := js.CreateStream(t.Context(), base); err != nil {
			t.Fatal(err)
		}
		r := run(t, srv, calm)
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
	js := srv.JetStream(t)
	r := run(t, srv, calm)
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
	js := srv.JetStream(t)
	r := run(t, srv, calm)
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
	js := srv.JetStream(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>", "big"}, MaxMsgSize: 2000}); err != nil {
		t.Fatal(err)
	}
	r := run(t, srv, calm)
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
	f("e.1", "a(b): refused by the library\r\n", 1, "bad_subject")
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
