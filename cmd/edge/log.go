package main

import (
	"io"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/term"
)

// terminal tells whether w is a terminal somebody may be looking at.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// newLogger returns the log of one invocation: text on a terminal, JSON otherwise.
func newLogger(w io.Writer, tty bool, level slog.Level) *slog.Logger {
	opt := &slog.HandlerOptions{Level: level}
	if tty {
		return slog.New(slog.NewTextHandler(w, opt))
	}
	return slog.New(slog.NewJSONHandler(w, opt))
}

// screen shares a terminal between log lines and one live line at the bottom. Safe for concurrent use.
type screen struct {
	mu   sync.Mutex
	w    io.Writer
	live string // what stands in the last row; "" for nothing
}

const eraseLine = "\r\x1b[2K"

// Write prints whole log lines above the live line.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == "" {
		return s.w.Write(b)
	}
	buf := append([]byte(eraseLine), b...)
	if _, err := s.w.Write(append(buf, s.live...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Live replaces the live line; "" removes it.
func (s *screen) Live(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.live {
		return
	}
	s.live = line
	io.WriteString(s.w, eraseLine+line)
}
