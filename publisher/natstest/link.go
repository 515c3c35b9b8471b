package natstest

import (
	"context"
	"net"
	"sync"
	"time"
)

// One direction holds at most chunkCount chunks of chunkSize bytes that are under way.
const (
	chunkSize  = 16 << 10
	chunkCount = 16
)

// chunk is what one read gave.
type chunk struct {
	due  time.Time // not forwarded before
	data []byte
}

// link is one connection through a proxy. Its context ends when it is closed.
type link struct {
	p      *Proxy
	ctx    context.Context
	cancel context.CancelFunc
	client *net.TCPConn
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	l := &link{p: p, client: client}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	return l
}

// close ends the link at once. run returns soon after.
func (l *link) close() {
	l.cancel()
	l.client.Close()
}

// run forwards until the server's side has ended or the link is closed. The end of the client's side is only passed
// on, because the server may have something to say still.
func (l *link) run() {
	defer l.close()
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(l.ctx, "tcp", l.p.target())
	if err != nil {
		return
	}
	server := c.(*net.TCPConn)
	defer context.AfterFunc(l.ctx, func() { server.Close() })()
	defer server.Close()

	var work sync.WaitGroup
	up, down := make(chan chunk, chunkCount), make(chan chunk, chunkCount)
	work.Go(func() { l.read(l.client, up) })
	work.Go(func() { l.read(server, down) })
	work.Go(func() {
		l.write(up, func(b []byte) error { return send(server, b) })
		_ = server.CloseWrite() // fails only if the connection is gone
	})
	l.write(down, l.toClient())
	l.close()
	server.Close()
	work.Wait()
}

// read fills to until src ends, and closes it.
func (l *link) read(src *net.TCPConn, to chan<- chunk) {
	defer close(to)
	for {
		b := make([]byte, chunkSize)
		n, err := src.Read(b)
		if n > 0 {
			select {
			case to <- chunk{due: time.Now().Add(l.p.lag()), data: b[:n]}:
			case <-l.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write forwards each chunk when it is due and nothing stalls, until there are no more or one fails.
func (l *link) write(from <-chan chunk, forward func([]byte) error) {
	for c := range from {
		if wait := time.Until(c.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.ctx.Done():
				return
			}
		}
		select {
		case <-l.p.gate():
		case <-l.ctx.Done():
			return
		}
		if forward(c.data) != nil {
			return
		}
	}
}

// toClient forwards what the server says but for eaten acknowledgements. What comes before an acknowledgement has
// gone out before it is decided about.
func (l *link) toClient() func([]byte) error {
	var f frames
	var out []byte
	return func(src []byte) error {
		out = out[:0]
		for len(src) > 0 {
			piece, ack, rest := f.next(src)
			src = rest
			if ack != nil {
				if err := send(l.client, out); err != nil {
					return err
				}
				out = out[:0]
				if l.p.eat(ack) {
					continue
				}
			}
			out = append(out, piece...)
		}
		return send(l.client, out)
	}
}

func send(c *net.TCPConn, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := c.Write(b)
	return err
}
