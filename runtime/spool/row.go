package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A row packs consecutive events. See FORMAT.md for the byte picture.
const (
	sumSize   = 4           // CRC32C, little-endian
	rowHeader = sumSize + 2 // and the number of records

	// rowTarget is the most bytes of a value that packs several records: four such rows fill a page of 4,096
	// bytes to 95 % (page header 16, per row 16 and a key of 8). Larger rows make every commit rewrite more of
	// the last page, smaller ones cost more keys.
	rowTarget = 944

	// MaxRecord is the largest record that Append takes, in bytes. It bounds what a reader must hold at once.
	MaxRecord = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DamageError says that stored bytes are not what was written.
type DamageError struct {
	What string // which value
	Why  string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("read spool: %s is damaged: %s", e.What, e.Why)
}

// sumOf is the CRC32C over key and content: a value under a wrong key is as damaged as a wrong value.
func sumOf(key, content []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, content)
}

// appendSummed appends the stored form of a small value.
func appendSummed(dst, key, content []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, sumOf(key, content))
	return append(dst, content...)
}

// parseSummed returns the content of a stored value, aliasing it; ok is false if it is damaged.
func parseSummed(key, value []byte) (content []byte, ok bool) {
	if len(value) < sumSize {
		return nil, false
	}
	content = value[sumSize:]
	return content, binary.LittleEndian.Uint32(value) == sumOf(key, content)
}

func seqKey(s Seq) (k [8]byte) {
	binary.BigEndian.PutUint64(k[:], uint64(s))
	return k
}

func keySeq(k []byte) (Seq, bool) {
	if len(k) != 8 {
		return 0, false
	}
	return Seq(binary.BigEndian.Uint64(k)), true
}

// rowCount is how many records a row claims to have, unchecked. 0 if it is too short to say.
func rowCount(value []byte) int {
	if len(value) < rowHeader {
		return 0
	}
	return int(binary.LittleEndian.Uint16(value[sumSize:]))
}

// parseRow appends the records of a row to recs, aliasing value. On error recs comes back as it was.
func parseRow(recs [][]byte, key, value []byte) ([][]byte, error) {
	bad := func(why string) ([][]byte, error) {
		return recs, &DamageError{What: "a row", Why: why}
	}
	content, ok := parseSummed(key, value)
	if !ok {
		return bad("its checksum does not match")
	}
	if len(key) != 8 || len(value) < rowHeader {
		return bad("it is too short")
	}
	out, rest := recs, content[2:]
	for range rowCount(value) {
		n, w := binary.Uvarint(rest)
		if w <= 0 || n > uint64(len(rest)-w) {
			return bad("a record is longer than its row")
		}
		end := w + int(n)
		out = append(out, rest[w:end:end])
		rest = rest[end:]
	}
	if len(rest) > 0 || len(out) == len(recs) {
		return bad("its length and its records disagree")
	}
	return out, nil
}

// packer makes rows out of consecutive records. It is reused from one transaction to the next: rows that it has
// made are valid until reset.
//
// Invariant: buf[row:] is the row being filled; it holds count records, the first of which is event first.
type packer struct {
	buf   []byte
	row   int
	count int
	first Seq
}

func (p *packer) reset(first Seq) {
	if cap(p.buf) > 2*maxCommitBytes {
		p.buf = nil // one huge batch is no reason to keep its room
	}
	p.buf, p.row, p.count, p.first = p.buf[:0], 0, 0, first
}

// add takes the next record; put gets a row whenever one is full. Rows stay valid when buf moves to a larger
// array, because nobody writes to the old one.
func (p *packer) add(rec []byte, put func(key, value []byte) error) error {
	if p.count > 0 && len(p.buf)-p.row+uvarintLen(uint64(len(rec)))+len(rec) > rowTarget {
		if err := p.flush(put); err != nil {
			return err
		}
	}
	if p.count == 0 {
		p.row = len(p.buf)
		p.buf = append(p.buf, make([]byte, rowHeader)...)
	}
	p.buf = binary.AppendUvarint(p.buf, uint64(len(rec)))
	p.buf = append(p.buf, rec...)
	p.count++
	return nil
}

// flush ends the row being filled.
func (p *packer) flush(put func(key, value []byte) error) error {
	if p.count == 0 {
		return nil
	}
	key := seqKey(p.first)
	value := p.buf[p.row:len(p.buf):len(p.buf)]
	binary.LittleEndian.PutUint16(value[sumSize:], uint16(p.count))
	binary.LittleEndian.PutUint32(value, sumOf(key[:], value[sumSize:]))
	p.first += Seq(p.count)
	p.count = 0
	return put(key[:], value)
}

func uvarintLen(n uint64) int {
	l := 1
	for ; n >= 0x80; n >>= 7 {
		l++
	}
	return l
}

// estimate is about how many bytes of pages a batch will take; it is a little too much rather than too little.
func estimate(b *Batch) int64 {
	n := int64(pageSize + len(b.Offset.Key) + len(b.Offset.Value))
	for _, r := range b.Records {
		if len(r) < rowTarget/2 {
			n += int64(len(r)+3) * 5 / 4
		} else {
			n += int64(len(r)) + pageSize/2
		}
	}
	return n
}
