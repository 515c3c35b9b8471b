package publisher

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/envelope"
	"edge/publisher/natstest"
)

// TestTTL gives every message a time to live, also one that goes singly.
func TestTTL(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { c.MessageTTL = 90 * time.Second })
	if p := r.ready().Profile; !p.AllowsTTL {
		t.Errorf("%+v", p)
	}
	x := r.one(message(1, "e.1"), Accepted)
	stream, err := js.Stream(t.Context(), "EDGE")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), x.Sequence)
	if err != nil || m.Header.Get("Nats-TTL") != "90s" {
		t.Errorf("%+v, %v", m, err)
	}

	// Our reckoning of a message's size includes it.
	cfg, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Config.MaxMsgSize = 300
	if _, err := js.UpdateStream(t.Context(), cfg.Config); err != nil {
		t.Fatal(err)
	}
	r.end()
	r = run(t, srv, func(c *Config) { c.MessageTTL = 90 * time.Second })
	r.ready()
	big := message(2, "e.1")
	big.Payload = make([]byte, 300-len("NATS/1.0\r\nNats-Msg-Id: \r\nNats-Expected-Stream: EDGE\r\nNats-TTL: 90s\r\n\r\n")-32)
	r.one(big, Accepted)
	big.Payload = append(big.Payload, 0)
	big.ID[0] = 1
	var se *SizeError
	if x := r.one(big, Permanent); !errors.As(x.Err, &se) {
		t.Errorf("%v", x.Err)
	}
}

// TestBatchPoison puts one message into a batch that the stream refuses, at each kind of place. It alone is refused.
func TestBatchPoison(t *testing.T) { batched(t, testBatchPoison) }

func testBatchPoison(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { c.Mode = mode })
	r.ready()
	stream, err := js.Stream(t.Context(), "EDGE")
	if err != nil {
		t.Fatal(err)
	}
	edited := stream.CachedInfo().Config
	edited.MaxMsgSize = 500
	const n = 40
	var kept []*envelope.Message
	for k, at := range []int{0, 7, n - 1} {
		if _, err := js.UpdateStream(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		msgs := group(100*k, n)
		msgs[at].Payload = make([]byte, 1000)
		out := r.together(msgs)
		for i, x := range out {
			var ae *AckError
			switch {
			case i == at && (x.Outcome != Permanent || !errors.As(x.Err, &ae) || ae.ErrCode != 10054):
				t.Errorf("the poison at %d: %+v", at, x)
			case i != at && x.Outcome != Accepted:
				t.Errorf("%d beside the poison at %d: %+v", i, at, x)
			case i != at:
				kept = append(kept, msgs[i])
			}
		}
		// The refusal has the stream looked at again: it is edited back before the next round.
		r.until("the new limit", func(s Status) bool { return s.Profile.MaxMsgSize == 500 })
		back := edited
		back.MaxMsgSize = -1
		if _, err := js.UpdateStream(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		r.end()
		r = run(t, srv, func(c *Config) { c.Mode = mode })
		r.ready()
	}
	once(t, js, kept)
}

// TestBatchQuota has an account's quota used up inside a batch: the server stores a part of it and says nothing. Every
// outcome is true afterwards, and all are accepted when the quota is raised.
func TestBatchQuota(t *testing.T) { batched(t, testBatchQuota) }

func testBatchQuota(t *testing.T, mode Mode) {
	account := func(bytes int) natstest.Option {
		return natstest.Extra(fmt.Sprintf("accounts { A { jetstream { max_file: %d, max_mem: 0 }, users: [ { user: edge, password: e } ] } }", bytes))
	}
	srv := natstest.Start(t, natstest.Authorization(""), account(20_000))
	js := srv.JetStream(t, nats.UserInfo("edge", "e"))
	r := run(t, srv, func(c *Config) { c.Mode, c.User, c.Password, c.RequestTimeout = mode, "edge", "e", 3*time.Second })
	r.ready()
	msgs := group(0, 50)
	for _, m := range msgs {
		m.Payload = make([]byte, 1000)
	}
	out := r.together(msgs)
	ids := stored(t, js, "EDGE")
	kept := 0
	for i, x := range out {
		times := ids[msgs[i].ID.String()]
		kept += times
		switch {
		case x.Outcome == Accepted && times == 1, x.Outcome == Retryable && times == 0, x.Outcome == Unknown && times <= 1:
		default:
			t.Errorf("%d is stored %d times: %+v", i, times, x)
		}
	}
	if kept == 0 || kept == len(msgs) {
		t.Errorf("%d are stored", kept)
	}
	r.end()
	srv.Restart(account(1_000_000)) // the later line counts
	r = run(t, srv, func(c *Config) { c.Mode, c.User, c.Password = mode, "edge", "e" })
	r.ready()
	for i, x := range r.together(msgs) {
		if x.Outcome != Accepted {
			t.Errorf("%d again: %+v", i, x)
		}
	}
	once(t, js, msgs)
}

// TestBatchFull fills a stream with limits: what fits is accepted, the rest can be sent again.
func TestBatchFull(t *testing.T) { batched(t, testBatchFull) }

func testBatchFull(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	cfg := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Discard: jetstream.DiscardNew, MaxMsgs: 20, AllowAtomicPublish: true, AllowBatchPublish: true}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	r := run(t, srv, travels(mode))
	r.ready()
	msgs := group(0, 50)
	var kept []*envelope.Message
	for i, x := range r.together(msgs) {
		switch x.Outcome {
		case Accepted:
			kept = append(kept, msgs[i])
		case Retryable:
		default:
			t.Errorf("%d: %+v", i, x)
		}
	}
	if len(kept) != 18 {
		t.Errorf("%d are accepted, there is room for 18", len(kept))
	}
	once(t, js, kept)
}

// Every member of a fast batch is refused with 10205 (allow_batched was switched off): all must go singly, at once.
func TestFastOffWakes(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { calm(c); c.Mode = ModeFast })
	r.ready()
	stream, err := js.Stream(t.Context(), "EDGE")
	if err != nil {
		t.Fatal(err)
	}
	edited := stream.CachedInfo().Config
	edited.AllowBatchPublish = false
	if _, err := js.UpdateStream(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	for i, x := range r.together(group(0, 40)) {
		if x.Outcome != Accepted {
			t.Fatalf("%d: %+v", i, x)
		}
	}
}
