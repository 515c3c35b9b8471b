package natstest

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestLife takes one server through everything that can be done to it: what was acknowledged is there afterwards.
func TestLife(t *testing.T) {
	s := Start(t)
	js := s.JetStream(t)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "LIFE", Subjects: []string{"life"}})
	if err != nil {
		t.Fatal(err)
	}
	stored := func(want uint64) {
		t.Helper()
		if _, err := js.Publish(t.Context(), "life", []byte("x"), jetstream.WithRetryAttempts(1000)); err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs != want {
			t.Fatalf("%d messages are stored, want %d", info.State.Msgs, want)
		}
	}
	stored(1)
	s.Kill()
	if s.ready(nil) {
		t.Fatal("a killed server answers")
	}
	s.Restart()
	stored(2)
	s.Stop()
	s.Restart()
	stored(3)
	s.Restart() // while it runs
	stored(4)

	nc := s.Connect(t)
	s.Pause()
	if err := nc.FlushTimeout(200 * time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
		t.Fatalf("a paused server answered: %v", err)
	}
	s.Resume()
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatalf("a resumed server does not answer: %v", err)
	}
	s.Pause()
	s.Kill() // a paused one dies too
	s.Restart()
	stored(5)

	s.Reload(Extra("max_payload: 4096"))
	fresh := s.Connect(t)
	if fresh.MaxPayload() != 4096 {
		t.Errorf("max_payload is %d after the reload, want 4096", fresh.MaxPayload())
	}
}

func TestToken(t *testing.T) {
	s := Start(t)
	_, err := nats.Connect(s.URL(), nats.Token("wrong"))
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a wrong token: %v", err)
	}
	other := Start(t)
	if other.Token() == s.Token() || other.URL() == s.URL() {
		t.Errorf("two servers share %s or their token", s.URL())
	}
}

func TestAuthorization(t *testing.T) {
	s := Start(t, Authorization(`users [{ user: u, password: p, permissions: { publish: "ok" } }]`))
	if s.Token() != "" {
		t.Errorf("token %q beside an authorization block", s.Token())
	}
	nc := s.Connect(t, nats.UserInfo("u", "p"))
	if err := nc.Publish("denied", nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if err := nc.LastError(); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("a denied subject: %v", err)
	}
}

// TestAny uses a server of its own as the external one.
func TestAny(t *testing.T) {
	own := Start(t)
	t.Setenv(externalEnv, "nats://"+own.Token()+"@"+own.URL()[len("nats://"):])
	s := Any(t)
	if s.URL() != own.URL() || s.Token() != own.Token() || s.proc != nil {
		t.Fatalf("Any gives %s, want the external %s", s.URL(), own.URL())
	}
	s.Connect(t)
	t.Setenv(externalEnv, "")
	if Any(t).proc == nil {
		t.Error("Any without an external server starts none")
	}
}

func TestLoopback(t *testing.T) {
	f := func(host string, want bool) {
		t.Helper()
		if loopback(host) != want {
			t.Errorf("loopback(%q) is %v", host, !want)
		}
	}
	f("127.0.0.1", true)
	f("127.9.9.9", true)
	f("::1", true)
	f("localhost", true)
	f("", false)
	f("0.0.0.0", false)
	f("10.0.0.1", false)
	f("nats.example", false)
	f("localhost.example", false)
}
