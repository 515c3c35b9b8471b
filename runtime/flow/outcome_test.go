package flow

import (
	"fmt"
	"slices"
	"testing"

	"edge/envelope"
	"edge/publisher"
)

func TestDecide(t *testing.T) {
	f := func(o publisher.Outcome, unknown bool, refusals, unlisted int32, want next) {
		t.Helper()
		if got := decide(o, unknown, refusals, unlisted); got != want {
			t.Errorf("decide(%v, %v, %d, %d) = %d, want %d", o, unknown, refusals, unlisted, got, want)
		}
	}
	for _, unknown := range []bool{false, true} {
		f(publisher.Accepted, unknown, 0, 0, done)
		f(publisher.Retryable, unknown, 0, 0, again)
		f(publisher.Retryable, unknown, 0, UnlistedRefusals-1, again)
		f(publisher.Unknown, unknown, 0, 0, again)
		f(publisher.Fatal, unknown, 0, 0, suspend)
	}
	f(publisher.Permanent, false, 0, 0, refuse)
	f(publisher.Permanent, true, 1, 0, again)
	f(publisher.Permanent, true, UnknownRefusals-1, 0, again)
	f(publisher.Permanent, true, UnknownRefusals, 0, refuse)
	f(publisher.Retryable, false, 0, UnlistedRefusals, refuse)
	f(publisher.Retryable, true, UnlistedRefusals, UnlistedRefusals, again) // it may be stored
	f(publisher.Retryable, true, UnknownRefusals, UnknownRefusals, refuse)
}

// TestUnlistedRefusals counts refusals by a number that nobody knows. A script is one letter for each attempt at the
// message: x is such a refusal, r another one that can pass, u no answer. After its end the message is accepted.
func TestUnlistedRefusals(t *testing.T) {
	f := func(script string, sent int, wantQuarantine ...string) {
		t.Helper()
		r := open(t, t.TempDir())
		defer r.close()
		r.append("a", `{"n":1}`)
		r.spool.Seal()
		w := newWire(func(m *envelope.Message, attempt int) publisher.Result {
			if attempt > len(script) {
				return accept(m, attempt)
			}
			switch script[attempt-1] {
			case 'x':
				return publisher.Result{Outcome: publisher.Retryable, Err: fmt.Errorf("wrapped: %w", &publisher.AckError{ErrCode: 19999, Status: 400, Unlisted: true})}
			case 'r':
				return publisher.Result{Outcome: publisher.Retryable, Err: &publisher.AckError{ErrCode: 10167, Status: 429}}
			}
			return publisher.Result{Outcome: publisher.Unknown, Err: &publisher.TimeoutError{}}
		})
		if err := r.lane(w).Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if len(w.sent) != sent {
			t.Errorf("%s: %d attempts, want %d", script, len(w.sent), sent)
		}
		if got := r.entries(); !slices.Equal(got, wantQuarantine) {
			t.Errorf("%s: quarantine holds %q, want %q", script, got, wantQuarantine)
		}
	}
	f("xx", 3)
	f("xxrxx", 6)
	f("xxx", 3, `server_19999 {"n":1}`)
	f("xrxxx", 5, `server_19999 {"n":1}`)
	f("uxxx", 5)
	f("uxxxx", 6)
	f("uxxxxx", 6, `unresolved {"n":1}`)
	f("xxuxxxxx", 8, `unresolved {"n":1}`)
	f("xxuxrxxxx", 9, `unresolved {"n":1}`)
}
