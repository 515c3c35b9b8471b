package spool

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// pageSize is fixed, whatever the machine's own is: a commit rewrites at least four pages, and on kernels
	// with pages of 64 KiB that would be a quarter of a megabyte for one event.
	pageSize = 4096

	// maxCommitBytes bounds what one transaction takes from the queue, unless a single batch is larger. At some
	// 80 bytes of work per page it keeps a commit in the milliseconds and the memory for it at about 5 MiB.
	maxCommitBytes = 2 << 20

	// maxDelete bounds the rows that one transaction deletes: about twice what maxCommitBytes can add, so that
	// deleting keeps up with any intake.
	maxDelete = 4096

	// floorDelay is how long a floor may wait for company. A floor lost in a crash means sending again with the
	// same ids, so this bounds how much.
	floorDelay = 200 * time.Millisecond
)

// step is what the committer does next.
type step uint8

const (
	stepWait   step = iota // until it is poked
	stepLinger             // as well, but not beyond floorDelay
	stepCommit             // one transaction
	stepEnd                // sealed, drained and settled
)

// Run is the committer: the only writer while it runs. It returns nil when the spool is sealed, everything that
// was appended is durable and every sink has settled all of it, or when ctx ends; floors are durable then, and
// Append answers ErrStopped. A failed write or sync ends it with a *FailedError. It may be called once.
func (s *Spool) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.running || s.stopped {
		s.mu.Unlock()
		panic("BUG: the committer of a spool runs only once")
	}
	s.running = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running = false
		s.stopLocked(ErrStopped)
		s.mu.Unlock()
	}()
	defer context.AfterFunc(ctx, s.poke)()

	timer := time.NewTimer(floorDelay)
	timer.Stop()
	defer timer.Stop()
	armed, late := false, false
	for ctx.Err() == nil {
		s.mu.Lock()
		todo := s.nextLocked(late)
		s.mu.Unlock()
		switch todo {
		case stepEnd:
			return nil
		case stepCommit:
			timer.Stop()
			armed, late = false, false
			if err := s.commit(true); err != nil {
				return err
			}
			continue
		case stepLinger:
			if !armed {
				timer.Reset(floorDelay)
				armed = true
			}
		}
		select {
		case <-s.wake:
		case <-timer.C:
			late = true
		case <-ctx.Done():
		}
	}
	return s.flush()
}

// flush makes the floors durable, whatever they are, and takes no more batches.
func (s *Spool) flush() error {
	for {
		s.mu.Lock()
		dirty := s.dirtyLocked() || len(s.damage) > 0
		s.mu.Unlock()
		if !dirty {
			return nil
		}
		if err := s.commit(false); err != nil {
			return err
		}
	}
}

// nextLocked decides what is worth a transaction; late means that floors have waited for floorDelay.
func (s *Spool) nextLocked(late bool) step {
	dirty, settled := s.dirtyLocked(), s.settledLocked()
	switch {
	case len(s.queue) > 0 && !s.full,
		len(s.queue) > 0 && s.minFloorLocked() > s.released, // room for those who wait
		len(s.damage) > 0, s.backlog,
		dirty && late,
		dirty && s.sealed && settled:
		return stepCommit
	case s.sealed && settled:
		return stepEnd
	case dirty:
		return stepLinger
	}
	return stepWait
}

// dirtyLocked tells whether a floor is not durable.
func (s *Spool) dirtyLocked() bool {
	for _, c := range s.sinks {
		if c.floor > c.durable {
			return true
		}
	}
	return false
}

// settledLocked tells whether no batch waits and every sink is done with every event.
func (s *Spool) settledLocked() bool {
	for _, c := range s.sinks {
		if c.floor < s.last {
			return false
		}
	}
	return len(s.queue) == 0
}

// minFloorLocked is the position up to which no sink needs anything. A spool without sinks keeps everything.
func (s *Spool) minFloorLocked() Seq {
	if len(s.sinks) == 0 {
		return 0
	}
	low := s.last
	for _, c := range s.sinks {
		low = min(low, c.floor)
	}
	return low
}

// change is what one transaction does, as decided before it and learnt in it.
type change struct {
	last    Seq   // before it
	floors  []Seq // in the order of Spool.sinks
	low     Seq   // rows that end here or below may go
	damage  []Seq // rows to set aside
	events  int   // appended
	touched int64 // bytes

	deleted  int
	more     bool // deleting stopped at maxDelete
	first    Seq  // oldest row left if any was deleted or set aside, 0 if none is left
	rows     uint64
	lost     uint64 // events in rows set aside
	idle     bool   // there was nothing to do
	used     int64  // after it
	size     int64
	headLeft bool // the head of the queue did not fit
}

