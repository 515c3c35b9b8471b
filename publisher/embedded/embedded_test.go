package embedded

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestRestart stores through one server and reads through the next, on the same port.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first := start(t, Config{StoreDir: dir, Token: "s3cret"})
	if _, err := nats.Connect(first.URL(), nats.Token("wrong")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a wrong token: %v", err)
	}
	connect := func(s *Server) jetstream.JetStream {
		t.Helper()
		nc, err := nats.Connect(s.URL(), nats.Token("s3cret"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
	js := connect(first)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	first.Close()
	first.Close()
	u, err := url.Parse(first.URL())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", u.Host); err == nil {
		c.Close()
		t.Error("a closed server takes connections")
	}

	second := start(t, Config{StoreDir: dir, Token: "s3cret", Addr: u.Host})
	if second.URL() != first.URL() {
		t.Errorf("listens on %s, want %s", second.URL(), first.URL())
	}
	stream, err := connect(second).Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil || string(m.Data) != "kept" {
		t.Fatalf("stored message is %v, %v", m, err)
	}
}

func TestRefuse(t *testing.T) {
	f := func(addr string) {
		t.Helper()
		s, err := Start(Config{StoreDir: t.TempDir(), Addr: addr, Logger: slog.New(slog.DiscardHandler)})
		var ae *AddrError
		if !errors.As(err, &ae) || ae.Addr != addr || !strings.Contains(err.Error(), "127.0.0.1:4222") {
			t.Errorf("%q: %v", addr, err)
		}
		if err == nil {
			s.Close()
		}
	}
	f("0.0.0.0:4222")
	f(":4222")
	f("10.1.2.3:4222")
	f("[::]:4222")
	f("example.com:4222")
	f("127.0.0.1")
	f("127.0.0.1:-1")
	f("127.0.0.1:65536")
	f("127.0.0.1:nats")
	if _, err := Start(Config{Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "store folder") {
		t.Errorf("no store folder: %v", err)
	}
}

// TestFailure has the server itself refuse: what it says reaches the caller and the log.
func TestFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(cfg Config, say string) {
		t.Helper()
		var out bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
		s, err := Start(cfg)
		if err == nil {
			s.Close()
			t.Fatalf("%+v: started", cfg)
		}
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want something that says %q", err, say)
		}
		if !strings.Contains(out.String(), "level=ERROR") {
			t.Errorf("the log is silent: %q", out.String())
		}
	}
	f(Config{StoreDir: t.TempDir(), Addr: l.Addr().String()}, "address already in use")
	f(Config{StoreDir: file}, "JetStream")
}
