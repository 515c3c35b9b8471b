package spool

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"edge/runtime/lockdir"
)

// formatVersion is the layout of FORMAT.md.
const formatVersion = 1

// Names of files, buckets and keys on disk.
const (
	fileDB  = "spool.db"
	fileNew = "spool.db.new" // a database being made; never holds an event
)

var (
	bucketState   = []byte("state")
	bucketRows    = []byte("rows")
	bucketOffsets = []byte("offsets")
	bucketFloors  = []byte("floors")
	bucketDamaged = []byte("damaged")

	keyFormat = []byte("format")
	keyEpoch  = []byte("epoch")
	keyLast   = []byte("last")
)

// fillPercent leaves a twentieth of each page: rowTarget is made for it.
const fillPercent = 0.95

// VersionError says that the folder was written by another version of the program.
type VersionError struct {
	Path      string
	Found     uint32
	Supported uint32
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("open spool %s: its format is %d, this program reads %d: run the version that wrote it until it is empty", e.Path, e.Found, e.Supported)
}

// LockedError says that another process has the folder open.
type LockedError = lockdir.LockedError

// Open opens the spool in dir, or makes a new one, and brings it into a state that Run can go on from. Damage
// does not stop it: a database that cannot be read at all is moved aside under a name that says so, logged and
// reported by Stats, and a new one begins. It starts no goroutine. Errors to tell apart: *LockedError,
// *VersionError.
func Open(dir string, opt Options) (*Spool, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = DefaultMaxBytes
	}
	if opt.MaxBytes < MinMaxBytes {
		return nil, fmt.Errorf("open spool: max_bytes is %d, at least %d are needed", opt.MaxBytes, MinMaxBytes)
	}
	opt.Sinks = slices.Clone(opt.Sinks)
	for i, name := range opt.Sinks {
		if name == "" || len(name) > bbolt.MaxKeySize || slices.Contains(opt.Sinks[:i], name) {
			return nil, fmt.Errorf("open spool: sink %q: names are not empty and not given twice", name)
		}
	}
	s := &Spool{opt: opt, log: opt.Logger, wake: make(chan struct{}, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.lock, err = lockdir.Open("spool", dir); err != nil {
		return nil, err
	}
	if err := s.open(dir); err != nil {
		s.forget()
		_ = s.lock.Close() // the first error is the one to tell
		return nil, err
	}
	return s, nil
}

// open works under the lock.
func (s *Spool) open(dir string) error {
	path := filepath.Join(dir, fileDB)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.begin(dir, path)
	}
	if err != nil {
		return fmt.Errorf("open spool: %w", err)
	}
	metaLost, err := inspect(path)
	if err == nil {
		err = s.engine(path, metaLost)
	}
	var damage *DamageError
	if !errors.As(err, &damage) {
		return err
	}
	s.forget()
	aside, err := moveAside(path)
	if err != nil {
		return err
	}
	s.stats.SetAside = aside
	s.log.Error("the spool's database is damaged and was moved aside; an empty one begins. "+
		"Inputs start again from the beginning of their files: events that were published already may be published again under new ids. "+
		"Events that were not published yet and whose input is gone are in the moved file only. "+
		"To avoid copies, stop the agent and take what was published out of the inputs' files; "+
		"keep the moved file until nothing in it is missed, and look at the disk, which has most likely caused this",
		"file", aside, "cause", damage)
	return s.begin(dir, path)
}

// begin makes an empty database and opens it.
func (s *Spool) begin(dir, path string) error {
	if err := create(dir); err != nil {
		return fmt.Errorf("create spool %s: %w", dir, err)
	}
	return s.engine(path, false)
}

// engine opens the database and loads what it says. What the engine panics with comes back as a *DamageError.
func (s *Spool) engine(path string, metaLost bool) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &DamageError{What: path, Why: fmt.Sprint(p)}
		}
	}()
	o := options()
	o.InitialMmapSize = mapSize(s.opt.MaxBytes)
	o.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		open := os.OpenFile
		if s.opt.openFile != nil {
			open = s.opt.openFile
		}
		var err error
		s.file, err = open(name, flag, mode)
		return s.file, err
	}
	if s.db, err = bbolt.Open(path, 0o600, o); err != nil {
		if errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrChecksum) || errors.Is(err, berrors.ErrVersionMismatch) {
			return &DamageError{What: path, Why: err.Error()}
		}
		return fmt.Errorf("open spool %s: %w", path, err)
	}
	if err := s.firstRoom(); err != nil {
		return fmt.Errorf("open spool %s: %w", path, err)
	}
	err = s.load(path, metaLost)
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return fmt.Errorf("open spool %s: %w: free some, then start the agent again", path, errNoRoom)
	}
	return err
}

// forget gives up a database that could not be opened or loaded, and what is known from it.
func (s *Spool) forget() {
	if s.db != nil && !s.stuck {
		_ = s.db.Close() // what was wrong with it is what is told
	} else if s.file != nil {
		_ = s.file.Close() // the engine's lock goes with it
	}
	s.db, s.file, s.stuck = nil, nil, false
	s.first, s.last, s.sinks, s.stats = 0, 0, nil, Stats{}
}

// options are what every opening of the database has in common. The engine's own lock is no help before the
// file exists, so there is another; but it is taken as well, and it must not wait for ever.
func options() *bbolt.Options {
	return &bbolt.Options{
		Timeout: time.Second, PageSize: pageSize,
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	}
}

// mapSize is the room to map at once, so that growing does not have to wait for readers. Where addresses are
// scarce, or mapping makes the file as large, the engine's own growth by doubling has to do.
func mapSize(maxBytes int64) int {
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	return int(min(maxBytes+maxBytes/4+64<<20, 64<<30))
}

// create makes an empty database under another name and gives it its own when it is whole, so that a crash on
// the way leaves none.
func create(dir string) error {
	tmp := filepath.Join(dir, fileNew)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := bbolt.Open(tmp, 0o600, options())
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketState, bucketRows, bucketOffsets, bucketFloors, bucketDamaged} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		version := binary.BigEndian.AppendUint32(nil, formatVersion)
		if err := tx.Bucket(bucketState).Put(keyFormat, appendSummed(nil, keyFormat, version)); err != nil {
			return err
		}
		return putEpoch(tx)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, fileDB)); err != nil {
		return err
	}
	return lockdir.Sync(dir)
}

func putEpoch(tx *bbolt.Tx) error {
	var epoch [16]byte
	rand.Read(epoch[:]) // never fails
	return tx.Bucket(bucketState).Put(keyEpoch, appendSummed(nil, keyEpoch, epoch[:]))
}

// moveAside renames a database that cannot be read and returns its new name.
func moveAside(path string) (string, error) {
	base := path + ".damaged-" + time.Now().UTC().Format("20060102T150405Z")
	to := base
	for i := 2; ; i++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = base + "-" + strconv.Itoa(i)
	}
	if err := os.Rename(path, to); err != nil {
		return "", fmt.Errorf("move damaged spool aside: %w", err)
	}
	return to, lockdir.Sync(filepath.Dir(path))
}

// inspect walks through the whole tree once, before the engine does: see tree. metaLost tells that one of the two
// meta pages is damaged. A *DamageError means that the file is no use; a page that the disk cannot read is damage too.
func inspect(path string) (metaLost bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("open spool: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("open spool: %w", err)
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("open spool: %s is not a file: move it away", path)
	}
	if metaLost, err = checkTree(f, info.Size()); err != nil {
		return false, &DamageError{What: path, Why: err.Error()}
	}
	return metaLost, nil
}