// commit writes one transaction: waiting batches if intake is set, their offsets, floors, and deletions. Every
// batch in it is answered. An error is final: the spool has failed.
func (s *Spool) commit(intake bool) error {
	c := change{}
	s.done = s.done[:0]
	err := s.write(&c, intake)

	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failLocked(err)
		return s.err
	}
	s.taken = 0
	if intake {
		s.full = c.headLeft
	}
	s.stats.Bytes, s.stats.Disk = c.used, c.size
	if c.idle {
		return nil
	}
	s.applyLocked(&c)
	for _, r := range s.done {
		close(r.done)
	}
	clear(s.done)
	s.notifyLocked()
	return nil
}

// applyLocked makes visible what is durable now.
func (s *Spool) applyLocked(c *change) {
	if c.deleted > 0 || c.rows > 0 {
		s.first = c.first
		if c.first == 0 {
			s.first = c.last + 1
		}
		s.full = false // look again
	}
	s.last = c.last + Seq(c.events)
	for i, k := range s.sinks {
		k.durable = c.floors[i]
	}
	if s.backlog = c.more; !c.more {
		s.released = max(s.released, c.low)
	}
	s.damage = s.damage[len(c.damage):]
	s.stats.DamagedRows += c.rows
	s.stats.DamagedEvents += c.lost
	s.stats.Commits++
	s.stats.Appended += uint64(c.events)
}

// failLocked makes err the last answer.
func (s *Spool) failLocked(err error) {
	if s.err == nil {
		s.err = &FailedError{Cause: err}
		s.log.Error("spool failed", "cause", err)
	}
	for _, r := range s.done {
		r.err = s.err
		close(r.done)
	}
	clear(s.done)
	s.done, s.taken = s.done[:0], 0
	s.stopLocked(s.err)
}

// write does the disk's part of commit. What the engine panics with (it does when pages are not what they
// should be, and a page that cannot be read is a fault) comes back as an error.
func (s *Spool) write(c *change, intake bool) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, err := s.db.Begin(true)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	ended := false
	defer func() {
		if p := recover(); p != nil {
			err = &DamageError{What: "the database", Why: fmt.Sprint(p)}
		}
		if !ended {
			s.abandon(tx)
		}
	}()
	c.size = tx.Size()
	c.used = c.size - s.freeBytes()
	rows := tx.Bucket(bucketRows)
	rows.FillPercent = fillPercent
	s.plan(c, intake, rows)
	if err := s.setAside(tx, c); err != nil {
		return fmt.Errorf("set damaged rows aside: %w", err)
	}
	if err := deleteRows(rows, c); err != nil {
		return fmt.Errorf("delete settled rows: %w", err)
	}
	floors, err := s.putFloors(tx, c)
	if err != nil {
		return fmt.Errorf("store floors: %w", err)
	}
	if len(s.done) == 0 && floors == 0 && c.deleted == 0 && len(c.damage) == 0 {
		c.idle = true
		ended = true
		return tx.Rollback()
	}
	if err := s.putBatches(tx, rows, c); err != nil {
		return fmt.Errorf("store batches: %w", err)
	}
	ended = true
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.measure(c)
	return nil
}

// plan decides, under the mutex, what the transaction holds.
func (s *Spool) plan(c *change, intake bool, rows *bbolt.Bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.last, c.low = s.last, s.minFloorLocked()
	if c.low <= s.released && !s.backlog {
		c.low = 0
	}
	c.damage = s.damage
	for _, k := range s.sinks {
		c.floors = append(c.floors, k.floor)
	}
	if !intake {
		return
	}
	empty := s.first > s.last
	var bytes int64
	for len(s.queue) > 0 {
		r := s.queue[0]
		if bytes > 0 && bytes+r.size > maxCommitBytes {
			break
		}
		if c.used+bytes+r.size > s.opt.MaxBytes && !(empty && bytes == 0) {
			c.headLeft = true
			break
		}
		bytes += r.size
		s.done = append(s.done, r)
		s.queue = s.queue[1:]
	}
	s.taken = len(s.done)
}

// freeBytes is what the file holds in pages that are free or will be.
func (s *Spool) freeBytes() int64 {
	st := s.db.Stats()
	return int64(st.FreePageN+st.PendingPageN) * pageSize
}

// measure notes how large the database is after a commit. It gives the mapping's memory back now and then.
func (s *Spool) measure(c *change) {
	_ = s.db.View(func(tx *bbolt.Tx) error { // fails only when the database is closed
		c.size = tx.Size()
		c.used = c.size - s.freeBytes()
		s.shedIn(tx, c.touched+32*pageSize)
		return nil
	})
}

