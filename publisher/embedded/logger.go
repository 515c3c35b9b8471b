package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// logger hands the server's warnings and errors to slog; notices are about every client and are dropped. A fatal
// error does not end the process, as the server's own logger would see to, but is kept for Start.
type logger struct {
	to *slog.Logger

	mu    sync.Mutex
	first error // guarded by mu; the first fatal error
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, v ...any) {
	l.to.Warn("embedded server: " + fmt.Sprintf(format, v...))
}

func (l *logger) Errorf(format string, v ...any) {
	l.to.Error("embedded server: " + fmt.Sprintf(format, v...))
}

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.to.Error("embedded server: " + text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = errors.New(text)
	}
}

func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}
