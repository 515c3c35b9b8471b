package spool

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// shed tells the kernel that nobody needs the mapped pages for now. It is only advice: the next access maps a
// page again, from the page cache and unchanged, because the mapping is shared and read-only. The open
// transaction keeps the mapping where it is, and the mapping is never smaller than the database.
func shed(tx *bbolt.Tx) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}
