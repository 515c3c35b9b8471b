package natstest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait for the server. It decides no result: who runs into it has failed.
const patience = 60 * time.Second

// tries is how often ports are chosen: between finding one free and using it somebody else may take it.
const tries = 5

// Server is a nats-server under test control. Its methods belong to the goroutine of the test, because they fail the
// test that started it; URL, Addr, Name and Token may be called from anywhere.
type Server struct {
	t    testing.TB
	dir  string
	addr string // host and port, which never change
	set  settings
	proc *process // nil for an external server
}

// Start builds the server if need be, starts it and waits until it is ready. It ends with the test.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	set := newSettings(opts)
	for i := 1; ; i++ {
		s := newServer(t, set)
		err := s.start()
		if err == nil {
			return s
		}
		if i == tries || !s.portTaken() {
			t.Fatalf("natstest: start nats-server: %v\n%s", err, s.log())
		}
	}
}

// newServer is a server that does not run yet, on a free port and in a folder of its own.
func newServer(t testing.TB, set settings) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), addr: freeAddr(t), set: set}
	t.Cleanup(func() {
		if s.proc != nil {
			s.proc.kill()
		}
	})
	return s
}

// freeAddr finds a free port on loopback below those that systems give to clients (32768 and up): a port of those
// could be some client's own while a server is down, even that of one that tries to reach the server.
func freeAddr(t testing.TB) string {
	t.Helper()
	const first, last, attempts = 10240, 32767, 1000
	var err error
	for range attempts {
		addr := "127.0.0.1:" + strconv.Itoa(first+rand.IntN(last-first+1))
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatalf("natstest: find a free port: %v", err)
	return ""
}

// start launches the process and returns when it is ready or gone.
func (s *Server) start() error {
	path, err := binary()
	if err != nil {
		return err
	}
	var secure *tls.Config // for a server that says nothing before the handshake
	if s.set.tls.on() && s.set.tls.first {
		if secure, err = s.set.tls.client(); err != nil {
			return err
		}
	}
	if err := s.writeConfig(); err != nil {
		return err
	}
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	if s.proc, err = launch(path, []string{"-c", s.configPath()}, log); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if s.ready(secure) {
			return nil
		}
		if !s.proc.running() {
			return fmt.Errorf("it ended at once")
		}
		if time.Now().After(end) {
			s.proc.kill()
			return fmt.Errorf("it was not ready within %v", patience)
		}
	}
}

// ready tells whether the server takes clients. It listens only after JetStream has recovered its streams, and the
// first line it sends says whether JetStream is up. With secure, that line comes after the handshake.
func (s *Server) ready(secure *tls.Config) bool {
	c, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false
	}
	if secure != nil {
		c = tls.Client(c, secure)
	}
	line, err := bufio.NewReader(c).ReadBytes('\n')
	line, ok := bytes.CutPrefix(line, []byte("INFO "))
	if err != nil || !ok {
		return false
	}
	var info struct {
		JetStream bool   `json:"jetstream"`
		Name      string `json:"server_name"`
	}
	return json.Unmarshal(line, &info) == nil && info.JetStream && info.Name == s.set.name
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

// log is the end of what the server has written, for messages.
func (s *Server) log() string {
	b, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	const tail = 4096
	return string(b[max(0, len(b)-tail):])
}

// portTaken tells whether the server has ended because somebody else has its port.
func (s *Server) portTaken() bool { return strings.Contains(s.log(), "address already in use") }
