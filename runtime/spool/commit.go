package spool

import (
	"context"
	"time"
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
	stepRetry              // as well, but not beyond roomDelay
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
	armed, slow, late := false, false, false // slow: the timer is for roomDelay
	for ctx.Err() == nil {
		s.mu.Lock()
		todo := s.nextLocked(late)
		s.mu.Unlock()
		switch todo {
		case stepEnd:
			return nil
		case stepCommit:
			timer.Stop()
			armed, slow, late = false, false, false
			if err := s.commit(true); err != nil {
				return err
			}
			continue
		case stepLinger:
			if !armed || slow {
				timer.Reset(floorDelay)
				armed, slow = true, false
			}
		case stepRetry:
			if !armed {
				timer.Reset(roomDelay)
				armed, slow = true, true
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

// nextLocked decides what is worth a transaction; late means that the timer has run out.
func (s *Spool) nextLocked(late bool) step {
	dirty, settled := s.dirtyLocked(), s.settledLocked()
	due := len(s.queue) > 0 && s.minFloorLocked() > s.released || // room for those who wait
		len(s.damage) > 0 || s.backlog
	switch {
	case len(s.queue) > 0 && !s.full,
		due && !s.tight,
		dirty && late,
		late && s.noRoom && len(s.queue) > 0,
		late && s.tight && due,
		dirty && s.sealed && settled:
		return stepCommit
	case s.sealed && settled:
		return stepEnd
	case dirty:
		return stepLinger
	case s.noRoom && len(s.queue) > 0, s.tight && due:
		return stepRetry
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

// commit writes one transaction: waiting batches if intake is set, their offsets, floors, and deletions. Every
// batch in it is answered. An error is final: the spool has failed.
func (s *Spool) commit(intake bool) error {
	c := change{}
	err := s.writeWhole(&c, intake)
	if c.diskLeft {
		s.tellRoom(false)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failLocked(err)
		return s.err
	}
	s.taken = 0
	s.tight = c.tight
	if intake {
		s.full = c.headLeft || c.tight
		s.noRoom = c.diskLeft || c.tight
	}
	s.stats.Bytes, s.stats.Disk = c.used, c.size
	if c.idle {
		s.released = max(s.released, c.low) // there was nothing to delete: do not look again
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
