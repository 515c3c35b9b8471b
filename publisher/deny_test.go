package publisher

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/envelope"
	"edge/publisher/natstest"
)

// TestDenied has a user who may not publish under some subjects: told at once, message by message.
func TestDenied(t *testing.T) { inModes(t, testDenied) }

func testDenied(t *testing.T, mode Mode) {
	srv := natstest.Start(t, natstest.Authorization(`users [
		{ user: admin, password: a }
		{ user: edge, password: e, permissions: { publish: { deny: "e.no.>" } } }
	]`))
	js := srv.JetStream(t, nats.UserInfo("admin", "a"))
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.User, c.Password, c.RequestTimeout = "edge", "e", 300*time.Second })
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
	js := srv.JetStream(t, nats.UserInfo("admin", "a"))
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

// TestInboxTakenAway has the right to listen removed under a bound publisher: messages would be stored, and no
// acknowledgement would ever arrive.
func TestInboxTakenAway(t *testing.T) { inModes(t, testInboxTakenAway) }

func testInboxTakenAway(t *testing.T, mode Mode) {
	users := func(deny string) natstest.Option {
		return natstest.Authorization(`users [ { user: edge, password: e, permissions: { subscribe: { deny: "` + deny + `" } } } ]`)
	}
	srv := natstest.Start(t, users("nothing"))
	r := run(t, srv, func(c *Config) { c.Mode = mode; c.User, c.Password = "edge", "e" })
	r.ready()
	r.one(message(1, "e.1"), Accepted)
	srv.Reload(users("_INBOX.>"))
	r.fatal(CodeInbox)
}

// TestDeniedUnderLoad has a right taken away while many messages are on their way: the announcements overtake
// acknowledgements that wait for the store. None that is stored may be called fatal.
func TestDeniedUnderLoad(t *testing.T) {
	t.Parallel()
	inModes(t, testDeniedUnderLoad)
}

func testDeniedUnderLoad(t *testing.T, mode Mode) {
	users := func(deny string) natstest.Option {
		return natstest.Authorization(`users [ { user: admin, password: a }, { user: edge, password: e, permissions: { publish: { deny: "` + deny + `" } } } ]`)
	}
	srv := natstest.Start(t, users("nothing"))
	js := srv.JetStream(t, nats.UserInfo("admin", "a"))
	r := run(t, srv, func(c *Config) { c.Mode, c.MaxInFlight, c.User, c.Password = mode, 1024, "edge", "e" })
	r.ready()
	const n = 4000
	outcomes := make(map[string]Outcome)
	sent, denied, reloaded := 0, false, make(chan struct{})
	for got := 0; got < n; {
		if sent < n && r.p.Send(message(sent, "e.x"), uint64(sent)) == nil {
			sent++
			if sent == n/2 {
				go func() {
					defer close(reloaded)
					srv.Reload(users("e.x"))
				}()
			}
			continue
		}
		x := r.result()
		got++
		outcomes[string(envelope.AppendMsgID(nil, message(int(x.Tag), "").ID, 0))] = x.Outcome
		denied = denied || x.Outcome == Fatal
	}
	<-reloaded
	if !denied {
		t.Error("nothing was denied")
	}
	for id := range stored(t, js, "EDGE") {
		if o := outcomes[id]; o != Accepted && o != Unknown {
			t.Fatalf("%s is stored, and was called %v", id, o)
		}
	}
}
