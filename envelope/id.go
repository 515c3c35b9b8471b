package envelope

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// ID identifies an event for ever: 16 bytes in memory, 32 lower-case hex digits on the wire. The zero ID is
// none: an event that carries it gets its id from its position in the spool.
type ID [16]byte

// AppendID appends the 32 hex digits of id: same event, same bytes, in every process.
func AppendID(dst []byte, id ID) []byte { return hex.AppendEncode(dst, id[:]) }

// String is AppendID as a string.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads exactly 32 hex digits, lower or upper case. It refuses 32 zeros too, because the zero ID means
// that there is none; such a producer's ids go through HashID like any other text.
func ParseID(s []byte) (ID, bool) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, false
	}
	if _, err := hex.Decode(id[:], s); err != nil {
		return ID{}, false
	}
	return id, id != ID{}
}

// HashID makes an id from a producer's own id that is not 32 hex digits: the first 16 bytes of the SHA-256 over
// both values, each behind its length in 8 little-endian bytes, so that no two pairs make the same input. The
// input's name is part of it because producers know nothing of each other's numbering.
func HashID(input string, value []byte) ID {
	var room [256]byte // enough for nearly all; longer values cost one allocation
	b := binary.LittleEndian.AppendUint64(room[:0], uint64(len(input)))
	b = append(b, input...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(value)))
	b = append(b, value...)
	sum := sha256.Sum256(b)
	return ID(sum[:16])
}

// PositionID makes the id of the event at position seq of the spool with the given epoch.
//
//	| epoch[0:8] | mix(seq + epoch[8:16]) |
//
// The mix is a bijection of 64 bits, so ids of one spool are distinct by construction. Spools are told apart by
// their epochs, which are random: two of them share the first half with probability 2^-64. Ids look random but
// are no secret: who knows two of them can guess the others.
func PositionID(epoch [16]byte, seq uint64) ID {
	id := ID(epoch)
	x := seq + binary.LittleEndian.Uint64(epoch[8:])
	// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): each step can be undone.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	binary.LittleEndian.PutUint64(id[8:], x)
	return id
}

// AppendMsgID appends the Nats-Msg-Id of a message: the event's 32 hex digits, and "-N" for the N-th extra
// message of a fan-out. copy is not negative.
func AppendMsgID(dst []byte, id ID, copy int) []byte {
	if copy < 0 {
		panic("BUG: negative copy number of a message")
	}
	dst = AppendID(dst, id)
	if copy > 0 {
		dst = append(dst, '-')
		dst = strconv.AppendInt(dst, int64(copy), 10)
	}
	return dst
}
