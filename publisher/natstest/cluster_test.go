package natstest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestCluster kills the leader of a stream while messages come in: publication goes on with another leader, nothing
// acknowledged is lost, and the killed server takes part again after its restart.
func TestCluster(t *testing.T) {
	c := StartCluster(t, 3)
	nc := c.Connect(t)
	js := newJetStream(t, nc)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "R3", Subjects: []string{"r3"}, Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	publish := func(n int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		for end := next + n; next < end; next++ {
			id := fmt.Sprintf("id-%d", next)
			err := c.persist(ctx, 2, func(ctx context.Context) error {
				_, err := js.Publish(ctx, "r3", []byte(id), jetstream.WithMsgID(id))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(10)
	first := c.Leader(t, "R3")
	first.Kill()
	publish(10)
	second := c.Leader(t, "R3")
	if second == first {
		t.Fatalf("%s leads although it was killed", first.Name())
	}
	first.Restart()
	c.Ready(t)
	second.Pause()
	publish(10)
	if third := c.Leader(t, "R3"); third == second {
		t.Fatalf("%s leads although it stands still", second.Name())
	}
	if nc.ConnectedServerName() == second.Name() {
		t.Errorf("the connection stays with %s, which stands still", second.Name())
	}
	second.Resume()
	c.Ready(t)
	s, err := js.Stream(t.Context(), "R3")
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n != uint64(next) {
		t.Errorf("%d messages are stored, want %d", n, next)
	}
}

// TestClusterAddresses looks at what clients hear of other servers, directly and through a proxy.
func TestClusterAddresses(t *testing.T) {
	c := StartCluster(t, 3, Extra("max_payload: 4096"))
	if n := strings.Count(c.URL(), ","); n != 2 {
		t.Errorf("URL is %q", c.URL())
	}
	names := make(map[string]bool)
	for _, s := range c.Servers {
		names[s.Name()] = true
		nc := s.Connect(t)
		if nc.ConnectedServerName() != s.Name() || nc.MaxPayload() != 4096 || s.Token() != c.Token() {
			t.Errorf("%s answers for %s, max_payload %d", nc.ConnectedServerName(), s.Name(), nc.MaxPayload())
		}
		awaitDiscovered(t, nc, 2)
	}
	if len(names) != 3 {
		t.Errorf("names are %v", names)
	}
	p := NewProxy(t, c.Servers[1].Addr)
	nc := c.Servers[1].ConnectTo(t, p.URL())
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if nc.ConnectedServerName() != c.Servers[1].Name() || len(nc.DiscoveredServers()) != 0 {
		t.Errorf("%s has told of %v through a proxy", nc.ConnectedServerName(), nc.DiscoveredServers())
	}
}

func awaitDiscovered(t *testing.T, nc *nats.Conn, n int) {
	t.Helper()
	for end := time.Now().Add(patience); len(nc.DiscoveredServers()) != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("discovered %v, want %d", nc.DiscoveredServers(), n)
		}
	}
}

// TestPortTaken lets somebody else have the port that was free a moment ago: the server says so in the words that
// make Start choose again.
func TestPortTaken(t *testing.T) {
	f := func(s *Server, addr string) {
		t.Helper()
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := s.start(); err == nil {
			select {
			case <-s.proc.exited: // routes are opened after the server is ready for clients
			case <-time.After(patience):
				t.Fatalf("the server runs although %s is taken", addr)
			}
		}
		if !s.portTaken() {
			t.Errorf("no word of the taken port %s\n%s", addr, s.log())
		}
	}
	s := newServer(t, newSettings(nil))
	f(s, s.addr)
	c := newCluster(t, 1, newSettings(nil))
	_, route, _ := strings.Cut(c.Servers[0].set.cluster, `listen: "`)
	route, _, _ = strings.Cut(route, `"`)
	f(c.Servers[0], route)
}

func TestFreeAddr(t *testing.T) {
	var all []string
	for range 50 {
		addr := freeAddr(t)
		_, port, err := net.SplitHostPort(addr)
		if err != nil || len(port) != 5 || port > "32767" {
			t.Fatalf("%q: %v", addr, err)
		}
		all = append(all, addr)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) < 40 {
		t.Errorf("the same addresses again and again: %v", all)
	}
}
