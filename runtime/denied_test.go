package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
	"edge/runtime/flow"
	"edge/runtime/quarantine"
	"edge/runtime/status"
)

// users are an administrator and the agent, which may not publish under deny.
func users(deny string) natstest.Option {
	return natstest.Authorization(fmt.Sprintf(`users [
		{ user: admin, password: a }
		{ user: edge, password: e, permissions: { publish: { deny: %q } } }
	]`, deny))
}

// deniedSite is a site with 300 events of three robots, and a server that denies subjects of r1.
func deniedSite(t *testing.T, extra string) (*site, *natstest.Server, jetstream.JetStream, string) {
	t.Helper()
	srv := natstest.Start(t, natstest.SyncInterval("1m"), users("one.r1"))
	js := srv.JetStream(t, nats.UserInfo("admin", "a"))
	s := newSite(t)
	s.events(300, nil)
	return s, srv, js, strings.Replace(natsSink("one", srv, extra), "token: \n", "user: edge\n      password: e\n", 1)
}

func subjects(t *testing.T, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	st, err := js.Stream(t.Context(), "ONE")
	if err != nil {
		t.Fatal(err)
	}
	info, err := st.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Subjects
}

// TestDeniedHalts: a denied subject makes a serving sink fail. What was in flight with it is stored, nothing is lost,
// and the sink goes on by itself when the server allows the subject.
func TestDeniedHalts(t *testing.T) {
	s, srv, js, sink := deniedSite(t, "")
	a := s.open(s.config(sink), false)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	until := func(what string, ok func(k *status.SinkSummary) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			sum := a.Summary()
			if ok(&sum.Sinks[0]) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("never %s: %+v", what, sum.Sinks[0])
			}
		}
	}
	until("failed", func(k *status.SinkSummary) bool {
		return k.State == "failed" && strings.Contains(k.Error, `"one.r1"`) && k.InFlight == 0
	})
	if got := subjects(t, js); got["one.r1"] != 0 || got["one.r0"] == 0 || got["one.r2"] == 0 {
		t.Errorf("stored %v while one.r1 is denied", got)
	}
	srv.Reload(users("nothing"))
	until("settled", func(k *status.SinkSummary) bool { return k.Accepted == 300 && k.Spooled == 0 && k.State == "ready" })
	stop()
	if err := errors.Join(<-done, a.Close()); err != nil {
		t.Error(err)
	}
	if got := subjects(t, js); got["one.r0"] != 100 || got["one.r1"] != 100 || got["one.r2"] != 100 {
		t.Errorf("stored %v", got)
	}
	if n := strings.Count(s.log.String(), "sink failed"); n != 1 {
		t.Errorf("the reason is told %d times", n)
	}
}

// TestDeniedStops: a signal ends a serving agent in order while its sink is failed, and the summary says why.
func TestDeniedStops(t *testing.T) {
	s, srv, js, sink := deniedSite(t, "")
	cfg := s.config(sink)
	a := s.open(cfg, false)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for end := time.Now().Add(time.Minute); a.Summary().Sinks[0].State != "failed"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the sink does not fail")
		}
	}
	stop()
	err := <-done
	sum := a.Summary()
	if err := errors.Join(err, a.Close()); err != nil {
		t.Error(err)
	}
	if k := sum.Sinks[0]; !sum.Balanced || k.State != "failed" || !strings.Contains(k.Error, "one.r1") || k.Spooled == 0 {
		t.Errorf("summary %+v", sum)
	}
	sum, err = s.once(cfg)
	var halt *flow.HaltError
	if !errors.As(err, &halt) || sum.Sinks[0].State != "failed" {
		t.Errorf("with Once: %v, %+v", err, sum)
	}
	srv.Reload(users("nothing"))
	if _, err := s.once(cfg); err != nil {
		t.Error(err)
	}
	if got := subjects(t, js); got["one.r0"] != 100 || got["one.r1"] != 100 || got["one.r2"] != 100 {
		t.Errorf("stored %v", got)
	}
}

// TestDeniedQuarantine: the operator may want a denied event to wait alone. Its neighbours go on.
func TestDeniedQuarantine(t *testing.T) {
	s, _, js, sink := deniedSite(t, "      on_denied: quarantine")
	sum, err := s.once(s.config(sink))
	if err != nil || sum.Accepted != 200 || sum.Quarantined != 100 || sum.Spooled != 0 || sum.Sinks[0].State != "settled" {
		t.Errorf("%v: %+v", err, sum)
	}
	reasons := map[string]int{}
	if _, err := quarantine.Scan(s.path("data/quarantine"), func(e *quarantine.Entry) bool {
		reasons[e.Reason+" "+e.Subject]++
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(reasons) != 1 || reasons["denied one.r1"] != 100 {
		t.Errorf("quarantine holds %v", reasons)
	}
	if got := subjects(t, js); got["one.r0"] != 100 || got["one.r1"] != 0 || got["one.r2"] != 100 {
		t.Errorf("stored %v", got)
	}
}
