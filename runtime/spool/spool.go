package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"edge/runtime/lockdir"
)

// Seq is the position of an event. The first event of a spool has 1; no position is ever used twice.
type Seq uint64

// Offset is an input's resume position. It becomes durable in the same transaction as its batch, so that
// "read" and "stored" are one fact. An empty Key means that there is none. What Value says is the input's own.
type Offset struct {
	Key   string
	Value []byte
}

// Batch is what an input hands over at once: all of it becomes durable, or nothing.
type Batch struct {
	Records [][]byte // opaque to the spool, each at most MaxRecord bytes; none if only the offset moves
	Offset  Offset
}

// DefaultMaxBytes is used when Options.MaxBytes is 0.
const DefaultMaxBytes = 1 << 30

// MinMaxBytes is the smallest Options.MaxBytes: below it a spool would hold little but its own structure.
const MinMaxBytes = 256 << 10

// Options are fixed for the life of a Spool.
type Options struct {
	MaxBytes int64        // bytes of used pages at which Append waits; 0 means DefaultMaxBytes
	Sinks    []string     // every configured sink; those remembered from earlier and not listed are forgotten
	Logger   *slog.Logger // nil means silence

	// openFile replaces os.OpenFile for the database, for tests that break it.
	openFile func(string, int, os.FileMode) (*os.File, error)
	// allocate replaces the function of that name, for tests without a small disk.
	allocate func(f *os.File, from, used, to int64) error
}

var (
	// ErrSealed is what Append answers after Seal.
	ErrSealed = errors.New("append to spool: it is sealed: the agent is stopping")
	// ErrStopped is what Append answers when Run has ended, and every call after Close.
	ErrStopped = errors.New("use spool: it has stopped")
)

// FailedError is the answer to every call after a write or sync that failed: what the disk holds since then is
// not known before the spool is opened again.
type FailedError struct{ Cause error }

func (e *FailedError) Error() string {
	return fmt.Sprintf("spool failed: %v: see to the disk, then start the agent again; what was acknowledged is kept", e.Cause)
}
func (e *FailedError) Unwrap() error { return e.Cause }

// TooLargeError says that a batch can never be stored.
type TooLargeError struct {
	Bytes, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("append to spool: %d bytes at once, at most %d fit: raise spool.max_bytes or send smaller events", e.Bytes, e.Limit)
}

// Spool is the log. All methods may be called from any goroutine; a Reader belongs to one.
type Spool struct {
	opt   Options
	log   *slog.Logger
	lock  *lockdir.Lock
	db    *bbolt.DB
	file  *os.File // the database; db closes it
	epoch [16]byte

	wake    chan struct{} // cap 1: the committer has something to look at
	touched atomic.Int64  // bytes of the mapping used since it was last shed

	// Owned by the committer: Run, and Open and Close when it does not run.
	pack  packer
	done  []*request // in the transaction
	stuck bool       // the engine holds its own locks for ever

	reserved int64 // bytes of the file that have blocks: see reserve
	toldFull bool  // the log says that the disk is full

	mu sync.Mutex
	// All below is guarded by mu.
	//
	// Invariant: for every sink durable <= floor <= last; last is durable. Rows that end at or below removed are
	// gone. Queued requests are in nobody's hands but the queue's; taken counts those in the committer's.
	queue    []*request
	taken    int
	last     Seq
	first    Seq // oldest event present, last+1 if none
	sinks    []*cursor
	damage   []Seq // first positions of damaged rows that wait to be set aside
	running  bool
	stopped  bool // Run has ended, or Close was called
	sealed   bool
	full     bool // the head of the queue did not fit
	noRoom   bool // because of the disk
	tight    bool // what is due could not be done for want of room, and waits
	backlog  bool // released rows are left to be deleted
	err      error
	stats    Stats
	released Seq // minimum floor that the last transaction deleted up to
}

// cursor is what is remembered of one sink. Guarded by Spool.mu, but ready.
type cursor struct {
	name    string
	floor   Seq
	durable Seq    // floor on disk
	skipped uint64 // positions up to floor that had no event to read, since Open
	ready   chan struct{}
}

// request is one Append on its way.
type request struct {
	batch *Batch
	size  int64
	first Seq
	err   error
	gone  error         // why Append wants no more than an answer; guarded by Spool.mu
	done  chan struct{} // closed when first or err is set
}

