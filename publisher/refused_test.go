package publisher

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"edge/publisher/natstest"
)

// TestRefusedBesideDead has two addresses: one refuses our token, and at the other nobody is. That is for somebody to
// mend as if there were no other.
func TestRefusedBesideDead(t *testing.T) {
	srv := natstest.Start(t)
	dead := natstest.NewProxy(t, srv.Addr)
	dead.Refuse(true)
	r := run(t, srv, func(c *Config) { c.URL, c.Token = srv.URL()+","+dead.URL(), "wrong" })
	r.fatal(CodeCredentials)
}

// TestCredentialsOfNoUse are refused before or as the server refuses them, by name.
func TestCredentialsOfNoUse(t *testing.T) {
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	f := func(name, code, says string, srv *natstest.Server, change func(c *Config)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r := run(t, srv, change)
			r.fatal(code)
			if s := r.p.Status(); !strings.Contains(s.Err, says) {
				t.Errorf("%s: want %q", s.Err, says)
			}
		})
	}
	open := natstest.Start(t, natstest.Authorization("users [ { user: anybody, password: a } ]"), natstest.Extra("no_auth_user: anybody"))
	f("empty token", CodeCredentials, "it is empty", open, func(c *Config) { c.TokenFile = write("empty", []byte("\n")) })
	f("no nkeys", CodeCredentials, "nkeys not supported", natstest.Start(t), func(c *Config) { c.Token, c.NKeyFile = "", write("seed", seed) })
	f("large certificate", CodeTLS, "it is larger than", open, func(c *Config) {
		c.TLS.CertFile = write("cert", make([]byte, maxSmall+1))
		c.TLS.KeyFile = c.TLS.CertFile
	})
	f("subscriptions", CodeInbox, "maximum subscriptions", natstest.Start(t, natstest.Extra("max_subscriptions: 1")), func(*Config) {})
}

// TestNoMaxPayload has something that looks like a server, but takes no message of any size. Nothing of ours is too
// large because of that.
func TestNoMaxPayload(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "INFO {\"server_id\":\"X\",\"proto\":1,\"headers\":true,\"jetstream\":true}\r\n")
			for in := bufio.NewScanner(c); in.Scan(); {
				if in.Text() == "PING" {
					fmt.Fprint(c, "PONG\r\n")
				}
			}
			c.Close()
		}
	}()
	p, err := New(Config{URL: "nats://" + l.Addr().String(), Stream: "EDGE"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &rig{t: t, p: p, stop: stop, done: make(chan struct{})}
	go func() { defer close(r.done); p.Run(ctx) }()
	t.Cleanup(r.end)
	r.until("max_payload in its error", func(s Status) bool { return s.State == Connecting && strings.Contains(s.Err, "max_payload") })
}
