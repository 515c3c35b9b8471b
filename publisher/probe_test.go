package publisher

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

func probeConfig(srv *natstest.Server) Config {
	return Config{URL: srv.URL(), Token: srv.Token(), Stream: "EDGE", Subjects: []string{"e.a.*", "e.b.*"}, RequestTimeout: 20 * time.Second}
}

// TestProbe looks at a stream that is missing, would be created, is there, and will not do. Nothing changes meanwhile.
func TestProbe(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	none := func() {
		t.Helper()
		if _, err := js.Stream(t.Context(), "EDGE"); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatalf("the stream was made: %v", err)
		}
	}
	cfg := probeConfig(srv)
	_, err := Probe(t.Context(), cfg)
	var fatal *FatalError
	if !errors.As(err, &fatal) || fatal.Code != CodeMissing || fatal.Fix == "" {
		t.Errorf("no stream: %v", err)
	}
	none()
	cfg.CreateStream = true
	found, err := Probe(t.Context(), cfg)
	if err != nil || !found.Missing || found.Profile.Replicas != 1 || found.Profile.Discard != "new" || !slices.Equal(found.Profile.Subjects, cfg.Subjects) {
		t.Errorf("to be created: %v: %+v", err, found)
	}
	none()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.a.>", "e.b.>"}, MaxBytes: 1 << 20, MaxMsgs: 1000, Discard: jetstream.DiscardNew}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "e.a.1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	found, err = Probe(t.Context(), cfg)
	if err != nil || found.Missing || !strings.Contains(found.Server, "natstest 2.") || found.MaxPayload != 1<<20 || found.Profile.Messages != 1 || found.Profile.MaxBytes != 1<<20 {
		t.Errorf("%v: %+v", err, found)
	}
	if a := found.Account; a == nil || a.Streams != 1 || a.Storage == 0 || a.MaxStreams != 0 {
		t.Errorf("account %+v", a)
	}
	if found.Inbox != Allowed || len(found.Publish) != 2 || found.Publish[1] != (Right{"e.b.*", Allowed}) {
		t.Errorf("rights %+v, inbox %v", found.Publish, found.Inbox)
	}
	cfg.Subjects = []string{"e.c"}
	if _, err := Probe(t.Context(), cfg); !errors.As(err, &fatal) || fatal.Code != CodeSubjects {
		t.Errorf("a subject that is not listed: %v", err)
	}
	if _, err := Probe(t.Context(), Config{URL: srv.URL(), Stream: "."}); !errors.As(err, new(*ConfigError)) {
		t.Errorf("a configuration that is wrong: %v", err)
	}
	ours := "edge/publisher.(*Publisher)"
	for end := time.Now().Add(patience); strings.Contains(string(stacks()), ours) || strings.Contains(string(stacks()), "publisher.(*session)"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("goroutines stay:\n%s", stacks())
		}
	}
}

// TestProbeRefused: who is not let in hears why, and a server that is not there is no fatal matter.
func TestProbeRefused(t *testing.T) {
	srv := natstest.Start(t)
	cfg := probeConfig(srv)
	var fatal *FatalError
	cfg.Token = "wrong"
	if _, err := Probe(t.Context(), cfg); !errors.As(err, &fatal) || fatal.Code != CodeCredentials || fatal.Field != "token" {
		t.Errorf("wrong token: %v", err)
	}
	cfg.URL = "nats://127.0.0.1:1, " + srv.URL()
	cfg.Token = srv.Token()
	cfg.CreateStream = true
	if found, err := Probe(t.Context(), cfg); err != nil || !found.Missing {
		t.Errorf("the second address: %v", err)
	}
	cfg.URL = "nats://127.0.0.1:1"
	if _, err := Probe(t.Context(), cfg); err == nil || errors.As(err, new(*FatalError)) {
		t.Errorf("nobody there: %v", err)
	}
	cfg.TLS.First = true
	cfg.URL = srv.URL()
	if _, err := Probe(t.Context(), cfg); !errors.As(err, &fatal) || fatal.Code != CodeTLS {
		t.Errorf("a server without TLS: %v", err)
	}
}

// TestProbeSilent: a server that takes the connection and says nothing is bounded by RequestTimeout.
func TestProbeSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := Config{URL: "nats://" + l.Addr().String(), Stream: "EDGE", RequestTimeout: 50 * time.Millisecond}
	ended := make(chan error, 1)
	go func() {
		_, err := Probe(t.Context(), cfg)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || errors.As(err, new(*FatalError)) {
			t.Errorf("Probe = %v", err)
		}
	case <-time.After(patience):
		t.Fatalf("Probe does not end:\n%s", stacks())
	}
}

