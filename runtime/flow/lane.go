package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"edge/envelope"
	"edge/publisher"
	"edge/runtime/quarantine"
	"edge/runtime/spool"
	"edge/runtime/status"
	"edge/transform"
)

// Reader is the sink's cursor over the spool.
type Reader interface {
	Read(b *spool.Block, maxEvents, maxBytes int) (int, error)
	Ready() <-chan struct{}
	Release(floor spool.Seq)
}

// Publisher is the sink's end of the wire.
type Publisher interface {
	Send(m *envelope.Message, tag uint64) error
	Results() <-chan publisher.Result
	Changed() <-chan struct{}
	Status() publisher.Status
}

// Quarantine keeps what waits for a person. Put returns when the entries are durable.
type Quarantine interface {
	Put(entries []quarantine.Entry) (added int, err error)
}

// Config is what a lane works with. Every field is required but Datasets.
type Config struct {
	Sink       string
	Epoch      [16]byte // of the spool: makes the ids of events that brought none
	Datasets   []string // what the sink takes; empty: every dataset
	Window     int      // most messages in flight, at least 1
	Backoff    Schedule
	Module     string // digest in hex, for quarantine entries; "" for the built-in envelope
	Reader     Reader
	Renderer   *transform.Renderer
	Publisher  Publisher
	Quarantine Quarantine
	Counts     *status.Sink
	Logger     *slog.Logger
	Dice       func() float64 // in [0, 1)
}

// HaltError says that nothing of a sink can be stored until somebody mends it. What the sink has not settled
// stays in the spool.
type HaltError struct {
	Sink  string
	Cause error
}

func (e *HaltError) Error() string { return fmt.Sprintf("sink %s halted: %v", e.Sink, e.Cause) }
func (e *HaltError) Unwrap() error { return e.Cause }

// Sizes of a lane. A block bounds what one durable read, one render and one quarantine write handle; the
// blocks together bound the memory of a lane: eight of 256 events keep a window of 1,024 full while the
// oldest block waits for its last answer.
const (
	blockEvents = 256
	blockBytes  = 1 << 20
	maxBlocks   = 8

	// UnknownRefusals is how many permanent answers in a row end the wait of a message that may have been
	// stored: by then the stream has had every chance to recognise the id.
	UnknownRefusals = 5
)

// Lane carries one sink. Its methods belong to the goroutine that calls Run.
type Lane struct {
	cfg     Config
	takes   map[string]bool // nil: everything
	start   time.Time       // origin of the lane's clock
	window  time.Duration   // duplicate window of the bound stream, 0 until it is known
	ready   bool            // the publisher takes messages
	ended   bool            // the spool has nothing more and never will
	halt    error           // why the lane stops; nil while it works
	gate    gate
	blocks  []*block // oldest first; blocks[0] has serial first
	first   uint64
	free    []*block
	resend  []uint64 // tags to send again, in ascending order
	flight  int      // messages with the publisher
	ahead   int      // events settled that the floor has not passed
	entries []quarantine.Entry
	marks   []mark // what entries settles when it is durable
}

// mark names the event that a quarantine entry belongs to.
type mark struct {
	block *block
	event int
}

// New returns a lane at rest.
func New(cfg Config) *Lane {
	l := &Lane{cfg: cfg, gate: newGate(cfg.Backoff, cfg.Window), first: 1}
	if len(cfg.Datasets) > 0 {
		l.takes = make(map[string]bool, len(cfg.Datasets))
		for _, d := range cfg.Datasets {
			l.takes[d] = true
		}
	}
	return l
}

