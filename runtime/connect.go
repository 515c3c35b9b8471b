package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"edge/publisher"
	"edge/runtime/config"
)

// Reached is what a look at one sink's server has found.
type Reached struct {
	Sink     *config.Sink
	Embedded bool // the server is in this process when the agent runs: nothing was asked
	Posture  publisher.Posture
	// Err is a *publisher.FatalError if the sink would be fatal, any other if its server cannot be reached; nil for none.
	Err error
}

// CheckServers looks at the server and the stream of every sink, all at once, and changes nothing. The error is a
// *SetupError or a *publisher.ConfigError, of a configuration that cannot run, or the cause that ended ctx.
func CheckServers(ctx context.Context, cfg *config.Config, log *slog.Logger) ([]Reached, error) {
	list := make([]Reached, len(cfg.Sinks))
	wires := make([]publisher.Config, len(cfg.Sinks))
	for i := range cfg.Sinks {
		s := &sink{cfg: &cfg.Sinks[i]}
		list[i].Sink = s.cfg
		if _, list[i].Embedded = s.cfg.NATS.Embedded(); list[i].Embedded {
			continue
		}
		if err := s.parseSubject(cfg); err != nil {
			return nil, &SetupError{err}
		}
		wires[i] = s.wire(cfg.Agent.ID, log)
	}
	var all sync.WaitGroup
	for i := range list {
		if list[i].Embedded {
			continue
		}
		all.Go(func() {
			list[i].Posture, list[i].Err = publisher.Probe(ctx, wires[i])
			if list[i].Err == nil {
				list[i].Err = forbidden(&list[i])
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var wrong []error
	for i := range list {
		if errors.As(list[i].Err, new(*publisher.ConfigError)) {
			wrong = append(wrong, fmt.Errorf("sink %s: %w", list[i].Sink.ID, list[i].Err))
		}
	}
	return list, errors.Join(wrong...)
}

// forbidden is why a sink whose stream will do would fail at its first message, or nil: it may not publish at all under
// a subject that it uses, and the operator does not want such events in quarantine.
func forbidden(r *Reached) error {
	if r.Sink.NATS.OnDenied != config.DeniedHalt {
		return nil
	}
	for _, right := range r.Posture.Publish {
		if right.Access == publisher.Denied {
			return &publisher.FatalError{Code: "denied", Field: "subject",
				Detail: fmt.Sprintf("the server denies user %q to publish to %q", r.Posture.User, right.Subject),
				Fix:    "allow it, or correct subject"}
		}
	}
	return nil
}
