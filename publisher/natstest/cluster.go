package natstest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Cluster is several servers that replicate streams among them. Each can be killed, paused and restarted by itself,
// and keeps its name, ports and data. Methods belong to the goroutine of the test; URL and Token may be called from
// anywhere.
type Cluster struct {
	Servers []*Server // at least one; fixed
	t       testing.TB
}

// StartCluster starts n servers with one token and waits until the cluster is ready. The servers tell clients each
// other's addresses. Options configure them all. They end with the test.
func StartCluster(t testing.TB, n int, opts ...Option) *Cluster {
	t.Helper()
	set := newSettings(opts)
	for i := 1; ; i++ {
		c := newCluster(t, n, set)
		err := c.start()
		if err == nil {
			return c
		}
		taken := false
		for _, s := range c.Servers {
			taken = taken || s.portTaken()
			if s.proc != nil {
				s.proc.kill()
			}
		}
		if i == tries || !taken {
			t.Fatalf("natstest: start a cluster of %d: %v\n%s", n, err, c.Servers[0].log())
		}
	}
}

func newCluster(t testing.TB, n int, set settings) *Cluster {
	t.Helper()
	if n < 1 {
		t.Fatalf("natstest: a cluster of %d servers", n)
	}
	c := &Cluster{t: t}
	// Strangers must not join, and clusters of several tests may meet on a port that had another owner before.
	user := "route:" + secret()
	var addrs, routes []string
	for range n {
		addrs = append(addrs, freeAddr(t))
		routes = append(routes, strconv.Quote("nats://"+user+"@"+addrs[len(addrs)-1]))
	}
	name, password := set.name, strings.TrimPrefix(user, "route:")
	for i, addr := range addrs {
		set.name = name + "-" + strconv.Itoa(i+1)
		set.cluster = fmt.Sprintf("name: %q\nlisten: %q\nauthorization { user: route, password: %q }\nroutes: [ %s ]\n",
			name, addr, password, strings.Join(routes, ", "))
		c.Servers = append(c.Servers, newServer(t, set))
	}
	return c
}

func (c *Cluster) start() error {
	for _, s := range c.Servers {
		if err := s.start(); err != nil {
			return fmt.Errorf("%s: %w", s.Name(), err)
		}
	}
	return c.await()
}

// URL is the addresses of all servers, with commas, without credentials.
func (c *Cluster) URL() string {
	var urls []string
	for _, s := range c.Servers {
		urls = append(urls, s.URL())
	}
	return strings.Join(urls, ",")
}

// Token is the token of every server.
func (c *Cluster) Token() string { return c.Servers[0].Token() }

// Connect is Server.Connect with the addresses of all servers. It leaves a server that stands still within seconds,
// where the client library's own ping interval would let it wait for minutes.
func (c *Cluster) Connect(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	all := []nats.Option{nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(5 * time.Second)}
	return c.Servers[0].ConnectTo(t, c.URL(), append(all, opts...)...)
}

// JetStream is Connect with JetStream's own interface on top.
func (c *Cluster) JetStream(t testing.TB, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	return newJetStream(t, c.Connect(t, opts...))
}

// Ready returns when JetStream has a leader and a stream can have a replica on every server (five at most, which is
// the server's limit). So all servers must run.
func (c *Cluster) Ready(t testing.TB) {
	t.Helper()
	if err := c.await(); err != nil {
		t.Fatalf("natstest: the cluster is not ready: %v\n%s", err, c.Servers[0].log())
	}
}

// await makes a stream with all replicas and deletes it.
func (c *Cluster) await() error {
	nc := c.Connect(c.t)
	defer nc.Close()
	js := newJetStream(c.t, nc)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := "natstest-" + secret()
	cfg := jetstream.StreamConfig{Name: name, Subjects: []string{name}, Storage: jetstream.MemoryStorage, Replicas: min(len(c.Servers), 5)}
	made := func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, cfg)
		return err
	}
	gone := func(ctx context.Context) error {
		err := js.DeleteStream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	}
	if err := c.persist(ctx, len(c.Servers), made); err != nil {
		return fmt.Errorf("make a stream with %d replicas: %w", cfg.Replicas, err)
	}
	if err := c.persist(ctx, len(c.Servers), gone); err != nil {
		return fmt.Errorf("delete a stream: %w", err)
	}
	return nil
}

// persist repeats do, two seconds for each try, until it succeeds, ctx ends, or fewer than need servers run. A request
// that reaches a cluster without a leader has no answer, so it is the repetition that finds one.
func (c *Cluster) persist(ctx context.Context, need int, do func(context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := do(try)
		cancel()
		if err == nil {
			return nil
		}
		running := 0
		for _, s := range c.Servers {
			if s.proc.running() {
				running++
			}
		}
		if ctx.Err() != nil || running < need {
			return fmt.Errorf("%d of %d servers run: %w", running, len(c.Servers), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Leader asks for the stream's leader until there is one, and returns it.
func (c *Cluster) Leader(t testing.TB, stream string) *Server {
	t.Helper()
	nc := c.Connect(t)
	defer nc.Close()
	js := newJetStream(t, nc)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var leader *Server
	err := c.persist(ctx, len(c.Servers)/2+1, func(ctx context.Context) error {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		info := s.CachedInfo()
		if info.Cluster == nil {
			return errors.New("its information names no cluster")
		}
		for _, s := range c.Servers {
			if s.Name() == info.Cluster.Leader {
				leader = s
				return nil
			}
		}
		return fmt.Errorf("its leader is called %q", info.Cluster.Leader)
	})
	if err != nil {
		t.Fatalf("natstest: find the leader of stream %q: %v", stream, err)
	}
	return leader
}
