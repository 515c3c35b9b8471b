package publisher

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

// TestPayloadFalse stores the five bytes false and reads them back through another connection.
func TestPayloadFalse(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, nil)
	m := message(1, "e.1")
	m.Payload = []byte("false")
	if x := r.p.Deliver(t.Context(), m); x.Outcome != Accepted {
		t.Fatalf("%+v", x)
	}
	stream, err := srv.JetStream(t).Stream(t.Context(), "EDGE")
	if err != nil {
		t.Fatal(err)
	}
	got, err := stream.GetMsg(t.Context(), 1)
	if err != nil || !bytes.Equal(got.Data, []byte("false")) || got.Subject != "e.1" {
		t.Fatalf("%+v, %v", got, err)
	}
}

// TestStableID sends the same ids again: at once, on a new connection, and after a restart of the server.
func TestStableID(t *testing.T) {
	srv := natstest.Start(t)
	f := func(want bool) {
		t.Helper()
		r := run(t, srv, nil)
		defer r.end()
		for n := range 10 {
			if x := r.p.Deliver(t.Context(), message(n, "e.1")); x.Outcome != Accepted || x.Duplicate != want || x.Sequence != uint64(n)+1 {
				t.Fatalf("%d: %+v, want duplicate %v", n, x, want)
			}
		}
	}
	f(false)
	f(true)
	srv.Restart()
	f(true)
	srv.Kill()
	srv.Restart()
	f(true)
	if ids := stored(t, srv.JetStream(t), "EDGE"); len(ids) != 10 {
		t.Errorf("%v", ids)
	}
}

// TestEatenAck loses the first acknowledgement after the server has stored the message, which another connection sees
// before the deadline. The attempt is unknown, its retry a duplicate, and one message is stored.
func TestEatenAck(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	proxy := natstest.NewProxy(t, func() string { return srv.URL()[len("nats://"):] })
	r := run(t, srv, func(c *Config) { c.URL, c.RequestTimeout = proxy.URL(), time.Second })
	r.ready()
	reached, looked := make(chan struct{}), make(chan struct{})
	proxy.EatAcks(func(n int, _ []byte) bool {
		if n > 1 {
			return false
		}
		close(reached)
		<-looked
		return true
	})
	r.send(message(1, "e.1"), 1)
	<-reached
	ids := stored(t, js, "EDGE")
	close(looked)
	if len(ids) != 1 {
		t.Fatalf("stored before the acknowledgement: %v", ids)
	}
	if s := r.p.Status(); s.Pending != 1 {
		t.Fatalf("the deadline is over already: %+v", s)
	}
	x := r.result()
	var te *TimeoutError
	if x.Outcome != Unknown || !errors.As(x.Err, &te) || te.Lost || x.SentAt == 0 {
		t.Fatalf("%+v", x)
	}
	if x := r.one(message(1, "e.1"), Accepted); !x.Duplicate || x.Sequence != 1 {
		t.Errorf("%+v", x)
	}
	if ids := stored(t, js, "EDGE"); len(ids) != 1 || proxy.Eaten() != 1 {
		t.Errorf("%v, %d eaten", ids, proxy.Eaten())
	}
}

// TestSilenceNamed has a stream that stays silent on a connection that works: the status names a cause.
func TestSilenceNamed(t *testing.T) {
	srv := natstest.Start(t)
	proxy := natstest.NewProxy(t, func() string { return srv.URL()[len("nats://"):] })
	r := run(t, srv, func(c *Config) { eager(c); c.URL, c.RequestTimeout = proxy.URL(), 200*time.Millisecond })
	r.ready()
	proxy.EatAcks(func(int, []byte) bool { return true })
	s := r.publishUntil("trouble", func(s Status) bool { return s.Trouble != "" })
	if s.State != Ready || s.Fatal != nil {
		t.Errorf("%+v", s)
	}
	proxy.EatAcks(nil)
	r.publishUntil("no trouble", func(s Status) bool { return s.Trouble == "" })
}

// TestQuotas uses up an account's storage and the server's. Both are retryable, and over when there is room.
func TestQuotas(t *testing.T) {
	account := natstest.Extra(`accounts { ROBOTS { jetstream { max_file: 100K, max_mem: 0 }, users: [ { user: r, password: r } ] } }
no_auth_user: r`)
	srv := natstest.Start(t, natstest.Authorization(""), account)
	js := srv.JetStream(t, nats.UserInfo("r", "r"))
	r := run(t, srv, func(c *Config) { calm(c); c.Token, c.User, c.Password = "", "r", "r" })
	r.ready()
	refused := 0
	for n := range 200 {
		m := message(n, "e.1")
		m.Payload = make([]byte, 2000)
		r.send(m, uint64(n))
		x := r.result()
		var ae *AckError
		switch {
		case x.Outcome == Accepted && refused == 0:
			continue
		case x.Outcome != Retryable, !errors.As(x.Err, &ae), ae.ErrCode != 10002 && ae.ErrCode != 10023:
			t.Fatalf("%d: %+v", n, x)
		}
		refused++
	}
	if refused == 0 {
		t.Fatal("the quota was never reached")
	}
	stream, err := js.Stream(t.Context(), "EDGE")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeKeep(1)); err != nil {
		t.Fatal(err)
	}
	r.one(message(199, "e.1"), Accepted)
}
