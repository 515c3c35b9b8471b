package publisher

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// evidence is everything that is known about one attempt when it ends.
type evidence struct {
	ack ack   // the answer, if one came
	err error // why there is none: a *TimeoutError, *DeniedError, *EndedError, or what the client library said
}

// classify decides what became of an attempt. It is the only place that does, apart from checks before anything is
// sent. It is pure: same evidence, same result.
func classify(w *want, e evidence) Result {
	if e.ack.form != silence {
		return classifyAck(w, &e.ack)
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
		if ended.Written {
			return Result{Outcome: Unknown, Err: e.err}
		}
		return Result{Outcome: Retryable, Err: e.err}
	case e.err != nil:
		return classifySend(e.err)
	}
	panic("BUG: an attempt ended without evidence")
}

func classifyAck(w *want, a *ack) Result {
	switch a.form {
	case noResponders:
		return Result{Outcome: Retryable, Err: &AckError{Status: 503, Description: "no responders",
			Fix: "nobody takes this subject now: the stream is gone, its account has no JetStream, or a cluster elects a leader"}}
	case garbage:
		return Result{Outcome: Unknown, Err: &UnexpectedAckError{Want: w.String(), Got: a.text}}
	case negative:
		return refusal(a)
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
		errors.Is(err, nats.ErrInvalidConnection), errors.Is(err, errNotConnected), errors.Is(err, errStuck):
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
)

// refusal looks a negative acknowledgement up.
func refusal(a *ack) Result {
	err := &AckError{ErrCode: a.errCode, Status: a.status, Description: a.text}
	if a.errCode == codeStoreFailed && strings.Contains(a.text, "message too large") {
		// The server uses one number for every store failure; a record over the file store's 32 MiB never fits.
		err.Fix = "the server's file store takes at most 32 MiB in one message"
		return Result{Outcome: Permanent, Err: err}
	}
	if known, ok := refusals[a.errCode]; ok {
		err.Fix = known.fix
		return Result{Outcome: known.outcome, Err: err}
	}
	// A number of a newer server. 5xx and 429 are about the server's state, 4xx about this message: it waits in
	// quarantine for a person instead of holding up the rest for ever.
	if a.status >= 400 && a.status < 500 && a.status != 429 {
		return Result{Outcome: Permanent, Err: err}
	}
	return Result{Outcome: Retryable, Err: err}
}
