package quarantine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lockFile opens and locks the file at path and writes the process's id into it, for people. Closing it unlocks.
// The error is a *LockedError without a path if another process has the lock.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, errHeld) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		b, _ := io.ReadAll(io.LimitReader(f, 32)) // it is only a hint
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return nil, &LockedError{PID: pid}
	}
	_ = f.Truncate(0) // a wrong hint is no reason to refuse
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return f, nil
}

var errHeld = errors.New("held by another process")

// makeDir makes dir if it is missing, and its name durable.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}
