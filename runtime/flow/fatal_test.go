package flow

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"edge/envelope"
	"edge/publisher"
)

// TestLaneWaitsWhileFatal: without Once a fatal answer is no end. Everything in flight gets its answer, one message
// probes until it is accepted, the reason is told once, and nothing is lost or quarantined.
func TestLaneWaitsWhileFatal(t *testing.T) {
	r := open(t, t.TempDir())
	defer r.close()
	r.append("a", bodies(100)...)
	r.spool.Seal()
	var log bytes.Buffer
	var during string
	w := newWire(func(m *envelope.Message, attempt int) publisher.Result {
		if strings.Contains(string(m.Payload), `"n":40}`) && attempt < 4 {
			if attempt == 3 {
				during = *r.counts.Failing.Load()
			}
			return publisher.Result{Outcome: publisher.Fatal, Err: errors.New("permissions violation")}
		}
		return accept(m, attempt)
	})
	cfg := r.config(r.builtIn(), w)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if err := New(cfg).Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c := &r.counts
	if c.Accepted.Load() != 100 || c.Retries.Load() != 3 || r.floor() != 100 || c.Failing.Load() != nil || during != "permissions violation" {
		t.Errorf("accepted %d, retries %d, floor %d, failing %v, while it failed %q", c.Accepted.Load(), c.Retries.Load(), r.floor(), c.Failing.Load(), during)
	}
	// What was in flight with it was answered; after that only the probes, and then the rest in order.
	at := slices.IndexFunc(w.sent, func(s string) bool { return strings.HasSuffix(s, `"n":40}#2`) })
	if at < 0 || !strings.HasSuffix(w.sent[at+1], `"n":40}#3`) || !strings.HasSuffix(w.sent[at+2], `"n":40}#4`) {
		t.Errorf("sent %q", w.sent)
	}
	if n := strings.Count(log.String(), "sink failed"); n != 1 || strings.Count(log.String(), "sink goes on") != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}

// TestLaneStopsWhileFatal: a stop ends a lane that waits, without an error: what is open stays in the spool.
func TestLaneStopsWhileFatal(t *testing.T) {
	r := open(t, t.TempDir())
	defer r.close()
	r.append("a", bodies(10)...)
	stop := make(chan struct{})
	w := newWire(func(m *envelope.Message, attempt int) publisher.Result {
		if attempt == 2 {
			close(stop)
		}
		return publisher.Result{Outcome: publisher.Fatal, Err: errors.New("permissions violation")}
	})
	if err := r.lane(w).Run(t.Context(), stop); err != nil || r.floor() != 0 || r.counts.Failing.Load() == nil {
		t.Errorf("Run = %v, floor %d, failing %v", err, r.floor(), r.counts.Failing.Load())
	}
}

// TestLaneWaitsForFailedPublisher: a publisher that has to be mended ends the lane with Once only; else the lane goes
// on when it is ready again.
func TestLaneWaitsForFailedPublisher(t *testing.T) {
	f := func(once bool) {
		t.Helper()
		r := open(t, t.TempDir())
		defer r.close()
		r.append("a", bodies(10)...)
		r.spool.Seal()
		w := newWire(accept)
		w.status = publisher.Status{State: publisher.Failed, Err: "stream is sealed"}
		cfg := r.config(r.builtIn(), w)
		cfg.Once = once
		l := New(cfg)
		l.publisherChanged()
		if sent, _, err := l.send(); sent || err != nil || l.ready {
			t.Errorf("send = %v, %v of a failed publisher", sent, err)
		}
		w.status = publisher.Status{State: publisher.Ready}
		err := l.Run(t.Context(), nil)
		if halt := (*HaltError)(nil); errors.As(err, &halt) != once || !once && r.counts.Accepted.Load() != 10 {
			t.Errorf("once %v: Run = %v, accepted %d", once, err, r.counts.Accepted.Load())
		}
	}
	f(true)
	f(false)
}

// TestLaneDenied: the operator decides what becomes of a subject that the server denies. An attempt that may have been
// stored keeps its event out of quarantine until the stream has been asked often enough.
func TestLaneDenied(t *testing.T) {
	denied := publisher.Result{Outcome: publisher.Fatal, Err: &publisher.DeniedError{Subject: "edge.a", Text: "permissions violation"}}
	sealed := publisher.Result{Outcome: publisher.Fatal, Err: &publisher.AckError{ErrCode: 10109}}
	f := func(name string, answers []publisher.Result, attempts int, waiting []string) {
		t.Run(name, func(t *testing.T) {
			r := open(t, t.TempDir())
			defer r.close()
			r.append("a", `{"n":1}`, `{"n":2}`)
			r.spool.Seal()
			w := newWire(func(m *envelope.Message, attempt int) publisher.Result {
				if strings.Contains(string(m.Payload), `"n":1}`) && attempt <= len(answers) {
					return answers[attempt-1]
				}
				return accept(m, attempt)
			})
			cfg := r.config(r.builtIn(), w)
			cfg.Denied = DeniedWaits
			if err := New(cfg).Run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if got := r.entries(); !slices.Equal(got, waiting) {
				t.Errorf("quarantined %q, want %q", got, waiting)
			}
			if len(w.sent) != attempts+1 || r.floor() != 2 || r.counts.Accepted.Load() != uint64(2-len(waiting)) {
				t.Errorf("sent %q, floor %d", w.sent, r.floor())
			}
		})
	}
	unknown := publisher.Result{Outcome: publisher.Unknown, Err: &publisher.TimeoutError{}}
	f("denied", []publisher.Result{denied}, 1, []string{`denied {"n":1}`})
	f("another fatal answer waits", []publisher.Result{sealed, sealed}, 3, nil)
	f("denied after unknown proves nothing", []publisher.Result{unknown, denied, denied}, 4, nil)
	f("denied for ever after unknown", []publisher.Result{unknown, denied, denied, denied, denied, denied}, 6, []string{`unresolved {"n":1}`})
}
