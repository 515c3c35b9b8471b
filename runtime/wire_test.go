package runtime

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
	"edge/runtime/flow"
)

// TestSubjectsOfDatasets: an existing stream is asked about the datasets that there are; a created one takes others too.
func TestSubjectsOfDatasets(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	js := srv.JetStream(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ONE", Subjects: []string{"one.test.>", "one.other.>"}}); err != nil {
		t.Fatal(err)
	}
	f := func(stream string) {
		t.Helper()
		s := newSite(t)
		s.events(30, nil)
		id := strings.ToLower(stream)
		sum, err := s.once(s.config(strings.Replace(natsSink(id, srv, ""), id+".{robot}", `"`+id+`.{dataset}.{robot}"`, 1)))
		if err != nil || sum.Accepted != 30 {
			t.Fatalf("%s: %v: %+v", stream, err, sum)
		}
	}
	f("ONE")
	f("TWO")
	st, err := js.Stream(t.Context(), "TWO")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(st.CachedInfo().Config.Subjects, " "); got != "two.*.*" {
		t.Errorf("created for %s", got)
	}
}

// TestStrict: a strict binding wants its subject listed by the stream itself.
func TestStrict(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	js := srv.JetStream(t)
	s := newSite(t)
	s.events(30, nil)
	sink := strings.Replace(strings.Replace(natsSink("one", srv, "      binding: strict"), "one.{robot}", "one.all", 1), "create_stream: true", "create_stream: false", 1)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ONE", Subjects: []string{"one.>"}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.once(s.config(sink))
	var halt *flow.HaltError
	if !errors.As(err, &halt) || !strings.Contains(err.Error(), "strict binding") {
		t.Errorf("a stream that lists one.>: %v", err)
	}
	if _, err := js.UpdateStream(t.Context(), jetstream.StreamConfig{Name: "ONE", Subjects: []string{"one.all"}}); err != nil {
		t.Fatal(err)
	}
	if sum, err := s.once(s.config(sink)); err != nil || sum.Accepted != 30 {
		t.Errorf("%v: %+v", err, sum)
	}
}

// TestTokenIsReadAnew: a token in a file is mended while the agent runs, and the sink goes on without a restart.
func TestTokenIsReadAnew(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	s := newSite(t)
	s.events(30, nil)
	s.write("token", "wrong-token\n")
	cfg := s.config(strings.Replace(natsSink("one", srv, ""), "token: "+srv.Token(), `token: "${file:token}"`, 1))
	a := s.open(cfg, false)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	until := func(state string, accepted uint64) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			k := a.Summary().Sinks[0]
			if k.State == state && k.Accepted == accepted {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("never %s: %+v", state, k)
			}
		}
	}
	until("failed", 0)
	s.write("token", srv.Token()+"\n")
	until("ready", 30)
	stop()
	if err := errors.Join(<-done, a.Close()); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, srv.Token()) || strings.Contains(log, "wrong-token") {
		t.Error("a token is in the log")
	}
}
