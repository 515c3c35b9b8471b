package envelope

import "encoding/hex"

// ID identifies an event for ever: 16 bytes in memory, 32 lower-case hex digits on the wire.
type ID [16]byte

// AppendID appends the 32 hex digits of id: same event, same bytes, in every process.
func AppendID(dst []byte, id ID) []byte { return hex.AppendEncode(dst, id[:]) }

// String is AppendID as a string.
func (id ID) String() string { return hex.EncodeToString(id[:]) }
