package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes the disk give blocks to every byte of f from from to to, holes included. What is there keeps its
// bytes. Where the file system cannot do that, bytes from used on are written.
func allocate(f *os.File, from, used, to int64) error {
	var err error
	for {
		if err = unix.Fallocate(int(f.Fd()), 0, from, to-from); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return zeroes(f, from, used, to)
	}
	return err
}
