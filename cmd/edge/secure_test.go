package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edge/publisher/natstest"
)

// secure runs validate --connect with the inside of a sink's configuration, and the agent itself if that is to work.
func secure(t *testing.T, sink string, want int, says ...string) {
	t.Helper()
	_, conf := folder(t, records(30), sink+`, stream: OUT, create_stream: true, subject: "out.{robot}"`)
	code, stdout, stderr := edge(t, "validate", "-c", conf, "--connect")
	if code != want {
		t.Errorf("%s: exit %d, want %d: %s%s", sink, code, want, stdout, stderr)
	}
	for _, s := range says {
		if !strings.Contains(stdout, s) {
			t.Errorf("%s: %q is not in\n%s%s", sink, s, stdout, stderr)
		}
	}
	if want == 0 {
		if code, stdout, stderr := edge(t, "run", "-c", conf, "--once"); code != 0 || !strings.Contains(stdout, "accepted 30 ") {
			t.Errorf("run: %s: exit %d: %s%s", sink, code, stdout, stderr)
		}
	}
}

// TestMutualTLS: the keys of tls reach the connection, and each mistake names its own.
func TestMutualTLS(t *testing.T) {
	ca, other := natstest.NewCA(t), natstest.NewCA(t)
	cert, key := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}})
	mine, mineKey := ca.Issue(t, natstest.CertConfig{Hosts: []string{"robot"}, Client: true})
	srv := natstest.Start(t, natstest.SyncInterval("1m"), natstest.MutualTLS(ca, cert, key))
	base := fmt.Sprintf(`url: %q, token: %q, `, srv.URL(), srv.Token())
	secure(t, base+fmt.Sprintf(`tls: { ca_file: %q, client_cert: %q, client_key: %q }`, ca.File(), mine, mineKey), 0, "verdict        ready")
	secure(t, base+fmt.Sprintf(`tls: { ca_file: %q, client_cert: %q, client_key: %q }`, other.File(), mine, mineKey), 3, "fatal: tls.ca_file: ")
	secure(t, base+fmt.Sprintf(`tls: { ca_file: %q }`, ca.File()), 3, "fatal: tls.client_cert: ")
	secure(t, base+fmt.Sprintf(`tls: { ca_file: %q, client_cert: %q, client_key: %q }`, ca.File(), mine, key), 3, "fatal: tls.client_cert: ")
}

// TestTLSFirst: a server that waits for the handshake is reached with first, and only then.
func TestTLSFirst(t *testing.T) {
	ca := natstest.NewCA(t)
	cert, key := ca.Issue(t, natstest.CertConfig{Hosts: []string{"127.0.0.1"}})
	srv := natstest.Start(t, natstest.SyncInterval("1m"), natstest.TLS(cert, key), natstest.HandshakeFirst())
	base := fmt.Sprintf(`url: %q, token: %q, `, srv.URL(), srv.Token())
	secure(t, base+fmt.Sprintf(`tls: { ca_file: %q, first: true }`, ca.File()), 0, "verdict        ready")
}

// TestCreds: a user known by signed claims, and an account whose limits are shown.
func TestCreds(t *testing.T) {
	o := natstest.NewOperator(t)
	o.Limit(natstest.AccountLimits{DiskBytes: 64 << 20, Streams: 5})
	srv := natstest.Start(t, natstest.SyncInterval("1m"), o.Option())
	good := o.Creds(t, natstest.UserConfig{Name: "robot"})
	secure(t, fmt.Sprintf(`url: %q, creds_file: %q`, srv.URL(), good), 0, "verdict        ready", "0 B of 64 MiB file storage, 0 %; 0 of 5 streams")
	over := o.Creds(t, natstest.UserConfig{Name: "late", Expires: time.Now().Add(-time.Hour)})
	secure(t, fmt.Sprintf(`url: %q, creds_file: %q`, srv.URL(), over), 3, "fatal: creds_file: ", "expired")
	denied := o.Creds(t, natstest.UserConfig{Name: "mute", Deny: []string{"out.>"}})
	secure(t, fmt.Sprintf(`url: %q, creds_file: %q`, srv.URL(), denied), 3, "out.*: denied", "fatal: subject: ")
}

// TestNKey: a user known by a key.
func TestNKey(t *testing.T) {
	seed, public := natstest.NKeyUser(t)
	stranger, _ := natstest.NKeyUser(t)
	srv := natstest.Start(t, natstest.SyncInterval("1m"), natstest.Authorization(fmt.Sprintf(`users [ { nkey: %q } ]`, public)))
	secure(t, fmt.Sprintf(`url: %q, nkey_file: %q`, srv.URL(), seed), 0, "verdict        ready")
	secure(t, fmt.Sprintf(`url: %q, nkey_file: %q`, srv.URL(), stranger), 3, "fatal: nkey_file: ")
}
