package natstest

import (
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// externalEnv names an external server for tests that need no process control: nats://token@127.0.0.1:4222.
const externalEnv = "EDGE_TEST_NATS_URL"

// Any returns the server that EDGE_TEST_NATS_URL names, or starts one. It serves tests that neither kill nor
// configure it; they should name their streams for themselves and delete them, because the server may live on. An
// address that is not loopback fails the test: tests write and delete.
func Any(t testing.TB) *Server {
	t.Helper()
	text := os.Getenv(externalEnv)
	if text == "" {
		return Start(t)
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatalf("natstest: %s is not a URL", externalEnv) // not quoted: it may hold a token
	}
	if u.Scheme != "nats" || !loopback(u.Hostname()) {
		t.Fatalf("natstest: %s: %s is refused: tests write and delete, so it must be nats:// on a loopback address", externalEnv, u.Redacted())
	}
	return &Server{t: t, addr: u.Host, set: settings{token: u.User.Username()}}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Connect returns a connection that is independent of what is tested. It reconnects for as long as the test runs and
// is closed with it. It has what it needs by itself (token, certificate, an operator's credentials) unless that is a
// user of Authorization. Options come after the fixture's own, so they may replace them.
func (s *Server) Connect(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	return s.ConnectTo(t, s.URL(), opts...)
}

// ConnectTo is Connect with another address: that of a proxy, or several.
func (s *Server) ConnectTo(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	all := []nats.Option{nats.Name("natstest"), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.Timeout(10 * time.Second)}
	if s.set.token != "" {
		all = append(all, nats.Token(s.set.token))
	}
	if s.set.creds != "" {
		all = append(all, nats.UserCredentials(s.set.creds))
	}
	secure, err := s.set.tls.options()
	if err != nil {
		t.Fatalf("natstest: prepare TLS: %v", err)
	}
	all = append(all, secure...)
	nc, err := nats.Connect(url, append(all, opts...)...)
	if err != nil {
		t.Fatalf("natstest: connect to %s: %v", url, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// JetStream is Connect with JetStream's own interface on top.
func (s *Server) JetStream(t testing.TB, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	return newJetStream(t, s.Connect(t, opts...))
}

func newJetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatalf("natstest: %v", err)
	}
	return js
}
