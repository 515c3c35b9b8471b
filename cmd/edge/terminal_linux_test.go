package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new pseudo-terminal of the given width.
func openTerminal(t *testing.T, columns uint16) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// TestTerminal: on a real terminal the agent shows one live line that fits into a row, and takes it away at the end.
func TestTerminal(t *testing.T) {
	_, conf := folder(t, records(60_000), embeddedSink)
	ours, theirs := openTerminal(t, 100)
	defer ours.Close()
	cmd := agent(t, "run", "-c", conf, "--once")
	cmd.Stderr = theirs
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	var screen bytes.Buffer
	screen.ReadFrom(ours) // ends with an error when the agent has closed its end: that is how terminals end
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, screen.String())
	}
	lines := strings.Split(screen.String(), eraseLine)
	live := 0
	for _, l := range lines[1:] {
		if row, _, _ := strings.Cut(l, "\n"); strings.Contains(row, "captured") {
			live++
			if n := len([]rune(row)); n >= 100 {
				t.Errorf("a live line of %d columns in 100: %q", n, row)
			}
		}
	}
	if live == 0 || !strings.HasSuffix(screen.String(), eraseLine) {
		t.Errorf("%d live lines, or the last one is still there: %q", live, screen.String())
	}
	if !strings.Contains(stdout.String(), "accepted 60,000") {
		t.Errorf("summary: %s", stdout.String())
	}
}
