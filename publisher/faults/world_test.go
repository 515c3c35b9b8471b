package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

// patience bounds every wait of the harness. Who runs into it has failed.
const patience = 90 * time.Second

// world is what a schedule runs on: servers that live as long as the whole test. A schedule gives it back as it found
// it; one that failed does not give it back.
type world struct {
	servers []*natstest.Server
	cluster *natstest.Cluster // nil for one server
	proxy   *natstest.Proxy
	next    atomic.Int64 // the server that the proxy's next connection goes to
}

// worlds keeps those that nobody uses. Servers belong to the test of all schedules, not to one.
type worlds struct {
	t    *testing.T
	mu   sync.Mutex
	free map[bool][]*world // guarded by mu; by whether they are clusters
}

func (ws *worlds) take(cluster bool) *world {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if free := ws.free[cluster]; len(free) > 0 {
		ws.free[cluster] = free[1:]
		return free[0]
	}
	w := &world{}
	// The kills are of processes, so what the kernel has is kept: no sync is needed, and it is many times faster.
	if cluster {
		w.cluster = natstest.StartCluster(ws.t, 3, natstest.SyncInterval("2m"))
		w.servers = w.cluster.Servers
	} else {
		w.servers = []*natstest.Server{natstest.Start(ws.t, natstest.SyncInterval("2m"))}
	}
	w.proxy = natstest.NewProxy(ws.t, func() string {
		return w.servers[int(w.next.Add(1))%len(w.servers)].Addr()
	})
	return w
}

func (ws *worlds) give(w *world) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.free[w.cluster != nil] = append(ws.free[w.cluster != nil], w)
}

// restart changes when the servers sync.
func (w *world) restart(sync string) {
	for _, srv := range w.servers {
		srv.Restart(natstest.SyncInterval(sync))
	}
}

// connect makes a connection that no fault of the proxy touches.
func (w *world) connect(t *testing.T) *nats.Conn {
	t.Helper()
	if w.cluster != nil {
		return w.cluster.Connect(t)
	}
	return w.servers[0].Connect(t)
}

// leader is the server that leads the stream.
func (w *world) leader(t *testing.T, stream string) *natstest.Server {
	t.Helper()
	if w.cluster != nil {
		return w.cluster.Leader(t, stream)
	}
	return w.servers[0]
}

// insist repeats do until it succeeds: a server or a leader may be away.
func insist(ctx context.Context, what string, do func(ctx context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		try, done := context.WithTimeout(ctx, 2*time.Second)
		err := do(try)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// message is what the stream holds.
type message struct {
	sequence uint64
	id       string
	subject  string
	payload  []byte
}

// read takes everything out of the stream, in its order, when all its replicas are there.
func read(ctx context.Context, js jetstream.JetStream, stream string, replicas int) ([]message, error) {
	var info *jetstream.StreamInfo
	err := insist(ctx, "look at the stream", func(ctx context.Context) error {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		info = s.CachedInfo()
		if info.Cluster == nil || replicas == 1 {
			return nil
		}
		if info.Cluster.Leader == "" || len(info.Cluster.Replicas) != replicas-1 {
			return fmt.Errorf("%+v", info.Cluster)
		}
		for _, r := range info.Cluster.Replicas {
			if r.Offline || !r.Current {
				return fmt.Errorf("replica %+v", r)
			}
		}
		return nil
	})
	if err != nil || info.State.Msgs == 0 {
		return nil, err
	}
	var c jetstream.Consumer
	// A cluster that has just changed its leader may drop the wish for a consumer without an answer.
	err = insist(ctx, "read the stream", func(ctx context.Context) (err error) {
		c, err = js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	it, err := c.Messages(jetstream.PullMaxMessages(1000))
	if err != nil {
		return nil, fmt.Errorf("read the stream: %w", err)
	}
	defer it.Stop()
	var all []message
	for {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("read the stream after %d of %d messages: %w", len(all), info.State.Msgs, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, fmt.Errorf("read the stream: %w", err)
		}
		all = append(all, message{meta.Sequence.Stream, m.Headers().Get("Nats-Msg-Id"), m.Subject(), m.Data()})
		if meta.NumPending == 0 {
			return all, nil
		}
	}
}
