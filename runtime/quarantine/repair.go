package quarantine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"edge/runtime/lockdir"
)

// repair reads the journal, fills s.seen, and leaves a journal that ends with a complete line. What it takes out
// goes to quarantine.damaged first. If there is no room to take damaged lines out, they stay where they are:
// readers pass them over.
func (s *Store) repair(path string, log *slog.Logger) error {
	d, err := scan(path, func(_ []byte, e *Entry, bad error) bool {
		if bad == nil {
			s.seen[keyOf(e)] = struct{}{}
			s.stats.Entries++
		}
		return true
	})
	if err != nil {
		return err
	}
	s.stats.Damage = d
	if d.Torn > 0 {
		if err := s.cutTail(path, d.Torn); err != nil {
			return fmt.Errorf("cut torn end of %s: %w", path, err)
		}
		log.Warn("quarantine's last write was cut off; it was never acknowledged", "file", path, "bytes", d.Torn,
			"kept", filepath.Join(s.dir, fileDamaged))
	}
	if d.Lines == 0 {
		return nil
	}
	if err := s.takeOut(path); err != nil {
		log.Error("damaged quarantine entries could not be taken out and are passed over", "file", path,
			"lines", d.Lines, "bytes", d.Bytes, "cause", err)
		return nil
	}
	log.Error("damaged quarantine entries were taken out", "file", path, "lines", d.Lines, "bytes", d.Bytes,
		"kept", filepath.Join(s.dir, fileDamaged))
	return nil
}

// cutTail moves the last n bytes of the journal to the damaged file.
func (s *Store) cutTail(path string, n int64) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := s.keep(io.NewSectionReader(f, size-n, n)); err != nil {
		return err
	}
	if err := f.Truncate(size - n); err != nil {
		return err
	}
	return f.Sync()
}

// takeOut writes the journal anew without damaged lines, and gives it the name in one step. Done twice because of
// a crash in between, it leaves damaged lines twice in the damaged file, and never an entry less.
func (s *Store) takeOut(path string) (err error) {
	tmp := filepath.Join(s.dir, fileNew)
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	damaged, err := s.openDamaged()
	if err != nil {
		return errors.Join(err, out.Close(), os.Remove(tmp))
	}
	good, bad := bufio.NewWriter(out), bufio.NewWriter(damaged)
	var failed error
	_, err = scan(path, func(line []byte, _ *Entry, why error) bool {
		to := good
		if why != nil {
			to = bad
		}
		if line == nil {
			failed = why
		} else {
			_, failed = to.Write(line)
		}
		return failed == nil
	})
	err = errors.Join(err, failed, bad.Flush(), damaged.Sync(), damaged.Close(), good.Flush(), out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return lockdir.Sync(s.dir)
}

// keep appends what r has to the damaged file.
func (s *Store) keep(r io.Reader) error {
	f, err := s.openDamaged()
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close(), lockdir.Sync(s.dir))
}

func (s *Store) openDamaged() (*os.File, error) {
	return os.OpenFile(filepath.Join(s.dir, fileDamaged), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}
