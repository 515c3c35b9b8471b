package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"edge/publisher"
	"edge/publisher/embedded"
	"edge/runtime/flow"
)

// link is a sink's connection while Run runs. mu guards every field.
type link struct {
	mu    sync.Mutex
	url   string
	pub   *publisher.Publisher
	halt  *flow.HaltError  // with Options.Once only
	ended bool             // its lane is done
	last  publisher.Status // when it was
}

// runSink runs the lane of s and its publisher. A sink that fails is no error of the agent: with Once it halts, else it
// goes on trying until it is mended or stop.
func (a *Agent) runSink(ctx context.Context, s *sink, stop <-chan struct{}) error {
	wire, cut := context.WithCancel(ctx)
	var pub sync.WaitGroup
	pub.Go(func() { s.link.pub.Run(wire) })
	lane := flow.New(flow.Config{
		Sink: s.cfg.ID, Epoch: a.spool.Epoch(), Datasets: s.cfg.NATS.Datasets, Window: s.cfg.NATS.MaxInFlight, Bytes: s.cfg.NATS.MaxInFlightSize,
		Once: a.opt.Once, Denied: deniedOf(s.cfg.NATS.OnDenied),
		Backoff: flow.Schedule{Min: s.cfg.Retry.MinBackoff, Max: s.cfg.Retry.MaxBackoff},
		Module:  s.digest, Reader: s.reader, Renderer: s.render, Publisher: s.link.pub, Quarantine: a.quar,
		Counts: &s.counts, Logger: a.log, Dice: rand.Float64,
	})
	err := lane.Run(ctx, stop)
	if err == nil {
		s.look(ctx, stop)
	}
	last := s.link.pub.Status()
	cut()
	pub.Wait()
	if err == nil && a.opt.Once && last.Fatal != nil {
		err = &flow.HaltError{Sink: s.cfg.ID, Cause: last.Fatal}
	}
	var halt *flow.HaltError
	errors.As(err, &halt)
	s.link.mu.Lock()
	s.link.ended, s.link.last, s.link.halt = true, last, halt
	s.link.mu.Unlock()
	if halt != nil || errors.Is(err, context.Canceled) { // canceled: the drain time is over, the rest stays on disk
		return nil
	}
	return err
}

// lookTime bounds how long a sink that had nothing to deliver waits to see its stream.
const lookTime = 2 * time.Second

// look waits until the publisher has seen the stream or knows that it cannot use it, so that a run with nothing
// to deliver still tells of a stream that is missing or wrong. A server that does not answer in lookTime is left:
// there is nothing to deliver.
func (s *sink) look(ctx context.Context, stop <-chan struct{}) {
	late := time.NewTimer(lookTime)
	defer late.Stop()
	for {
		if st := s.link.pub.Status(); st.State == publisher.Ready || st.State == publisher.Failed {
			return
		}
		select {
		case <-s.link.pub.Changed():
		case <-late.C:
			return
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// failed tells whether nothing of s can be stored until somebody mends it.
func (s *sink) failed() bool {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.halt != nil || s.counts.Failing.Load() != nil || s.link.pub.Status().State == publisher.Failed
}

// halted is why s has ended before everything was settled, nil if it has not.
func (s *sink) halted() *flow.HaltError {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.halt
}

// newPublishers makes the publisher of every sink; embeddedURL stands in for embedded:// addresses.
func (a *Agent) newPublishers(embeddedURL string) error {
	for _, s := range a.sinks {
		pc := s.wire(a.cfg.Agent.ID, a.log)
		if _, ok := s.cfg.NATS.Embedded(); ok {
			pc.URL = embeddedURL
		}
		p, err := publisher.New(pc)
		if err != nil {
			return fmt.Errorf("sink %s: %w", s.cfg.ID, err)
		}
		s.link.mu.Lock()
		s.link.pub, s.link.url = p, pc.URL
		s.link.mu.Unlock()
	}
	return nil
}

// startEmbedded starts the server in this process if a sink asks for it.
func (a *Agent) startEmbedded() (url string, server *embedded.Server, err error) {
	for i := range a.cfg.Sinks {
		n := &a.cfg.Sinks[i].NATS
		addr, ok := n.Embedded()
		if !ok {
			continue
		}
		dir := filepath.Join(a.cfg.Agent.DataDir, "jetstream")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, fmt.Errorf("start embedded server: %w", err)
		}
		server, err := embedded.Start(embedded.Config{
			StoreDir: dir, Addr: addr, Token: n.Token.Reveal(), Logger: a.log,
		})
		if err != nil {
			return "", nil, fmt.Errorf("start embedded server: %w", err)
		}
		a.log.Info("embedded server listens", "url", server.URL(), "store", dir)
		return server.URL(), server, nil
	}
	return "", nil, nil
}
