package publisher

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/envelope"
	"edge/publisher/natstest"
)

// patience bounds waits that must end. It decides no result.
const patience = 60 * time.Second

// rig is a Publisher that runs.
type rig struct {
	t    *testing.T
	srv  *natstest.Server
	p    *Publisher
	stop context.CancelFunc
	done chan struct{}
}

// run starts a Publisher into stream EDGE with subjects e.>, which it creates. change may change that.
func run(t *testing.T, srv *natstest.Server, change func(c *Config)) *rig {
	t.Helper()
	cfg := Config{
		URL: srv.URL(), Token: srv.Token(), Stream: "EDGE", Subjects: []string{"e.>"}, CreateStream: true,
		RequestTimeout: 20 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &rig{t: t, srv: srv, p: p, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		p.Run(ctx)
	}()
	t.Cleanup(r.end)
	return r
}

// calm keeps the publisher from looking at the stream again, so that a test sees what the stream itself answers.
func calm(c *Config) { c.minRecheck, c.recheckEvery = time.Hour, time.Hour }

// inModes runs a test once for each way that messages can travel: what it proves is the same for all.
func inModes(t *testing.T, f func(t *testing.T, mode Mode)) {
	t.Helper()
	for _, mode := range []Mode{ModeSingle, ModeAtomic, ModeFast} {
		t.Run(mode.String(), func(t *testing.T) { f(t, mode) })
	}
}

// travels is a change of run's that only sets the mode.
func travels(mode Mode) func(c *Config) { return func(c *Config) { c.Mode = mode } }

// end stops Run and waits for it.
func (r *rig) end() {
	r.stop()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.t.Errorf("Run has not ended:\n%s", stacks())
	}
}

func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

// until waits for a status.
func (r *rig) until(what string, ok func(s Status) bool) Status {
	r.t.Helper()
	timeout := time.After(patience)
	for {
		s := r.p.Status()
		if ok(s) {
			return s
		}
		select {
		case <-r.p.Changed():
		case <-time.After(5 * time.Millisecond): // counters change without a notice
		case <-timeout:
			r.t.Fatalf("no status with %s: %+v\n%s", what, s, stacks())
		}
	}
}

func (r *rig) ready() Status {
	r.t.Helper()
	return r.until("ready", func(s Status) bool { return s.State == Ready })
}

// fatal waits for the publisher to fail with the code.
func (r *rig) fatal(code string) {
	r.t.Helper()
	s := r.until("failure", func(s Status) bool { return s.State == Failed })
	if s.Fatal == nil || s.Fatal.Code != code || s.Fatal.Fix == "" || s.Fatal.Field == "" || s.Err != s.Fatal.Error() {
		r.t.Fatalf("status is %+v with %+v, want %s", s, s.Fatal, code)
	}
	if err := r.p.Send(message(1, "e.1"), 1); !errors.Is(err, ErrNotReady) {
		r.t.Errorf("Send after a failure: %v", err)
	}
}

// message makes a message with an id of its own for each n.
func message(n int, subject string) *envelope.Message {
	m := &envelope.Message{Subject: []byte(subject), Payload: fmt.Appendf(nil, `{"n":%d}`, n)}
	binary.BigEndian.PutUint64(m.ID[8:], uint64(n)+1)
	return m
}

// send admits a message that must be admitted.
func (r *rig) send(m *envelope.Message, tag uint64) {
	r.t.Helper()
	if err := r.p.Send(m, tag); err != nil {
		r.t.Fatalf("send %d: %v", tag, err)
	}
}

// result waits for the next one.
func (r *rig) result() Result {
	r.t.Helper()
	select {
	case x := <-r.p.Results():
		return x
	case <-time.After(patience):
		r.t.Fatalf("no result: %+v\n%s", r.p.Status(), stacks())
	}
	panic("unreachable")
}

// wait waits for what a goroutine of the test says at its end.
func (r *rig) wait(ended <-chan error) error {
	r.t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		r.t.Fatalf("it does not end: %+v\n%s", r.p.Status(), stacks())
	}
	panic("unreachable")
}

// one sends one message and checks its outcome.
func (r *rig) one(m *envelope.Message, want Outcome) Result {
	r.t.Helper()
	r.send(m, 77)
	x := r.result()
	if x.Outcome != want || x.Tag != 77 || (x.Err == nil) != (want == Accepted) {
		r.t.Fatalf("%s: %+v, want %v", m.Subject, x, want)
	}
	return x
}

// stored reads the ids that the stream holds through a connection of its own.
func stored(t *testing.T, js jetstream.JetStream, name string) map[string]int {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]int)
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		ids[m.Header.Get(headerID)]++
	}
	return ids
}

// TestGoroutines takes a Publisher through connection, loss, failure to connect and end. Nothing of it or of the
// client library stays.
func TestGoroutines(t *testing.T) {
	srv := natstest.Start(t)
	r := run(t, srv, nil)
	r.ready()
	r.one(message(1, "e.1"), Accepted)
	srv.Kill()
	r.until("loss", func(s Status) bool { return s.State == Disconnected })
	srv.Restart()
	r.ready()
	r.end()
	ours := [][]byte{[]byte("edge/publisher.(*Publisher)"), []byte("nats-io/nats.go.")}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		b := stacks()
		left := false
		for _, name := range ours {
			left = left || bytes.Contains(b, name)
		}
		if !left {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines stay:\n%s", b)
		}
	}
}
