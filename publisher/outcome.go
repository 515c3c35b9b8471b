package publisher

import "strconv"

// Outcome is what became of one attempt to publish. The zero value is none.
type Outcome uint8

const (
	// Accepted: an acknowledgement names the expected stream and a positive sequence.
	Accepted Outcome = iota + 1
	// Retryable: this attempt surely stored nothing; the same message can succeed later.
	Retryable
	// Unknown: this attempt may have stored the message. Send it again with the same id, within the duplicate window.
	Unknown
	// Permanent: this message can never be stored as it is.
	Permanent
	// Fatal: messages like this cannot be stored until somebody mends credentials, permissions or the stream.
	Fatal

	outcomes // how many values there are, none included
)

// String is the outcome's name in logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Accepted:
		return "accepted"
	case Retryable:
		return "retryable"
	case Unknown:
		return "unknown"
	case Permanent:
		return "permanent"
	case Fatal:
		return "fatal"
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

// Result is the outcome of one attempt.
type Result struct {
	Tag       uint64 // as given to Send; the index into the batch from Write
	Outcome   Outcome
	Duplicate bool // accepted, and an earlier copy with the same id is the one that is stored
	// Sequence of what is accepted is its position in the stream, that of the first copy for a duplicate. The server names
	// one sequence for a fast batch (ModeFast), that of the last message it stored, and does not tell which messages
	// were duplicates: then all of the batch have that Sequence, which is not below their own, and Duplicate is false.
	Sequence uint64
	// SentAt is when this attempt was handed to the connection, in nanoseconds of Unix time; 0 if it never was. The
	// duplicate window is counted from the first attempt that may have been stored: who retries keeps its SentAt.
	SentAt int64
	Err    error // why it was not accepted, one of this package's error types; nil when it was
}
