package publisher

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/publisher/natstest"
)

// eager makes a publisher look at its stream often enough for a test.
func eager(c *Config) {
	c.minRecheck, c.recheckEvery, c.RequestTimeout = 10*time.Millisecond, 50*time.Millisecond, time.Second
}

// publishUntil sends one message after another until the status is what is waited for. Results do not matter.
func (r *rig) publishUntil(what string, ok func(s Status) bool) Status {
	r.t.Helper()
	for n, end := 1000, time.Now().Add(patience); ; n++ {
		if s := r.p.Status(); ok(s) {
			return s
		}
		if time.Now().After(end) {
			r.t.Fatalf("no status with %s: %+v", what, r.p.Status())
		}
		if err := r.p.Send(message(n, "e.1"), 1); err == nil {
			r.result()
		} else {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// TestStreamEdited edits the stream of a publisher at work. What makes acknowledgements mean less is fatal, and over
// when it is edited back; the rest is taken as it is.
func TestStreamEdited(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	base := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Discard: jetstream.DiscardNew, Duplicates: time.Minute}
	f := func(name, code string, change func(c *jetstream.StreamConfig)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			stream, err := js.CreateStream(t.Context(), base)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
					t.Error(err)
				}
			}()
			r := run(t, srv, func(c *Config) { eager(c); c.CreateStream = false })
			defer r.end()
			r.ready()
			r.one(message(1, "e.1"), Accepted)
			edited := base
			change(&edited)
			if _, err := js.UpdateStream(t.Context(), edited); err != nil {
				t.Fatal(err)
			}
			if code == "" {
				r.publishUntil("the new profile", func(s Status) bool {
					return len(s.Profile.Subjects) == len(edited.Subjects) && s.Profile.MaxMsgSize == int(edited.MaxMsgSize)
				})
				r.one(message(2, "e.1"), Accepted)
				if s := r.p.Status(); s.State != Ready || s.Fatal != nil {
					t.Errorf("%+v", s)
				}
				return
			}
			s := r.publishUntil("failure", func(s Status) bool { return s.State == Failed })
			if s.Fatal.Code != code || s.Fatal.Field == "" || s.Fatal.Fix == "" {
				t.Fatalf("%+v, want %s", s.Fatal, code)
			}
			if edited.Sealed {
				return // for ever
			}
			if _, err := js.UpdateStream(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			r.ready()
			r.publishUntil("acceptance", func(s Status) bool { return s.Counters.Accepted > 1 })
			if info, err := stream.Info(t.Context()); err != nil || info.State.Msgs < 2 {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
	f("sealed", CodeSealed, func(c *jetstream.StreamConfig) { c.Sealed = true })
	f("no_ack", CodeNoAck, func(c *jetstream.StreamConfig) { c.NoAck = true })
	f("subjects", CodeSubjects, func(c *jetstream.StreamConfig) { c.Subjects = []string{"e.2"} })
	f("window", CodeChanged, func(c *jetstream.StreamConfig) { c.Duplicates = time.Second })
	f("discard", CodeChanged, func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 })
	f("wider", "", func(c *jetstream.StreamConfig) { c.Subjects = []string{"e.>", "f.>"} })
	f("smaller", "", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 512 })
}

// TestStreamMissingAndBack deletes the stream under a publisher at work and makes it again, without a restart.
func TestStreamMissingAndBack(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	cfg := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Discard: jetstream.DiscardNew}
	create := func() {
		t.Helper()
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	create()
	r := run(t, srv, func(c *Config) { eager(c); c.CreateStream = false })
	r.ready()
	r.one(message(1, "e.1"), Accepted)
	r.one(message(2, "e.1"), Accepted)
	if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
		t.Fatal(err)
	}
	r.publishUntil("failure", func(s Status) bool { return s.State == Failed })
	r.fatal(CodeMissing)
	create()
	s := r.ready()
	if s.Counters.Replaced != 1 || s.LastSequence != 0 {
		t.Errorf("%+v", s)
	}
	r.one(message(1, "e.1"), Accepted)

	// Between two looks, so that only the stream's birthday and a sequence that falls back tell.
	for n := range 5 {
		r.one(message(10+n, "e.1"), Accepted)
	}
	if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
		t.Fatal(err)
	}
	create()
	r.publishUntil("a replaced stream", func(s Status) bool { return s.Counters.Replaced == 2 })

	if err := js.DeleteStream(t.Context(), "EDGE"); err != nil {
		t.Fatal(err)
	}
	c := run(t, srv, eager) // it may create
	s = c.ready()
	if !s.Profile.Created {
		t.Errorf("%+v", s.Profile)
	}
}

