package natstest

import (
	"os"

	"golang.org/x/sys/unix"
)

// limitFileSize bounds what the process may write to any one file from now on; negative is no bound. Only the soft
// limit changes, so that it can be raised again without rights.
func limitFileSize(p *os.Process, bytes int64) error {
	var l unix.Rlimit
	if err := unix.Prlimit(p.Pid, unix.RLIMIT_FSIZE, nil, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	if bytes >= 0 {
		l.Cur = min(uint64(bytes), l.Max)
	}
	return unix.Prlimit(p.Pid, unix.RLIMIT_FSIZE, &l, nil)
}
