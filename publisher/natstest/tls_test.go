package natstest

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestTLS looks at every kind of secured server with the plain client.
func TestTLS(t *testing.T) {
	ca := NewCA(t)
	cert, key := ca.Issue(t, CertConfig{Hosts: []string{"127.0.0.1"}})
	clientCert, clientKey := ca.Issue(t, CertConfig{Hosts: []string{"client"}, Client: true})

	s := Start(t, TLS(cert, key))
	if state, err := s.Connect(t, ca.Option()).TLSConnectionState(); err != nil || state.Version < tls.VersionTLS12 {
		t.Errorf("%+v, %v", state, err)
	}
	token := nats.Token(s.Token())
	if _, err := nats.Connect(s.URL(), token); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without the authority: %v", err)
	}

	s = Start(t, TLS(cert, key), HandshakeFirst())
	s.Connect(t, ca.Option(), nats.TLSHandshakeFirst())
	if _, err := nats.Connect(s.URL(), nats.Token(s.Token()), ca.Option(), nats.Timeout(200*time.Millisecond)); err == nil {
		t.Error("a server that waits for the handshake has spoken first")
	}

	s = Start(t, MutualTLS(ca, cert, key))
	s.Connect(t, ca.Option(), nats.ClientCert(clientCert, clientKey))
	if _, err := nats.Connect(s.URL(), nats.Token(s.Token()), ca.Option()); err == nil {
		t.Error("a client without a certificate was let in")
	}

	elsewhere, elsewhereKey := ca.Issue(t, CertConfig{Hosts: []string{"nats.example"}})
	s = Start(t, TLS(elsewhere, elsewhereKey))
	if _, err := nats.Connect(s.URL(), nats.Token(s.Token()), ca.Option()); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a certificate for another host: %v", err)
	}
	if _, err := nats.Connect("tls://"+LegacyTLS(t, cert, key), ca.Option()); err == nil {
		t.Error("an old version of TLS was taken")
	}
}

// TestOperator takes users of an account through their life.
func TestOperator(t *testing.T) {
	op := NewOperator(t)
	op.Limit(AccountLimits{DiskBytes: 1 << 20, Streams: 3})
	s := Start(t, op.Option())
	good := op.Creds(t, UserConfig{Name: "good", Deny: []string{"denied"}})
	js := s.JetStream(t, nats.UserCredentials(good))
	info, err := js.AccountInfo(t.Context())
	if err != nil || info.Limits.MaxStore != 1<<20 || info.Limits.MaxStreams != 3 {
		t.Fatalf("%+v, %v", info, err)
	}
	op.Limit(AccountLimits{DiskBytes: 2 << 20})
	op.Push(s)
	if info, err := js.AccountInfo(t.Context()); err != nil || info.Limits.MaxStore != 2<<20 {
		t.Errorf("%+v, %v", info, err)
	}
	nc := js.Conn()
	if err := nc.Publish("denied", nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil || !errors.Is(nc.LastError(), nats.ErrPermissionViolation) {
		t.Errorf("a denied subject: %v, %v", err, nc.LastError())
	}
	over := op.Creds(t, UserConfig{Name: "over", Expires: time.Now().Add(-time.Hour)})
	if _, err := nats.Connect(s.URL(), nats.UserCredentials(over)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("expired credentials: %v", err)
	}
	closed := func(name string, change func()) {
		t.Helper()
		gone := make(chan error, 1)
		creds := op.Creds(t, UserConfig{Name: name, Expires: time.Now().Add(3 * time.Second)})
		nc := s.Connect(t, nats.UserCredentials(creds), nats.NoReconnect(), nats.ClosedHandler(func(nc *nats.Conn) { gone <- nc.LastError() }))
		change()
		select {
		case err := <-gone:
			t.Logf("%s: %v", name, err)
		case <-time.After(patience):
			t.Errorf("%s is still connected: %v", name, nc.Status())
		}
	}
	closed("revoked", func() { op.Revoke("revoked"); op.Push(s) })
	closed("expiring", func() {})
}

// TestNKeyUser knows a client by its key.
func TestNKeyUser(t *testing.T) {
	seed, public := NKeyUser(t)
	s := Start(t, Authorization(`users [ { nkey: `+public+` } ]`))
	known, err := nats.NkeyOptionFromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	s.Connect(t, known)
	stranger, _ := NKeyUser(t)
	unknown, err := nats.NkeyOptionFromSeed(stranger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nats.Connect(s.URL(), unknown); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a stranger: %v", err)
	}
}
