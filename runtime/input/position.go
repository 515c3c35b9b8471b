package input

import (
	"encoding/binary"
	"fmt"
)

// position is how far a file was read, and which file that was. In the spool, integers little-endian:
//
//	0   u8      version = 2
//	1   u8      flags: 1 the inode is known, 2 the last line read had no line break
//	2   u16     bytes of the file that are in the head's hash: its first ones before the byte at 32, at most 1,024
//	4   u32     times that reading began again
//	8   u64     inode
//	16  u8[16]  first half of the SHA-256 of these bytes
//	32  u64     byte of the file at which to go on
//	40  u64     lines before it
//	48  u16     bytes of the file that are in the tail's hash: the last ones before the byte at 32, at most 256
//	50  u8[16]  first half of the SHA-256 of these bytes
//
// Version 1 ends at 48, and its head is what the file had when it was first seen. It is still read.
//
// Invariant of version 2: hashed = min(offset, maxHashed), tailed = min(offset, maxTailed).
type position struct {
	hasInode bool
	open     bool // the last line read had no line break: a line break at offset belongs to it
	inode    uint64
	hashed   int
	hash     [16]byte
	again    uint32 // so that refused lines of a file that was cut and written again have new ids
	offset   int64
	line     int64
	tailed   int
	tail     [16]byte
}

const (
	positionVersion = 2
	positionSize    = 66
	oldVersion      = 1
	oldSize         = 48
	maxHashed       = 1024
	maxTailed       = 256 // one or two records: enough to differ where a time or a counter is in them
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
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.line))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(p.tailed))
	return append(dst, p.tail[:]...)
}

// parsePosition reads what append wrote, exactly, and what version 1 wrote. The error is a *PositionError.
func parsePosition(b []byte) (position, error) {
	size := positionSize
	switch {
	case len(b) > 0 && b[0] == oldVersion:
		size = oldSize
	case len(b) == 0 || b[0] != positionVersion:
		return position{}, &PositionError{"it is of another version"}
	}
	if len(b) != size {
		return position{}, &PositionError{fmt.Sprintf("it has %d bytes instead of %d", len(b), size)}
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
	if b[0] == oldVersion {
		return p, nil
	}
	p.tailed, p.tail = int(binary.LittleEndian.Uint16(b[48:])), [16]byte(b[50:])
	if int64(p.hashed) != min(p.offset, maxHashed) || int64(p.tailed) != min(p.offset, maxTailed) {
		return position{}, &PositionError{"it is damaged"}
	}
	return p, nil
}

// place names the file in the ids of refused lines: the same in every run that goes on with it, or that begins again
// because nothing was stored.
func (p *position) place() []byte { return fmt.Appendf(nil, "file %d %d", p.inode, p.again) }
