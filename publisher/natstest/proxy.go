package natstest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server and does to their connections what networks do: it eats
// acknowledgements, cuts, refuses, stalls and delays. The client never learns the server's own addresses from it. It
// passes TLS on too, but sees no acknowledgement in there. Its methods may be called from anywhere; it ends with the
// test.
type Proxy struct {
	target func() string
	listen net.Listener
	ctx    context.Context // ends with the test
	work   sync.WaitGroup  // the listener's goroutine and one for each link

	mu      sync.Mutex
	links   map[*link]struct{}
	decide  func(n int, data []byte) bool
	seen    int // acknowledgements since EatAcks
	eaten   int
	refuse  bool
	delay   time.Duration
	flowing chan struct{} // closed while bytes are forwarded; Stall makes a new one
}

// NewProxy starts a proxy on loopback. It asks target for the server's host and port at each connection, so that a
// test can lead it elsewhere; target runs on the proxy's goroutines.
func NewProxy(t testing.TB, target func() string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("natstest: start a proxy: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Proxy{target: target, listen: l, ctx: ctx, links: make(map[*link]struct{}), flowing: make(chan struct{})}
	close(p.flowing)
	p.work.Go(p.accept)
	t.Cleanup(func() {
		stop()
		l.Close()
		p.Cut()
		p.work.Wait()
	})
	return p
}

// URL is the proxy's address for clients, without credentials.
func (p *Proxy) URL() string { return "nats://" + p.Addr() }

// Addr is host and port of the proxy.
func (p *Proxy) Addr() string { return p.listen.Addr().String() }

// EatAcks asks decide about each acknowledgement before it is forwarded, and drops it if decide says so: a message to
// a subject under _INBOX. whose payload is the answer to a publication, be it yes or no. n counts from 1 since this
// call, over all connections; data is valid during the call. decide runs on the connection's own goroutine, so it may
// wait (for a look at the stream through another connection, say: the server has stored what it acknowledges), which
// holds up what the server sends on this connection and nothing else. It must return for the test to end, and must
// not end the test itself. Nil forwards everything.
func (p *Proxy) EatAcks(decide func(n int, data []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide, p.seen = decide, 0
}

// Eaten is the number of acknowledgements that were not forwarded, since the proxy started.
func (p *Proxy) Eaten() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.eaten
}

// Cut closes every connection at once, both sides of it. What was not forwarded is lost. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Refuse makes the proxy close new connections at once, or accept them again.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Stall stops forwarding in both directions without closing anything. Connections are accepted, and say nothing. A
// write that is under way at this moment may still go out.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default: // stalled already
	}
}

// Resume forwards what has waited since Stall, and goes on.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
	default:
		close(p.flowing)
	}
}

// Delay lets each direction take d longer from now on, so that a request and its answer take 2 d. Bytes keep their
// order and rate as long as less than a quarter of a megabyte is under way.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// eat decides about one acknowledgement.
func (p *Proxy) eat(data []byte) bool {
	p.mu.Lock()
	decide := p.decide
	p.seen++
	n := p.seen
	p.mu.Unlock()
	if decide == nil || !decide(n, data) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eaten++
	return true
}

func (p *Proxy) gate() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flowing
}

func (p *Proxy) lag() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// accept makes a link of each connection until the listener is closed.
func (p *Proxy) accept() {
	for {
		c, err := p.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // out of descriptors: some come back
			continue
		}
		if l := p.admit(c.(*net.TCPConn)); l != nil {
			p.work.Go(func() {
				l.run()
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.links, l)
			})
		}
	}
}

// admit registers a link, unless it is refused, or too late.
func (p *Proxy) admit(client *net.TCPConn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.ctx.Err() != nil {
		client.Close()
		return nil
	}
	l := newLink(p, client)
	p.links[l] = struct{}{}
	return l
}
