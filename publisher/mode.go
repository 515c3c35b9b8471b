package publisher

import "strconv"

// Mode is how messages travel to the stream. Every mode keeps the same guarantees: a stable id on every message, a
// checked acknowledgement behind every Accepted, and one Result for each message.
//
// In the batch modes a message with nothing around it goes singly and at once; batches are made of what is waiting
// already. Whatever a batch leaves open, because one of its messages is refused, is a duplicate or was lost, is sent
// again singly with the same id, within the same attempt. That needs a stream that remembers ids: where the duplicate
// window is 0, messages go singly.
type Mode uint8

const (
	// ModeSingle publishes each message by itself, with an acknowledgement of its own. The default.
	ModeSingle Mode = iota
	// ModeAuto uses atomic batches on a replicated stream that allows them, else fast ingest where the stream allows
	// it on another one, else single messages.
	ModeAuto
	// ModeAtomic puts what is waiting into atomic batches (server 2.12, allow_atomic). Worth it where the server syncs
	// every write or the stream is replicated: one sync and one round of replication for many messages.
	ModeAtomic
	// ModeFast puts what is waiting into fast-ingest batches (server 2.14, allow_batched): one acknowledgement for many.
	// It names one sequence: see Result. On a replicated stream messages go singly, because there the server
	// acknowledges a duplicate in such a batch before the first copy is safe.
	ModeFast
)

// String is the mode's name in configuration and status.
func (m Mode) String() string {
	switch m {
	case ModeSingle:
		return "single"
	case ModeAuto:
		return "auto"
	case ModeAtomic:
		return "atomic"
	case ModeFast:
		return "fast"
	}
	return "mode(" + strconv.Itoa(int(m)) + ")"
}
