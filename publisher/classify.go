package publisher

import (
	"errors"

	"github.com/nats-io/nats.go"
)

// evidence is everything that is known about one attempt when it ends, and all that decides its outcome. Exactly one of
// ack and err is set.
type evidence struct {
	ack ack   // the answer, if one came
	err error // why there is none: a *TimeoutError, *DeniedError, *EndedError, or what the client library said
	// written says whether any byte of the message may have been handed to the connection before this ending. Until
	// then nothing that happens can mean that it is stored.
	written bool
	own     bool // the message carries headers of its own, so a refusal by an unlisted number may be about them
}

// classify decides what became of an attempt. It is the only place that does, apart from checks before anything is
// sent. It is pure: same evidence, same result.
func classify(w *want, e evidence) Result {
	if e.ack.form == silence && e.err == nil {
		panic("BUG: an attempt ended without evidence")
	}
	if !e.written {
		return Result{Outcome: Retryable, Err: unwritten(w, e)}
	}
	if e.ack.form != silence {
		return classifyAck(w, &e.ack, e.own)
	}
	var (
		timeout *TimeoutError
		denied  *DeniedError
		ended   *EndedError
	)
	switch {
	case errors.As(e.err, &timeout):
		return Result{Outcome: Unknown, Err: e.err}
	case errors.As(e.err, &denied):
		return Result{Outcome: Fatal, Err: e.err}
	case errors.As(e.err, &ended):
		return Result{Outcome: Unknown, Err: &EndedError{Written: true, Err: ended.Err}}
	}
	return classifySend(e.err)
}

// unwritten is the cause of an attempt that ended before a byte left. An answer or a denial can be no answer to it:
// somebody has guessed its reply subject.
func unwritten(w *want, e evidence) error {
	var (
		timeout *TimeoutError
		ended   *EndedError
	)
	switch {
	case e.ack.form != silence:
		return &UnexpectedAckError{Want: w.String(), Got: "somebody who answers what was not sent"}
	case errors.As(e.err, &timeout):
		return &SendError{Err: errStuck}
	case errors.As(e.err, &ended):
		return &EndedError{Err: ended.Err}
	}
	return &SendError{Err: e.err}
}

// Settle is what a message is after one more attempt, for callers that retry: unknownBefore tells whether any earlier
// attempt of it ended Unknown. Unknown is sticky, only Accepted ends it. A refusal of the retry proves nothing about the
// earlier copy, because servers refuse before they look at the id: a sealed stream or a lowered max_msg_size refuses an
// id that is stored, and so does a replicated stream over its quota.
//
// Settle speaks of the message alone. A Fatal result stops the sink whatever Settle says: its message, if it was unknown
// before, is sent again with the same id when the cause is mended.
func Settle(unknownBefore bool, r Result) Outcome {
	if unknownBefore && r.Outcome != Accepted {
		return Unknown
	}
	return r.Outcome
}

// classifyAck judges an answer to a message that was written.
func classifyAck(w *want, a *ack, own bool) Result {
	switch a.form {
	case noResponders:
		return Result{Outcome: Retryable, Err: &AckError{Status: 503, Description: "no responders",
			Fix: "nobody takes this subject now: the stream is gone, its account has no JetStream, or a cluster elects a leader"}}
	case garbage:
		return Result{Outcome: Unknown, Err: &UnexpectedAckError{Want: w.String(), Got: a.text}}
	case negative:
		return refusal(a, own)
	}
	switch {
	case a.stream != w.stream, w.known && a.domain != w.domain:
		return Result{Outcome: Unknown, Err: &UnexpectedAckError{Want: w.String(), Got: place(a.stream, a.domain)}}
	case a.seq == 0:
		return Result{Outcome: Unknown, Err: &UnexpectedAckError{Want: w.String(), Got: place(a.stream, a.domain) + " with sequence 0"}}
	}
	return Result{Outcome: Accepted, Duplicate: a.duplicate, Sequence: a.seq}
}

// classifySend judges what the client library answered to a publication. The first group is returned before the
// library touches its buffer; everything that comes from the socket may have been written in part.
func classifySend(err error) Result {
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining),
		errors.Is(err, nats.ErrInvalidConnection):
		return Result{Outcome: Retryable, Err: &SendError{Err: err}}
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrBadHeaderMsg), errors.Is(err, nats.ErrInvalidMsg):
		return Result{Outcome: Permanent, Err: &SendError{Err: err}}
	case errors.Is(err, nats.ErrHeadersNotSupported):
		return Result{Outcome: Fatal, Err: &SendError{Err: err}}
	}
	return Result{Outcome: Unknown, Err: &SendError{Written: true, Err: err}}
}

// Why something that was admitted was never written.
var (
	errNotConnected = errors.New("the connection was lost before it was sent")
	errStuck        = errors.New("the connection did not take it in time")
	errNotAgain     = errors.New("its batch was refused, and the connection did not take it again in time")
)

// refusal looks a negative acknowledgement up. own is that of evidence.
func refusal(a *ack, own bool) Result {
	err := &AckError{ErrCode: a.errCode, Status: a.status, Description: a.text}
	if a.errCode == codeStoreFailed {
		known := storeFailure(a.text)
		err.Fix = known.fix
		return Result{Outcome: known.outcome, Err: err}
	}
	if known, ok := refusals[a.errCode]; ok {
		err.Fix = known.fix
		return Result{Outcome: known.outcome, Err: err}
	}
	// A number of a newer server, or none. The status tells what kind it is: 429 and 5xx are about the server's state,
	// other 4xx about this message, most likely about its headers if it has any. Without them nobody can say whether it
	// passes, so it may try again, and whoever retries counts.
	switch {
	case a.status == 429, a.status >= 500 && a.status < 600:
		return Result{Outcome: Retryable, Err: err}
	case a.status < 400 || a.status >= 600:
		return Result{Outcome: Unknown, Err: err} // not a refusal as servers write them
	}
	err.Unlisted = true
	if own {
		return Result{Outcome: Permanent, Err: err}
	}
	return Result{Outcome: Retryable, Err: err}
}
