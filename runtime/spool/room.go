package spool

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	// headroom is how many bytes of the database appends never use, so that floors can be stored and rows deleted
	// when the disk is full. Such a commit replaces one path through each of four small trees, some ten pages of
	// 4 KiB, and readers may hold back the pages of some commits before it.
	headroom = 512 << 10

	// maxReserve bounds how much of the disk is taken at once before it is needed.
	maxReserve = 4 << 20

	// maxSetAside bounds the damaged rows that one transaction moves: each replaces some pages out of headroom.
	maxSetAside = 16

	// roomDelay is how long a full disk is left alone: nobody tells when there is room again.
	roomDelay = time.Second
)

// errNoRoom says that the disk, the quota or a limit of the process does not give more. Nothing was written.
var errNoRoom = errors.New("the disk has no room")

// effort is how much a transaction tries, most first.
type effort uint8

const (
	effortAll    effort = iota
	effortKeepUp        // no batches
	effortFloors        // no deletions either
)

// reserve makes sure that the disk has blocks for the first size bytes of the database, of which the first used are
// pages, and lets the engine use them. errNoRoom leaves everything as it was.
//
// Invariant: the engine never writes beyond reserved, where a full disk could refuse it halfway.
func (s *Spool) reserve(used, size int64) error {
	if !reserves || size <= s.reserved {
		return nil
	}
	size = min(size, math.MaxInt)
	allocate := allocate
	if s.opt.allocate != nil {
		allocate = s.opt.allocate
	}
	err := allocate(s.file, s.reserved, used, size)
	if err == nil {
		err = s.file.Sync() // its length as well
	}
	switch {
	case noRoom(err):
		return errNoRoom
	case err != nil:
		return fmt.Errorf("reserve room: %w", err)
	}
	s.reserved = size
	s.db.MaxSize = int(size) // only the committer's transactions look at it
	return nil
}

// firstRoom reserves what a database that has just been opened has, and headroom if the disk gives it.
func (s *Spool) firstRoom() error {
	s.db.AllocSize = int(min(max(s.opt.MaxBytes/16, 1<<16), 16<<20))
	s.reserved = 0
	if !reserves {
		return nil
	}
	s.db.AllocSize = 0 // it never grows by itself
	var used int64
	if err := s.db.View(func(tx *bbolt.Tx) error {
		used = tx.Size()
		return nil
	}); err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("reserve room: %w", err)
	}
	for _, size := range []int64{max(info.Size(), used+headroom), used + headroom} {
		if err := s.reserve(used, size); !errors.Is(err, errNoRoom) {
			return err
		}
	}
	s.reserved = used // what is there has blocks, unless somebody made a copy with holes
	s.db.MaxSize = int(used)
	return nil
}

// makeRoom tries to reserve enough for want more bytes, large of them in records that need pages next to one
// another, and tells up to how many bytes in use appends may go.
func (s *Spool) makeRoom(c *change, want, large int64) (limit int64, err error) {
	if !reserves {
		return math.MaxInt64, nil
	}
	need := c.used + want + headroom
	if large > 0 {
		need = max(need, c.size+2*large+headroom) // free pages may be anywhere
	}
	if need > s.reserved {
		step := min(max(s.opt.MaxBytes/16, 1<<16), maxReserve)
		err = s.reserve(c.size, max(need, s.reserved+step))
		if err == nil {
			s.tellRoom(true)
		} else if errors.Is(err, errNoRoom) {
			err = s.reserve(c.size, need)
		}
		if err != nil && !errors.Is(err, errNoRoom) {
			return 0, err
		}
	}
	return s.reserved - headroom, nil
}

// tellRoom logs when the disk becomes full, and when it has room again.
func (s *Spool) tellRoom(room bool) {
	switch {
	case !room && !s.toldFull:
		s.log.Error("the disk has no room for the spool to grow: inputs wait until sinks have settled events or the disk has room again; "+
			"free some room, or set spool.max_bytes below what the disk can give", "file", s.db.Path(), "bytes", s.reserved)
	case room && s.toldFull:
		s.log.Info("the disk has room for the spool again", "file", s.db.Path(), "bytes", s.reserved)
	}
	s.toldFull = !room
}

// writeWhole writes one transaction with as much of effort as there is room for. A transaction that the engine
// has no room for is undone before anything is written. c is of the last try.
func (s *Spool) writeWhole(c *change, intake bool) error {
	e, tight := effortAll, false
	if !intake {
		e = effortKeepUp
	}
	for try := 0; ; try++ {
		*c = change{}
		s.done = s.done[:0]
		err := s.write(c, e)
		c.tight = tight
		if !errors.Is(err, berrors.ErrMaxSizeReached) || !reserves {
			return err
		}
		s.putBack()
		more := max(2*c.bytes, 64<<10<<(4*min(try, 3)))
		err = errNoRoom
		if try < 4 { // 64 KiB to 256 MiB: a row of MaxRecord, its neighbour, and twice that
			err = s.reserve(c.size, c.size+more)
		}
		switch {
		case err == nil: // once more, with more room
		case !errors.Is(err, errNoRoom):
			return err
		case e == effortFloors:
			return fmt.Errorf("store floors: %w", errNoRoom)
		default:
			e++
			tight = true
			s.tellRoom(false)
		}
	}
}

// putBack gives the batches of a transaction that was undone back to the queue, but for those whose Append waits
// for its end only.
func (s *Spool) putBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var queue []*request
	for _, r := range s.done {
		if r.gone != nil {
			r.err = r.gone
			close(r.done)
			continue
		}
		queue = append(queue, r)
	}
	s.queue = append(queue, s.queue...)
	clear(s.done)
	s.done, s.taken = s.done[:0], 0
}

// zeroes is the portable way to make a file's blocks exist: by writing them. It does not touch what is below used.
func zeroes(f *os.File, from, used, to int64) error {
	var block [64 << 10]byte
	for at := max(from, used); at < to; {
		n, err := f.WriteAt(block[:min(int64(len(block)), to-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}