// Run works until the spool is sealed and everything in it is settled, and then returns nil. It returns nil
// as well when stop is closed and the messages in flight have their answers: what is left stays in the spool.
// When ctx ends it returns at once with ctx's error. A *HaltError ends the sink; any other error is the
// agent's own trouble (a spool that cannot be read, a quarantine that cannot be written).
func (l *Lane) Run(ctx context.Context, stop <-chan struct{}) error {
	l.start = time.Now()
	l.publisherChanged()
	for {
		if err := l.collect(); err != nil {
			return err
		}
		if err := l.settle(); err != nil {
			return err
		}
		stopping := closed(stop)
		if l.flight == 0 {
			switch {
			case l.halt != nil:
				return &HaltError{Sink: l.cfg.Sink, Cause: l.halt}
			case stopping, l.ended && len(l.blocks) == 0:
				return nil
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var wake time.Duration
		if l.halt == nil && !stopping {
			moved, err := l.fill()
			if err != nil {
				return err
			}
			sent, next := l.send()
			if moved || sent {
				continue
			}
			wake = next
		}
		l.wait(ctx, stop, wake)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (l *Lane) now() int64 { return int64(time.Since(l.start)) }

// wait blocks until there may be something to do. after > 0 bounds it.
func (l *Lane) wait(ctx context.Context, stop <-chan struct{}, after time.Duration) {
	var timer <-chan time.Time
	if after > 0 {
		t := time.NewTimer(after)
		defer t.Stop()
		timer = t.C
	}
	stopping := closed(stop)
	if stopping {
		stop = nil // it is known: only what is in flight counts now
	}
	readable := l.cfg.Reader.Ready()
	if stopping || l.halt != nil || len(l.blocks) >= maxBlocks {
		readable = nil // nothing would be read: leave the notice for later
	}
	select {
	case r := <-l.cfg.Publisher.Results():
		l.result(r)
	case <-readable:
	case <-l.cfg.Publisher.Changed():
		l.publisherChanged()
	case <-timer:
	case <-stop:
	case <-ctx.Done():
	}
}

// collect takes the results that are there.
func (l *Lane) collect() error {
	for {
		select {
		case r := <-l.cfg.Publisher.Results():
			l.result(r)
		case <-l.cfg.Publisher.Changed():
			l.publisherChanged()
		default:
			return l.condemn()
		}
	}
}

func (l *Lane) publisherChanged() {
	st := l.cfg.Publisher.Status()
	l.ready = st.State == publisher.Ready
	if l.ready {
		l.window = st.Profile.DuplicateWindow
	}
	if st.State == publisher.Failed && l.halt == nil {
		l.halt = errors.New(st.Err)
	}
}

// settle makes pending quarantine entries durable, moves the floor and frees blocks.
func (l *Lane) settle() error {
	if err := l.condemn(); err != nil {
		return err
	}
	defer func() { l.cfg.Counts.Ahead.Store(int64(l.ahead)) }()
	for len(l.blocks) > 0 {
		b := l.blocks[0]
		before := b.settled
		done := b.sweep()
		if b.settled > before {
			l.ahead -= b.settled - before
			l.cfg.Reader.Release(b.raw.First + spool.Seq(b.settled) - 1)
		}
		if !done {
			return nil
		}
		l.blocks = l.blocks[1:]
		l.first++
		l.free = append(l.free, b)
	}
	return nil
}

// settleEvent says that the floor may pass event i of b.
func (l *Lane) settleEvent(b *block, i int) {
	b.state[i] = eventSettled
	l.ahead++
}

// fill reads and renders one more block if there is room for it. It tells whether it did.
func (l *Lane) fill() (bool, error) {
	if l.ended || len(l.blocks) >= maxBlocks || l.unsent() >= l.cfg.Window {
		return false, nil
	}
	b := l.take()
	n, err := l.cfg.Reader.Read(&b.raw, blockEvents, blockBytes)
	if err != nil || n == 0 {
		l.free = append(l.free, b)
		switch {
		case errors.Is(err, io.EOF):
			l.ended = true
			return true, nil
		case err != nil:
			return false, fmt.Errorf("read spool: %w", err)
		}
		return false, nil
	}
	b.reset(n)
	l.blocks = append(l.blocks, b)
	if err := l.render(b); err != nil {
		return false, err
	}
	return true, nil
}

// unsent is how many rendered messages wait for their first attempt.
func (l *Lane) unsent() int {
	n := 0
	for _, b := range l.blocks {
		n += len(b.units) - b.next
	}
	return n
}

func (l *Lane) take() *block {
	if n := len(l.free); n > 0 {
		b := l.free[n-1]
		l.free = l.free[:n-1]
		return b
	}
	return new(block)
}

// render parses the records of b, asks the renderer, and opens a unit for every message.
func (l *Lane) render(b *block) error {
	for i, rec := range b.raw.Records {
		e := &b.events[i]
		if err := envelope.ParseEvent(rec, e); err != nil {
			l.reject(b, i, envelope.Event{Body: rec, Kind: envelope.Raw}, "damaged", err.Error())
			continue
		}
		if e.ID == (envelope.ID{}) {
			e.ID = envelope.PositionID(l.cfg.Epoch, uint64(b.raw.First)+uint64(i))
		}
		if l.takes != nil && !l.takes[string(e.Dataset)] {
			l.settleEvent(b, i)
			l.cfg.Counts.Skipped.Add(1)
			continue
		}
		b.selected = append(b.selected, *e)
		b.index = append(b.index, i)
	}
	if err := l.cfg.Renderer.Render(b.selected, &b.rendered); err != nil {
		return fmt.Errorf("render events of sink %s: %w", l.cfg.Sink, err)
	}
	for k, v := range b.rendered.Verdicts {
		i := b.index[k]
		switch v.Kind {
		case transform.Emit:
			b.open[i] = int32(v.Count)
			for m := range v.Count {
				b.units = append(b.units, unit{event: int32(i), message: int32(v.First + m)})
			}
		case transform.Drop:
			l.settleEvent(b, i)
			l.cfg.Counts.Dropped.Add(1)
		case transform.Reject:
			l.reject(b, i, b.events[i], string(v.Reason), v.Detail)
		default:
			panic(fmt.Sprintf("BUG: event %d of sink %s has no verdict", uint64(b.raw.First)+uint64(i), l.cfg.Sink))
		}
	}
	if len(b.units) > maxUnits {
		panic(fmt.Sprintf("BUG: %d messages in one block", len(b.units)))
	}
	return nil
}

// send hands over what the gate and the publisher take: retries first, then fresh messages in order. It tells
// whether anything was sent and, if the gate is shut, when it opens.
func (l *Lane) send() (sent bool, wake time.Duration) {
	if !l.ready {
		return false, 0
	}
	now := l.now()
	for l.gate.room(now, l.flight) > 0 {
		b, u, tag := l.nextUnit()
		if u == nil {
			break
		}
		err := l.cfg.Publisher.Send(&b.rendered.Messages[u.message], tag)
		if err != nil {
			if !errors.Is(err, publisher.ErrFull) && !errors.Is(err, publisher.ErrNotReady) {
				l.halt = fmt.Errorf("send message: %w", err)
			}
			l.ready = l.ready && errors.Is(err, publisher.ErrFull)
			return sent, 0
		}
		l.sentUnit(b, u, now)
		sent = true
	}
	if wait := l.gate.until - now; wait > 0 {
		return sent, time.Duration(wait)
	}
	return sent, 0
}

// nextUnit is the next message to send: the oldest retry, else the oldest fresh one.
func (l *Lane) nextUnit() (*block, *unit, uint64) {
	if len(l.resend) > 0 {
		b, u := l.unit(l.resend[0])
		return b, u, l.resend[0]
	}
	for k, b := range l.blocks {
		if b.next < len(b.units) {
			return b, &b.units[b.next], tagOf(l.first+uint64(k), b.next)
		}
	}
	return nil, nil, 0
}

// sentUnit notes that u, which nextUnit returned, is with the publisher.
func (l *Lane) sentUnit(b *block, u *unit, now int64) {
	if len(l.resend) > 0 {
		l.resend = l.resend[1:]
		l.cfg.Counts.Retries.Add(1)
		if u.unknown && l.window > 0 && time.Duration(now-u.first) > l.window {
			l.cfg.Counts.PastWindow.Add(1)
		}
	} else {
		b.next++
		u.first = now
	}
	u.attempts++
	u.sent = now
	l.flight++
	l.cfg.Counts.InFlight.Store(int64(l.flight))
}

func (l *Lane) unit(tag uint64) (*block, *unit) {
	serial, i := splitTag(tag)
	if serial < l.first || serial-l.first >= uint64(len(l.blocks)) {
		panic(fmt.Sprintf("BUG: result for block %d, lane holds %d to %d", serial, l.first, l.first+uint64(len(l.blocks))))
	}
	b := l.blocks[serial-l.first]
	return b, &b.units[i]
}
