package publisher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// reconnectGrace is how long messages from the old connection wait for their acknowledgements on the new one. In a
// cluster some still arrive; on a single server they are gone with the connection.
const reconnectGrace = time.Second

// Run connects, binds and publishes until ctx ends, and returns then. It never gives up: a server that cannot be reached
// is tried for ever, and what somebody has to mend (credentials, certificates, the stream) makes the state Failed, with
// the *FatalError in Status, and is tried again within 30 s and at once when one of its files changes. Who does not
// want to wait for that ends ctx.
//
// When it returns, everything that was admitted has its Result: unknown if it was written, retryable if not. It waits
// for every goroutine it has started. Run is called once.
func (p *Publisher) Run(ctx context.Context) {
	p.mu.Lock()
	if p.begun {
		p.mu.Unlock()
		panic("BUG: Run called twice")
	}
	p.begun = true
	p.mu.Unlock()
	if p.cfg.exposed() {
		p.cfg.Logger.Warn("credentials cross the network in the clear: use a tls:// address", "url", p.cfg.URL)
	}

	stop := make(chan struct{})
	var own sync.WaitGroup
	own.Go(func() { p.runSender(stop) })
	own.Go(func() { p.runDeadlines(stop) })
	p.connectLoop(ctx)
	close(stop)
	own.Wait() // past this line nothing is written
	p.abandon()
}

// refusalTries is how many times since a stream was bound a server refuses our credentials, or the handshake fails,
// before that is called fatal: an authorization service or a file that is being replaced can be away for a moment. With
// the pauses between them these take less than a second. What other addresses say in between does not count: one that
// is down proves nothing about credentials.
const refusalTries = 3

// briefSession is how long a connection must have lasted for the next one to be tried at once. A server that lets us in
// and throws us out again is not helped by ten attempts a second.
const briefSession = time.Second

// connectLoop makes one connection after another until ctx ends.
func (p *Publisher) connectLoop(ctx context.Context) {
	at := newServers(p.cfg.URL, rand.IntN(maxServers))
	var expelled error // what a server said when it threw us out, which says more than its refusals after that
	for failures, refusals := 0, 0; ; failures++ {
		was := fingerprint(p.cfg.files())
		began := time.Now()
		bound, err := p.runSession(ctx, &at)
		if ctx.Err() != nil {
			return
		}
		if bound {
			refusals, expelled = 0, nil
			if time.Since(began) > briefSession {
				failures = 0
			}
		}
		if credentialsRefused(err) && expelled == nil {
			expelled = err
		}
		var fatal *FatalError
		if errors.As(err, &fatal) {
			if refusals++; refusals >= refusalTries || fatal.Code != CodeCredentials && fatal.Code != CodeTLS {
				if fatal.Code == CodeCredentials && expelled != nil && !errors.As(expelled, new(*FatalError)) {
					fatal.Err = fmt.Errorf("%w (after %w)", fatal.Err, expelled)
				}
				p.fail(fatal)
			}
		}
		pause := reconnect.Delay(failures, rand.Float64())
		p.cfg.Logger.Warn("no connection", "stream", p.cfg.Stream, "cause", err, "pause", pause.Round(time.Millisecond))
		if !p.pause(ctx, pause, was, nil) {
			return
		}
	}
}

// runSession is one connection from its start to its end. It tells whether the stream was bound on it.
func (p *Publisher) runSession(ctx context.Context, at *servers) (bound bool, err error) {
	s, err := p.connect(ctx, at.take())
	if err != nil {
		p.mu.Lock()
		p.setLocked(p.state, err.Error())
		p.mu.Unlock()
		return false, err
	}
	defer s.close()
	at.stay()
	if p.cfg.DiscoveredServers {
		at.learn(s.conn.DiscoveredServers())
		defer func() { at.learn(s.conn.DiscoveredServers()) }()
	}
	p.attach(s)
	defer func() {
		if errors.As(err, new(*uselessError)) {
			at.move()
		}
		p.detach(err)
	}()
	others := len(at.list) > 1
	for {
		if err := p.bindLoop(ctx, s, others); err != nil {
			return bound, err
		}
		bound = true
		if err := p.serve(ctx, s, others); err != nil {
			return true, err
		}
	}
}

// lookUpFirst is how long the first look-up of a stream waits for its answer; each further one waits twice as long, up
// to RequestTimeout. A cluster that elects a leader drops requests without an answer, so waiting longer finds nothing.
const lookUpFirst = 2 * time.Second

// uselessLooks is how many look-ups in a row have no answer, or hear that there is no JetStream, before another server is
// tried, if there are others: one that is cut off from its cluster goes on taking connections.
const uselessLooks = 3

// bindLoop binds until it succeeds or the session ends.
func (p *Publisher) bindLoop(ctx context.Context, s *session, others bool) error {
	for failures := 0; ; failures++ {
		was := fingerprint(p.cfg.files())
		profile, err := p.lookUp(ctx, s, min(lookUpFirst<<min(failures, 8), p.cfg.RequestTimeout))
		if err == nil {
			p.bound(s, profile)
			return nil
		}
		var fatal *FatalError
		switch {
		case errors.As(err, &fatal) && fatal.Code == CodeInbox:
			return fatal // without an inbox the session is of no use
		case fatal != nil:
			p.fail(fatal)
		default:
			p.mu.Lock()
			p.setLocked(Binding, err.Error())
			p.mu.Unlock()
		}
		mute := errors.Is(err, errNobody) || errors.Is(err, errNoAnswer) || fatal != nil && fatal.Code == CodeJetStream
		if others && mute && failures+1 >= uselessLooks {
			return &uselessError{err}
		}
		pause := reconnect.Delay(failures, rand.Float64())
		p.cfg.Logger.Warn("stream is not bound", "stream", p.cfg.Stream, "cause", err, "pause", pause.Round(time.Millisecond))
		if !p.pause(ctx, pause, was, s.closed) {
			return ctx.Err()
		}
		select {
		case err := <-s.fatal:
			return err
		case <-s.closed:
			return s.reason()
		default:
		}
	}
}

// fail says that somebody has to mend something. It lasts until a stream is bound.
func (p *Publisher) fail(fatal *FatalError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fatal == nil || p.fatal.Error() != fatal.Error() {
		p.cfg.Logger.Error("publisher failed; it goes on trying", "stream", p.cfg.Stream, "code", fatal.Code, "field", fatal.Field, "cause", fatal)
	}
	p.fatal = fatal
	p.setLocked(Failed, fatal.Error())
}

// attach makes s the current connection. Nothing is sent on it before bound.
func (p *Publisher) attach(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = s
	p.server = s.server
	p.maxBody = s.maxPayload
	if s.number > 1 {
		p.count.Reconnects++
	}
	p.silent, p.newest = 0, 0
	clear(p.denials)
	p.window.shorten(s.number, p.now()+int64(reconnectGrace))
	p.setLocked(Binding, "")
}

// bound makes the stream's profile the current one, and the publisher ready.
func (p *Publisher) bound(s *session, profile Profile) {
	p.mu.Lock()
	p.adoptLocked(profile)
	p.fatal = nil
	p.suspectLocked("")
	p.setLocked(Ready, "")
	p.mu.Unlock()
	p.cfg.Logger.Info("stream bound", "stream", profile.Stream, "server", s.server, "delivery_class", profile.DeliveryClass,
		"mode", profile.Mode.String(), "verified", profile.Verified, "created", profile.Created)
	for _, w := range profile.Warnings {
		p.cfg.Logger.Warn("stream is a risk", "stream", profile.Stream, "why", w)
	}
}

func (p *Publisher) detach(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = nil
	text := ""
	if cause != nil && !errors.Is(cause, context.Canceled) {
		text = cause.Error()
	}
	p.setLocked(Disconnected, text)
}

// abandon gives everything that is left its result, and sets the last state.
func (p *Publisher) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.setLocked(Disconnected, "")
	// Even if the state is what it was: a Write or Deliver may wait for one that will not come.
	notify(p.free)
	close(p.turn)
	p.turn = make(chan struct{})
	for p.window.first >= 0 {
		i := p.window.first
		written := p.window.slots[i].mayBeStored()
		p.finishLocked(i, classify(p.want.Load(), evidence{err: &EndedError{}, written: written}))
	}
}

// runDeadlines gives up on messages whose time is over. One ticker serves them all, so a deadline is met within
// a twentieth of RequestTimeout, and within 50 ms.
func (p *Publisher) runDeadlines(stop <-chan struct{}) {
	tick := time.NewTicker(max(min(p.cfg.RequestTimeout/20, 50*time.Millisecond), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.expire()
		case <-stop:
			return
		}
	}
}

func (p *Publisher) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.nextLocked()
	defer p.settleDenialsLocked()
	now := p.now()
	for p.window.first >= 0 {
		i := p.window.first
		s := &p.window.slots[i]
		if s.deadline > now {
			return
		}
		lost := p.session == nil || p.session.number != s.session
		written := s.mayBeStored()
		if written {
			if !lost {
				p.silent++
			}
			if p.silent >= silencesDoubted {
				notify(p.doubt)
			}
		}
		var why error = &TimeoutError{After: time.Duration(now - s.admitted), Lost: lost}
		if s.state == slotAgain && !written {
			why = errNotAgain
		}
		p.finishLocked(i, classify(p.want.Load(), evidence{err: why, written: written}))
	}
}
