package input

import (
	"fmt"
	"io"
	"os"
)

// resume decides where to begin with an open file. The trail has the bytes before that place. why says, for people,
// why a file that has a stored position is read from its beginning; it is empty otherwise.
func resume(stored []byte, f io.ReaderAt, info os.FileInfo) (p position, t trail, why string, err error) {
	var fresh position
	fresh.inode, fresh.hasInode = inodeOf(info)
	if stored == nil {
		return fresh, t, "", nil
	}
	old, err := parsePosition(stored)
	if err != nil {
		return p, t, "", err
	}
	fresh.again = old.again + 1
	switch {
	case info.Size() < old.offset:
		return fresh, t, fmt.Sprintf("it has %d bytes, and %d were read: it was cut or is another file", info.Size(), old.offset), nil
	case old.hasInode && fresh.hasInode && old.inode != fresh.inode:
		return fresh, t, "it is another file than the one that was read", nil
	}
	read := int(min(old.offset, maxHashed))
	head, err := readAt(f, 0, max(old.hashed, read)) // version 1 may have looked further than it read, or less far
	if err != nil {
		return p, t, "", err
	}
	tail, err := readAt(f, old.offset-min(old.offset, maxTailed), int(min(old.offset, maxTailed)))
	if err != nil {
		return p, t, "", err
	}
	switch {
	case len(head) < old.hashed || halfSum(head[:old.hashed]) != old.hash:
		return fresh, t, fmt.Sprintf("its first %d bytes are not those that were read", old.hashed), nil
	case len(tail) < old.tailed || old.tailed > 0 && halfSum(tail) != old.tail:
		return fresh, t, fmt.Sprintf("the %d bytes before byte %d are not those that were read: it was cut and filled again", old.tailed, old.offset), nil
	case len(head) < read || int64(len(tail)) < min(old.offset, maxTailed):
		return fresh, t, "it was cut just now", nil
	}
	return old, trail{at: old.offset, head: head[:read], tail: tail}, "", nil
}

// readAt reads n bytes at a place, or what there is of them.
func readAt(f io.ReaderAt, at int64, n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := f.ReadAt(b, at)
	if err == io.EOF {
		err = nil
	}
	return b[:got], err
}
