package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
	"edge/runtime/config"
	"edge/runtime/quarantine"
	"edge/runtime/status"
	"edge/wasm/wasmtest"
)

// site is a folder with everything an agent needs, and the ways to run one in it.
type site struct {
	t   *testing.T
	dir string
	log lockedBuffer
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", s.log.String())
		}
	})
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// events writes n events to events.ndjson; every tenth is written by bad instead, if it is given.
func (s *site) events(n int, bad func(i int) string) {
	s.t.Helper()
	var b strings.Builder
	for i := range n {
		if bad != nil && i%10 == 9 {
			b.WriteString(bad(i) + "\n")
			continue
		}
		fmt.Fprintf(&b, `{"n":%d,"robot":"r%d","temp":43.25,"text":"some words to make it longer"}`+"\n", i, i%3)
	}
	s.write("events.ndjson", b.String())
}

// config writes edge.yaml: one file input, and the given sinks.
func (s *site) config(sinks string) *config.Config {
	s.t.Helper()
	s.write("edge.yaml", `
agent: { id: edge-test, data_dir: data, drain_time: 5s }
datasets: [ { name: test, identity: [robot] } ]
inputs: [ { id: in, kind: file, path: events.ndjson, dataset: test, map: { identity: { robot: /robot } } } ]
sinks:
`+sinks)
	cfg, err := config.Load(s.path("edge.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

// natsSink is the YAML of a sink on srv. extra lines go under config.
func natsSink(id string, srv *natstest.Server, extra string) string {
	return fmt.Sprintf(`
  - id: %s
    kind: nats
    retry: { min_backoff: 20ms, max_backoff: 200ms }
    config:
      url: %s
      token: %s
      stream: %s
      create_stream: true
      subject: %s.{robot}
      request_timeout: 3s
%s
`, id, srv.URL(), srv.Token(), strings.ToUpper(id), id, extra)
}

func (s *site) open(cfg *config.Config, once bool) *Agent {
	s.t.Helper()
	a, err := Open(s.t.Context(), cfg, Options{Once: once, Stdin: strings.NewReader(""), Logger: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// once runs an agent to the end of its inputs.
func (s *site) once(cfg *config.Config) (*status.Summary, error) {
	s.t.Helper()
	a := s.open(cfg, true)
	err := a.Run(s.t.Context())
	sum := a.Summary()
	if cerr := a.Close(); cerr != nil {
		s.t.Error(cerr)
	}
	if !sum.Balanced {
		s.t.Errorf("the books do not balance: %+v", sum)
	}
	return sum, err
}

// stored reads a stream back: ids in order of their sequence.
func stored(t *testing.T, srv *natstest.Server, stream string) (ids []string, payloads []string) {
	t.Helper()
	st, err := srv.JetStream(t).Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	n := st.CachedInfo().State.Msgs
	c, err := st.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer msgs.Stop()
	for range n {
		m, err := msgs.Next()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.Headers().Get("Nats-Msg-Id"))
		payloads = append(payloads, string(m.Data()))
	}
	return ids, payloads
}

// eachOnce fails unless ids are want different ones.
func eachOnce(t *testing.T, ids []string, want int) {
	t.Helper()
	seen := map[string]int{}
	for i, id := range ids {
		if first, ok := seen[id]; ok {
			t.Fatalf("id %s is stored twice, as %d and %d", id, first, i)
		}
		seen[id] = i
	}
	if len(ids) != want {
		t.Fatalf("%d messages stored, want %d", len(ids), want)
	}
}

func TestOnce(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	s := newSite(t)
	s.events(2000, nil)
	cfg := s.config(natsSink("one", srv, ""))
	sum, err := s.once(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Captured != 2000 || sum.Accepted != 2000 || sum.Spooled != 0 || sum.Quarantined != 0 {
		t.Errorf("summary %+v", sum)
	}
	if k := sum.Sinks[0]; k.Stream != "ONE" || k.LastSequence != 2000 || k.DeliveryClass != "idempotent_batch" {
		t.Errorf("sink %+v", k)
	}
	ids, payloads := stored(t, srv, "ONE")
	eachOnce(t, ids, 2000)
	for i, p := range payloads {
		if !strings.Contains(p, fmt.Sprintf(`"n":%d,`, i)) {
			t.Fatalf("message %d is %s", i, p)
		}
	}

	sum, err = s.once(cfg)
	if err != nil || sum.Captured != 0 || sum.Accepted != 0 || sum.Spooled != 0 {
		t.Errorf("second run: %v, %+v", err, sum)
	}
	ids, _ = stored(t, srv, "ONE")
	eachOnce(t, ids, 2000)
}

func TestMalformedLinesWait(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	s := newSite(t)
	s.events(100, func(i int) string { return fmt.Sprintf(`{"n":%d, broken`, i) })
	sum, err := s.once(s.config(natsSink("one", srv, "")))
	if err != nil {
		t.Fatal(err)
	}
	if sum.Captured != 100 || sum.Refused != 10 || sum.Quarantined != 10 || sum.Accepted != 90 {
		t.Errorf("summary %+v", sum)
	}
	var got []string
	if _, err := quarantine.Scan(s.path("data/quarantine"), func(e *quarantine.Entry) bool {
		got = append(got, fmt.Sprintf("%s %s %s", e.Source, e.Reason, e.Raw))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 10 || got[3] != `events.ndjson:40 not_json {"n":39, broken` {
		t.Errorf("quarantine has %q", got)
	}
}

// TestModule runs the hostile and the good through one sink: the guilty wait, the rest is stored in order.
func TestModule(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	f := func(name string, code []byte, reason string, want int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.events(50, func(i int) string { return fmt.Sprintf("X%d", i) })
			s.write("m.wasm", string(code))
			id := "m" + name
			cfg := s.config(strings.Replace(natsSink(id, srv, "      allow_subjects: [edge.test]"), "    kind: nats\n",
				"    kind: nats\n    transform: { module: m.wasm, limits: { fuel: 4194304 } }\n", 1))
			cfg.Inputs[0].Format, cfg.Inputs[0].Map = config.FormatRaw, config.Map{} // the guests take any bytes
			cfg.Sinks[0].NATS.Subject = ""
			cfg.Sinks[0].NATS.AllowSubjects = []string{"edge.test." + name, "edge.test"}
			if name != "trap" { // one stream at a time may listen to edge.test
				if err := srv.JetStream(t).DeleteStream(t.Context(), "MTRAP"); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
					t.Fatal(err)
				}
			}
			sum, err := s.once(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Accepted != uint64(want) || sum.Accepted+sum.Quarantined+sum.Dropped != 50 {
				t.Errorf("summary %+v", sum)
			}
			reasons := map[string]int{}
			if _, err := quarantine.Scan(s.path("data/quarantine"), func(e *quarantine.Entry) bool {
				reasons[e.Reason]++
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if reason != "" && reasons[reason] != 50-want {
				t.Errorf("reasons %v, want %d %s", reasons, 50-want, reason)
			}
			ids, _ := stored(t, srv, strings.ToUpper(id))
			eachOnce(t, ids, want)
			if err := srv.JetStream(t).DeleteStream(t.Context(), strings.ToUpper(id)); err != nil {
				t.Fatal(err)
			}
		})
	}
	f("trap", wasmtest.TrapX(), "module_fault_trap", 45)
	f("spin", wasmtest.SpinX(), "module_fault_fuel", 45)
	f("wild", wasmtest.WildResultX(), "module_fault_frame", 45)
	f("reject", wasmtest.RejectX(), "module_rejected", 45)
	f("drop", wasmtest.DropX(), "", 45)
}

func TestEmbedded(t *testing.T) {
	s := newSite(t)
	s.events(1000, nil)
	cfg := s.config(`
  - { id: a, kind: nats, config: { url: "embedded://", stream: A, create_stream: true, subject: "a.{robot}" } }
  - { id: b, kind: nats, config: { url: "embedded://", stream: B, create_stream: true, subject: "b.{robot}" } }
`)
	for run, want := range []uint64{2000, 0} {
		sum, err := s.once(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Accepted != want || sum.Duplicates != 0 {
			t.Errorf("run %d: %+v", run, sum)
		}
	}
}

// TestServes: without Once an agent stays when its inputs are at their end, and stops when it is told to.
func TestServes(t *testing.T) {
	srv := natstest.Start(t, natstest.SyncInterval("1m"))
	s := newSite(t)
	s.events(300, nil)
	a := s.open(s.config(natsSink("one", srv, "")), false)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for a.Summary().Accepted < 300 || !a.Progress().Done {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-done:
		t.Fatalf("ended by itself: %v", err)
	default:
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSetupErrors: what the configuration names and cannot be used is told before anything runs.
func TestSetupErrors(t *testing.T) {
	f := func(module []byte, transform, want string) {
		t.Helper()
		s := newSite(t)
		s.events(1, nil)
		s.write("m.wasm", string(module))
		cfg := s.config(`
  - { id: a, kind: nats, transform: ` + transform + `, config: { url: "embedded://", stream: A, subject: "a.{robot}" } }
`)
		a, err := Open(t.Context(), cfg, Options{Logger: slog.New(slog.DiscardHandler), Stdin: strings.NewReader("")})
		var setup *SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), want) || a != nil {
			t.Errorf("Open = %v, want a SetupError with %q", err, want)
		}
		if _, err := CheckModules(t.Context(), cfg, slog.New(slog.DiscardHandler)); !errors.As(err, &setup) || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckModules = %v, want a SetupError with %q", err, want)
		}
	}
	f([]byte("no module"), `{ module: m.wasm }`, "m.wasm")
	f(wasmtest.Echo(), `{ module: m.wasm, sha256: `+strings.Repeat("ab", 32)+` }`, "pins abab")
}
