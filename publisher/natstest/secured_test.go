package natstest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// secured starts a server and takes it through a life with the fixture's own connections.
func secured(t *testing.T, opts ...Option) *Server {
	t.Helper()
	s := Start(t, opts...)
	js := s.JetStream(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart()
	if _, err := js.Publish(t.Context(), "s", nil, jetstream.WithRetryAttempts(1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Conn().TLSConnectionState(); err != nil {
		t.Errorf("connected in the clear: %v", err)
	}
	return s
}

// try connects as a client would and returns how it went.
func (s *Server) try(t *testing.T, opts ...nats.Option) error {
	t.Helper()
	nc, err := nats.Connect(s.URL(), append(opts, nats.Token(s.Token()), nats.Timeout(patience))...)
	if err == nil {
		nc.Close()
	}
	return err
}

var here = CertConfig{Hosts: []string{"127.0.0.1"}}

func TestServerCertificate(t *testing.T) {
	ca := NewCA(t)
	f := func(cfg CertConfig, want any, opts ...nats.Option) {
		t.Helper()
		s := secured(t, TLS(ca.Issue(t, cfg)))
		if err := s.try(t, opts...); want == nil && err != nil || want != nil && !errors.As(err, want) {
			t.Errorf("%v: %v, want a %T", cfg, err, want)
		}
	}
	f(here, nil, ca.Option())
	f(here, new(x509.UnknownAuthorityError))
	f(here, new(x509.UnknownAuthorityError), NewCA(t).Option())
	f(CertConfig{Hosts: []string{"nats.example", "10.1.2.3"}}, new(x509.HostnameError), ca.Option())
	f(CertConfig{Hosts: here.Hosts, NotAfter: time.Now().Add(-time.Minute)}, new(x509.CertificateInvalidError), ca.Option())
}

// TestClientCertificate asks for one, with either kind of handshake.
func TestClientCertificate(t *testing.T) {
	f := func(extra []nats.Option, opts ...Option) {
		t.Helper()
		ca, other := NewCA(t), NewCA(t)
		cert, key := ca.Issue(t, here)
		s := secured(t, append(opts, MutualTLS(ca, cert, key))...)
		// What a refused client sees depends on how far it came: the server's alert, or its own broken write.
		client := func(who string, in bool, issuer *CA, cfg CertConfig) {
			t.Helper()
			cfg.Hosts, cfg.Client = []string{"client"}, true
			if err := s.try(t, append(extra, ca.Option(), nats.ClientCert(issuer.Issue(t, cfg)))...); (err == nil) != in {
				t.Errorf("%s: %v", who, err)
			}
		}
		client("its own", true, ca, CertConfig{})
		client("an unrelated authority's", false, other, CertConfig{})
		client("expired", false, ca, CertConfig{NotAfter: time.Now().Add(-time.Minute)})
		if err := s.try(t, append(extra, ca.Option())...); err == nil {
			t.Error("a client without a certificate was let in")
		}
	}
	f(nil)
	f([]nats.Option{nats.TLSHandshakeFirst()}, HandshakeFirst())
}

// TestRestartWithTLS turns it on, and passes it through a proxy with the line in the clear that comes before it.
func TestRestartWithTLS(t *testing.T) {
	ca := NewCA(t)
	s := Start(t)
	var record tls.RecordHeaderError
	if err := s.try(t, ca.Option(), nats.TLSHandshakeFirst()); !errors.As(err, &record) {
		t.Errorf("TLS first against a plain server: %v", err)
	}
	s.Restart(TLS(ca.Issue(t, here)))
	p := NewProxy(t, s.Addr)
	nc := s.ConnectTo(t, p.URL(), ca.Option())
	if err := nc.FlushTimeout(patience); err != nil {
		t.Error(err)
	}
	if _, err := nc.TLSConnectionState(); err != nil {
		t.Error(err)
	}
}

// TestSecureCluster has clients with certificates, and users of an operator, on three servers.
func TestSecureCluster(t *testing.T) {
	ca := NewCA(t)
	cert, key := ca.Issue(t, here)
	c := StartCluster(t, 3, MutualTLS(ca, cert, key), NewOperator(t).Option())
	if _, err := c.Connect(t).TLSConnectionState(); err != nil || c.Token() != "" {
		t.Errorf("token %q, %v", c.Token(), err)
	}
}

// TestLegacyTLS proves that the version, and nothing else, decides.
func TestLegacyTLS(t *testing.T) {
	ca := NewCA(t)
	cert, key := ca.Issue(t, here)
	addr := LegacyTLS(t, cert, key)
	f := func(lowest uint16, want string, opts ...nats.Option) {
		t.Helper()
		cfg := ca.config()
		cfg.MinVersion = lowest
		nc, err := nats.Connect("tls://"+addr, append(opts, nats.Secure(cfg), nats.Timeout(patience))...)
		if err == nil {
			nc.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("at least %s: %v, want %q", tls.VersionName(lowest), err, want)
		}
	}
	for _, opts := range [][]nats.Option{nil, {nats.TLSHandshakeFirst()}} {
		f(tls.VersionTLS10, "", opts...)
		f(tls.VersionTLS12, "protocol version", opts...)
	}
}
