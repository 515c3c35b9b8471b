package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/envelope"
	"edge/publisher"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
	"edge/runtime/status"
	"edge/transform"
	"edge/wasm"
	"edge/wasm/wasmtest"
)

// wire is the sink's end of a wire that answers as a script says: what a real server cannot be made to say on
// demand. Everything else in these tests is the real thing.
type wire struct {
	window  int
	answers func(m *envelope.Message, attempt int) publisher.Result
	results chan publisher.Result
	changed chan struct{}
	status  publisher.Status
	tries   map[string]int
	sent    []string // "id#attempt" in order
	most    int
}

func newWire(answers func(m *envelope.Message, attempt int) publisher.Result) *wire {
	w := &wire{window: 8, answers: answers, changed: make(chan struct{}, 1), tries: map[string]int{}}
	w.results = make(chan publisher.Result, w.window)
	w.status.State = publisher.Ready
	return w
}

func (w *wire) Send(m *envelope.Message, tag uint64) error {
	if len(w.results) == w.window {
		return publisher.ErrFull
	}
	name := string(envelope.AppendMsgID(nil, m.ID, m.Copy))
	w.tries[name]++
	w.sent = append(w.sent, fmt.Sprintf("%s#%d", m.Payload, w.tries[name]))
	r := w.answers(m, w.tries[name])
	r.Tag = tag
	w.results <- r
	w.most = max(w.most, len(w.results))
	return nil
}

func (w *wire) Results() <-chan publisher.Result { return w.results }
func (w *wire) Changed() <-chan struct{}         { return w.changed }
func (w *wire) Status() publisher.Status         { return w.status }

// rig is one lane over a real spool and a real quarantine in a folder of its own.
type rig struct {
	t      *testing.T
	dir    string
	spool  *spool.Spool
	quar   *quarantine.Store
	counts status.Sink
	done   chan error
	cancel context.CancelFunc
}

func open(t *testing.T, dir string) *rig {
	t.Helper()
	r := &rig{t: t, dir: dir, done: make(chan error, 1)}
	log := slog.New(slog.DiscardHandler)
	var err error
	if r.spool, err = spool.Open(dir+"/spool", spool.Options{MaxBytes: 64 << 20, Sinks: []string{"out"}, Logger: log}); err != nil {
		t.Fatal(err)
	}
	if r.quar, err = quarantine.Open(dir+"/quarantine", quarantine.Options{MaxBytes: 1 << 20, Logger: log}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.done <- r.spool.Run(ctx) }()
	return r
}

func (r *rig) close() {
	r.t.Helper()
	r.spool.Seal()
	r.cancel()
	<-r.done
	if err := errors.Join(r.spool.Close(), r.quar.Close()); err != nil {
		r.t.Error(err)
	}
}

// append spools one event for each body, in dataset d.
func (r *rig) append(dataset string, bodies ...string) {
	r.t.Helper()
	var recs [][]byte
	for _, b := range bodies {
		recs = append(recs, envelope.AppendEvent(nil, &envelope.Event{
			Dataset: []byte(dataset), Input: []byte("in"), IngestTime: 1, EventTime: envelope.NoTime, Body: []byte(b),
		}))
	}
	if _, err := r.spool.Append(r.t.Context(), spool.Batch{Records: recs}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) lane(w *wire, datasets ...string) *Lane {
	r.t.Helper()
	return r.laneOf(r.builtIn(), w, datasets...)
}

func (r *rig) builtIn() *transform.Renderer {
	r.t.Helper()
	tpl, err := envelope.ParseTemplate("edge.{dataset}", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return transform.New(transform.Config{Template: tpl})
}

func (r *rig) laneOf(render *transform.Renderer, w *wire, datasets ...string) *Lane {
	r.t.Helper()
	return New(r.config(render, w, datasets...))
}

func (r *rig) config(render *transform.Renderer, w *wire, datasets ...string) Config {
	r.t.Helper()
	reader, err := r.spool.Reader("out")
	if err != nil {
		r.t.Fatal(err)
	}
	return Config{
		Sink: "out", Epoch: r.spool.Epoch(), Datasets: datasets, Window: w.window, Backoff: Schedule{Min: time.Millisecond, Max: 2 * time.Millisecond},
		Reader: reader, Renderer: render, Publisher: w, Quarantine: r.quar,
		Counts: &r.counts, Logger: slog.New(slog.DiscardHandler), Dice: func() float64 { return 0.5 },
	}
}

func (r *rig) floor() spool.Seq {
	st := r.spool.Stats()
	return st.Floor("out")
}

func (r *rig) entries() (list []string) {
	r.t.Helper()
	if _, err := quarantine.Scan(r.dir+"/quarantine", func(e *quarantine.Entry) bool {
		list = append(list, e.Reason+" "+string(e.Raw))
		return true
	}); err != nil {
		r.t.Fatal(err)
	}
	return list
}

func accept(*envelope.Message, int) publisher.Result {
	return publisher.Result{Outcome: publisher.Accepted, Sequence: 7}
}

func bodies(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(`{"n":%d}`, i))
	}
	return list
}

