package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
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
	p := newPatient(w)
	for i := range 3 * patientLines {
		fmt.Fprintf(p, "line %d\n", i)
	}
	close(w.open)
	p.flush()
	fmt.Fprintln(p, "after")
	p.close()
	<-p.done
	lines := strings.Split(strings.TrimSpace(w.buf.String()), "\n")
	if n := len(lines); n < patientLines || lines[0] != "line 0" || lines[n-1] != "after" || !strings.Contains(lines[n-2], "log lines were dropped") {
		t.Errorf("%d lines, the last two %q", len(lines), lines[len(lines)-2:])
	}
	fmt.Fprintln(p, "closed") // no panic
}
