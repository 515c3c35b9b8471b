//go:build unix

package spool

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const envLimit = "EDGE_SPOOL_TEST_FILE_LIMIT"

// childLimit makes writes beyond a size fail, as on a disk that is full.
func childLimit() error {
	text := os.Getenv(envLimit)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	lim := syscall.Rlimit{}
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &lim); err != nil {
		return err
	}
	lim.Cur = min(n, lim.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &lim)
}

// TestNoRoom: a database that cannot grow fails for good and loses nothing that was acknowledged.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	var seen [childInputs]uint64
	told, said := runChild(t, dir, -1, envLimit+"="+strconv.Itoa(9<<20))
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) != childInputs {
		t.Errorf("said %q", said)
	}
	for _, line := range lines {
		first, again, _ := strings.Cut(strings.TrimPrefix(line, "failed: "), " / ")
		if first != again || !strings.Contains(first, "start the agent again") {
			t.Errorf("said %q", line)
		}
	}
	if told[0] == 0 {
		t.Error("nothing was stored before the end of the room")
	}
	checkChild(t, dir, told, &seen)
}
