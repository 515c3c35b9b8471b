//go:build unix

package input

import (
	"os"
	"syscall"
)

// inodeOf returns the number that the file system knows the file by.
func inodeOf(info os.FileInfo) (uint64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Ino), true
}
