package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"edge/publisher"
	"edge/publisher/embedded"
	"edge/runtime/flow"
)

// life is what Run keeps while it runs and Summary reads. mu guards every field.
type life struct {
	mu         sync.Mutex
	started    time.Time
	ended      time.Time // zero while Run runs
	inputsDone bool
	err        error // the first failure that is not a sink's own
}

// link is a sink's connection while Run runs. mu guards every field.
type link struct {
	mu      sync.Mutex
	url     string
	pub     *publisher.Publisher
	halt    *flow.HaltError
	ended   bool   // its lane is done
	lastErr string // why the publisher was not ready when its lane ended
}

// Run runs the agent until ctx ends or, with Options.Once, until the inputs are at their end and everything is
// settled. It returns nil after an orderly end. A *flow.HaltError means that a sink (the first of them) could
// not go on; the others were served. Any other error is the agent's own: it stopped early, and what has no
// outcome is still on disk.
func (a *Agent) Run(ctx context.Context) error {
	a.life.mu.Lock()
	a.life.started = time.Now()
	a.life.mu.Unlock()
	defer func() {
		a.life.mu.Lock()
		a.life.ended = time.Now()
		a.life.mu.Unlock()
	}()
	url, server, err := a.startEmbedded()
	if err != nil {
		return err
	}
	if server != nil {
		defer server.Close()
	}
	if err := a.newPublishers(url); err != nil {
		return err
	}

	intake, stopIntake := context.WithCancel(ctx)
	defer stopIntake()
	hard, cut := context.WithCancel(context.Background())
	defer cut()
	stop := make(chan struct{})
	limit := time.AfterFunc(time.Hour, cut)
	limit.Stop()
	defer limit.Stop()
	halt := sync.OnceFunc(func() { // settle what is in flight and no more, and not for ever
		stopIntake()
		close(stop)
		limit.Reset(a.cfg.Agent.DrainTime)
	})
	defer context.AfterFunc(ctx, halt)()

	var committer, watcher, lanes sync.WaitGroup
	committer.Go(func() {
		if err := a.spool.Run(hard); err != nil && hard.Err() == nil {
			a.fail(fmt.Errorf("run spool: %w", err))
			halt()
		}
	})
	watcher.Go(func() { a.watchSpool(hard, stopIntake) })
	for _, s := range a.sinks {
		lanes.Go(func() {
			if err := a.runSink(hard, s, stop); err != nil {
				a.fail(err)
				halt()
			}
			if s.halted() != nil && (a.opt.Once || a.allHalted()) {
				stopIntake() // what the inputs have not read keeps: their positions are remembered
			}
		})
	}
	if err := a.runInputs(intake); err != nil {
		a.fail(err)
		if !a.opt.Once {
			halt()
		}
	} else {
		a.life.mu.Lock()
		a.life.inputsDone = true
		a.life.mu.Unlock()
	}
	if !a.opt.Once {
		<-intake.Done()
	}
	a.spool.Seal()
	lanes.Wait()
	cut()
	committer.Wait()
	watcher.Wait()
	return a.verdict()
}

// watchSpool tells of a spool that is full, and who keeps it full. A halted sink will not give anything back: then
// the other sinks would starve behind inputs that wait for ever, so intake ends, what was captured is delivered to
// the others, and the run ends with the halt.
func (a *Agent) watchSpool(ctx context.Context, stopIntake func()) {
	const every = time.Second // two looks in a row: room may be on its way
	tick := time.NewTicker(every)
	defer tick.Stop()
	for full := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		st := a.spool.Stats()
		if !st.Full {
			full = 0
			continue
		}
		if full++; full != 2 {
			continue
		}
		last := a.sinks[0]
		for _, s := range a.sinks {
			if st.Floor(s.cfg.ID) < st.Floor(last.cfg.ID) {
				last = s
			}
		}
		log := a.log.With("sink", last.cfg.ID, "behind", uint64(st.LastSeq-st.Floor(last.cfg.ID)), "max_bytes", st.MaxBytes)
		if last.halted() == nil {
			log.Warn("the spool is full: inputs wait for the sink that is farthest behind; raise spool.max_bytes for longer outages")
			continue
		}
		log.Error("the spool is full of what a failed sink has not taken: intake ends; mend the sink or take it out of the configuration")
		stopIntake()
		return
	}
}

// allHalted tells that no sink is left to serve.
func (a *Agent) allHalted() bool {
	for _, s := range a.sinks {
		if s.halted() == nil {
			return false
		}
	}
	return true
}

// verdict is what Run returns: the agent's own failure before a sink's.
func (a *Agent) verdict() error {
	a.life.mu.Lock()
	defer a.life.mu.Unlock()
	if a.life.err != nil {
		return a.life.err
	}
	for _, s := range a.sinks {
		if h := s.halted(); h != nil {
			return h
		}
	}
	return nil
}

