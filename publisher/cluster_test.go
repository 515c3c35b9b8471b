package publisher

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

// settle sends every open message again until none is, as a lane does, and returns how many were accepted. between is
// called after each acknowledgement with their number.
func (r *rig) settle(n int, between func(accepted int)) int {
	r.t.Helper()
	open := make([]int, n)
	for i := range open {
		open[i] = i
	}
	accepted, flight := 0, 0
	pause := time.Duration(0)
	for end := time.Now().Add(3 * patience); accepted < n; {
		for len(open) > 0 && pause == 0 && r.p.Send(message(open[0], "e.1"), uint64(open[0])) == nil {
			open, flight = open[1:], flight+1
		}
		if time.Now().After(end) {
			r.t.Fatalf("%d of %d are accepted: %+v", accepted, n, r.p.Status())
		}
		if flight == 0 { // everything was refused, or there is no stream now
			time.Sleep(max(pause, 5*time.Millisecond))
			pause = 0
			continue
		}
		x := r.result()
		flight--
		switch x.Outcome {
		case Accepted:
			accepted++
			between(accepted)
		case Retryable, Unknown:
			open = append(open, int(x.Tag))
			pause = 100 * time.Millisecond
		default:
			r.t.Fatalf("%+v", x)
		}
	}
	return accepted
}

// TestClusterLeaderKilled kills the leader of a replicated stream twice under load. Nothing is lost and nothing is
// stored twice.
func TestClusterLeaderKilled(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t, 3)
	c.Ready(t)
	js := c.JetStream(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Replicas: 3, Discard: jetstream.DiscardNew}); err != nil {
		t.Fatal(err)
	}
	r := run(t, c.Servers[0], func(cfg *Config) {
		cfg.URL, cfg.Token, cfg.CreateStream, cfg.MaxInFlight, cfg.RequestTimeout = c.URL(), c.Token(), false, 64, 5*time.Second
	})
	if s := r.ready(); s.Profile.Replicas != 3 || s.Profile.Leader == "" {
		t.Errorf("%+v", s.Profile)
	}
	const n = 2000
	var killed *natstest.Server
	r.settle(n, func(accepted int) {
		switch accepted {
		case n / 4, n / 2:
			killed = c.Leader(t, "EDGE")
			killed.Kill()
		case n/4 + n/8, n/2 + n/8:
			killed.Restart()
		}
	})
	c.Ready(t)
	ids := stored(t, js, "EDGE")
	for id, copies := range ids {
		if copies != 1 {
			t.Errorf("%s is stored %d times", id, copies)
		}
	}
	if len(ids) != n {
		t.Errorf("%d ids are stored, want %d", len(ids), n)
	}
	t.Logf("%+v", r.p.Status().Counters)
}