// setAside moves damaged rows out of the way of readers.
func (s *Spool) setAside(tx *bbolt.Tx, c *change) error {
	if len(c.damage) == 0 {
		return nil
	}
	rows, damaged := tx.Bucket(bucketRows), tx.Bucket(bucketDamaged)
	for _, first := range c.damage {
		key := seqKey(first)
		cur := rows.Cursor()
		k, v := cur.Seek(key[:])
		if string(k) != string(key[:]) {
			continue // another reader met it too
		}
		v = append([]byte{}, v...)
		end := c.last
		if next, _ := cur.Next(); next != nil {
			n, err := rowKey(next)
			if err != nil {
				return err
			}
			end = n - 1
		}
		if err := damaged.Put(key[:], v); err != nil {
			return err
		}
		if err := rows.Delete(key[:]); err != nil {
			return err
		}
		c.rows++
		c.lost += uint64(end - first + 1)
		s.log.Error("damaged events set aside", "first", uint64(first), "last", uint64(end), "bytes", len(v), "bucket", string(bucketDamaged))
	}
	return c.oldest(rows)
}

// oldest notes the first row that is left.
func (c *change) oldest(rows *bbolt.Bucket) error {
	c.first = 0
	if k, _ := rows.Cursor().First(); k != nil {
		first, err := rowKey(k)
		if err != nil {
			return err
		}
		c.first = first
	}
	return nil
}

// deleteRows deletes rows that end at or below c.low. A row ends where the next one begins; what it says
// itself is not needed, and may be damaged.
func deleteRows(rows *bbolt.Bucket, c *change) error {
	if c.low == 0 {
		return nil
	}
	var keys [][]byte // valid in the transaction: the cursor does not change anything
	cur := rows.Cursor()
	k, _ := cur.First()
	for k != nil && len(keys) < maxDelete {
		next, _ := cur.Next()
		end := c.last
		if next != nil {
			n, err := rowKey(next)
			if err != nil {
				return err
			}
			end = n - 1
		}
		if end > c.low {
			break
		}
		keys = append(keys, k)
		k = next
	}
	for _, k := range keys {
		if err := rows.Delete(k); err != nil {
			return err
		}
	}
	c.deleted = len(keys)
	c.more = len(keys) == maxDelete
	c.touched += int64(len(keys)) * (rowTarget + 80)
	if c.deleted == 0 {
		return nil
	}
	return c.oldest(rows)
}

// putFloors stores the floors that have moved and tells how many.
func (s *Spool) putFloors(tx *bbolt.Tx, c *change) (moved int, err error) {
	b := tx.Bucket(bucketFloors)
	for i, k := range s.sinks { // the list itself never changes after Open
		if c.floors[i] <= k.durable { // only the committer writes durable
			continue
		}
		content := seqKey(c.floors[i])
		if err := b.Put([]byte(k.name), appendSummed(nil, []byte(k.name), content[:])); err != nil {
			return moved, err
		}
		moved++
	}
	return moved, nil
}

// putBatches stores the batches in s.done and gives each its position.
func (s *Spool) putBatches(tx *bbolt.Tx, rows *bbolt.Bucket, c *change) error {
	s.pack.reset(c.last + 1)
	next := c.last + 1
	offsets := tx.Bucket(bucketOffsets)
	for _, r := range s.done {
		r.first = next
		for _, rec := range r.batch.Records {
			if err := s.pack.add(rec, rows.Put); err != nil {
				return err
			}
		}
		next += Seq(len(r.batch.Records))
		if o := r.batch.Offset; o.Key != "" {
			if err := offsets.Put([]byte(o.Key), appendSummed(nil, []byte(o.Key), o.Value)); err != nil {
				return err
			}
		}
	}
	if err := s.pack.flush(rows.Put); err != nil {
		return err
	}
	c.events = int(next - c.last - 1)
	c.touched += int64(len(s.pack.buf))
	if c.events == 0 {
		return nil
	}
	var content [8]byte
	binary.BigEndian.PutUint64(content[:], uint64(next-1))
	return tx.Bucket(bucketState).Put(keyLast, appendSummed(nil, keyLast, content[:]))
}

// abandon rolls tx back after a failure. The engine may panic once more on the way; then its locks stay held, and
// the database cannot be closed any more in this process.
func (s *Spool) abandon(tx *bbolt.Tx) {
	defer func() {
		if recover() != nil {
			s.stuck = true
		}
	}()
	_ = tx.Rollback() // the failure that led here is the one to tell
}
