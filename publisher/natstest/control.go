package natstest

import (
	"os"
	"strings"
	"time"
)

// URL is the server's address without credentials, the same for its whole life.
func (s *Server) URL() string { return "nats://" + s.addr }

// Addr is the server's host and port.
func (s *Server) Addr() string { return s.addr }

// Name is what the server calls itself, "" for an external one.
func (s *Server) Name() string { return s.set.name }

// Token is the server's token, or "" if Authorization or an operator has replaced it.
func (s *Server) Token() string { return s.set.token }

// Kill ends the server as a power cut would (kill -9) and waits until it is gone. Its files stay.
func (s *Server) Kill() {
	s.t.Helper()
	s.own("kill").kill()
}

// Stop ends the server as an operator would and waits until it is gone. Its files stay.
func (s *Server) Stop() {
	s.t.Helper()
	s.own("stop").stop()
}

// Pause stops every thread of the server. Its connections stay open, and the kernel goes on taking bytes for it.
func (s *Server) Pause() {
	s.t.Helper()
	if err := pause(s.own("pause").cmd.Process); err != nil {
		s.t.Fatalf("natstest: pause nats-server: %v", err)
	}
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.t.Helper()
	if err := resume(s.own("resume").cmd.Process); err != nil {
		s.t.Fatalf("natstest: resume nats-server: %v", err)
	}
}

// Restart starts the server again with the same port, token and data, after Kill or Stop; one that still runs is
// stopped first. Options given now change the configuration. Connections that Connect has made do not accept another
// certificate than the one they began with.
func (s *Server) Restart(opts ...Option) {
	s.t.Helper()
	if p := s.own("restart"); p.running() {
		p.stop()
	}
	for _, o := range opts {
		o(&s.set)
	}
	if err := s.start(); err != nil {
		s.t.Fatalf("natstest: restart nats-server: %v\n%s", err, s.log())
	}
}

// Reload changes the configuration of the running server without a restart and returns when the server says that it
// has taken it.
func (s *Server) Reload(opts ...Option) {
	s.t.Helper()
	p := s.own("reload")
	for _, o := range opts {
		o(&s.set)
	}
	if err := s.writeConfig(); err != nil {
		s.t.Fatalf("natstest: %v", err)
	}
	const done, refused = "Reloaded server configuration", "Failed to reload server configuration"
	before := s.count(done)
	if err := reload(p.cmd.Process); err != nil {
		s.t.Fatalf("natstest: reload nats-server: %v", err)
	}
	for end := time.Now().Add(patience); s.count(done) == before; time.Sleep(2 * time.Millisecond) {
		if s.count(refused) > 0 || time.Now().After(end) {
			s.t.Fatalf("natstest: the server did not take its new configuration\n%s", s.log())
		}
	}
}

func (s *Server) count(text string) int {
	s.t.Helper()
	b, err := os.ReadFile(s.logPath())
	if err != nil {
		s.t.Fatalf("natstest: %v", err)
	}
	return strings.Count(string(b), text)
}

func (s *Server) own(verb string) *process {
	s.t.Helper()
	if s.proc == nil {
		s.t.Fatalf("natstest: %s: this server is not ours (%s); tests that control it use Start", verb, externalEnv)
	}
	return s.proc
}
