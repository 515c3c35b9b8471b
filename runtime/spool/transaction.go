package spool

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// change is what one transaction does, as decided before it and learnt in it.
type change struct {
	last    Seq   // before it
	floors  []Seq // in the order of Spool.sinks
	low     Seq   // rows that end here or below may go
	damage  []Seq // rows to set aside
	events  int   // appended
	touched int64 // bytes
	bytes   int64 // of batches, estimated

	deleted  int
	more     bool // deleting stopped at maxDelete
	first    Seq  // oldest row left if any was deleted or set aside, 0 if none is left
	rows     uint64
	lost     uint64 // events in rows set aside
	idle     bool   // there was nothing to do
	used     int64  // after it
	size     int64
	headLeft bool // the head of the queue did not fit
	diskLeft bool // because of the disk
	tight    bool // a transaction that did more had no room
}

// write does the disk's part of commit. What the engine panics with (it does when pages are not what they
// should be, and a page that cannot be read is a fault) comes back as an error.
func (s *Spool) write(c *change, e effort) (err error) {
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
	want, large := int64(0), int64(0)
	if e == effortAll {
		want, large = s.wanted(c)
	}
	limit, err := s.makeRoom(c, want, large)
	if err != nil {
		return err
	}
	s.plan(c, e, limit)
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

// wanted is what the waiting batches that MaxBytes allows will take, and how much of it is in large records.
func (s *Spool) wanted(c *change) (bytes, large int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.queue {
		if bytes > 0 && bytes+r.size > maxCommitBytes || !s.allowedLocked(c, bytes, r.size) {
			break
		}
		bytes += r.size
		for _, rec := range r.batch.Records {
			if len(rec) > pageSize/2 {
				large += int64(len(rec))
			}
		}
	}
	return bytes, large
}

// allowedLocked tells whether MaxBytes allows size bytes behind others of the same transaction. An empty spool takes
// one batch whatever it has.
func (s *Spool) allowedLocked(c *change, others, size int64) bool {
	return c.used+others+size <= s.opt.MaxBytes || s.first > s.last && others == 0
}

// plan decides, under the mutex, what the transaction holds. Bytes in use may not pass limit.
func (s *Spool) plan(c *change, e effort, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.last, c.low = s.last, s.minFloorLocked()
	if c.low <= s.released && !s.backlog {
		c.low = 0
	}
	c.damage = s.damage[:min(len(s.damage), maxSetAside)]
	for _, k := range s.sinks {
		c.floors = append(c.floors, k.floor)
	}
	if e == effortFloors {
		c.low, c.damage = 0, nil
	}
	if e != effortAll {
		return
	}
	for len(s.queue) > 0 {
		r := s.queue[0]
		if c.bytes > 0 && c.bytes+r.size > maxCommitBytes {
			break
		}
		c.diskLeft = c.used+c.bytes+r.size > limit
		if c.diskLeft || !s.allowedLocked(c, c.bytes, r.size) {
			c.headLeft = true
			break
		}
		c.bytes += r.size
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
