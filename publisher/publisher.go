package publisher

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge/envelope"
)

// Publisher publishes into one stream. Run is called once; every other method may be called from any goroutine, at
// any time.
type Publisher struct {
	cfg     Config
	prefix  string // of every inbox
	inbox   string // reply subjects are inbox and a token
	random  string // last part of the inbox
	base    int    // bytes of a header block without id and the message's own headers
	want    atomic.Pointer[want]
	results chan Result   // as many places as the window has
	changed chan struct{} // one place
	wake    chan struct{} // one place: the sender has something to do
	free    chan struct{} // one place: Write may look again
	writing chan struct{} // one place: held by the Write at work
	doubt   chan struct{} // one place: the stream should be looked at again

	mu sync.Mutex
	// Everything below is guarded by mu.
	window
	start     time.Time     // origin of the clock
	held      int           // admitted by Send and unanswered. Invariant: held + len(results) <= cap(results)
	waiting   bool          // a Write waits for free
	turn      chan struct{} // closed, and made anew, when the state changes
	begun     bool          // Run was called
	ended     bool          // and is over
	state     State
	err       string
	fatal     *FatalError // what has to be mended; nil once a stream is bound
	silent    int         // messages in a row that had no answer on a connection that works
	cause     string      // likely cause of that, or of a contradiction
	newest    uint64      // highest sequence that a first copy was acknowledged with on this connection
	session   *session
	sessions  uint32 // how many connections there have been
	gathering bool   // the sender waits for more to be queued
	profile   Profile
	server    string
	maxBody   int // max_payload of the connected server
	subjects  map[string]route
	denials   map[string]denial // by subject, on the current connection
	lastSeq   uint64
	count     Counters
}

// route is what is known about a subject.
type route struct {
	text    string
	covered bool // the stream takes it
}

// maxRoutes bounds the memory of known subjects; past it they are forgotten and learned again.
const maxRoutes = 4096

// maxHeaderBlock is the server's limit for one message's headers in bytes (it answers 10097 above).
const maxHeaderBlock = 64 << 10

// Header names of our own, and what surrounds a block of headers on the wire.
const (
	headerID     = "Nats-Msg-Id"
	headerStream = "Nats-Expected-Stream"
	headerTTL    = "Nats-TTL"
	headerFrame  = len("NATS/1.0\r\n") + len("\r\n")
	headerExtra  = len(": \r\n")

	headerBatch    = "Nats-Batch-Id"
	headerBatchSeq = "Nats-Batch-Sequence"
	headerCommit   = "Nats-Batch-Commit"
)

// New checks the configuration and makes a Publisher at rest. The error is a *ConfigError, or several joined.
func New(cfg Config) (*Publisher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	var random [12]byte
	rand.Read(random[:])
	p := &Publisher{
		cfg:      cfg,
		prefix:   inboxPrefix(cfg.Name),
		base:     headerFrame + len(headerID) + headerExtra + len(headerStream) + headerExtra + len(cfg.Stream),
		results:  make(chan Result, cfg.MaxInFlight),
		changed:  make(chan struct{}, 1),
		wake:     make(chan struct{}, 1),
		free:     make(chan struct{}, 1),
		writing:  make(chan struct{}, 1),
		doubt:    make(chan struct{}, 1),
		window:   newWindow(cfg.MaxInFlight, cfg.MaxInFlightBytes),
		start:    time.Now(),
		maxBody:  math.MaxInt,
		turn:     make(chan struct{}),
		subjects: make(map[string]route),
		denials:  make(map[string]denial),
	}
	if cfg.MessageTTL > 0 {
		p.base += len(headerTTL) + headerExtra + len(appendTTL(nil, cfg.MessageTTL))
	}
	p.random = hex.EncodeToString(random[:])
	p.inbox = p.prefix + "." + p.random + "."
	p.profile = Profile{Stream: cfg.Stream}
	p.want.Store(newWant(cfg.Stream, "", false))
	return p, nil
}

// Results delivers one Result for each message that Send has admitted, in the order of the answers. It is never
// closed; results of messages that Run's end has cut off are in it when Run returns.
func (p *Publisher) Results() <-chan Result { return p.results }

// Changed has a value after Status has changed its State, Err or Profile. It serves one reader.
func (p *Publisher) Changed() <-chan struct{} { return p.changed }

// Send admits one message. nil means that exactly one Result with this tag will follow. ErrFull and ErrNotReady mean
// that nothing was sent and none will. It copies what it keeps, never blocks on the network, and takes no context:
// the deadline is RequestTimeout from now.
//
// ErrFull also promises that the Result of an earlier Send is outstanding or unread, so whoever reads Results next and
// then tries again never waits in vain. One message with nothing before it is always let in, whatever its size and
// whatever a Write beside it has in flight.
//
// What cannot be sent at all (a malformed subject or header, a size over the server's or stream's limit, a subject
// that the stream does not list) is not an error of Send but a permanent Result.
func (p *Publisher) Send(m *envelope.Message, tag uint64) error { return p.send(m, tag, nil) }

