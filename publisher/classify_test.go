package publisher

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

func TestClassifyAnswers(t *testing.T) {
	plain, hub, blind := newWant("S", "", true), newWant("S", "hub", true), newWant("S", "", false)
	f := func(w *want, body string, want Outcome) {
		t.Helper()
		r := classify(w, evidence{ack: parseAck(w, []byte(body)), written: true})
		if r.Outcome != want || (r.Err == nil) != (want == Accepted) {
			t.Errorf("%s: %v, %v, want %v", body, r.Outcome, r.Err, want)
		}
	}
	f(plain, `{"stream":"S","seq":1}`, Accepted)
	f(plain, `{"stream":"S","seq":18446744073709551615}`, Accepted)
	f(plain, `{"stream":"S","seq":1,"duplicate": true}`, Accepted)
	f(plain, `{"stream":"S","seq":0}`, Unknown)
	f(plain, `{"stream":"S","seq":0,"duplicate": true}`, Unknown)
	f(plain, `{"stream":"S"}`, Unknown)
	f(plain, `{"stream":"T","seq":1}`, Unknown)
	f(plain, `{"stream":"s","seq":1}`, Unknown)
	f(plain, `{"stream":"S","domain":"hub","seq":1}`, Unknown)
	f(hub, `{"stream":"S","domain":"hub","seq":1}`, Accepted)
	f(hub, `{"stream":"S","domain":"edge","seq":1}`, Unknown)
	f(hub, `{"stream":"S","seq":1}`, Unknown)
	f(blind, `{"stream":"S","domain":"hub","seq":1}`, Accepted)
	f(blind, `{"stream":"S","seq":1}`, Accepted)
	f(blind, `{"stream":"T","seq":1}`, Unknown)
	f(plain, `hello`, Unknown)
	f(plain, `{}`, Unknown)
	f(plain, `null`, Unknown)
	f(plain, `{"error":{}}`, Unknown)
	f(plain, `{"error":{"description":"words only"},"stream":"S","seq":1}`, Unknown)
	f(plain, `{"error":null,"stream":"S","seq":1}`, Accepted)
	f(plain, `{"stream":"S","seq":-1}`, Unknown)
	f(plain, `{"stream":"S","seq":1}{`, Unknown)
}

// TestClassifyStoreFailures: the number is one, the server's own texts are many.
func TestClassifyStoreFailures(t *testing.T) {
	f := func(text string, want Outcome) {
		t.Helper()
		r := classify(newWant("S", "", true), evidence{ack: ack{form: negative, errCode: codeStoreFailed, status: 503, text: text}, written: true})
		var ae *AckError
		if r.Outcome != want || !errors.As(r.Err, &ae) || ae.Fix == "" || ae.Unlisted {
			t.Errorf("%s: %v, %v, want %v", text, r.Outcome, r.Err, want)
		}
	}
	f(natsserver.ErrMaxMsgs.Error(), Retryable)
	f(natsserver.ErrMaxBytes.Error(), Retryable)
	f(natsserver.ErrMaxMsgsPerSubject.Error(), Retryable)
	f(natsserver.ErrMsgTooLarge.Error(), Permanent)
	f(natsserver.ErrStoreClosed.Error(), Unknown)
	f("anything else", Unknown)
	f("", Unknown)
}

// TestClassifyUnlisted: refusals by numbers that no table has.
func TestClassifyUnlisted(t *testing.T) {
	f := func(status int, own bool, want Outcome, unlisted bool) {
		t.Helper()
		for _, code := range []int{19999, 1, 0, -1} {
			r := classify(newWant("S", "", true), evidence{ack: ack{form: negative, errCode: code, status: status}, written: true, own: own})
			var ae *AckError
			if r.Outcome != want || !errors.As(r.Err, &ae) || ae.Unlisted != unlisted || ae.ErrCode != code {
				t.Errorf("code %d, status %d: %v, %v, want %v", code, status, r.Outcome, r.Err, want)
			}
		}
	}
	for _, own := range []bool{false, true} {
		f(429, own, Retryable, false)
		f(500, own, Retryable, false)
		f(503, own, Retryable, false)
		f(599, own, Retryable, false)
		f(-1, own, Unknown, false)
		f(0, own, Unknown, false)
		f(200, own, Unknown, false)
		f(399, own, Unknown, false)
		f(600, own, Unknown, false)
	}
	for _, status := range []int{400, 404, 409, 428, 430, 499} {
		f(status, false, Retryable, true)
		f(status, true, Permanent, true)
	}
}

