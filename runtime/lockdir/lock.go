package lockdir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fileLock is the file in the folder that carries the lock, and the holder's process id for people. It stays.
const fileLock = "lock"

// LockedError says that another process has the folder open, or this one has it open already.
type LockedError struct {
	What string // what the folder holds, in one word
	Path string // the folder
	PID  int    // of the holder as it says itself, 0 if it did not
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("open %s %s: %s has it open: stop it first, or use another data_dir", e.What, e.Path, who)
}

// Lock is a folder that is ours until Close.
type Lock struct{ file *os.File }

// Open makes dir if it is missing, with its name durable, and locks it without waiting. what is the word for it in
// errors. The error to tell apart is *LockedError.
func Open(what, dir string) (*Lock, error) {
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("open %s: %w", what, err)
	}
	path := filepath.Join(dir, fileLock)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", what, err)
	}
	if err := tryLock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, errHeld) {
			return nil, fmt.Errorf("open %s: lock %s: %w", what, path, err)
		}
		b, _ := io.ReadAll(io.LimitReader(f, 32)) // it is only a hint
		pid, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 31)
		if err != nil {
			pid = 0
		}
		return nil, &LockedError{What: what, Path: dir, PID: int(pid)}
	}
	_ = f.Truncate(0) // a wrong hint is no reason to refuse
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return &Lock{f}, nil
}

// Close lets others in.
func (l *Lock) Close() error { return l.file.Close() }

var errHeld = errors.New("held by another process")

// makeDir makes dir and what is missing above it, and makes every new name durable.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return Sync(parent)
}
