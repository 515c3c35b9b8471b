package publisher

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// reconnectGrace is how long messages from the old connection wait for their acknowledgements on the new one. In a
// cluster some still arrive; on a single server they are gone with the connection.
const reconnectGrace = time.Second

// Run connects, binds and publishes until ctx ends, and returns nil then. It returns a *FatalError as soon as it is
// clear that it can never work as configured. A server that cannot be reached is no error: it is tried for ever, and
// Status tells why it fails.
//
// When it returns, everything that was admitted has its Result: unknown if it was written, retryable if not. It waits
// for every goroutine it has started. Run is called once.
func (p *Publisher) Run(ctx context.Context) error {
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
	err := p.connectLoop(ctx)
	close(stop)
	own.Wait() // past this line nothing is written
	p.abandon(err)
	return err
}

// connectLoop makes one connection after another. It returns nil when ctx ends, else a *FatalError.
func (p *Publisher) connectLoop(ctx context.Context) error {
	for failures := 0; ; failures++ {
		bound, err := p.runSession(ctx)
		var fatal *FatalError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &fatal):
			return fatal
		case bound:
			failures = 0
		}
		pause := reconnect.Delay(failures, rand.Float64())
		p.cfg.Logger.Warn("no connection", "stream", p.cfg.Stream, "cause", err, "pause", pause.Round(time.Millisecond))
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// runSession is one connection from its start to its end. It tells whether the stream was bound on it.
func (p *Publisher) runSession(ctx context.Context) (bound bool, err error) {
	s, err := p.connect(ctx)
	if err != nil {
		p.mu.Lock()
		p.setLocked(p.state, err.Error())
		p.mu.Unlock()
		return false, err
	}
	defer s.close()
	p.attach(s)
	defer func() { p.detach(err) }()
	if err := p.bindLoop(ctx, s); err != nil {
		return false, err
	}
	select {
	case <-ctx.Done():
		return true, ctx.Err()
	case err := <-s.fatal:
		return true, err
	case <-s.closed:
		return true, s.reason()
	}
}

// bindLoop binds until it succeeds, the session ends or the stream is refused.
func (p *Publisher) bindLoop(ctx context.Context, s *session) error {
	for failures := 0; ; failures++ {
		profile, err := p.bind(ctx, s)
		if err == nil {
			p.bound(s, profile)
			return nil
		}
		var fatal *FatalError
		if errors.As(err, &fatal) {
			return fatal
		}
		p.mu.Lock()
		p.setLocked(Binding, err.Error())
		p.mu.Unlock()
		pause := reconnect.Delay(failures, rand.Float64())
		p.cfg.Logger.Warn("stream is not bound", "stream", p.cfg.Stream, "cause", err, "pause", pause.Round(time.Millisecond))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case err = <-s.fatal:
		case <-s.closed:
			err = s.reason()
		}
		timer.Stop()
		return err
	}
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
	p.window.shorten(s.number, p.now()+int64(reconnectGrace))
	p.setLocked(Binding, "")
}

func (p *Publisher) bound(s *session, profile Profile) {
	p.want.Store(newWant(profile.Stream, profile.Domain, profile.Verified))
	p.mu.Lock()
	profile.Created = profile.Created || p.profile.Created
	p.profile = profile
	clear(p.subjects)
	p.setLocked(Ready, "")
	p.mu.Unlock()
	p.cfg.Logger.Info("stream bound", "stream", profile.Stream, "server", s.server, "delivery_class", profile.DeliveryClass,
		"verified", profile.Verified, "created", profile.Created)
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
func (p *Publisher) abandon(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if err != nil {
		p.failed = err
		p.setLocked(Failed, err.Error())
	} else {
		p.setLocked(Disconnected, "")
	}
	notify(p.free) // even if the state is what it was: a Write may wait for one that will not come
	for p.window.first >= 0 {
		i := p.window.first
		written := p.window.slots[i].state != slotQueued
		p.finishLocked(i, classify(p.want.Load(), evidence{err: &EndedError{Written: written}}))
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
	now := p.now()
	for p.window.first >= 0 {
		i := p.window.first
		s := &p.window.slots[i]
		if s.deadline > now {
			return
		}
		var why error
		if s.state == slotQueued {
			why = errStuck
		} else {
			lost := p.session == nil || p.session.number != s.session
			why = &TimeoutError{After: time.Duration(now - s.admitted), Lost: lost}
		}
		p.finishLocked(i, classify(p.want.Load(), evidence{err: why}))
	}
}

// sleep waits and tells whether it was not cut short by ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