// TestProbeRights has users who may not do everything.
func TestProbeRights(t *testing.T) {
	srv := natstest.Start(t, natstest.Authorization(`users [
		{ user: admin, password: a }
		{ user: some, password: e, permissions: { publish: { deny: [ "e.a.*", "e.b.1" ] } } }
		{ user: tight, password: e, permissions: { publish: [ "e.a.>", "$JS.API.STREAM.INFO.EDGE" ], subscribe: "_INBOX.>" } }
		{ user: deaf, password: e, permissions: { subscribe: { deny: "_INBOX.>" } } }
		{ user: look, password: e, permissions: { publish: { deny: "$JS.API.STREAM.CREATE.>" } } }
	]`))
	js := srv.JetStream(t, nats.UserInfo("admin", "a"))
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}}); err != nil {
		t.Fatal(err)
	}
	as := func(user string) (Posture, error) {
		cfg := probeConfig(srv)
		cfg.User, cfg.Password = user, "e"
		return Probe(t.Context(), cfg)
	}
	found, err := as("some")
	if want := []Right{{"e.a.*", Denied}, {"e.b.*", Partly}}; err != nil || found.User != "some" || !slices.Equal(found.Publish, want) || found.Inbox != Allowed {
		t.Errorf("%v: %+v", err, found)
	}
	cfg := probeConfig(srv)
	cfg.User, cfg.Password, cfg.Stream, cfg.CreateStream = "look", "e", "NEW", true
	var fatal *FatalError
	if found, err = Probe(t.Context(), cfg); !errors.As(err, &fatal) || fatal.Code != CodeCreate || !found.Missing {
		t.Errorf("who may not create: %v: %+v", err, found)
	}
	found, err = as("tight") // may ask nothing but for the stream
	if err != nil || !found.Profile.Verified || found.Account != nil || found.Publish != nil || found.Inbox != NotTold {
		t.Errorf("%v: %+v", err, found)
	}
	if _, err = as("deaf"); !errors.As(err, &fatal) || fatal.Code != CodeInbox {
		t.Errorf("deaf: %v", err)
	}
}

func TestAccess(t *testing.T) {
	f := func(allow, deny, pattern string, want Access) {
		t.Helper()
		if got := access(&permissions{strings.Fields(allow), strings.Split(deny, ",")}, pattern); got != want {
			t.Errorf("allow %q, deny %q, %q: %v, want %v", allow, deny, pattern, got, want)
		}
	}
	f("", "x", "a.b", Allowed)
	f("a.>", "x", "a.*", Allowed)
	f("a.1 a.2", "x", "a.*", Partly)
	f("b.>", "x", "a.*", Denied)
	f("a.>", "a.1", "a.*", Partly)
	f("a.>", "a.*", "a.*", Denied)
	f("", ">", "a.*", Denied)
	f("", "a.* workers", "a.1", Denied)
	if access(nil, "a") != Allowed {
		t.Error("no permissions are no limits")
	}
}

func TestParseAccount(t *testing.T) {
	f := func(text string, replicas int, want *Account) {
		t.Helper()
		got := parseAccount([]byte(text), replicas)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	f(`{"storage":36,"streams":2,"limits":{"max_storage":-1,"max_streams":10}}`, 1, &Account{Storage: 36, Streams: 2, MaxStreams: 10})
	f(`{"storage":36,"tiers":{"R3":{"storage":7,"limits":{"max_storage":100,"max_bytes_required":true}}}}`, 3, &Account{Storage: 7, MaxStorage: 100, MaxBytesRequired: true})
	f(`{"error":{"code":503,"err_code":10039}}`, 1, nil)
	f(`{"storage":"x"}`, 1, nil)
	f(``, 1, nil)
}

// FuzzProbe feeds answers of a server that lies.
func FuzzProbe(f *testing.F) {
	f.Add([]byte(`{"storage":36,"tiers":{"R1":{"limits":{"max_storage":-1}}}}`), "e.*")
	f.Add([]byte(`{"data":{"user":"u","permissions":{"publish":{"allow":["e.>"],"deny":["e.1 q"]}}}}`), "e.>")
	f.Add([]byte(`{"data":null,"error":{}}`), "")
	f.Add([]byte(`{"data":{"permissions":{"publish":{"deny":["","..",">.>"," "]}}}}`), "a..b")
	f.Fuzz(func(t *testing.T, answer []byte, pattern string) {
		if a := parseAccount(answer, 1); a != nil && (a.Storage < 0 || a.MaxStorage < 0 || a.Streams < 0 || a.MaxStreams < 0) {
			t.Errorf("%+v", a)
		}
		if u := parseUser(answer); u != nil {
			if got := access(u.Permissions.Publish, pattern); got == NotTold {
				t.Error("no answer")
			}
		}
	})
}
