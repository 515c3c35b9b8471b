package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// life is what Run keeps while it runs and Summary reads. mu guards every field.
type life struct {
	mu         sync.Mutex
	started    time.Time
	ended      time.Time // zero while Run runs
	inputsDone bool
	err        error // the first failure that is not a sink's own
}

// Run runs the agent until ctx ends or, with Options.Once, until the inputs are at their end and everything is
// settled. It returns nil after an orderly end. A *flow.HaltError, with Once only, means that a sink (the first of
// them) could not go on; the others were served. Without Once a sink that fails keeps its events and goes on trying.
// Any other error is the agent's own: it stopped early, and what has no outcome is still on disk.
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
	watcher.Go(func() { a.watchSpool(hard) })
	for _, s := range a.sinks {
		lanes.Go(func() {
			if err := a.runSink(hard, s, stop); err != nil {
				a.fail(err)
				halt()
			}
			if s.halted() != nil {
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

// watchSpool tells of a spool that is full, who keeps it full and why. Inputs wait then, and the other sinks with them,
// until the sink that is farthest behind has taken something: what is not read keeps where it is, while an agent that
// ended would have to be started by hand after the sink is mended. (With Once a halted sink has ended intake already.)
func (a *Agent) watchSpool(ctx context.Context) {
	const every = time.Second // two looks in a row: room may be on its way
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for full := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		st := a.spool.Stats()
		if !st.Full {
			full, told = 0, ""
			continue
		}
		if full++; full < 2 {
			continue
		}
		last := a.sinks[0]
		for _, s := range a.sinks {
			if st.Floor(s.cfg.ID) < st.Floor(last.cfg.ID) {
				last = s
			}
		}
		why, level := "the spool is full: inputs wait for the sink that is farthest behind; raise spool.max_bytes for longer outages", slog.LevelWarn
		switch {
		case last.failed():
			why, level = "the spool is full of what a failed sink has not taken: inputs wait, and the other sinks with them; mend the sink, or take it out of the configuration", slog.LevelError
		case st.DiskFull:
			why = "the disk is full: inputs wait until it has room again or sinks have taken more"
		}
		if why != told {
			told = why
			a.log.Log(ctx, level, why, "sink", last.cfg.ID, "behind", uint64(st.LastSeq-st.Floor(last.cfg.ID)), "max_bytes", st.MaxBytes)
		}
	}
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
