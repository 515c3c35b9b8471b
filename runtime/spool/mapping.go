package spool

import (
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// shedEvery is how many bytes of the mapped file may be used before its pages are given back. The engine reads
// through a mapping, and mapped pages count as the process's memory although they are only the page cache's: a
// reader that lags by a gigabyte would look like a leak, and on a device with a memory limit be killed for it.
const shedEvery = 8 << 20

// shedIn counts n bytes as used and gives the mapping's pages back when it is time.
func (s *Spool) shedIn(tx *bbolt.Tx, n int64) {
	if s.touched.Add(n) < shedEvery {
		return
	}
	s.touched.Store(0)
	shed(tx)
}

// view runs f in a read transaction. What the engine panics with when a page is not what it should be, or cannot
// be read from the disk at all, comes back as a *DamageError.
func (s *Spool) view(f func(*bbolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &DamageError{What: "the database", Why: fmt.Sprint(p)}
		}
	}()
	return s.db.View(f)
}
