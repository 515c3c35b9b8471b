package publisher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Times of a connection. A ping that stays unanswered twice ends it, so a dead peer is noticed within 30 s; a write
// that the kernel does not take within writeTimeout does too, because it blocks everybody who touches the connection.
const (
	connectTimeout = 3 * time.Second
	writeTimeout   = 2 * time.Second
	pingInterval   = 10 * time.Second
	pingsLost      = 2
)

// session is one connection. When it ends, for whatever reason, connectLoop makes a new one: the library's own
// reconnecting is off, because it would leave us with two loops and a connection that sometimes closes for good.
type session struct {
	number     uint32 // 1 for the first
	conn       *nats.Conn
	server     string
	maxPayload int
	unhook     func() bool   // from the context that cuts the session
	closed     chan struct{} // closed when the library has closed the connection and called every handler
	fatal      chan error    // one place: why the publisher cannot go on
	broken     bool          // guarded by Publisher.mu: a write has failed, nothing more is written

	mu      sync.Mutex
	raw     net.Conn                // guarded by mu: the socket
	isCut   bool                    // guarded by mu
	api     string                  // guarded by mu: subject of the request under way
	giveUp  context.CancelCauseFunc // guarded by mu: ends that request
	whyDead error                   // guarded by mu: the first trouble worth telling
}

// connect makes the next session, with the inbox for acknowledgements. The error is a *FatalError if the server
// refuses our credentials, which no later attempt would change.
func (p *Publisher) connect(ctx context.Context) (*session, error) {
	s := &session{closed: make(chan struct{}), fatal: make(chan error, 1)}
	s.unhook = context.AfterFunc(ctx, s.cut)
	nc, err := nats.Connect(p.cfg.URL, p.options(ctx, s)...)
	if err != nil {
		s.unhook()
		s.cut()
		if credentialsRefused(err) {
			return nil, &FatalError{Code: CodeCredentials, Detail: "connect to " + p.cfg.URL, Err: err,
				Fix: "correct token, or user and password"}
		}
		if why := s.takeReason(); errors.Is(err, nats.ErrNoServers) && why != nil {
			err = why // what dialling said; the library keeps it to itself
		}
		return nil, fmt.Errorf("connect to %s: %w", p.cfg.URL, err)
	}
	s.conn = nc
	s.takeReason() // an address that failed before another one worked
	s.server = fmt.Sprintf("%s %s at %s", nc.ConnectedServerName(), nc.ConnectedServerVersion(), nc.ConnectedUrlRedacted())
	s.maxPayload = int(nc.MaxPayload())
	sub, err := nc.Subscribe(p.inbox+"*", p.answer)
	if err == nil {
		// The window bounds what can be pending; a limit here could only drop acknowledgements.
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	p.mu.Lock()
	p.sessions++
	s.number = p.sessions
	p.mu.Unlock()
	return s, nil
}

func (p *Publisher) options(ctx context.Context, s *session) []nats.Option {
	opts := []nats.Option{
		nats.Name(p.cfg.Name),
		nats.NoReconnect(),        // connectLoop does it
		nats.ReconnectBufSize(-1), // and nothing is ever kept to be sent later
		nats.Timeout(connectTimeout),
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(), // which closes, as reconnecting is off
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsLost),
		nats.CustomInboxPrefix(p.prefix),
		nats.NoEcho(),
		nats.IgnoreDiscoveredServers(),
		nats.SetCustomDialer(dialer(func(network, address string) (net.Conn, error) { return s.dial(ctx, network, address) })),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.trouble(s, err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(s.closed) }),
	}
	switch {
	case p.cfg.Token != "":
		opts = append(opts, nats.Token(p.cfg.Token))
	case p.cfg.User != "":
		opts = append(opts, nats.UserInfo(p.cfg.User, p.cfg.Password))
	}
	return opts
}

func credentialsRefused(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

// dialer lets the library dial through a function.
type dialer func(network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// dial keeps the socket, so that cut can end whatever the library is doing with it.
func (s *session) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTimeout}
	c, err := d.DialContext(ctx, network, address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.whyDead = err
		return nil, err
	}
	if s.isCut {
		c.Close()
		return nil, net.ErrClosed
	}
	s.raw = c
	return c, nil
}

// cut closes the socket, without a farewell and without waiting for anything: the library's own Close waits for a
// write under way.
func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isCut = true
	if s.raw != nil {
		// Nothing can be done about an error, and nothing hangs on it.
		_ = s.raw.Close()
	}
}

// close ends the session and returns when the library calls none of our handlers any more but that of late answers.
func (s *session) close() {
	s.unhook()
	s.conn.Close()
	<-s.closed
	s.cut()
}

// reason is why the connection is closed.
func (s *session) reason() error {
	err := s.takeReason()
	if err == nil {
		err = s.conn.LastError()
	}
	if err == nil {
		err = errors.New("closed by the server")
	}
	return fmt.Errorf("connection lost: %w", err)
}

// takeReason returns the first trouble since it was called last, or nil.
func (s *session) takeReason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.whyDead
	s.whyDead = nil
	return err
}

// fail ends the publisher, at once if a request is under way.
func (s *session) fail(err *FatalError) {
	select {
	case s.fatal <- err:
	default: // one is enough
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.giveUp != nil {
		s.giveUp(err)
	}
}

// request asks JetStream's API. A *DeniedError means that we may not ask.
func (s *session) request(ctx context.Context, subject string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.api, s.giveUp = subject, cancel
	s.mu.Unlock()
	m, err := s.conn.RequestWithContext(ctx, subject, body)
	s.mu.Lock()
	s.api, s.giveUp = "", nil
	s.mu.Unlock()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return m.Data, nil
}

// denyRequest ends the request under way if it was the one to this subject.
func (s *session) denyRequest(subject, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.api != subject {
		return false
	}
	s.giveUp(&DeniedError{Subject: subject, Text: text})
	return true
}
