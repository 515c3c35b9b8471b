package lockdir

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock of f, which lasts until f is closed or the process ends, however it ends. It covers one
// byte far behind the hint in the file, so that others can read that.
func tryLock(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

// Sync does nothing: the system keeps names durable by itself and folders cannot be synced.
func Sync(string) error { return nil }
