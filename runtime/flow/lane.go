package flow

import (
	"context"
	"errors"
	"fmt"
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
	Floor() spool.Seq
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
	Bytes      int      // most bytes of them; 0 for what a lane holds anyway
	Once       bool     // what is fatal ends the lane; else it waits and tries until somebody has mended it
	Denied     Denied   // what becomes of a message that the server does not let us publish
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

// Denied is what becomes of a message under a subject that the server denies us.
type Denied uint8

const (
	// DeniedHalts takes it for fatal: the sink waits until the subject is allowed.
	DeniedHalts Denied = iota
	// DeniedWaits takes it for permanent: the event waits in quarantine and the sink goes on.
	DeniedWaits
)

// HaltError says that nothing of a sink can be stored until somebody mends it. What the sink has not settled
// stays in the spool.
type HaltError struct {
	Sink  string
	Cause error
}

func (e *HaltError) Error() string { return fmt.Sprintf("sink %s halted: %v", e.Sink, e.Cause) }
func (e *HaltError) Unwrap() error { return e.Cause }

// UnknownRefusals is how many permanent answers end the wait of a message that may have been stored: by then the
// stream has had every chance to recognise the id.
const UnknownRefusals = 5

// Lane carries one sink. Its methods belong to the goroutine that calls Run.
type Lane struct {
	cfg     Config
	takes   map[string]bool // nil: everything
	start   time.Time       // origin of the lane's clock
	window  time.Duration   // duplicate window of the bound stream, 0 until it is known
	ready   bool            // the publisher takes messages
	ended   bool            // the spool has nothing more and never will
	halt    error           // why the lane stops; nil while it works
	failing string          // what has to be mended, as Counts.Failing; "" while all is well, and with Once
	gate    gate
	blocks  []*block // oldest first; blocks[0] has serial first
	first   uint64
	rest    *block // read and not rendered yet: the end of a block that was split
	free    []*block
	resend  []uint64 // tags to send again, in ascending order
	flight  int      // messages with the publisher
	ahead   int      // events settled that the floor has not passed
	entries []quarantine.Entry
	marks   []mark         // what entries settles when it is durable
	told    map[string]int // quarantined events by reason, for the log
}

// mark names the event that a quarantine entry belongs to.
type mark struct {
	block *block
	event int
}

// New returns a lane at rest.
func New(cfg Config) *Lane {
	l := &Lane{cfg: cfg, gate: newGate(cfg.Backoff, cfg.Window), first: 1, told: make(map[string]int)}
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
// When ctx ends it returns at once with ctx's error. A *HaltError, with Config.Once, says what has to be mended; any
// other error is the agent's own trouble (a spool that cannot be read, a quarantine that cannot be written).
//
// Without Config.Once a fatal answer keeps its message open: what is in flight gets its answers, and then one message
// after another probes, on the schedule of Config.Backoff, until one is accepted. Meanwhile Counts.Failing says why.
func (l *Lane) Run(ctx context.Context, stop <-chan struct{}) error {
	l.start = time.Now()
	l.publisherChanged()
	defer l.settle() // however it ends, what is settled is told
	for {
		l.collect()
		if err := l.condemn(); err != nil {
			return err
		}
		l.settle()
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
			sent, next, err := l.send()
			if err != nil {
				return err
			}
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
	if stopping || l.halt != nil || !l.hasRoom() {
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
func (l *Lane) collect() {
	for {
		select {
		case r := <-l.cfg.Publisher.Results():
			l.result(r)
		case <-l.cfg.Publisher.Changed():
			l.publisherChanged()
		default:
			return
		}
	}
}

func (l *Lane) publisherChanged() {
	st := l.cfg.Publisher.Status()
	l.ready = st.State == publisher.Ready
	if l.ready {
		l.window = st.Profile.DuplicateWindow
	}
	if st.State == publisher.Failed && l.cfg.Once && l.halt == nil {
		l.halt = errors.New(st.Err)
	}
}

// settle moves the floor over what is settled and frees blocks.
func (l *Lane) settle() {
	for len(l.blocks) > 0 {
		b := l.blocks[0]
		before := b.settled
		done := b.sweep()
		if b.settled > before {
			l.ahead -= b.settled - before
			l.cfg.Counts.LastSettled.Store(time.Now().UnixNano())
			l.cfg.Reader.Release(b.raw.First + spool.Seq(b.settled) - 1)
		}
		if !done {
			break
		}
		l.blocks = l.blocks[1:]
		l.first++
		l.free = append(l.free, b)
	}
	l.cfg.Counts.Passed.Store(uint64(l.cfg.Reader.Floor()) + uint64(l.ahead))
}

// settleEvent says that the floor may pass event i of b.
func (l *Lane) settleEvent(b *block, i int) {
	b.state[i] = eventSettled
	l.ahead++
}
