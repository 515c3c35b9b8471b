//go:build unix

package wasm

import (
	"fmt"
	"os"
	"syscall"
)

func checkOwner(dir string, st os.FileInfo) error {
	if mode := st.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %#o, others could plant native code in it: chmod 700 it, or remove it", dir, mode)
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d and this process runs as %d: its compiled code can not be trusted, use another directory", dir, s.Uid, os.Geteuid())
	}
	return nil
}
