package natstest

import (
	"encoding/json"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// rig is a server with a stream behind a proxy, and a client of each.
type rig struct {
	s      *Server
	p      *Proxy
	direct jetstream.JetStream
	nc     *nats.Conn // through the proxy
	acks   chan uint64
	inbox  string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{s: Start(t), acks: make(chan uint64, 100), inbox: nats.NewInbox()}
	r.p = NewProxy(t, r.s.Addr)
	r.direct = r.s.JetStream(t)
	if _, err := r.direct.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	r.nc = r.s.ConnectTo(t, r.p.URL())
	_, err := r.nc.Subscribe(r.inbox, func(m *nats.Msg) {
		var a struct{ Seq uint64 }
		if err := json.Unmarshal(m.Data, &a); err != nil {
			t.Errorf("%q: %v", m.Data, err)
		}
		r.acks <- a.Seq
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) publish(t *testing.T) {
	t.Helper()
	if err := r.nc.PublishRequest("s", r.inbox, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) ack(t *testing.T) uint64 {
	t.Helper()
	select {
	case seq := <-r.acks:
		return seq
	case <-time.After(patience):
		t.Fatal("no acknowledgement")
		return 0
	}
}

func (r *rig) stored(t *testing.T) uint64 {
	t.Helper()
	s, err := r.direct.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// TestEatAcks eats two of six: they are stored like the others.
func TestEatAcks(t *testing.T) {
	r := newRig(t)
	seen := make(chan int, 100)
	r.p.EatAcks(func(n int, data []byte) bool {
		seen <- n
		return n == 2 || n == 5
	})
	for range 6 {
		r.publish(t)
	}
	for want := 1; want <= 6; want++ {
		if n := <-seen; n != want {
			t.Fatalf("acknowledgement %d is called %d", want, n)
		}
	}
	var got []uint64
	for range 4 {
		got = append(got, r.ack(t))
	}
	if want := []uint64{1, 3, 4, 6}; !slices.Equal(got, want) || r.p.Eaten() != 2 || r.stored(t) != 6 {
		t.Errorf("acknowledged %v, want %v; %d eaten, %d stored", got, want, r.p.Eaten(), r.stored(t))
	}
	r.p.EatAcks(nil)
	r.publish(t)
	if seq := r.ack(t); seq != 7 || r.p.Eaten() != 2 {
		t.Errorf("acknowledged %d, %d eaten", seq, r.p.Eaten())
	}
}

// TestEatWhatIsStored looks at the stream through another connection before it answers.
func TestEatWhatIsStored(t *testing.T) {
	r := newRig(t)
	looked := make(chan uint64)
	answer := make(chan bool)
	r.p.EatAcks(func(int, []byte) bool {
		m, err := r.direct.Stream(t.Context(), "S")
		if err != nil {
			t.Error(err)
			looked <- 0
			return false
		}
		looked <- m.CachedInfo().State.LastSeq
		return <-answer
	})
	f := func(want uint64, eat bool) {
		t.Helper()
		r.publish(t)
		if seq := <-looked; seq != want {
			t.Errorf("%d is stored at the time of the acknowledgement, want %d", seq, want)
		}
		select {
		case seq := <-r.acks:
			t.Errorf("%d was acknowledged before the decision", seq)
		default:
		}
		answer <- eat
	}
	f(1, true)
	f(2, false)
	if seq := r.ack(t); seq != 2 {
		t.Errorf("%d was acknowledged, want 2", seq)
	}
	// A decision may cut as well: the acknowledgement is lost with the connection.
	r.p.EatAcks(func(int, []byte) bool { r.p.Cut(); return false })
	r.publish(t)
	awaitReconnect(t, r.nc, 1)
	r.p.EatAcks(nil)
	r.publish(t)
	if seq := r.ack(t); seq != 4 {
		t.Errorf("%d was acknowledged, want 4", seq)
	}
}

func awaitReconnect(t *testing.T, nc *nats.Conn, times uint64) {
	t.Helper()
	for end := time.Now().Add(patience); nc.Stats().Reconnects < times || !nc.IsConnected(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not connected again, state %v", nc.Status())
		}
	}
}

func TestCut(t *testing.T) {
	r := newRig(t)
	r.p.Cut()
	awaitReconnect(t, r.nc, 1)
	r.publish(t)
	r.ack(t)

	r.p.Refuse(true)
	r.p.Cut()
	if _, err := nats.Connect(r.p.URL(), nats.Token(r.s.Token())); err == nil {
		t.Error("connected through a proxy that refuses")
	}
	if r.nc.Stats().Reconnects != 1 {
		t.Error("connected again through a proxy that refuses")
	}
	r.p.Refuse(false)
	awaitReconnect(t, r.nc, 2)
	r.publish(t)
	r.ack(t)

	r.s.Kill() // the proxy passes on that a server is gone
	r.s.Restart()
	awaitReconnect(t, r.nc, 3)
	r.publish(t)
	r.ack(t)
}

func TestStall(t *testing.T) {
	r := newRig(t)
	r.publish(t)
	r.ack(t)
	r.p.Stall()
	r.p.Stall()
	r.publish(t)
	if err := r.nc.FlushTimeout(200 * time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("a stalled proxy forwards: %v", err)
	}
	if n := r.stored(t); n != 1 {
		t.Errorf("%d are stored behind a stalled proxy", n)
	}
	if _, err := nats.Connect(r.p.URL(), nats.Token(r.s.Token()), nats.Timeout(200*time.Millisecond)); !timedOut(err) {
		t.Errorf("connect through a stalled proxy: %v", err)
	}
	r.p.Resume()
	r.p.Resume()
	if seq := r.ack(t); seq != 2 || r.nc.Stats().Reconnects != 0 {
		t.Errorf("acknowledged %d after %d reconnects", seq, r.nc.Stats().Reconnects)
	}
	r.p.Stall() // and the test ends: nothing waits
}

func timedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout() || errors.Is(err, nats.ErrTimeout)
}

func TestDelay(t *testing.T) {
	r := newRig(t)
	const d = 30 * time.Millisecond
	r.p.Delay(d)
	start := time.Now()
	if err := r.nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 2*d {
		t.Errorf("a round trip took %v, want at least %v", took, 2*d)
	}
}

// TestNoTarget leads clients to where nobody listens: they are closed, and come back when the target has moved.
func TestNoTarget(t *testing.T) {
	s := Start(t)
	to := make(chan string, 2)
	to <- "127.0.0.1:1"
	to <- s.Addr()
	p := NewProxy(t, func() string { return <-to })
	if _, err := nats.Connect(p.URL(), nats.Token(s.Token())); err == nil {
		t.Error("connected to nobody")
	}
	s.ConnectTo(t, p.URL())
}
