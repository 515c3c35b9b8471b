package publisher

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

func TestServers(t *testing.T) {
	s := newServers("nats://a.example:4222, nats://b.example", 1)
	urls := func() (list []string) {
		for _, x := range s.list {
			list = append(list, x.url+" "+x.name)
		}
		return list
	}
	take := func(want string) {
		t.Helper()
		if got := s.take(); got.url != want {
			t.Errorf("take gives %s, want %s", got.url, want)
		}
	}
	take("nats://b.example")
	take("nats://a.example:4222")
	s.stay() // it worked
	take("nats://a.example:4222")
	s.stay()
	s.learn([]string{"nats://10.0.0.1:4222", "c.example:4222", "nats://a.example:4222", "", "nats://user:secret@d:1", "%zz"})
	want := []string{"nats://a.example:4222 ", "nats://b.example ", "nats://10.0.0.1:4222 a.example", "nats://c.example:4222 "}
	if !slices.Equal(urls(), want) {
		t.Errorf("%q, want %q", urls(), want)
	}
	take("nats://a.example:4222") // learning does not change whose turn it is
	take("nats://b.example")
	take("nats://10.0.0.1:4222")
	s.stay()
	s.learn(nil) // it is announced no more
	take("nats://a.example:4222")
	var many []string
	for i := range 200 {
		many = append(many, "10.0.0."+string(rune('a'+i%26))+string(rune('a'+i/26))+":1")
	}
	s.learn(many)
	if len(s.list) != maxServers {
		t.Errorf("%d addresses", len(s.list))
	}
}

// TestSecondAddress has only the last of three addresses work.
func TestSecondAddress(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, func(c *Config) { c.URL = "nats://127.0.0.1:1,nats://127.0.0.1:2," + c.URL })
	r.ready()
	r.one(message(1, "e.1"), Accepted)
	srv.Restart()
	r.ready()
	r.one(message(2, "e.1"), Accepted)
}

// TestUselessServer has one of two servers let us in to an account without JetStream: the other one is used.
func TestUselessServer(t *testing.T) {
	good := natstest.Start(t, natstest.Authorization(`users [ { user: u, password: p } ]`))
	bad := natstest.Start(t, natstest.Authorization(``), natstest.Extra(`accounts { NONE { users: [ { user: u, password: p } ] } }`))
	for range 4 { // the first address is drawn
		r := run(t, good, func(c *Config) { c.Token, c.User, c.Password, c.URL = "", "u", "p", bad.URL()+","+good.URL() })
		r.ready()
		if x := r.p.Deliver(t.Context(), message(1, "e.1")); x.Outcome != Accepted {
			t.Errorf("%+v", x)
		}
		r.end()
	}
}

// TestDiscoveredServers kills the one configured server of a cluster: the others are used only if that is allowed.
func TestDiscoveredServers(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t, 3)
	c.Ready(t)
	stream := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Replicas: 3, Discard: jetstream.DiscardNew}
	if _, err := c.JetStream(t).CreateStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	first := c.Servers[0]
	with := func(discovered bool) *rig {
		return run(t, first, func(cfg *Config) { cfg.CreateStream, cfg.DiscoveredServers = false, discovered })
	}
	on, off := with(true), with(false)
	on.ready()
	off.ready()
	first.Kill()
	s := on.until("another server", func(s Status) bool { return s.State == Ready && !strings.Contains(s.Server, first.Name()+" ") })
	if s.Counters.Reconnects == 0 {
		t.Errorf("%+v", s)
	}
	off.until("refused attempts", func(s Status) bool { return s.State == Disconnected && strings.Contains(s.Err, "refused") })
	first.Restart()
	if s := off.ready(); !strings.Contains(s.Server, first.Name()+" ") {
		t.Errorf("%+v", s)
	}
}