func TestLaneSettlesEverythingInOrder(t *testing.T) {
	r := open(t, t.TempDir())
	defer r.close()
	r.append("a", bodies(1000)...)
	r.spool.Seal()
	w := newWire(accept)
	if err := r.lane(w).Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i, s := range w.sent {
		if !strings.Contains(s, fmt.Sprintf(`"n":%d}`, i)) {
			t.Fatalf("message %d is %s", i, s)
		}
	}
	if got := r.counts.Accepted.Load(); got != 1000 || len(w.sent) != 1000 {
		t.Errorf("accepted %d of %d sent, want 1000", got, len(w.sent))
	}
	if w.most > w.window {
		t.Errorf("%d in flight, window %d", w.most, w.window)
	}
	if floor := r.floor(); floor != 1000 {
		t.Errorf("floor %d, want 1000", floor)
	}
}

func TestLaneOutcomes(t *testing.T) {
	type result = publisher.Result
	refusedErr := errors.New("message too large")
	f := func(name string, answers func(m *envelope.Message, attempt int) result, wantSent []string, wantQuarantine []string, accepted uint64) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r := open(t, t.TempDir())
			defer r.close()
			r.append("a", `{"n":1}`, `{"n":2}`, `{"n":3}`)
			r.spool.Seal()
			w := newWire(answers)
			if err := r.lane(w).Run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			var sent []string
			for _, s := range w.sent {
				sent = append(sent, s[strings.Index(s, `"n":`)+4:])
			}
			if !slices.Equal(sent, wantSent) {
				t.Errorf("sent %v, want %v", sent, wantSent)
			}
			if got := r.entries(); !slices.Equal(got, wantQuarantine) {
				t.Errorf("quarantined %q, want %q", got, wantQuarantine)
			}
			if got := r.counts.Accepted.Load(); got != accepted {
				t.Errorf("accepted %d, want %d", got, accepted)
			}
			if floor := r.floor(); floor != 3 {
				t.Errorf("floor %d, want 3", floor)
			}
		})
	}
	second := func(m *envelope.Message) bool { return strings.Contains(string(m.Payload), `"n":2`) }
	on := func(o publisher.Outcome, err error, times int) func(*envelope.Message, int) result {
		return func(m *envelope.Message, attempt int) result {
			if second(m) && attempt <= times {
				return result{Outcome: o, Err: err}
			}
			return accept(m, attempt)
		}
	}
	f("accepted", accept, []string{"1}#1", "2}#1", "3}#1"}, nil, 3)
	f("retryable", on(publisher.Retryable, refusedErr, 2), []string{"1}#1", "2}#1", "3}#1", "2}#2", "2}#3"}, nil, 3)
	f("unknown", on(publisher.Unknown, refusedErr, 1), []string{"1}#1", "2}#1", "3}#1", "2}#2"}, nil, 3)
	f("permanent", on(publisher.Permanent, refusedErr, 99), []string{"1}#1", "2}#1", "3}#1"}, []string{`refused {"n":2}`}, 2)
	f("permanent after unknown proves nothing", func(m *envelope.Message, attempt int) result {
		switch {
		case second(m) && attempt == 1:
			return result{Outcome: publisher.Unknown, Err: refusedErr}
		case second(m) && attempt < 4:
			return result{Outcome: publisher.Permanent, Err: refusedErr}
		}
		return result{Outcome: publisher.Accepted, Duplicate: attempt > 1, Sequence: 2}
	}, []string{"1}#1", "2}#1", "3}#1", "2}#2", "2}#3", "2}#4"}, nil, 3)
	f("permanent for ever after unknown", func(m *envelope.Message, attempt int) result {
		switch {
		case second(m) && attempt == 1:
			return result{Outcome: publisher.Unknown, Err: refusedErr}
		case second(m):
			return result{Outcome: publisher.Permanent, Err: refusedErr}
		}
		return accept(m, attempt)
	}, []string{"1}#1", "2}#1", "3}#1", "2}#2", "2}#3", "2}#4", "2}#5", "2}#6"}, []string{`unresolved {"n":2}`}, 2)
}

