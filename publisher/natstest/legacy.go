package natstest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// LegacyTLS listens on loopback for clients that can do with TLS 1.1, which no real server speaks any more, and
// returns host and port. It greets as a server that requires TLS, or lets a client begin with TLS, and answers pings
// of whoever gets that far: so a client that is refused was refused for the version. It ends with the test.
func LegacyTLS(t testing.TB, cert, key string) (addr string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatalf("natstest: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("natstest: start a listener: %v", err)
	}
	s := &legacy{
		listen: l,
		cfg:    &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		conns:  make(map[net.Conn]struct{}),
	}
	s.work.Go(s.accept)
	t.Cleanup(s.close)
	return l.Addr().String()
}

type legacy struct {
	listen net.Listener
	cfg    *tls.Config
	work   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil when closed
}

func (s *legacy) close() {
	s.listen.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.work.Wait()
}

func (s *legacy) accept() {
	for {
		c, err := s.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // out of descriptors: some come back
			continue
		}
		s.mu.Lock()
		if s.conns == nil {
			c.Close()
		} else {
			s.conns[c] = struct{}{}
			s.work.Go(func() {
				defer c.Close()
				_ = s.serve(c) // the client knows better how it went
			})
		}
		s.mu.Unlock()
	}
}

// serve talks to one client. Who says nothing for a moment waits for a greeting in the clear, as with a real server
// whose handshake_first is auto.
func (s *legacy) serve(c net.Conn) error {
	const moment = 50 * time.Millisecond // the real server's
	info := fmt.Sprintf(`INFO {"server_id":"legacy","version":"2.0.0","proto":1,"headers":true,"max_payload":1048576,"tls_required":true,"host":"127.0.0.1","port":%d}`+" \r\n",
		s.listen.Addr().(*net.TCPAddr).Port)
	if err := c.SetReadDeadline(time.Now().Add(moment)); err != nil {
		return err
	}
	r := bufio.NewReader(c)
	_, err := r.Peek(1)
	first := err == nil
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if !first {
		if _, err := c.Write([]byte(info)); err != nil {
			return err
		}
	}
	tc := tls.Server(peeked{c, r}, s.cfg)
	if err := tc.Handshake(); err != nil {
		return err
	}
	if first {
		if _, err := tc.Write([]byte(info)); err != nil {
			return err
		}
	}
	lines := bufio.NewReader(tc)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "PING") {
			if _, err := tc.Write([]byte("PONG\r\n")); err != nil {
				return err
			}
		}
	}
}

// peeked is a connection some of whose bytes have been looked at.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }
