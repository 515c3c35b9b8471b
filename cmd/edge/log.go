package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

// terminal tells whether w is a terminal somebody may be looking at.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// newLogger returns the log of one invocation: text on a terminal, JSON otherwise.
func newLogger(w io.Writer, tty bool, level slog.Level) *slog.Logger {
	if tty {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	}
	withUnits := func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration { // a bare number of nanoseconds tells nobody its unit
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withUnits}))
}

// SIGPIPE would end the agent in the middle of its work when whoever reads its log goes away. With it ignored the
// write fails instead.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// patient passes writes on to another writer from a goroutine of its own, so that a reader who has stopped reading
// cannot stop the agent. What does not fit is dropped and counted; the count is written when there is room again.
// Safe for concurrent use.
type patient struct {
	lines chan line
	limit time.Duration // how long flush waits

	mu      sync.Mutex
	closed  bool  // guarded by mu
	dropped int   // guarded by mu: lines since the last that was passed on
	err     error // guarded by mu: the first of the other writer, or errNotRead
}

// line is what is to be written, or a question: whether everything before it is.
type line struct {
	text    []byte
	written chan<- struct{}
}

const (
	patientLines = 1024             // waiting: some 300 KB
	logFlush     = time.Second      // how long the last log lines may take
	dataFlush    = 10 * time.Second // and the summary, which somebody has asked for
)

var errNotRead = errors.New("write output: nobody reads it")

// newPatient starts the goroutine; close ends it.
func newPatient(w io.Writer, limit time.Duration) *patient {
	p := &patient{lines: make(chan line, patientLines), limit: limit}
	go func() {
		for l := range p.lines {
			if l.written != nil {
				close(l.written)
				continue
			}
			if _, err := w.Write(l.text); err != nil {
				p.mu.Lock()
				if p.err == nil {
					p.err = err
				}
				p.mu.Unlock()
			}
		}
	}()
	return p
}

func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return len(b), nil
	}
	p.confessLocked()
	select {
	case p.lines <- line{text: bytes.Clone(b)}:
	default:
		p.dropped++
	}
	return len(b), nil
}

// confessLocked writes how many lines were dropped, if there is room to.
func (p *patient) confessLocked() {
	if p.dropped == 0 || p.closed {
		return
	}
	select {
	case p.lines <- line{text: fmt.Appendf(nil, "edge: %d log lines were dropped, because nobody read them\n", p.dropped)}:
		p.dropped = 0
	default:
	}
}

// flush waits until everything is written, but not for ever, and after one wait in vain never again. It returns the
// first error of the other writer, errNotRead if it takes nothing.
func (p *patient) flush() error {
	p.mu.Lock()
	given := errors.Is(p.err, errNotRead)
	p.mu.Unlock()
	if given {
		return errNotRead
	}
	err := p.drain()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	return p.err
}

func (p *patient) drain() error {
	late := time.NewTimer(p.limit)
	defer late.Stop()
	for last := false; !last; {
		p.mu.Lock()
		p.confessLocked()
		last = p.dropped == 0
		p.mu.Unlock()
		written := make(chan struct{})
		select {
		case p.lines <- line{written: written}:
		case <-late.C:
			return errNotRead
		}
		select {
		case <-written:
		case <-late.C:
			return errNotRead
		}
	}
	return nil
}

// close flushes and ends the goroutine. With a reader who never reads again it stays, and the end of the process
// takes it. Nothing may be flushed afterwards.
func (p *patient) close() error {
	err := p.flush()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	close(p.lines)
	return err
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