func TestLaneRejectsAloneWhatCannotBeRendered(t *testing.T) {
	r := open(t, t.TempDir())
	defer r.close()
	r.append("a", `{"n":1}`)
	r.append("not a token", `{"n":2}`)
	r.append("a", `{"n":3}`)
	if _, err := r.spool.Append(t.Context(), spool.Batch{Records: [][]byte{[]byte("no event at all")}}); err != nil {
		t.Fatal(err)
	}
	r.append("other", `{"n":5}`)
	r.spool.Seal()
	w := newWire(accept)
	if err := r.lane(w, "a", "not a token").Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, want := r.entries(), []string{`bad_subject_token {"n":2}`, "damaged no event at all"}; !slices.Equal(got, want) {
		t.Errorf("quarantined %q, want %q", got, want)
	}
	c := &r.counts
	if c.Accepted.Load() != 2 || c.Quarantined.Load() != 2 || c.Skipped.Load() != 1 {
		t.Errorf("accepted %d, quarantined %d, skipped %d, want 2, 2, 1", c.Accepted.Load(), c.Quarantined.Load(), c.Skipped.Load())
	}
}

// amplifier turns every event into one message of 500,000 bytes. Its memory holds some thirty of them, so that
// larger frames fault and run one by one.
func amplifier() []byte {
	return wasmtest.Guest(wasmtest.Join(
		wasmtest.I32Const(8), wasmtest.MemoryGrow, wasmtest.Drop,
		wasmtest.Message(0, wasmtest.I32Const(0), wasmtest.I32Const(500_000)),
		wasmtest.I32Const(1), wasmtest.LocalSet(wasmtest.Skip)))
}

