package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// stuck takes nothing until it is opened.
type stuck struct {
	open chan struct{}
	buf  bytes.Buffer
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.open
	return s.buf.Write(b)
}

// TestPatient: a reader who does not read stops nobody, and hears in the end how much was dropped.
func TestPatient(t *testing.T) {
	w := &stuck{open: make(chan struct{})}
	p := newPatient(w, time.Minute)
	for i := range 3 * patientLines {
		fmt.Fprintf(p, "line %d\n", i)
	}
	close(w.open)
	if err := p.close(); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(w.buf.String()), "\n")
	if n := len(lines); n <= patientLines || lines[0] != "line 0" || !strings.Contains(lines[n-1], "log lines were dropped") {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	fmt.Fprintln(p, "closed") // no panic

	w = &stuck{open: make(chan struct{})}
	defer close(w.open)
	p = newPatient(w, time.Millisecond)
	fmt.Fprintln(p, "never read")
	if err := p.close(); !errors.Is(err, errNotRead) {
		t.Errorf("close with a reader who never reads: %v", err)
	}
}
