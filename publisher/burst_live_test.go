package publisher

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"edge/envelope"
	"edge/publisher/natstest"
)

// batched runs a test in the modes that make batches.
func batched(t *testing.T, f func(t *testing.T, mode Mode)) {
	t.Helper()
	for _, mode := range []Mode{ModeAtomic, ModeFast} {
		t.Run(mode.String(), func(t *testing.T) { f(t, mode) })
	}
}

// together sends messages so that most of them are in one batch, while the server stands still, and returns their
// results by tag. The first two, with ids from 9000, keep the sender waiting for more.
func (r *rig) together(msgs []*envelope.Message) []Result {
	r.t.Helper()
	r.srv.Pause()
	for n := range 2 {
		r.send(message(9000+n, "e.first"), 9000)
	}
	before := r.p.Status().Counters.Batches
	for i, m := range msgs {
		r.send(m, uint64(i))
	}
	r.until("a batch", func(s Status) bool { return s.Counters.Batches > before })
	r.srv.Resume()
	out := make([]Result, len(msgs))
	for range len(msgs) + 2 {
		if x := r.result(); x.Tag < 9000 {
			out[x.Tag] = x
		}
	}
	return out
}

// group makes n messages with ids from first.
func group(first, n int) []*envelope.Message {
	msgs := make([]*envelope.Message, n)
	for i := range msgs {
		msgs[i] = message(first+i, fmt.Sprintf("e.%d", i%3))
	}
	return msgs
}

// once checks that the stream holds exactly these ids, once each, beside those of together.
func once(t *testing.T, js jetstream.JetStream, msgs []*envelope.Message) {
	t.Helper()
	ids := stored(t, js, "EDGE")
	for n := range 2 {
		delete(ids, message(9000+n, "").ID.String())
	}
	for _, m := range msgs {
		if times := ids[m.ID.String()]; times != 1 {
			t.Errorf("%s is stored %d times", m.ID, times)
		}
		delete(ids, m.ID.String())
	}
	for id, times := range ids {
		t.Errorf("%s is stored %d times and should not be", id, times)
	}
}

// TestBatchStored reads a batch back: what the mode adds to a message is no trouble for the rest of it.
func TestBatchStored(t *testing.T) { batched(t, testBatchStored) }

func testBatchStored(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, func(c *Config) { c.Mode, c.MessageTTL = mode, time.Hour })
	r.ready()
	msgs := group(0, 40)
	for i, m := range msgs {
		if i%2 == 0 {
			m.Headers = fmt.Appendf(nil, "X-N: %d\r\n", i)
		}
	}
	stream, err := js.Stream(t.Context(), "EDGE")
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	for i, x := range r.together(msgs) {
		if x.Outcome != Accepted || x.Duplicate || x.Sequence < last || x.SentAt == 0 {
			t.Fatalf("%d: %+v after %d", i, x, last)
		}
		last = x.Sequence
		if mode == ModeFast {
			continue // the sequence is the last one's
		}
		m, err := stream.GetMsg(t.Context(), x.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		own := m.Header.Get("X-N")
		if m.Header.Get(headerID) != msgs[i].ID.String() || string(m.Data) != string(msgs[i].Payload) || m.Subject != string(msgs[i].Subject) ||
			(own != "") != (i%2 == 0) || m.Header.Get(headerStream) != "EDGE" || m.Header.Get(headerTTL) != "3600s" {
			t.Fatalf("%d is stored as %+v", i, m)
		}
	}
	once(t, js, msgs)
	if c := r.p.Status().Counters; c.Batches == 0 || c.Resent != 0 || c.LateAcks != 0 || c.UnexpectedAcks != 0 {
		t.Errorf("%+v", c)
	}
}

// TestBatchDuplicates has ids in a batch that are stored already, or there twice, and then all of them again.
func TestBatchDuplicates(t *testing.T) { batched(t, testBatchDuplicates) }

func testBatchDuplicates(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	r := run(t, srv, travels(mode))
	r.ready()
	msgs := group(0, 30)
	r.one(msgs[4], Accepted)
	r.one(msgs[29], Accepted)
	all := append(group(0, 30), msgs[11])
	for range 2 {
		for i, x := range r.together(all) {
			if x.Outcome != Accepted || x.Sequence == 0 {
				t.Errorf("%d: %+v", i, x)
			}
		}
		once(t, js, msgs)
	}
	if c := r.p.Status().Counters; c.Batches < 2 || c.Resent == 0 {
		t.Errorf("%+v", c)
	}
}

// TestBatchEatenAck loses the acknowledgement of a batch after the server has stored it. Its messages are unknown, and
// accepted when they are sent again.
func TestBatchEatenAck(t *testing.T) {
	t.Parallel()
	batched(t, testBatchEatenAck)
}

func testBatchEatenAck(t *testing.T, mode Mode) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	proxy := natstest.NewProxy(t, srv.Addr)
	r := run(t, srv, func(c *Config) { c.Mode, c.URL, c.RequestTimeout = mode, proxy.URL(), 3*time.Second })
	r.ready()
	proxy.EatAcks(func(int, []byte) bool { return true })
	msgs := group(0, 40)
	for i, x := range r.together(msgs) {
		if x.Outcome != Unknown {
			t.Errorf("%d: %+v", i, x)
		}
	}
	once(t, js, msgs)
	proxy.EatAcks(nil)
	for i, x := range r.together(msgs) {
		if x.Outcome != Accepted {
			t.Errorf("%d again: %+v", i, x)
		}
	}
	once(t, js, msgs)
	if r.p.Status().Counters.Batches < 2 {
		t.Error("it did not travel in batches")
	}
}

