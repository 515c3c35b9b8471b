package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
)

// server is a nats-server process on loopback with a store of its own. It is stopped and started again between the
// measurement and the check, so that the processor time of one is not counted in the other.
type server struct {
	binary, dir, store string
	sync               string // sync_interval
	token              string
	port               int
	cmd                *exec.Cmd
	exited             chan error
}

func (s *server) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.port) }

// start returns when the server takes connections and JetStream is up.
func (s *server) start() error {
	if s.token == "" {
		var b [16]byte
		rand.Read(b[:])
		s.token = hex.EncodeToString(b[:])
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	config := fmt.Sprintf("listen: \"127.0.0.1:%d\"\nserver_name: bench\nauthorization { token: %q }\n"+
		"jetstream { store_dir: %q, max_mem: 64MiB, max_file: 64GiB, sync_interval: %s }\n", s.port, s.token, s.store, s.sync)
	path, logPath := filepath.Join(s.dir, "server.conf"), filepath.Join(s.dir, "server.log")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	s.cmd = exec.Command(s.binary, "-c", path, "-l", logPath)
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start nats-server: %w", err)
	}
	s.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan error) { exited <- cmd.Wait() }(s.cmd, s.exited)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		nc, err := s.connect()
		if err == nil {
			js, jerr := nc.JetStream()
			if jerr == nil {
				_, jerr = js.AccountInfo()
			}
			nc.Close()
			if jerr == nil {
				return nil
			}
			err = jerr
		}
		select {
		case werr := <-s.exited:
			log, _ := os.ReadFile(logPath)
			s.cmd = nil
			return fmt.Errorf("start nats-server: it ended (%v) and says:\n%s", werr, log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.kill()
			return fmt.Errorf("start nats-server: not ready in time: %w", err)
		}
	}
}

func (s *server) connect() (*nats.Conn, error) {
	return nats.Connect(s.url(), nats.Token(s.token), nats.Name("bench"), nats.NoReconnect())
}

// stop ends the server in order and returns the processor time of its whole life.
func (s *server) stop() (cpu time.Duration, err error) {
	if s.cmd == nil {
		return 0, nil
	}
	cmd := s.cmd
	s.cmd = nil
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		cmd.Process.Kill() // no signals here: the store recovers
	}
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		<-s.exited
		return 0, fmt.Errorf("stop nats-server: it did not end within a minute")
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// kill ends the server now, if it runs.
func (s *server) kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.exited
		s.cmd = nil
	}
}