// fail keeps the first failure that is the agent's own. Run returns it in the end.
func (a *Agent) fail(err error) {
	a.life.mu.Lock()
	defer a.life.mu.Unlock()
	if a.life.err == nil {
		a.life.err = err
	}
}

// runInputs runs every input and returns when all of them have ended, with what they failed of.
func (a *Agent) runInputs(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make([]error, len(a.inputs))
	for i, in := range a.inputs {
		all.Go(func() {
			if err := in.Run(ctx); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("run input %s: %w", a.cfg.Inputs[i].ID, err)
				a.log.Error("input failed", "input", a.cfg.Inputs[i].ID, "cause", err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// runSink runs the lane of s and its publisher. A halt is the sink's own fate and no error of the agent.
func (a *Agent) runSink(ctx context.Context, s *sink, stop <-chan struct{}) error {
	wire, cut := context.WithCancel(ctx)
	var pub sync.WaitGroup
	pub.Go(func() {
		// How it ended is in its status, which is how the lane hears of it.
		if err := s.link.pub.Run(wire); err != nil {
			a.log.Error("sink failed", "sink", s.cfg.ID, "cause", err)
		}
	})
	lane := flow.New(flow.Config{
		Sink: s.cfg.ID, Epoch: a.spool.Epoch(), Datasets: s.cfg.NATS.Datasets, Window: s.cfg.NATS.MaxInFlight,
		Backoff: flow.Schedule{Min: s.cfg.Retry.MinBackoff, Max: s.cfg.Retry.MaxBackoff},
		Module:  s.digest, Reader: s.reader, Renderer: s.render, Publisher: s.link.pub, Quarantine: a.quar,
		Counts: &s.counts, Logger: a.log, Dice: rand.Float64,
	})
	err := lane.Run(ctx, stop)
	if err == nil && !closed(stop) {
		s.look(ctx, stop)
	}
	last := s.link.pub.Status()
	cut()
	pub.Wait()
	s.link.mu.Lock()
	s.link.ended, s.link.lastErr = true, last.Err
	s.link.mu.Unlock()
	if last := s.link.pub.Status(); err == nil && last.State == publisher.Failed {
		err = &flow.HaltError{Sink: s.cfg.ID, Cause: errors.New(last.Err)}
	}
	var halt *flow.HaltError
	switch {
	case errors.As(err, &halt):
		s.link.mu.Lock()
		s.link.halt = halt
		s.link.mu.Unlock()
		return nil
	case errors.Is(err, context.Canceled):
		return nil // the drain time is over: the rest stays on disk
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

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *sink) halted() *flow.HaltError {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.halt
}

// newPublishers makes the publisher of every sink; embeddedURL stands in for embedded:// addresses.
func (a *Agent) newPublishers(embeddedURL string) error {
	for _, s := range a.sinks {
		n := &s.cfg.NATS
		pc := publisher.Config{
			URL: n.URL, Name: "edge " + a.cfg.Agent.ID + " " + s.cfg.ID, Stream: n.Stream, CreateStream: n.CreateStream,
			DuplicateWindow: n.DuplicateWindow, Token: n.Token.Reveal(), User: n.User, Password: n.Password.Reveal(),
			RequestTimeout: n.RequestTimeout, MaxInFlight: n.MaxInFlight, Logger: a.log.With("sink", s.cfg.ID),
		}
		if isEmbedded(n.URL) {
			pc.URL = embeddedURL
		}
		pc.Subjects = s.subjects()
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

// subjects are the patterns that the sink will use: what a created stream listens to.
func (s *sink) subjects() []string {
	if len(s.cfg.NATS.AllowSubjects) > 0 {
		return s.cfg.NATS.AllowSubjects
	}
	if p := s.render.Pattern(); p != "" {
		return []string{p}
	}
	return nil
}

const embeddedScheme = "embedded://"

func isEmbedded(url string) bool { return strings.HasPrefix(url, embeddedScheme) }

// startEmbedded starts the server in this process if a sink asks for it.
func (a *Agent) startEmbedded() (url string, server *embedded.Server, err error) {
	for i := range a.cfg.Sinks {
		n := &a.cfg.Sinks[i].NATS
		if !isEmbedded(n.URL) {
			continue
		}
		dir := filepath.Join(a.cfg.Agent.DataDir, "jetstream")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, fmt.Errorf("start embedded server: %w", err)
		}
		server, err := embedded.Start(embedded.Config{
			StoreDir: dir, Addr: strings.TrimPrefix(n.URL, embeddedScheme), Token: n.Token.Reveal(), Logger: a.log,
		})
		if err != nil {
			return "", nil, fmt.Errorf("start embedded server: %w", err)
		}
		a.log.Info("embedded server listens", "url", server.URL(), "store", dir)
		return server.URL(), server, nil
	}
	return "", nil, nil
}