// deliverAll sends n messages again and again until each is accepted. during is called when a third is. It returns how
// many results were unknown.
func (r *rig) deliverAll(n int, during func()) (unknown int) {
	r.t.Helper()
	todo := make([]int, n)
	for i := range todo {
		todo[i] = n - 1 - i
	}
	accepted, flight, tries := 0, 0, 0
	for accepted < n {
		for len(todo) > 0 {
			i := todo[len(todo)-1]
			if err := r.p.Send(message(i, fmt.Sprintf("e.%d", i%5)), uint64(i)); err != nil {
				break
			}
			todo = todo[:len(todo)-1]
			flight++
		}
		if during != nil && accepted > n/3 {
			during()
			during = nil
		}
		if flight == 0 {
			r.ready()
			continue
		}
		x := r.result()
		flight--
		switch x.Outcome {
		case Accepted:
			accepted++
		case Unknown, Retryable:
			if x.Outcome == Unknown {
				unknown++
			}
			todo = append(todo, int(x.Tag))
			if tries++; tries%64 == 0 {
				time.Sleep(10 * time.Millisecond) // a cluster that elects answers at once
			}
		default:
			r.t.Fatalf("%+v", x)
		}
	}
	return unknown
}

// TestModesEqual publishes the same 2,000 messages in each mode.
func TestModesEqual(t *testing.T) {
	inModes(t, func(t *testing.T, mode Mode) {
		srv := natstest.Start(t)
		r := run(t, srv, func(c *Config) { c.Mode, c.MaxInFlight = mode, 512 })
		r.ready()
		if unknown := r.deliverAll(2000, nil); unknown != 0 {
			t.Errorf("%d were unknown", unknown)
		}
		once(t, srv.JetStream(t), spread(2000))
		c := r.p.Status().Counters
		if (c.Batches == 0) != (mode == ModeSingle) || c.Resent != 0 || c.LateAcks != 0 || c.UnexpectedAcks != 0 || c.Duplicates != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// spread is what deliverAll sends.
func spread(n int) []*envelope.Message {
	msgs := make([]*envelope.Message, n)
	for i := range msgs {
		msgs[i] = message(i, "e")
	}
	return msgs
}

// TestModeTakenAway edits the stream under load so that it does not allow the mode. What is under way goes singly; who
// asked for the mode by name stops until somebody decides, and who left the choice to us goes on.
func TestModeTakenAway(t *testing.T) {
	t.Parallel()
	f := func(name string, mode Mode, allow func(c *jetstream.StreamConfig, on bool)) {
		t.Run(name, func(t *testing.T) {
			srv := natstest.Start(t)
			js := srv.JetStream(t)
			cfg := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Discard: jetstream.DiscardNew}
			allow(&cfg, true)
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			r := run(t, srv, func(c *Config) { c.Mode = mode; c.minRecheck = 10 * time.Millisecond })
			r.ready()
			const n = 4000
			back := make(chan error, 1)
			back <- nil
			r.deliverAll(n, func() {
				allow(&cfg, false)
				if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				if mode == ModeAuto {
					return
				}
				<-back
				go func() {
					for r.p.Status().State != Failed && t.Context().Err() == nil {
						time.Sleep(time.Millisecond)
					}
					allow(&cfg, true)
					_, err := js.UpdateStream(t.Context(), cfg)
					back <- err
				}()
			})
			if err := r.wait(back); err != nil {
				t.Fatal(err)
			}
			once(t, js, spread(n))
			s := r.p.Status()
			if s.Counters.Batches == 0 || mode == ModeAuto && s.Profile.Mode != ModeSingle {
				t.Errorf("%+v", s)
			}
		})
	}
	atomic := func(c *jetstream.StreamConfig, on bool) { c.AllowAtomicPublish = on }
	fast := func(c *jetstream.StreamConfig, on bool) { c.AllowBatchPublish = on }
	f("atomic", ModeAtomic, atomic)
	f("fast", ModeFast, fast)
	f("auto", ModeAuto, fast)
}

// TestBatchCluster kills the leader of a replicated stream under load. Fast ingest is not used there.
func TestBatchCluster(t *testing.T) {
	t.Parallel()
	batched(t, testBatchCluster)
}

func testBatchCluster(t *testing.T, mode Mode) {
	c := natstest.StartCluster(t, 3)
	js := c.JetStream(t)
	cfg := jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}, Replicas: 3, Discard: jetstream.DiscardNew, AllowAtomicPublish: true, AllowBatchPublish: true}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	r := run(t, c.Servers[0], func(cfg *Config) { cfg.Mode, cfg.URL, cfg.MaxInFlight = mode, c.URL(), 512 })
	s := r.ready()
	const n = 6000
	kill := func() {
		leader := c.Leader(t, "EDGE")
		leader.Kill()
		leader.Restart()
	}
	if mode == ModeFast {
		kill = nil
	}
	r.deliverAll(n, kill)
	once(t, js, spread(n))
	used := r.p.Status().Counters.Batches > 0
	if mode == ModeAtomic && (s.Profile.Mode != ModeAtomic || !used) || mode == ModeFast && (s.Profile.Mode != ModeSingle || used) {
		t.Errorf("%+v", r.p.Status())
	}
}
