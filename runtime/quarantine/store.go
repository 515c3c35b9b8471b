package quarantine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"edge/runtime/lockdir"
)

// Names in the folder.
const (
	fileJournal = "quarantine.ndjson"
	fileNew     = "quarantine.ndjson.new"
	fileDamaged = "quarantine.damaged"
)

// DefaultMaxBytes is used when Options.MaxBytes is 0.
const DefaultMaxBytes = 256 << 20

// maxLine is the longest line that is read or written, in bytes: the largest record that the spool takes, with
// every byte of it escaped, and as much again for its rendered form.
const maxLine = 800 << 20

// Options are fixed for the life of a Store.
type Options struct {
	MaxBytes int64        // of all files together; 0 means DefaultMaxBytes
	Logger   *slog.Logger // nil means silence
}

// LockedError says that another process has the folder open for writing.
type LockedError = lockdir.LockedError

// FullError says that a Put was refused whole, because the store would pass its limit.
type FullError struct {
	Dir                string
	Bytes, More, Limit int64
	Stored             int // leading entries of the Put that are durable
}

func (e *FullError) Error() string {
	return fmt.Sprintf("quarantine %s is full: %d bytes and %d more, at most %d: look at it with edge quarantine ls, see to the cause, then move %s away or raise quarantine.max_bytes, and start the agent again",
		e.Dir, e.Bytes, e.More, e.Limit, fileJournal)
}

// FailedError is the answer to every Put after a write or sync that failed: what the disk holds since then is not
// known before the store is opened again.
type FailedError struct{ Cause error }

func (e *FailedError) Error() string {
	return fmt.Sprintf("quarantine failed: %v: see to the disk, then start the agent again; what was put before is kept", e.Cause)
}
func (e *FailedError) Unwrap() error { return e.Cause }

// ErrClosed is what Put answers after Close.
var ErrClosed = errors.New("put into quarantine: it is closed")

// Stats is a copy of what the store knows about itself.
type Stats struct {
	Entries  int
	Bytes    int64
	MaxBytes int64
	Damage   Damage // found by Open
}

// journal is the open file, as far as Put needs it.
type journal interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

// Store is the writer. Its methods may be called from any goroutine.
type Store struct {
	dir  string
	max  int64
	lock *lockdir.Lock

	mu sync.Mutex
	// All below is guarded by mu.
	//
	// Invariant: the journal ends with a complete line, or err is set; seen has a key for every line in it.
	file  journal
	bytes int64 // of all files
	seen  map[key]struct{}
	stats Stats
	buf   []byte
	err   error
}

// Open opens the store in dir for writing, or makes a new one. It reads everything once, mends what is damaged
// (see the package), and starts no goroutine. The error to tell apart is *LockedError.
func Open(dir string, opt Options) (*Store, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = DefaultMaxBytes
	}
	if opt.MaxBytes < 0 {
		return nil, fmt.Errorf("open quarantine: max_bytes is %d, it must be positive", opt.MaxBytes)
	}
	log := opt.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	lock, err := lockdir.Open("quarantine", dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, max: opt.MaxBytes, lock: lock, seen: map[key]struct{}{}}
	if err := s.open(log); err != nil {
		lock.Close()
		return nil, fmt.Errorf("open quarantine: %w", err)
	}
	return s, nil
}

// open works under the lock.
func (s *Store) open(log *slog.Logger) error {
	path := filepath.Join(s.dir, fileJournal)
	if err := s.repair(path, log); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := lockdir.Sync(s.dir); err != nil {
		return errors.Join(err, f.Close())
	}
	for _, name := range []string{fileJournal, fileDamaged} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		switch {
		case err == nil:
			s.bytes += info.Size()
		case !errors.Is(err, fs.ErrNotExist):
			return errors.Join(err, f.Close())
		}
	}
	s.file = f
	return nil
}

// Put makes entries durable: it returns after the sync. added is how many were not there yet; the others are
// not written again. Nothing of entries is kept. Errors: *FullError (its Stored leading entries are durable, nothing
// behind them was written, a later Put may succeed), *FailedError, ErrClosed; after any other none of them may be
// taken as stored.
func (s *Store) Put(entries []Entry) (added int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.buf = s.buf[:0]
	var keys []key
	var full *FullError
	for i := range entries {
		e := &entries[i]
		k := keyOf(e)
		if _, ok := s.seen[k]; ok || slices.Contains(keys, k) {
			continue
		}
		from := len(s.buf)
		if s.buf, err = appendLine(s.buf, e); err != nil {
			return 0, fmt.Errorf("put event %s into quarantine: %w", e.ID, err)
		}
		n := len(s.buf) - from
		if n > maxLine {
			return 0, fmt.Errorf("put event %s into quarantine: its entry has %d bytes, at most %d can be kept", e.ID, n, maxLine)
		}
		if have := s.bytes + int64(from); have+int64(n) > s.max {
			s.buf = s.buf[:from]
			full = &FullError{Dir: s.dir, Bytes: have, More: int64(n), Limit: s.max, Stored: i}
			break
		}
		keys = append(keys, k)
	}
	if len(keys) > 0 {
		if err := s.write(); err != nil {
			s.err = &FailedError{Cause: err}
			return 0, s.err
		}
	}
	for _, k := range keys {
		s.seen[k] = struct{}{}
	}
	s.bytes += int64(len(s.buf))
	s.stats.Entries += len(keys)
	if cap(s.buf) > 1<<20 {
		s.buf = nil // one huge entry is no reason to keep its room
	}
	if full != nil {
		return len(keys), full
	}
	return len(keys), nil
}

func (s *Store) write() error {
	if _, err := s.file.Write(s.buf); err != nil {
		return err
	}
	return s.file.Sync()
}

// Stats may be called at any time.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Bytes, out.MaxBytes = s.bytes, s.max
	return out
}

// Close frees the folder for another writer. A failed store returns its failure, once.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.err
	s.err = ErrClosed
	err = errors.Join(err, s.file.Close(), s.lock.Close())
	s.file = nil
	return err
}
