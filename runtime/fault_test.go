package runtime

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
	"edge/runtime/flow"
	"edge/runtime/status"
)

// TestServerDies: the server is killed and restarted while the agent publishes; every event is stored once.
func TestServerDies(t *testing.T) {
	srv := natstest.Start(t)
	s := newSite(t)
	const n = 6000
	s.events(n, nil)
	a := s.open(s.config(natsSink("one", srv, "")), true)
	done := make(chan error, 1)
	go func() { done <- a.Run(t.Context()) }()
	for kills := 0; kills < 2; {
		sum := a.Summary()
		if sum.Accepted > uint64(1000*(kills+1)) {
			kills++
			srv.Kill()
			srv.Restart()
		}
		select {
		case err := <-done:
			t.Fatalf("run ended early: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sum := a.Summary()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if sum.Accepted != n || !sum.Balanced {
		t.Errorf("summary %+v", sum)
	}
	ids, _ := stored(t, srv, "ONE")
	eachOnce(t, ids, n)
}

// TestStopAndGoOn: an agent is told to stop in the middle; the next one goes on where it was, and nothing is
// stored twice or lost.
func TestStopAndGoOn(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	s := newSite(t)
	const n = 20000
	s.events(n, nil)
	cfg := s.config(natsSink("one", srv, ""))
	a := s.open(cfg, true)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for a.Summary().Accepted < 500 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	first := a.Summary()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if !first.Balanced || first.Accepted == n {
		t.Errorf("first run %+v", first)
	}
	second, err := s.once(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if second.CarriedOver != first.Spooled || first.Captured+second.Captured != n {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	ids, _ := stored(t, srv, "ONE")
	eachOnce(t, ids, n)
}

// TestSeveralSinks: one good, one whose stream does not exist. The good one gets everything that was captured,
// the other keeps it on disk and takes it when its stream is there.
func TestSeveralSinks(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	s := newSite(t)
	s.events(3000, nil)
	cfg := s.config(natsSink("good", srv, "") + strings.Replace(natsSink("bad", srv, ""), "create_stream: true", "create_stream: false", 1))
	sum, err := s.once(cfg)
	var halt *flow.HaltError
	if !errors.As(err, &halt) || halt.Sink != "bad" || !strings.Contains(err.Error(), "BAD") {
		t.Fatalf("Run = %v, want sink bad halted because of its stream", err)
	}
	if sum.Sinks[1].State != "failed" || sum.Sinks[1].Spooled != sum.Captured {
		t.Errorf("bad sink %+v", sum.Sinks[1])
	}
	if sum.Sinks[0].Accepted != sum.Captured {
		t.Errorf("good sink %+v of %d", sum.Sinks[0], sum.Captured)
	}
	if _, err := srv.JetStream(t).CreateStream(t.Context(), jetstream.StreamConfig{Name: "BAD", Subjects: []string{"bad.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err = s.once(cfg); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"GOOD", "BAD"} {
		ids, _ := stored(t, srv, stream)
		eachOnce(t, ids, 3000)
	}
}

// TestUnreachable: no server is no crash. The state says so, what was captured stays, and a stop is orderly.
func TestUnreachable(t *testing.T) {
	srv := natstest.Start(t)
	srv.Kill()
	s := newSite(t)
	s.events(500, nil)
	cfg := s.config(natsSink("one", srv, ""))
	a := s.open(cfg, true)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for {
		sum := a.Summary()
		if sum.Captured == 500 && sum.Sinks[0].Error != "" {
			if sum.Sinks[0].State == "ready" || sum.Spooled != 500 {
				t.Errorf("sink %+v", sum.Sinks[0])
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	srv.Restart()
	if _, err := s.once(cfg); err != nil {
		t.Fatal(err)
	}
	ids, _ := stored(t, srv, "ONE")
	eachOnce(t, ids, 500)
}

// TestDamagedSpool: a flipped byte in the spool costs the row that it is in, is counted, and the books balance.
func TestDamagedSpool(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	srv.Kill()
	s := newSite(t)
	s.events(500, nil)
	cfg := s.config(natsSink("one", srv, ""))
	a := s.open(cfg, true)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for a.Summary().Captured < 500 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := errors.Join(<-done, a.Close()); err != nil {
		t.Fatal(err)
	}
	db := s.path("data/spool/spool.db")
	file, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.ReplaceAll(file, []byte(`"n":250,`), []byte(`"n":256,`))
	if bytes.Equal(flipped, file) {
		t.Fatal("event 250 is not in the file")
	}
	if err := os.WriteFile(db, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	srv.Restart()
	sum, err := s.once(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k := sum.Sinks[0]
	if k.Damaged == 0 || k.Damaged > 20 || k.Accepted+k.Damaged != 500 || k.Spooled != 0 {
		t.Errorf("sink %+v", k)
	}
	ids, _ := stored(t, srv, "ONE")
	eachOnce(t, ids, int(k.Accepted))
}

// TestFailedSinkFillsTheSpool: a serving agent whose failed sink keeps the spool full says so and waits, also when the
// sink fails long after the spool was full. When the sink is mended everything goes on by itself, and each event is
// stored once in both streams.
func TestFailedSinkFillsTheSpool(t *testing.T) {
	const n = 100_000
	patience := time.Now().Add(3 * time.Minute)
	f := func(name string, late bool) {
		t.Run(name, func(t *testing.T) {
			good, bad := natstest.Start(t, natstest.SyncInterval("1m")), natstest.Start(t, natstest.SyncInterval("1m"))
			if late {
				bad.Kill()
			}
			s := newSite(t)
			s.events(n, nil)
			cfg := s.config(natsSink("good", good, "") + strings.Replace(natsSink("bad", bad, ""), "create_stream: true", "create_stream: false", 1))
			cfg.Spool.MaxBytes = 8 << 20
			a := s.open(cfg, false)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- a.Run(ctx) }()
			until := func(what string, ok func(sum *status.Summary) bool) {
				t.Helper()
				for !ok(a.Summary()) {
					select {
					case err := <-done:
						t.Fatalf("the agent ended by itself: %v", err)
					case <-time.After(5 * time.Millisecond):
					}
					if time.Now().After(patience) {
						t.Fatalf("never %s: %+v", what, a.Summary())
					}
				}
			}
			if late {
				for full := 0; full < 30; time.Sleep(100 * time.Millisecond) { // for three seconds: it has been told
					if full++; !a.Summary().SpoolFull {
						full = 0
					}
				}
				bad.Restart()
			}
			until("full and failed", func(sum *status.Summary) bool {
				return sum.SpoolFull && sum.Sinks[1].State == "failed" && strings.Contains(sum.Sinks[1].Error, "create_stream") &&
					sum.Sinks[0].Spooled == 0 && strings.Contains(s.log.String(), "full of what a failed sink")
			})
			if sum := a.Summary(); sum.Captured == 0 || sum.Captured == n || strings.Count(s.log.String(), "full of what a failed sink") != 1 {
				t.Errorf("summary %+v", sum)
			}
			if _, err := bad.JetStream(t).CreateStream(t.Context(), jetstream.StreamConfig{Name: "BAD", Subjects: []string{"bad.>"}}); err != nil {
				t.Fatal(err)
			}
			until("settled", func(sum *status.Summary) bool { return sum.Captured == n && sum.Spooled == 0 })
			stop()
			err := <-done
			sum := a.Summary()
			if err := errors.Join(err, a.Close()); err != nil {
				t.Error(err)
			}
			if !sum.Balanced || sum.Sinks[0].Accepted != n || sum.Sinks[1].Accepted != n || sum.Sinks[1].State != "settled" {
				t.Errorf("summary %+v", sum)
			}
		})
	}
	f("before", false)
	f("after", true)
}

// TestInputFails: a serving agent whose inputs have failed says so and ends.
func TestInputFails(t *testing.T) {
	srv := natstest.Start(t)
	s := newSite(t)
	s.events(10, nil)
	cfg := s.config(natsSink("one", srv, ""))
	a := s.open(cfg, false)
	if err := os.Remove(s.path("events.ndjson")); err != nil {
		t.Fatal(err)
	}
	err := a.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "run input in") {
		t.Errorf("Run = %v, want the input's failure", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