func (p *Publisher) send(m *envelope.Message, tag uint64, c *call) error {
	malformed := checkMessage(m) // without the lock
	var room [64]byte
	id := envelope.AppendMsgID(room[:0], m.ID, m.Copy)
	size := p.base + len(id) + len(m.Headers) + len(m.Payload)

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != Ready {
		return ErrNotReady
	}
	outstanding := p.held + len(p.results) // of Send, unread ones included
	full := !p.window.room(size)
	switch {
	case c == nil && outstanding >= cap(p.results):
		return ErrFull
	case c == nil && outstanding == 0:
		full = false // no Result would tell when to try again
	case c != nil && full:
		p.waiting = p.waiting || c.waits
		return ErrFull
	}
	if malformed != nil {
		p.rejectLocked(c, tag, malformed)
		return nil
	}
	r, err := p.routeLocked(m.Subject)
	if err == nil {
		err = p.sizeLocked(size, size-len(m.Payload))
	}
	if err != nil {
		p.rejectLocked(c, tag, err)
		return nil
	}
	if full {
		return ErrFull
	}
	now := p.now()
	_, s := p.window.add(size)
	s.tag, s.call, s.subject = tag, c, r.text
	s.admitted, s.deadline, s.sent = now, now+int64(p.cfg.RequestTimeout), 0
	s.buf = append(append(append(s.buf[:0], id...), m.Headers...), m.Payload...)
	head := len(id) + len(m.Headers)
	s.id, s.headers, s.payload = s.buf[:len(id):len(id)], s.buf[len(id):head:head], s.buf[head:]
	if c == nil {
		p.held++
	}
	if !p.gathering || p.enoughLocked() {
		notify(p.wake)
	}
	return nil
}

// checkMessage looks at what the server would misread: an empty token looks like a missing stream, a wildcard is
// stored under its literal name, a Nats- header is obeyed.
func checkMessage(m *envelope.Message) error {
	err := envelope.CheckSubject(m.Subject)
	if err == nil && len(m.Headers) > 0 {
		err = envelope.CheckHeaders(m.Headers, math.MaxInt, maxHeaderBlock)
	}
	if err != nil {
		return &SubjectError{Subject: string(m.Subject), Err: err}
	}
	return nil
}

// routeLocked finds out whether the bound stream takes a subject, and remembers it.
func (p *Publisher) routeLocked(subject []byte) (route, error) {
	r, ok := p.subjects[string(subject)]
	if !ok {
		r.text = string(subject)
		r.covered = !p.profile.Verified || slices.ContainsFunc(p.profile.Subjects, func(pattern string) bool {
			return envelope.MatchSubject(pattern, subject)
		})
		if len(p.subjects) >= maxRoutes {
			clear(p.subjects)
		}
		p.subjects[r.text] = r
	}
	if !r.covered {
		return r, &SubjectError{Subject: r.text, Stream: p.cfg.Stream, Subjects: p.profile.Subjects}
	}
	return r, nil
}

// sizeLocked holds a message against the limits. size is headers and payload, head the headers alone.
func (p *Publisher) sizeLocked(size, head int) error {
	switch {
	case head > maxHeaderBlock:
		return &SizeError{Of: "headers", Size: head, Limit: maxHeaderBlock, Limiter: "the server's limit"}
	case size > p.maxBody:
		return &SizeError{Of: "message", Size: size, Limit: p.maxBody, Limiter: "max_payload of the server"}
	case p.profile.MaxMsgSize > 0 && size > p.profile.MaxMsgSize:
		return &SizeError{Of: "message", Size: size, Limit: p.profile.MaxMsgSize, Limiter: "max_msg_size of stream " + p.cfg.Stream}
	}
	return nil
}

// rejectLocked gives a message its permanent result without a slot. The caller has made sure that there is room.
func (p *Publisher) rejectLocked(c *call, tag uint64, err error) {
	p.deliverLocked(c, Result{Tag: tag, Outcome: Permanent, Err: err})
}

// finishLocked ends the attempt in slot i.
func (p *Publisher) finishLocked(i int32, r Result) {
	s := &p.window.slots[i]
	r.Tag, r.SentAt = s.tag, s.sent
	if s.doubt && !afterLookup(&r, p.profile.Replicas) {
		r.Outcome = Settle(true, r)
	}
	c := s.call
	if c == nil {
		p.held--
	}
	p.window.remove(i)
	p.deliverLocked(c, r)
	if p.waiting {
		p.waiting = false
		notify(p.free)
	}
}

func (p *Publisher) deliverLocked(c *call, r Result) {
	p.count.add(&r)
	if r.Sequence > p.lastSeq {
		p.lastSeq = r.Sequence
	}
	to := p.results
	if c != nil {
		to = c.results
	}
	select {
	case to <- r:
	default:
		panic("BUG: no room was reserved for a result")
	}
}

// now is nanoseconds on the publisher's own, monotonic clock.
func (p *Publisher) now() int64 { return int64(time.Since(p.start)) }

// notify puts a value into a channel with one place, unless there is one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
