//go:build unix

package spool

import (
	"errors"
	"syscall"
)

// reserves tells that blocks can be reserved before they are written.
const reserves = true

// noRoom tells whether err says that a file cannot grow for now: the disk, the quota, the process's limit.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
