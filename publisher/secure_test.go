package publisher

import (
	"strings"
	"testing"
	"time"

	"edge/publisher/natstest"
)

// secured is how a publisher reaches a server with a certificate of ca.
func secured(srv *natstest.Server, ca *natstest.CA) func(c *Config) {
	return func(c *Config) { c.URL, c.TLS.CAFile = srv.URL(), ca.File() }
}

// TestTLS connects with a private authority, publishes, and comes back after restarts of the server: the same client
// acknowledges a duplicate and a new publication.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := natstest.NewCA(t)
	cert, key := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}})
	f := func(name string, change func(c *Config), opts ...natstest.Option) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			srv := natstest.Start(t, opts...)
			r := run(t, srv, func(c *Config) { secured(srv, ca)(c); change(c) })
			r.ready()
			r.one(message(1, "e.1"), Accepted)
			srv.Kill()
			r.until("loss", func(s Status) bool { return s.State == Disconnected })
			srv.Restart()
			r.ready()
			if x := r.one(message(1, "e.1"), Accepted); !x.Duplicate {
				t.Errorf("%+v", x)
			}
			if x := r.one(message(2, "e.1"), Accepted); x.Duplicate {
				t.Errorf("%+v", x)
			}
			if s := r.p.Status(); s.Counters.Reconnects != 1 {
				t.Errorf("%+v", s.Counters)
			}
		})
	}
	f("server says", func(*Config) {}, natstest.TLS(cert, key))
	f("address says", func(c *Config) { c.URL = strings.Replace(c.URL, "nats://", "tls://", 1) }, natstest.TLS(cert, key))
	f("first", func(c *Config) { c.TLS.First = true }, natstest.TLS(cert, key), natstest.HandshakeFirst())
	clientCert, clientKey := ca.Issue(t, natstest.CertConfig{Hosts: []string{"edge"}, Client: true})
	f("mutual", func(c *Config) { c.TLS.CertFile, c.TLS.KeyFile = clientCert, clientKey }, natstest.MutualTLS(ca, cert, key))
}

// TestTLSRefused names each mismatch, with the field that it is about.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	ca, other := natstest.NewCA(t), natstest.NewCA(t)
	cert, key := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}})
	elsewhere, elsewhereKey := ca.Issue(t, natstest.CertConfig{Hosts: []string{"nats.example"}})
	old, oldKey := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}, NotAfter: time.Now().Add(-time.Hour)})
	alien, alienKey := other.Issue(t, natstest.CertConfig{Hosts: []string{"edge"}, Client: true})
	good := natstest.Start(t, natstest.TLS(cert, key))
	wrongName := natstest.Start(t, natstest.TLS(elsewhere, elsewhereKey))
	expired := natstest.Start(t, natstest.TLS(old, oldKey))
	mutual := natstest.Start(t, natstest.MutualTLS(ca, cert, key))
	plain := natstest.Start(t)
	f := func(srv *natstest.Server, field, text string, change func(c *Config)) {
		t.Helper()
		r := run(t, srv, func(c *Config) { secured(srv, ca)(c); change(c) })
		defer r.end()
		r.fatal(CodeTLS)
		if s := r.p.Status(); s.Fatal.Field != field || !strings.Contains(s.Err, text) {
			t.Errorf("field %s, %s: want %s and %q", s.Fatal.Field, s.Err, field, text)
		}
	}
	same := func(*Config) {}
	f(good, "tls.ca_file", "unknown authority", func(c *Config) { c.TLS.CAFile = other.File() })
	f(good, "tls.ca_file", "unknown authority", func(c *Config) { c.TLS.CAFile = "" })
	f(good, "tls.ca_file", "no such file", func(c *Config) { c.TLS.CAFile += ".none" })
	f(good, "tls.ca_file", "no certificate in PEM form", func(c *Config) { c.TLS.CAFile = key })
	f(good, "tls.client_cert", "", func(c *Config) { c.TLS.CertFile, c.TLS.KeyFile = cert, alienKey })
	f(wrongName, "url", "nats.example", same)
	f(wrongName, "url", "127.0.0.1", same)
	f(expired, "url", "renew the server's certificate", same)
	f(mutual, "tls.client_cert", "give one that it trusts", same)
	f(mutual, "tls.client_cert", "does not trust", func(c *Config) { c.TLS.CertFile, c.TLS.KeyFile = alien, alienKey })
	f(plain, "tls.first", "does not speak TLS first", func(c *Config) { c.URL, c.TLS.First = strings.Replace(plain.URL(), "nats://", "tls://", 1), true })
	f(plain, "url", "offers no TLS", func(c *Config) { c.URL = strings.Replace(plain.URL(), "nats://", "tls://", 1) })
	f(plain, "url", "offers no TLS", same) // an authority was named: nothing is said in the clear
	f(plain, "url", "TLS 1.2", func(c *Config) { c.URL = "tls://" + natstest.LegacyTLS(t, cert, key) })
}

// TestTLSMended repairs the file of the authority: the publisher comes back without a restart.
func TestTLSMended(t *testing.T) {
	ca, other := natstest.NewCA(t), natstest.NewCA(t)
	cert, key := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}})
	srv := natstest.Start(t, natstest.TLS(cert, key))
	file := t.TempDir() + "/ca.pem"
	write(t, file, content(t, other.File()))
	r := run(t, srv, func(c *Config) { secured(srv, ca)(c); c.TLS.CAFile = file })
	r.fatal(CodeTLS)
	write(t, file, content(t, ca.File()))
	r.ready()
	r.one(message(1, "e.1"), Accepted)
}

// TestFirstAgainstSilence has a server that waits for TLS while the client waits for its first line.
func TestFirstAgainstSilence(t *testing.T) {
	t.Parallel()
	ca := natstest.NewCA(t)
	cert, key := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}})
	srv := natstest.Start(t, natstest.TLS(cert, key), natstest.HandshakeFirst())
	r := run(t, srv, secured(srv, ca))
	r.until("a hint", func(s Status) bool { return strings.Contains(s.Err, "tls.first") })
}
