package publisher

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestRefusals has one line for each number, written down apart from the table that it checks.
func TestRefusals(t *testing.T) {
	seen := make(map[int]bool)
	w := newWant("S", "", true)
	f := func(want Outcome, codes ...int) {
		t.Helper()
		for _, code := range codes {
			if seen[code] {
				t.Errorf("%d is here twice", code)
			}
			seen[code] = true
			a := parseAck(w, fmt.Appendf(nil, `{"error":{"code":400,"err_code":%d,"description":"words"},"stream":"S","seq":0}`, code))
			r := classify(w, evidence{ack: a})
			var ae *AckError
			if r.Outcome != want || !errors.As(r.Err, &ae) || ae.ErrCode != code || ae.Description != "words" || ae.Fix == "" {
				t.Errorf("%d: %v, %v, want %v", code, r.Outcome, r.Err, want)
			}
		}
	}
	f(Retryable, 10002, 10023, 10077, 10167, 10176, 10199, 10208, 10210, 10211)
	f(Permanent, 10054, 10070, 10071, 10097, 10164, 10165, 10170, 10171, 10189, 10190, 10191, 10192, 10193, 10203, 10212, 10223, 10227)
	f(Unknown, 10063, 10158, 10201)
	f(Fatal, 10060, 10109, 10111, 10120, 10166, 10168, 10169, 10172, 10174, 10175, 10177, 10179, 10185, 10188, 10200, 10205, 10206, 10207)
	for code := range refusals {
		if !seen[code] {
			t.Errorf("%d is in the table but not here", code)
		}
	}
}

func TestClassify(t *testing.T) {
	plain, hub, blind := newWant("S", "", true), newWant("S", "hub", true), newWant("S", "", false)
	answer := func(w *want, body string, want Outcome) {
		t.Helper()
		if r := classify(w, evidence{ack: parseAck(w, []byte(body))}); r.Outcome != want || (r.Err == nil) != (want == Accepted) {
			t.Errorf("%s: %v, %v, want %v", body, r.Outcome, r.Err, want)
		}
	}
	answer(plain, `{"stream":"S","seq":1}`, Accepted)
	answer(plain, `{"stream":"S","seq":18446744073709551615}`, Accepted)
	answer(plain, `{"stream":"S","seq":1,"duplicate": true}`, Accepted)
	answer(plain, `{"stream":"S","seq":0}`, Unknown)
	answer(plain, `{"stream":"S","seq":0,"duplicate": true}`, Unknown)
	answer(plain, `{"stream":"S"}`, Unknown)
	answer(plain, `{"stream":"T","seq":1}`, Unknown)
	answer(plain, `{"stream":"s","seq":1}`, Unknown)
	answer(plain, `{"stream":"S","domain":"hub","seq":1}`, Unknown)
	answer(hub, `{"stream":"S","domain":"hub","seq":1}`, Accepted)
	answer(hub, `{"stream":"S","domain":"edge","seq":1}`, Unknown)
	answer(hub, `{"stream":"S","seq":1}`, Unknown)
	answer(blind, `{"stream":"S","domain":"hub","seq":1}`, Accepted)
	answer(blind, `{"stream":"S","seq":1}`, Accepted)
	answer(blind, `{"stream":"T","seq":1}`, Unknown)
	answer(plain, `hello`, Unknown)
	answer(plain, `{}`, Unknown)
	answer(plain, `null`, Unknown)
	answer(plain, `{"error":{}}`, Unknown)
	answer(plain, `{"error":{"description":"words only"},"stream":"S","seq":1}`, Unknown)
	answer(plain, `{"error":null,"stream":"S","seq":1}`, Accepted)
	answer(plain, `{"stream":"S","seq":-1}`, Unknown)
	answer(plain, `{"stream":"S","seq":1}{`, Unknown)
	answer(plain, `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`, Retryable)
	answer(plain, `{"error":{"code":503,"err_code":10077,"description":"message too large"}}`, Permanent)
	answer(plain, `{"error":{"code":400,"err_code":19999,"description":"new"}}`, Permanent)
	answer(plain, `{"error":{"code":429,"err_code":19999,"description":"new"}}`, Retryable)
	answer(plain, `{"error":{"code":503,"err_code":19999,"description":"new"}}`, Retryable)
	answer(plain, `{"error":{"code":503,"description":"no number"}}`, Retryable)

	status := func(h nats.Header, want Outcome) {
		t.Helper()
		if r := classify(plain, evidence{ack: statusAck(h)}); r.Outcome != want || r.Err == nil {
			t.Errorf("%v: %v, want %v", h, r.Outcome, want)
		}
	}
	status(nats.Header{"Status": {"503"}}, Retryable)
	status(nats.Header{"Status": {"408"}}, Unknown)
	status(nil, Unknown)

	local := func(err error, want Outcome) {
		t.Helper()
		if r := classify(plain, evidence{err: err}); r.Outcome != want || r.Err == nil {
			t.Errorf("%v: %v, want %v", err, r.Outcome, want)
		}
	}
	local(&TimeoutError{After: time.Second}, Unknown)
	local(&TimeoutError{After: time.Second, Lost: true}, Unknown)
	local(&DeniedError{Subject: "s"}, Fatal)
	local(&EndedError{Written: true}, Unknown)
	local(&EndedError{}, Retryable)
	local(errNotConnected, Retryable)
	local(errStuck, Retryable)
	local(nats.ErrReconnectBufExceeded, Retryable)
	local(nats.ErrConnectionClosed, Retryable)
	local(nats.ErrMaxPayload, Permanent)
	local(nats.ErrBadSubject, Permanent)
	local(nats.ErrBadHeaderMsg, Permanent)
	local(nats.ErrHeadersNotSupported, Fatal)
	local(io.ErrUnexpectedEOF, Unknown)
	local(fmt.Errorf("write tcp: i/o timeout"), Unknown)
}

func TestWords(t *testing.T) {
	for o := Accepted; o < outcomes; o++ {
		if s := o.String(); s[0] == 'o' {
			t.Errorf("outcome %d has no name", o)
		}
	}
	for s := Connecting; s <= Failed; s++ {
		if s.String()[:2] == "st" {
			t.Errorf("state %d has no name", s)
		}
	}
}