// TestClassifyHeaders: answers with a status in their headers.
func TestClassifyHeaders(t *testing.T) {
	w := newWant("S", "", true)
	f := func(h nats.Header, body string, want Outcome) {
		t.Helper()
		r := classify(w, evidence{ack: parseAnswer(w, h, []byte(body)), written: true})
		if r.Outcome != want || (r.Err == nil) != (want == Accepted) {
			t.Errorf("%v %s: %v, %v, want %v", h, body, r.Outcome, r.Err, want)
		}
	}
	status := func(s string) nats.Header { return nats.Header{"Status": {s}} }
	busy := `{"error":{"code":429,"err_code":10167,"description":"too many requests"},"stream":"S","seq":0}`
	f(nil, "", Unknown)
	f(nil, busy, Retryable)
	f(status("503"), "", Retryable)
	f(status("429"), busy, Retryable)
	f(status("429"), "", Retryable)
	f(status("429"), "words", Retryable)
	f(status("408"), "", Unknown)
	f(status(""), "", Unknown)
	f(status("503"), "words", Unknown)
	f(status("400"), `{"error":{"code":400,"err_code":10054,"description":"x"}}`, Permanent)
	// An acknowledgement never has a status; one with another header is still one.
	f(status("503"), `{"stream":"S","seq":1}`, Unknown)
	f(status("429"), `{"stream":"S","seq":1}`, Unknown)
	f(status("200"), `{"stream":"S","seq":1}`, Unknown)
	f(nats.Header{"Trace": {"x"}}, `{"stream":"S","seq":1}`, Accepted)
	f(nats.Header{"Trace": {"x"}}, "words", Unknown)
}

// TestClassifyWithoutAnswer: an error decides, and before it whether anything was written.
func TestClassifyWithoutAnswer(t *testing.T) {
	f := func(err error, want Outcome) {
		t.Helper()
		w := newWant("S", "", true)
		if r := classify(w, evidence{err: err, written: true}); r.Outcome != want || r.Err == nil {
			t.Errorf("%v: %v, want %v", err, r.Outcome, want)
		}
		r := classify(w, evidence{err: err})
		var (
			ended   *EndedError
			timeout *TimeoutError
		)
		switch {
		case r.Outcome != Retryable || r.Err == nil:
			t.Errorf("%v before it was written: %v", err, r.Outcome)
		case errors.As(r.Err, &ended) && ended.Written, errors.As(r.Err, &timeout):
			t.Errorf("%v before it was written says that it may be stored: %v", err, r.Err)
		}
	}
	f(&TimeoutError{After: time.Second}, Unknown)
	f(&TimeoutError{After: time.Second, Lost: true}, Unknown)
	f(&DeniedError{Subject: "s"}, Fatal)
	f(&EndedError{}, Unknown)
	f(nats.ErrReconnectBufExceeded, Retryable)
	f(nats.ErrConnectionClosed, Retryable)
	f(nats.ErrConnectionDraining, Retryable)
	f(nats.ErrInvalidConnection, Retryable)
	f(nats.ErrMaxPayload, Permanent)
	f(nats.ErrBadSubject, Permanent)
	f(nats.ErrBadHeaderMsg, Permanent)
	f(nats.ErrInvalidMsg, Permanent)
	f(nats.ErrHeadersNotSupported, Fatal)
	f(io.ErrUnexpectedEOF, Unknown)
	f(fmt.Errorf("write tcp: i/o timeout"), Unknown)
	f(errNotConnected, Unknown) // written contradicts it, and the doubt wins
}

// TestClassifyForged: an answer to what was never sent is somebody else's, whatever it says.
func TestClassifyForged(t *testing.T) {
	w := newWant("S", "", true)
	f := func(body string) {
		t.Helper()
		r := classify(w, evidence{ack: parseAnswer(w, nil, []byte(body))})
		var ue *UnexpectedAckError
		if r.Outcome != Retryable || !errors.As(r.Err, &ue) {
			t.Errorf("%s: %v, %v", body, r.Outcome, r.Err)
		}
	}
	f(`{"stream":"S","seq":1}`)
	f(`{"error":{"code":400,"err_code":10054,"description":"x"}}`)
	f(`words`)
	f(``)
}

func TestClassifyNothing(t *testing.T) {
	for _, written := range []bool{false, true} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("written %v: no evidence has an outcome", written)
				}
			}()
			classify(newWant("S", "", true), evidence{written: written})
		}()
	}
}

func TestSettle(t *testing.T) {
	for o := Accepted; o < outcomes; o++ {
		if got := Settle(false, Result{Outcome: o}); got != o {
			t.Errorf("%v after nothing unknown is %v", o, got)
		}
		want := Unknown
		if o == Accepted {
			want = Accepted
		}
		if got := Settle(true, Result{Outcome: o}); got != want {
			t.Errorf("%v after an unknown attempt is %v, want %v", o, got, want)
		}
	}
}
