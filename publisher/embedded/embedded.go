package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// SyncInterval is how often the server syncs its files to disk. Its own default is two minutes, "always" costs a sync
// for every message (2,000 to 4,000 a second). Every write is handed to the kernel before it is acknowledged in any
// case, so only a power cut or a kernel crash can lose the last ten seconds. Who needs more runs a server beside the
// agent, where sync_interval can be set.
const SyncInterval = 10 * time.Second

// maxMemory bounds the memory streams of the server in bytes. The agent makes none; the server's own default would be
// three quarters of the machine's memory.
const maxMemory = 64 << 20

// startTime bounds the start, which includes the recovery of streams: some seconds for gigabytes.
const startTime = time.Minute

// Config is what a server needs. Its file streams may use up to three quarters of the free disk, as the server
// decides by itself.
type Config struct {
	StoreDir string // must be given; one server at a time
	Addr     string // host:port, loopback only; port 0 is any free one. "" is 127.0.0.1:0
	Token    string // what clients must show; "" admits every local process
	Logger   *slog.Logger
}

// Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	s   *server.Server
	url string
}

// AddrError refuses an address that is malformed or reachable from elsewhere.
type AddrError struct {
	Addr   string
	Detail string
}

func (e *AddrError) Error() string {
	return fmt.Sprintf("listen on %q: %s: use a loopback address such as 127.0.0.1:4222, or run a nats-server beside the agent", e.Addr, e.Detail)
}

// Start runs a server until Close. The error is an *AddrError, or says what the server said.
func Start(cfg Config) (*Server, error) {
	if cfg.StoreDir == "" {
		return nil, errors.New("start embedded server: no store folder is given")
	}
	host, port, err := loopback(cfg.Addr)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "edge-embedded", Host: host, Port: port, Authorization: cfg.Token,
		JetStream: true, StoreDir: cfg.StoreDir, JetStreamMaxMemory: maxMemory, SyncInterval: SyncInterval,
		NoSigs: true, // signals belong to the process
		NoLog:  true, // SetLogger below replaces it
	})
	if err != nil {
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	log := &logger{to: cfg.Logger}
	s.SetLogger(log, false, false)
	s.Start() // returns when it listens, or has logged why it can not
	if err := log.fatal(); err != nil {
		stop(s)
		return nil, fmt.Errorf("start embedded server: %w", err)
	}
	if !s.ReadyForConnections(startTime) || !s.JetStreamEnabled() {
		stop(s)
		return nil, fmt.Errorf("start embedded server: it was not ready within %v: look at its store folder %s", startTime, cfg.StoreDir)
	}
	return &Server{s: s, url: s.ClientURL()}, nil
}

// loopback splits addr and refuses everything that others could reach. Port 0 becomes the server's word for "any".
func loopback(addr string) (host string, port int, err error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, &AddrError{addr, "it is not host:port"}
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", 0, &AddrError{addr, "it is not a loopback address"}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, &AddrError{addr, "the port is not a number from 0 to 65535"}
	}
	if n == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(n), nil
}

// URL is where clients connect, without the token.
func (s *Server) URL() string { return s.url }

// Close stops the server: it takes nothing more, writes and syncs what it has, and is gone on return. It may be
// called more than once.
func (s *Server) Close() { stop(s.s) }

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}