func guest(t *testing.T, code []byte) *transform.Renderer {
	t.Helper()
	engine, err := wasm.NewEngine(wasm.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Load(t.Context(), code, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	in, err := m.NewInstance(t.Context(), wasm.InstanceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r := transform.New(transform.Config{Instance: in, Limits: m.Limits()})
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), m.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestLaneBoundsMessages: a module that blows events up does not blow up the lane.
func TestLaneBoundsMessages(t *testing.T) {
	r := open(t, t.TempDir())
	defer r.close()
	r.append("a", bodies(300)...)
	r.append("skipped", "x", "y")
	r.append("a", bodies(50)...)
	r.spool.Seal()
	w := newWire(accept)
	l := r.laneOf(guest(t, amplifier()), w, "a")
	most := 0
	w.answers = func(m *envelope.Message, attempt int) publisher.Result {
		held := 0
		for _, b := range append(slices.Clone(l.blocks), l.free...) {
			held += b.rendered.Size()
		}
		most = max(most, held)
		return accept(m, attempt)
	}
	if err := l.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if c := &r.counts; c.Accepted.Load() != 350 || c.Skipped.Load() != 2 || r.floor() != 352 {
		t.Errorf("accepted %d, skipped %d, floor %d", c.Accepted.Load(), c.Skipped.Load(), r.floor())
	}
	if limit := laneBytes + 2*(renderBytes+wasm.DefaultLimits().Batch); most > limit || most == 0 {
		t.Errorf("the lane held %d bytes of messages, at most %d are meant", most, limit)
	}
}

// TestLaneKeepsTheBooksWhenItFails: what is settled is released and counted, however a lane ends.
func TestLaneKeepsTheBooksWhenItFails(t *testing.T) {
	r := open(t, t.TempDir())
	defer r.close()
	r.append("a", bodies(100)...)
	r.append("not a token", bodies(5000)...)
	w := newWire(accept)
	err := r.lane(w).Run(t.Context(), nil)
	var full *quarantine.FullError
	if !errors.As(err, &full) {
		t.Fatalf("Run = %v, want a quarantine that is full", err)
	}
	c := &r.counts
	last := r.spool.Stats().LastSeq
	if settled := c.Accepted.Load() + c.Quarantined.Load(); settled != c.Passed.Load() || settled < 100 || settled >= uint64(last) {
		t.Errorf("accepted %d, quarantined %d, passed %d of %d", c.Accepted.Load(), c.Quarantined.Load(), c.Passed.Load(), last)
	}
}

// TestLaneFanOut: an event of two messages is settled by the last of them, and quarantined once if any was refused.
func TestLaneFanOut(t *testing.T) {
	f := func(name string, answers func(m *envelope.Message, attempt int) publisher.Result, accepted uint64, waiting []string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r := open(t, t.TempDir())
			defer r.close()
			r.append("a", "one", "Xtwo", "three")
			r.spool.Seal()
			render := guest(t, wasmtest.FanOutX())
			w := newWire(answers)
			if err := r.laneOf(render, w).Run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if got := r.entries(); !slices.Equal(got, waiting) {
				t.Errorf("quarantined %q, want %q", got, waiting)
			}
			if c := &r.counts; c.Accepted.Load() != accepted || c.Quarantined.Load() != uint64(len(waiting)) || r.floor() != 3 {
				t.Errorf("accepted %d, quarantined %d, floor %d", c.Accepted.Load(), c.Quarantined.Load(), r.floor())
			}
		})
	}
	refuse := func(copies ...int) func(m *envelope.Message, attempt int) publisher.Result {
		return func(m *envelope.Message, attempt int) publisher.Result {
			if m.Payload[0] == 'X' && slices.Contains(copies, m.Copy) {
				return publisher.Result{Outcome: publisher.Permanent, Err: &publisher.SizeError{Of: "message"}}
			}
			if m.Payload[0] == 'X' && attempt == 1 {
				return publisher.Result{Outcome: publisher.Retryable, Err: errors.New("later")}
			}
			return accept(m, attempt)
		}
	}
	f("both stored", refuse(), 3, nil)
	f("first refused", refuse(0), 2, []string{"too_large Xtwo"})
	f("second refused", refuse(1), 2, []string{"too_large Xtwo"})
	f("both refused", refuse(0, 1), 2, []string{"too_large Xtwo"})
}

// TestLaneHaltsOnFatal: what was settled before stays settled, the rest stays in the spool for the next run.
func TestLaneHaltsOnFatal(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	r.append("a", bodies(100)...)
	w := newWire(func(m *envelope.Message, attempt int) publisher.Result {
		if strings.Contains(string(m.Payload), `"n":40}`) {
			return publisher.Result{Outcome: publisher.Fatal, Err: errors.New("permissions violation")}
		}
		return accept(m, attempt)
	})
	cfg := r.config(r.builtIn(), w)
	cfg.Once = true
	err := New(cfg).Run(t.Context(), nil)
	var halt *HaltError
	if !errors.As(err, &halt) || halt.Sink != "out" {
		t.Fatalf("Run = %v, want a HaltError", err)
	}
	if floor := r.floor(); floor != 40 {
		t.Errorf("floor %d, want 40", floor)
	}
	r.close()

	r = open(t, dir)
	defer r.close()
	r.spool.Seal()
	w = newWire(accept)
	if err := r.lane(w).Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if len(w.sent) != 60 || !strings.Contains(w.sent[0], `"n":40}`) {
		t.Errorf("second run sent %d messages from %v, want 60 from n = 40", len(w.sent), w.sent[:1])
	}
}

// TestLaneStops: a stop settles what is in flight and reads no more.
func TestLaneStops(t *testing.T) {
	r := open(t, t.TempDir())
	defer r.close()
	r.append("a", bodies(5000)...)
	stop := make(chan struct{})
	sent := 0
	w := newWire(func(m *envelope.Message, attempt int) publisher.Result {
		if sent++; sent == 700 {
			close(stop)
		}
		return accept(m, attempt)
	})
	if err := r.lane(w).Run(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	c := &r.counts
	if got := c.Accepted.Load(); got != uint64(len(w.sent)) || got < 700 || got == 5000 {
		t.Errorf("accepted %d of %d sent", got, len(w.sent))
	}
	if floor := r.floor(); uint64(floor) != c.Accepted.Load() {
		t.Errorf("floor %d, accepted %d", floor, c.Accepted.Load())
	}
}