// Append stores b and returns the position of its first record (without records: the position that the next
// event will have). It returns after the sync: from then on the producer may forget what it sent. Calls that wait
// at the same time share a transaction. While the spool is full it waits, until ctx ends; a disk without room is no error, but a reason to wait.
//
// When ctx ends first, nothing was stored and nothing will be. Other errors: *TooLargeError, ErrSealed,
// ErrStopped, *FailedError. The spool reads the slices of b until Append returns and never after.
func (s *Spool) Append(ctx context.Context, b Batch) (Seq, error) {
	for _, r := range b.Records {
		if len(r) > MaxRecord {
			return 0, &TooLargeError{Bytes: int64(len(r)), Limit: MaxRecord}
		}
	}
	if len(b.Offset.Key) > bbolt.MaxKeySize {
		return 0, &TooLargeError{Bytes: int64(len(b.Offset.Key)), Limit: bbolt.MaxKeySize}
	}
	r := &request{batch: &b, size: estimate(&b), done: make(chan struct{})}
	if r.size > s.opt.MaxBytes {
		return 0, &TooLargeError{Bytes: r.size, Limit: s.opt.MaxBytes}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	if err := s.intakeLocked(); err != nil {
		s.mu.Unlock()
		return 0, err
	}
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	s.poke()
	select {
	case <-r.done:
		return r.first, r.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	if i := slices.Index(s.queue, r); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.full = false // another head of the queue may fit
		s.mu.Unlock()
		s.poke()
		return 0, ctx.Err()
	}
	r.gone = ctx.Err()
	s.mu.Unlock()
	<-r.done // being written: the answer is near, and only it is true
	return r.first, r.err
}

// intakeLocked says why nothing can be appended, nil if it can.
func (s *Spool) intakeLocked() error {
	switch {
	case s.err != nil:
		return s.err
	case s.sealed:
		return ErrSealed
	case s.stopped:
		return ErrStopped
	}
	return nil
}

// Seal ends intake. Appends that wait are still served; readers see io.EOF behind the last event.
func (s *Spool) Seal() {
	s.mu.Lock()
	s.sealed = true
	s.notifyLocked()
	s.mu.Unlock()
	s.poke()
}

// Epoch was drawn when the spool was created. Together with a position it names an event for ever.
func (s *Spool) Epoch() [16]byte { return s.epoch }

// Offset returns a copy of the value that was last stored under key, nil if there is none.
func (s *Spool) Offset(key string) (value []byte, err error) {
	if err := s.failed(); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, nil
	}
	err = s.view(func(tx *bbolt.Tx) error {
		stored := tx.Bucket(bucketOffsets).Get([]byte(key))
		if stored == nil {
			return nil
		}
		content, ok := parseSummed([]byte(key), stored)
		if !ok { // Open has looked: it happened since
			return &DamageError{What: fmt.Sprintf("the resume position %q", key), Why: "its checksum does not match"}
		}
		value = append([]byte{}, content...)
		return nil
	})
	return value, err
}

// failed is the error that every call answers, nil while the spool works.
func (s *Spool) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.db == nil {
		return ErrStopped
	}
	return s.err
}

// poke makes the committer look.
func (s *Spool) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// notifyLocked tells every reader to look.
func (s *Spool) notifyLocked() {
	for _, c := range s.sinks {
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
}

// Close writes the last floors, unless the spool has failed, and frees the folder for another process. Run must
// have returned, and no reader may be reading. It returns the failure of a failed spool.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.running {
		panic("BUG: spool closed while its committer runs")
	}
	s.stopLocked(ErrStopped)
	db, err := s.db, s.err
	s.mu.Unlock()
	if db == nil {
		return err
	}
	if err == nil {
		err = s.flush()
	}
	s.mu.Lock()
	s.db = nil
	s.mu.Unlock()
	if !s.stuck {
		if cerr := db.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("close spool: %w", cerr)
		}
	}
	if cerr := s.lock.Close(); cerr != nil && err == nil {
		err = fmt.Errorf("close spool: %w", cerr)
	}
	return err
}

// stopLocked refuses what is queued and what will come.
func (s *Spool) stopLocked(why error) {
	s.stopped = true
	if s.err != nil {
		why = s.err
	}
	for _, r := range s.queue {
		r.err = why
		close(r.done)
	}
	s.queue = nil
	s.notifyLocked()
}
