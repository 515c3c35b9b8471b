package quarantine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Damage is what is wrong with a journal.
type Damage struct {
	Lines int   // complete lines that are no entries
	Bytes int64 // of those
	Torn  int64 // bytes behind the last complete line: a Put at work, or one that was cut off
}

// Scan calls f for every entry in dir, the oldest first, until f returns false. It takes no lock and may run
// beside a Store. A last line that is not complete is passed over: nobody was told that it is stored. Damaged
// lines are passed over too and counted. The error is that of the file system; a folder without a journal has no
// entries, a missing folder is an error.
func Scan(dir string, f func(*Entry) bool) (Damage, error) {
	if _, err := os.Stat(dir); err != nil {
		return Damage{}, fmt.Errorf("read quarantine: %w: has an agent run with this data folder?", err)
	}
	d, err := scan(filepath.Join(dir, fileJournal), func(_ []byte, e *Entry, bad error) bool { return bad != nil || f(e) })
	if err != nil {
		return d, fmt.Errorf("read quarantine: %w", err)
	}
	return d, nil
}

// scan calls f for every complete line, with its newline, and what is in it: an entry, or a *LineError. line is
// valid until f returns, and nil if it is longer than maxLine.
func scan(path string, f func(line []byte, e *Entry, bad error) bool) (d Damage, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	defer file.Close()
	var (
		in   = bufio.NewReaderSize(file, 64<<10)
		line []byte
		size int64
	)
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if size <= maxLine {
			line = append(line, part...)
		} else {
			line = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			d.Torn = size
			return d, nil
		case err != nil:
			return d, err
		}
		e := new(Entry)
		bad := error(&LineError{"it is too long"})
		if line != nil {
			bad = parseLine(line[:len(line)-1], e)
		}
		if bad != nil {
			d.Lines++
			d.Bytes += size
		}
		if !f(line, e, bad) {
			return d, nil
		}
		line, size = line[:0], 0
	}
}
