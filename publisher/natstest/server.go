package natstest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Store limits of a server (DESIGN section 13): enough for any test, small enough that a runaway one is noticed.
const (
	MaxMemory = 64 << 20  // bytes of all memory streams
	MaxFile   = 256 << 20 // bytes of all file streams
)

// patience bounds every wait for the server. It decides no result: who runs into it has failed.
const patience = 60 * time.Second

// settings is what the configuration file is made of.
type settings struct {
	token string
	auth  string // an authorization block instead of the token; "" for the token
	sync  string // value of sync_interval
	store string // further settings of JetStream
	extra string // lines at the end
}

// Option changes how a server is configured.
type Option func(*settings)

// Extra appends lines to the server's configuration: max_payload, accounts, anything that Start does not set.
func Extra(lines string) Option { return func(s *settings) { s.extra += lines + "\n" } }

// Authorization replaces the token by what is inside an authorization block: users with permissions, say. Token
// returns "" then, and Connect needs the credentials as options.
func Authorization(block string) Option {
	return func(s *settings) { s.token, s.auth = "", block }
}

// SyncInterval replaces "always": tests about speed take "2m", which is the server's own default.
func SyncInterval(value string) Option { return func(s *settings) { s.sync = value } }

// Domain gives the server's JetStream a domain, as a leaf at the edge has one.
func Domain(name string) Option {
	return func(s *settings) { s.store += fmt.Sprintf(", domain: %q", name) }
}

// Server is a nats-server under test control. Its methods belong to the goroutine of the test, because they fail the
// test that started it; URL and Token may be called from anywhere.
type Server struct {
	t    testing.TB
	dir  string
	port int // never changes
	set  settings
	proc *process // nil for an external server
	url  string
}

// Start builds the server if need be, starts it and waits until it is ready. It ends with the test.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("natstest: %v", err)
	}
	var token [16]byte
	rand.Read(token[:])
	s := &Server{t: t, dir: t.TempDir(), set: settings{token: hex.EncodeToString(token[:]), sync: "always"}}
	for _, o := range opts {
		o(&s.set)
	}
	t.Cleanup(func() {
		if s.proc != nil {
			s.proc.kill()
		}
	})
	// Between choosing a free port and using it somebody else may take it, so a few are tried.
	const tries = 5
	for i := 1; ; i++ {
		s.port = freePort(t)
		s.url = "nats://127.0.0.1:" + strconv.Itoa(s.port)
		err := s.start(path)
		if err == nil {
			return s
		}
		if i == tries || !strings.Contains(s.log(), "address already in use") {
			t.Fatalf("natstest: start nats-server: %v\n%s", err, s.log())
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("natstest: find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start launches the process and returns when it is ready or gone.
func (s *Server) start(path string) error {
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
		if ready(s.port) {
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
// first line it sends says whether JetStream is up.
func ready(port int) bool {
	c, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(port), time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false
	}
	line, err := bufio.NewReader(c).ReadBytes('\n')
	line, ok := bytes.CutPrefix(line, []byte("INFO "))
	if err != nil || !ok {
		return false
	}
	var info struct {
		JetStream bool `json:"jetstream"`
	}
	return json.Unmarshal(line, &info) == nil && info.JetStream
}

func (s *Server) configPath() string { return filepath.Join(s.dir, "server.conf") }
func (s *Server) logPath() string    { return filepath.Join(s.dir, "server.log") }

func (s *Server) writeConfig() error {
	auth := s.set.auth
	if s.set.token != "" {
		auth = fmt.Sprintf("token: %q", s.set.token)
	}
	text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\nserver_name: natstest\njetstream { store_dir: %q, max_mem: %d, max_file: %d, sync_interval: %s%s }\n",
		s.port, filepath.Join(s.dir, "data"), MaxMemory, MaxFile, s.set.sync, s.set.store)
	if auth != "" {
		text += "authorization {\n" + auth + "\n}\n"
	}
	return os.WriteFile(s.configPath(), []byte(text+s.set.extra), 0o600)
}

// log is the end of what the server has written, for messages.
func (s *Server) log() string {
	b, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	const tail = 4096
	return string(b[max(0, len(b)-tail):])
}
