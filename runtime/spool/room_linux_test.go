package spool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// envDisk is the folder on which the test binary, run by itself, mounts a small disk that no other process sees.
const envDisk = "EDGE_SPOOL_TEST_DISK"

func smallDisk() error {
	dir := os.Getenv(envDisk)
	if dir == "" {
		return nil
	}
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=14m")
}

// TestSmallDisk fills a file system. Where nobody may mount one, the limit of TestFullDisk has to do, with other sizes.
func TestSmallDisk(t *testing.T) {
	dir := os.Getenv(envDisk)
	if dir != "" {
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 6<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		fullDisk(t, filepath.Join(dir, "spool"), 8<<20, func() {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		})
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	id := func(n int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: n, Size: 1}} }
	for _, attr := range []*syscall.SysProcAttr{
		{Unshareflags: syscall.CLONE_NEWNS},
		{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: id(os.Getuid()), GidMappings: id(os.Getgid())},
	} {
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestSmallDisk$", "-test.v")
		cmd.Env = append(os.Environ(), envDisk+"="+t.TempDir())
		cmd.SysProcAttr = attr
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || err != nil && strings.Contains(string(out), syscall.EPERM.Error()) {
			t.Logf("no disk of our own: %v %s", err, out)
			continue
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: TestSmallDisk") {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%s", out)
		return
	}
	limitedDisk(t, 5<<20)
}
