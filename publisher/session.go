package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
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

// connect makes the next session, at the next address, with the inbox for acknowledgements. The error is a *FatalError
// if somebody has to mend something before a later attempt can succeed.
func (p *Publisher) connect(ctx context.Context, at server) (*session, error) {
	opts, err := p.options(at)
	if err != nil {
		return nil, err
	}
	s := &session{closed: make(chan struct{}), fatal: make(chan error, 1)}
	s.unhook = context.AfterFunc(ctx, s.cut)
	opts = append(opts,
		nats.SetCustomDialer(dialer(func(network, address string) (net.Conn, error) { return s.dial(ctx, network, address) })),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.trouble(s, err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(s.closed) }))
	nc, err := nats.Connect(at.url, opts...)
	if err != nil {
		s.unhook()
		s.cut()
		if why := s.takeReason(); errors.Is(err, nats.ErrNoServers) && why != nil {
			err = why // what dialling said; the library keeps it to itself
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause // the library only saw its socket closed
		}
		return nil, p.refusedBy(at.url, err)
	}
	s.conn = nc
	s.server = fmt.Sprintf("%s %s at %s", nc.ConnectedServerName(), nc.ConnectedServerVersion(), nc.ConnectedUrlRedacted())
	s.maxPayload = int(nc.MaxPayload())
	if s.maxPayload <= 0 {
		s.close()
		return nil, fmt.Errorf("connect to %s: it names no max_payload, so nothing could be sent: look at what answers there", at.url)
	}
	sub, err := nc.Subscribe(p.inbox+">", p.answer)
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

// refusedBy says why there is no connection to a server, and whether that is for somebody to mend.
func (p *Publisher) refusedBy(address string, err error) error {
	err = clippedError{err}
	if credentialsRefused(err) {
		fix := "correct the token"
		field := "token"
		switch {
		case p.cfg.CredsFile != "":
			field, fix = "creds_file", "replace "+p.cfg.CredsFile+" by credentials that the server accepts; it is read again"
		case p.cfg.NKeyFile != "":
			field, fix = "nkey_file", "let the server know the key in "+p.cfg.NKeyFile+", or replace it"
		case p.cfg.TokenFile != "":
			fix = "put the right token into " + p.cfg.TokenFile + "; it is read again"
		case p.cfg.PasswordFile != "":
			field, fix = "password", "put the right password for the user into "+p.cfg.PasswordFile+"; it is read again"
		case p.cfg.User != "":
			field, fix = "user", "correct user and password"
		case !p.cfg.secret():
			fix = "the server asks for credentials: give token, user and password, creds_file or nkey_file"
		}
		return &FatalError{Code: CodeCredentials, Field: field, Detail: "connect to " + address, Err: err, Fix: fix}
	}
	if fatal := p.cfg.TLS.trouble(address, err); fatal != nil {
		return fatal
	}
	var late net.Error
	if (errors.As(err, &late) && late.Timeout() || errors.Is(err, io.EOF)) && !p.cfg.TLS.First {
		return fmt.Errorf("connect to %s: %w before the server's first line (one with handshake_first says nothing before TLS: set tls.first then)", address, err)
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("connect to %s: %w (closed by the server at once: look at its connection limits and log)", address, err)
	}
	return fmt.Errorf("connect to %s: %w", address, err)
}

// options reads credentials and certificates anew. The error is a *FatalError.
func (p *Publisher) options(at server) ([]nats.Option, error) {
	secure, err := p.cfg.TLS.config()
	if err != nil {
		return nil, err
	}
	secure.ServerName = at.name
	opts, err := p.cfg.credentials(time.Now())
	if err != nil {
		return nil, err
	}
	opts = append(opts,
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
		// A server that asks for TLS gets it with this configuration even if the address does not say so.
		func(o *nats.Options) error {
			o.TLSConfig = secure
			o.Secure = o.Secure || p.cfg.TLS.wanted()
			o.TLSHandshakeFirst = p.cfg.TLS.First
			return nil
		})
	if !p.cfg.DiscoveredServers {
		opts = append(opts, nats.IgnoreDiscoveredServers())
	}
	return opts, nil
}

func credentialsRefused(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired) || errors.Is(err, nats.ErrNkeysNotSupported)
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
	return fmt.Errorf("connection lost: %w", clippedError{err})
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
	if s.giveUp == nil || s.api != subject {
		return false
	}
	s.giveUp(&DeniedError{Subject: subject, Text: text})
	return true
}
