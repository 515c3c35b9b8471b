package input

import (
	"crypto/sha256"
	"fmt"
)

// trail keeps of a file what the hashes of its position are made of: the bytes as they were read, because the file
// may have others at their place by the time the position is stored.
//
// Invariant: head are the first min(at, maxHashed) bytes of the file, tail the last min(at, maxTailed) before at.
type trail struct {
	at   int64 // byte of the file
	head []byte
	tail []byte
}

// pass takes the bytes at t.at and moves behind them.
func (t *trail) pass(b []byte) {
	t.at += int64(len(b))
	t.head = append(t.head, b[:min(len(b), maxHashed-len(t.head))]...)
	if len(b) >= maxTailed {
		t.tail = append(t.tail[:0], b[len(b)-maxTailed:]...)
		return
	}
	if over := len(t.tail) + len(b) - maxTailed; over > 0 {
		t.tail = t.tail[:copy(t.tail, t.tail[over:])]
	}
	t.tail = append(t.tail, b...)
}

// mark sets the hashes of a position at t.at.
func (t *trail) mark(p *position) {
	if p.offset != t.at {
		panic(fmt.Sprintf("BUG: the position is at byte %d and its trail at %d", p.offset, t.at))
	}
	if p.hashed < maxHashed || p.tailed == 0 { // else the head is what it was
		p.hashed, p.hash = len(t.head), halfSum(t.head)
	}
	p.tailed, p.tail = len(t.tail), halfSum(t.tail)
}

// halfSum is the first half of the SHA-256 of b.
func halfSum(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}
