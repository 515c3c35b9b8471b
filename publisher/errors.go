package publisher

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Answers of Send that mean: nothing was sent and no Result will follow.
var (
	// ErrFull: the window is full, by count or by bytes. A Result is outstanding or unread: take it and try again.
	ErrFull = errors.New("send message: the window is full: take results first")
	// ErrNotReady: there is no bound stream now. Changed tells when to look at Status again.
	ErrNotReady = errors.New("send message: the publisher is not ready")
)

// ConfigError names a field of Config that cannot be used. Field is spelled as in the agent's configuration file.
type ConfigError struct {
	Field  string
	Detail string // what is wrong and what would be right; never holds a secret
}

func (e *ConfigError) Error() string { return "publisher configuration: " + e.Field + ": " + e.Detail }

// maxText bounds what the other end says where it enters our errors, in bytes: it ends in logs and in quarantine.
const maxText = 500

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// clippedError is an error whose text is as long as somebody else made it.
type clippedError struct{ err error }

func (e clippedError) Error() string { return clip(e.err.Error()) }
func (e clippedError) Unwrap() error { return e.err }

// uselessError ends a session with a server whose JetStream does not answer, when there are others to try.
type uselessError struct{ err error }

func (e *uselessError) Error() string { return "leave the server for another one: " + e.err.Error() }
func (e *uselessError) Unwrap() error { return e.err }

// FatalError says that nothing can be stored until somebody mends something: here, on the server, or in a file. The
// publisher goes on trying, slowly, and at once when one of its files changes.
type FatalError struct {
	Code   string // short and stable, see the constants
	Field  string // the field of the configuration that it is about, spelled as in the agent's file
	Detail string // what was found
	Fix    string // what to do next
	Err    error  // the cause, if there is one
}

// Codes of a FatalError.
const (
	CodeCredentials = "credentials"      // the server refused who we are
	CodeInbox       = "inbox_denied"     // we may not listen for acknowledgements
	CodeMissing     = "stream_missing"   // there is no such stream
	CodeCreate      = "create_refused"   // the stream could not be created
	CodeStorage     = "stream_storage"   // it is kept in memory
	CodeNoAck       = "stream_no_ack"    // it does not acknowledge
	CodeSealed      = "stream_sealed"    // it takes nothing any more
	CodeMirror      = "stream_mirror"    // it takes messages from another stream only
	CodeSubjects    = "stream_subjects"  // it does not list the subjects
	CodeJetStream   = "jetstream_absent" // the account has no JetStream
	CodeTTL         = "stream_ttl"       // it does not allow a time to live on messages
	CodeMode        = "stream_mode"      // it does not allow the publish mode that was asked for
	CodeChanged     = "stream_changed"   // it was bound, and promises less now
	CodeControlLine = "control_line"     // the server's limit for one line of its protocol is too small
	CodeTLS         = "tls"              // no secure connection, or not to the right server
)

func (e *FatalError) Error() string {
	text := e.Detail
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + ": " + e.Fix
}

func (e *FatalError) Unwrap() error { return e.Err }

// The types below are causes in Result.Err. Those that can make a message permanent have a Code: short, stable, for
// quarantine and metrics.

// AckError is a refusal by the server.
type AckError struct {
	ErrCode     int    // JetStream's number, 0 if there was none
	Status      int    // the HTTP-like status
	Description string // the server's words
	Fix         string // what to do next, "" if the number is not known to us
	// Unlisted marks a 4xx refusal by a number that this package does not know: nobody can say whether the message ever
	// passes. It is Permanent if the message has headers of its own; else Retryable, and whoever retries gives up after
	// a few in a row.
	Unlisted bool
}

func (e *AckError) Error() string {
	if e.ErrCode == 0 && e.Status == 503 {
		return "publish message: no responders (503): " + e.Fix
	}
	text := fmt.Sprintf("publish message: server refused: %s (%d)", e.Description, e.ErrCode)
	if e.Fix != "" {
		text += ": " + e.Fix
	}
	return text
}

// Code is "server_" and JetStream's number.
func (e *AckError) Code() string { return "server_" + strconv.Itoa(e.ErrCode) }

// UnexpectedAckError is an answer that proves nothing: another stream or domain, sequence 0, or no acknowledgement at
// all by its form.
type UnexpectedAckError struct {
	Want, Got string // "STREAM" or "STREAM in domain D"; Got is the answer's beginning when it cannot be read
}

func (e *UnexpectedAckError) Error() string {
	return fmt.Sprintf("publish message: acknowledgement is from %s, expected %s: look for a second stream or a responder on the subject", e.Got, e.Want)
}

// TimeoutError says that no acknowledgement came.
type TimeoutError struct {
	After time.Duration // since the message was admitted
	Lost  bool          // the connection that it was sent on was lost
}

func (e *TimeoutError) Error() string {
	if e.Lost {
		return fmt.Sprintf("publish message: connection lost, no acknowledgement after %v: it may be stored", e.After.Round(time.Millisecond))
	}
	return fmt.Sprintf("publish message: no acknowledgement after %v: it may be stored; look at the server's log, disk and quorum", e.After.Round(time.Millisecond))
}

// SendError is trouble on this side of the wire. Written tells whether any byte may have left.
type SendError struct {
	Written bool
	Err     error
}

func (e *SendError) Error() string { return "publish message: " + e.Err.Error() }
func (e *SendError) Unwrap() error { return e.Err }

// Code is "unsendable".
func (e *SendError) Code() string { return "unsendable" }

// SizeError is a message over a limit. Sizes are bytes and include the header block where Of says so.
type SizeError struct {
	Of          string // "message" (headers and payload) or "headers"
	Size, Limit int
	Limiter     string // whose limit: "max_payload of the server", "max_msg_size of stream S"
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("publish message: %s of %d bytes, %s is %d: send less or raise the limit", e.Of, e.Size, e.Limiter, e.Limit)
}

// Code is "too_large".
func (e *SizeError) Code() string { return "too_large" }

// SubjectError is a subject or header block that must not be sent.
type SubjectError struct {
	Subject  string
	Stream   string   // set if the stream does not take the subject
	Subjects []string // what it takes
	Err      error    // set if subject or headers are malformed
}

func (e *SubjectError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("publish message to %q: %v", e.Subject, e.Err)
	}
	return fmt.Sprintf("publish message to %q: stream %s takes only %s: change the subject or the stream", e.Subject, e.Stream, strings.Join(e.Subjects, ", "))
}

func (e *SubjectError) Unwrap() error { return e.Err }

// Code is "bad_subject" or "subject_not_covered".
func (e *SubjectError) Code() string {
	if e.Err != nil {
		return "bad_subject"
	}
	return "subject_not_covered"
}

// DeniedError says that the server does not allow us to publish under a subject. The denied copy was not stored.
type DeniedError struct {
	Subject string
	Text    string // the server's words
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("publish message to %q: the server denies it (%s): allow the user to publish there", e.Subject, e.Text)
}

// Code is "denied".
func (e *DeniedError) Code() string { return "denied" }

// EndedError says that nobody waits for the answer any more, or that the message was not sent for that reason: Run has
// ended, or the caller's context.
type EndedError struct {
	Written bool
	Err     error // the context's, nil for Run
}

func (e *EndedError) Error() string {
	who := "publisher ended"
	if e.Err != nil {
		who = e.Err.Error()
	}
	if e.Written {
		return "publish message: " + who + " before the acknowledgement: it may be stored"
	}
	return "publish message: " + who + " before it was sent"
}

func (e *EndedError) Unwrap() error { return e.Err }