// TestPurge empties the stream under a publisher at work: ids stay known, sequences go on, nothing is wrong.
func TestPurge(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, eager)
	r.ready()
	for n := range 50 {
		r.one(message(n, "e.1"), Accepted)
	}
	stream, err := js.Stream(t.Context(), "EDGE")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x := r.one(message(7, "e.1"), Accepted); !x.Duplicate {
		t.Errorf("%+v", x)
	}
	if x := r.one(message(100, "e.1"), Accepted); x.Sequence != 51 {
		t.Errorf("%+v", x)
	}
	if s := r.p.Status(); s.State != Ready || s.Counters.Replaced != 0 {
		t.Errorf("%+v", s)
	}
}

// TestDiagnose is the table behind Status.Trouble.
func TestDiagnose(t *testing.T) {
	f := func(silent int, last uint64, now *Profile, err error, want string) {
		t.Helper()
		got := diagnose(silent, last, now, err)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("diagnose(%d, %d, %+v, %v) = %q, want %q in it", silent, last, now, err, got, want)
		}
	}
	r1, r3 := Profile{Replicas: 1, LastSequence: 5}, Profile{Replicas: 3, LastSequence: 5, Leader: "a"}
	headless, lagging := r3, r3
	headless.Leader = ""
	lagging.Lagging = []string{"b"}
	f(0, 5, &r1, nil, "")
	f(1, 5, &r1, nil, "") // one can be the network
	f(2, 5, &r1, nil, "disk")
	f(2, 4, &r1, nil, "acknowledgements do not arrive")
	f(0, 5, &headless, nil, "no leader")
	f(0, 5, &lagging, nil, "") // the others are enough
	f(3, 5, &lagging, nil, "quorum")
	f(0, 5, nil, errNobody, "switched off")
	f(5, 5, nil, errors.New("no answer in time"), "without quorum")
	f(0, 5, nil, errors.New("no answer in time"), "no answer in time")
	f(0, 5, nil, &apiError{Code: 503, ErrCode: 10008, Description: "JetStream system temporarily unavailable"}, "10008")
}

// TestWeaker is the table of edits that a person has to decide about.
func TestWeaker(t *testing.T) {
	was := Profile{Verified: true, DuplicateWindow: time.Minute, Replicas: 3, Domain: "hub", Warnings: []string{"old"}}
	f := func(weak bool, change func(p *Profile)) {
		t.Helper()
		now := was
		change(&now)
		if err := weaker(&was, &now); (err != nil) != weak || weak && err.Code != CodeChanged {
			t.Errorf("%+v: %v", now, err)
		}
	}
	f(false, func(*Profile) {})
	f(true, func(p *Profile) { p.DuplicateWindow = time.Second })
	f(false, func(p *Profile) { p.DuplicateWindow = time.Hour })
	f(true, func(p *Profile) { p.Replicas = 1 })
	f(false, func(p *Profile) { p.Replicas = 5 })
	f(true, func(p *Profile) { p.Domain = "leaf" })
	f(true, func(p *Profile) { p.Warnings = []string{"old", "new"} })
	f(false, func(p *Profile) { p.Warnings = nil })
	f(false, func(p *Profile) { p.Warnings = []string{"old", shortWindow + " 5s"} })
	f(false, func(p *Profile) { p.Verified, p.Replicas = false, 0 })
	f(false, func(p *Profile) { p.Subjects = []string{"more"} })
}
