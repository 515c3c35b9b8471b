package publisher

import (
	"slices"
	"strconv"
	"time"
)

// State is what a Publisher is doing.
type State uint8

const (
	// Connecting: there has been no connection yet.
	Connecting State = iota
	// Binding: connected, the stream is being looked up.
	Binding
	// Ready: bound. Send admits messages.
	Ready
	// Disconnected: the connection was lost and a new one is being tried, or Run has ended.
	Disconnected
	// Failed: somebody has to mend what Status.Fatal says. Run goes on trying.
	Failed
)

// String is the state's name in logs and status.
func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Binding:
		return "binding"
	case Ready:
		return "ready"
	case Disconnected:
		return "disconnected"
	case Failed:
		return "failed"
	}
	return "state(" + strconv.Itoa(int(s)) + ")"
}

// Delivery classes: what the deployed stream makes of retries.
const (
	IdempotentBatch = "idempotent_batch" // it recognises ids within its duplicate window
	AtLeastOnce     = "at_least_once"    // it does not, or we may not look
)

// Status is one look at a Publisher. It is a copy.
type Status struct {
	State        State
	Err          string      // why the state is not Ready, "" if it is or if nothing has gone wrong yet
	Fatal        *FatalError // of the state Failed; also after Run has ended in it
	Trouble      string      // while Ready: the likely cause of answers that do not come or that contradict the profile; while Failed: what went wrong since
	Server       string      // name, version and address of the connected server
	Profile      Profile     // of the stream that was bound last
	MaxPayload   int         // bytes, of the connected server; 0 before there was one
	LastSequence uint64      // highest that was acknowledged
	Pending      int         // admitted and unanswered
	PendingBytes int
	Counters     Counters
}

// Profile is what the bound stream is like.
type Profile struct {
	Stream                              string
	Verified                            bool // false: we may not read the stream's configuration, so nothing below is known
	Created                             bool // by this Publisher
	Subjects                            []string
	DeliveryClass                       string        // IdempotentBatch or AtLeastOnce
	DuplicateWindow                     time.Duration // how long ids are remembered, counted from the first copy
	Storage                             string
	Replicas                            int
	Retention                           string
	Discard                             string
	PersistMode                         string        // "" for the server's default, which writes before it acknowledges
	MaxMsgSize                          int           // bytes of headers and payload, 0 for no limit
	MaxAge                              time.Duration // of a message, 0 for no limit
	Domain                              string
	Born                                time.Time // when the stream was created
	Mode                                Mode      // how messages travel: never ModeAuto
	AllowsTTL, AllowsAtomic, AllowsFast bool
	APILevel                            int // of the server's JetStream, 0 if it does not say

	// When it was looked at last.
	LastSequence    uint64
	Messages, Bytes uint64 // stored
	MaxMessages     int64  // 0 for no limit, as below
	MaxBytes        int64
	Leader          string   // of a replicated stream; "" while it has none
	Lagging         []string // its replicas that are offline or behind
	Warnings        []string // what makes "acknowledged" mean less than "kept"
}

// Counters count since New. Each Result is in exactly one of the first five.
type Counters struct {
	Accepted, Retryable, Unknown, Permanent, Fatal uint64

	Duplicates     uint64 // of the accepted
	LateAcks       uint64 // came after their attempt had been given up
	ExtraAcks      uint64 // came for a message that had been acknowledged already: it may be stored twice; in a cluster that changed its leader it need not be
	UnexpectedAcks uint64 // proved nothing: another stream, sequence 0, not readable. Should be 0
	Reconnects     uint64 // connections after the first
	Replaced       uint64 // times that the stream was found deleted and made anew
	Batches        uint64 // atomic or fast batches that were sent
	Resent         uint64 // messages of batches that came to nothing, sent again singly
}

func (c *Counters) add(r *Result) {
	switch r.Outcome {
	case Accepted:
		c.Accepted++
		if r.Duplicate {
			c.Duplicates++
		}
	case Retryable:
		c.Retryable++
	case Unknown:
		c.Unknown++
		if _, ok := r.Err.(*UnexpectedAckError); ok {
			c.UnexpectedAcks++
		}
	case Permanent:
		c.Permanent++
	case Fatal:
		c.Fatal++
	default:
		panic("BUG: a result without an outcome")
	}
}

// Status tells how things are.
func (p *Publisher) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		State: p.state, Err: p.err, Fatal: p.fatal, Trouble: p.cause, Server: p.server, Profile: p.profile, LastSequence: p.lastSeq,
		Pending: p.window.pending, PendingBytes: p.window.bytes, Counters: p.count,
	}
	if p.sessions > 0 {
		s.MaxPayload = p.maxBody
	}
	s.Profile.Subjects = slices.Clone(p.profile.Subjects)
	s.Profile.Lagging = slices.Clone(p.profile.Lagging)
	s.Profile.Warnings = slices.Clone(p.profile.Warnings)
	return s
}

// setLocked changes the state and tells everybody who waits for it.
// While something is to be mended, that is the state, until a stream is bound.
func (p *Publisher) setLocked(s State, cause string) {
	if p.fatal != nil && !p.ended {
		if cause != "" && cause != p.fatal.Error() {
			p.cause = cause
		}
		s, cause = Failed, p.fatal.Error()
	}
	if p.state == s && p.err == cause {
		return
	}
	p.state, p.err = s, cause
	notify(p.changed)
	notify(p.free)
	notify(p.wake)
	close(p.turn)
	p.turn = make(chan struct{})
}
