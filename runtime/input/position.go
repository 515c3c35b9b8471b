package input

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// position is how far a file was read, and which file that was. In the spool, integers little-endian:
//
//	0   u8      version = 1
//	1   u8      flags: 1 the inode is known, 2 the last line read had no line break
//	2   u16     bytes of the file that are in the hash, at most 1,024
//	4   u32     times that reading began again
//	8   u64     inode
//	16  u8[16]  first half of the SHA-256 of these bytes
//	32  u64     byte of the file at which to go on
//	40  u64     lines before it
type position struct {
	hasInode bool
	open     bool // the last line read had no line break: a line break at offset belongs to it
	inode    uint64
	hashed   int
	hash     [16]byte
	again    uint32 // so that refused lines of a file that was cut and written again have new ids
	offset   int64
	line     int64
}

const (
	positionVersion = 1
	positionSize    = 48
	maxHashed       = 1024
	flagInode       = 1
	flagOpen        = 2
)

// PositionError says that the remembered position of a file cannot be read: it is of a newer version, or damaged.
// Beginning again would publish the file twice, so that is for a person to decide.
type PositionError struct{ Detail string }

func (e *PositionError) Error() string {
	return "read the remembered position: " + e.Detail + ": give the input another id to read the file from its beginning"
}

func (p *position) append(dst []byte) []byte {
	flags := byte(0)
	if p.hasInode {
		flags |= flagInode
	}
	if p.open {
		flags |= flagOpen
	}
	dst = append(dst, positionVersion, flags)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(p.hashed))
	dst = binary.LittleEndian.AppendUint32(dst, p.again)
	dst = binary.LittleEndian.AppendUint64(dst, p.inode)
	dst = append(dst, p.hash[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.offset))
	return binary.LittleEndian.AppendUint64(dst, uint64(p.line))
}

// parsePosition reads what append wrote, exactly. The error is a *PositionError.
func parsePosition(b []byte) (position, error) {
	if len(b) == 0 || b[0] != positionVersion {
		return position{}, &PositionError{"it is of another version"}
	}
	if len(b) != positionSize {
		return position{}, &PositionError{fmt.Sprintf("it has %d bytes instead of %d", len(b), positionSize)}
	}
	p := position{
		hasInode: b[1]&flagInode != 0,
		open:     b[1]&flagOpen != 0,
		hashed:   int(binary.LittleEndian.Uint16(b[2:])),
		again:    binary.LittleEndian.Uint32(b[4:]),
		inode:    binary.LittleEndian.Uint64(b[8:]),
		hash:     [16]byte(b[16:]),
		offset:   int64(binary.LittleEndian.Uint64(b[32:])),
		line:     int64(binary.LittleEndian.Uint64(b[40:])),
	}
	if b[1]&^(flagInode|flagOpen) != 0 || p.hashed > maxHashed || p.offset < 0 || p.line < 0 || !p.hasInode && p.inode != 0 {
		return position{}, &PositionError{"it is damaged"}
	}
	return p, nil
}

// place names the file in the ids of refused lines: the same in every run that goes on with it.
func (p *position) place() []byte {
	q := *p
	q.offset, q.line, q.open = 0, 0, false
	return q.append(nil)
}

// resume decides where to begin with an open file. why says, for people, why a file that has a stored position is
// read from its beginning; it is empty otherwise.
func resume(stored []byte, f io.ReaderAt, info os.FileInfo) (p position, why string, err error) {
	fresh := position{hashed: int(min(info.Size(), maxHashed))}
	fresh.inode, fresh.hasInode = inodeOf(info)
	if fresh.hash, err = hashFile(f, fresh.hashed); err != nil {
		return p, "", err
	}
	if stored == nil {
		return fresh, "", nil
	}
	old, err := parsePosition(stored)
	if err != nil {
		return p, "", err
	}
	fresh.again = old.again + 1
	switch {
	case info.Size() < old.offset:
		return fresh, fmt.Sprintf("it has %d bytes, and %d were read: it was cut or is another file", info.Size(), old.offset), nil
	case old.hasInode && fresh.hasInode && old.inode != fresh.inode:
		return fresh, "it is another file than the one that was read", nil
	}
	hash, err := hashFile(f, old.hashed)
	if err != nil {
		return p, "", err
	}
	if hash != old.hash {
		return fresh, fmt.Sprintf("its first %d bytes are not those that were read", old.hashed), nil
	}
	return old, "", nil
}

// hashFile hashes the first n bytes, or what there is of them.
func hashFile(f io.ReaderAt, n int) (h [16]byte, err error) {
	b := make([]byte, n)
	got, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return h, err
	}
	sum := sha256.Sum256(b[:got])
	return [16]byte(sum[:]), nil
}
