//go:build unix

package config

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// irregular makes a pipe and a socket in dir and returns their names.
func irregular(t *testing.T, dir string) []string {
	t.Helper()
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "edge") // the path of a socket has about 100 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	l, err := net.Listen("unix", short+"/s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return []string{"fifo", short + "/s"}
}
