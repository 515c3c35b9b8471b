package publisher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// When a bound stream is looked at again: at once after an answer that contradicts what is known of it, but not more
// often than minRecheck, so that an election full of refusals is not made worse; and every recheckEvery even if nothing
// contradicts, because some changes (a window switched off) never show in an answer.
const (
	minRecheck   = time.Second
	recheckEvery = time.Minute

	// silencesDoubted is how many messages in a row have no answer on a connection that works before the server is
	// asked what is wrong. A single one can be the network.
	silencesDoubted = 2
)

// serve lets a bound session work until it ends, with its error, or until the stream must be bound again, with nil.
func (p *Publisher) serve(ctx context.Context, s *session, others bool) error {
	looked, unanswered := time.Now(), 0
	// The dice keep a fleet from asking as one.
	every := p.cfg.recheckEvery
	tick := time.NewTicker(every + time.Duration(rand.Int64N(int64(every/4)+1)))
	defer tick.Stop()
	soon := time.NewTimer(0)
	soon.Stop()
	defer soon.Stop()
	for waiting := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.fatal:
			return err
		case <-s.closed:
			return s.reason()
		case <-p.doubt:
			if !waiting {
				waiting = true
				soon.Reset(max(0, p.cfg.minRecheck-time.Since(looked)))
			}
			continue
		case <-soon.C:
			waiting = false
		case <-tick.C:
		}
		looked = time.Now()
		fatal, err := p.recheck(ctx, s)
		switch {
		case fatal != nil:
			p.fail(fatal)
			return nil
		case err == nil:
			unanswered = 0
		default:
			if unanswered++; others && unanswered >= uselessLooks {
				return &uselessError{err}
			}
		}
	}
}

// recheck looks at the bound stream again and takes what it finds. It returns why the stream will not do any more, or why
// there was nothing to be seen.
func (p *Publisher) recheck(ctx context.Context, s *session) (*FatalError, error) {
	now, err := p.lookUp(ctx, s, p.cfg.RequestTimeout)
	var fatal *FatalError
	if errors.As(err, &fatal) && fatal.Code == CodeMissing { // asked twice: a stray responder can be faster than the server
		now, err = p.lookUp(ctx, s, p.cfg.RequestTimeout)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fatal = nil
	switch {
	case errors.As(err, &fatal):
		return fatal, nil
	case ctx.Err() != nil:
		return nil, nil
	case err != nil:
		p.suspectLocked(diagnose(p.silent, p.lastSeq, nil, err))
		return nil, err
	}
	p.suspectLocked(diagnose(p.silent, p.lastSeq, &now, nil))
	p.adoptLocked(now)
	return nil, nil
}

// lookUp binds the stream and holds it against what it was when it was bound before. A *FatalError means that it will
// not do, or not any more.
func (p *Publisher) lookUp(ctx context.Context, s *session, within time.Duration) (Profile, error) {
	now, err := p.bind(ctx, s, within)
	if err != nil {
		return Profile{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Verified && p.profile.Verified {
		// We may not look any more. What was seen is the best that is known, as long as nothing contradicts it.
		was := p.profile
		was.Warnings = append(slices.Clone(was.Warnings), now.Warnings...)
		return was, nil
	}
	if fatal := weaker(&p.profile, &now); fatal != nil {
		return Profile{}, fatal
	}
	return now, nil
}

// adoptLocked makes a profile the current one and tells what has changed.
func (p *Publisher) adoptLocked(now Profile) {
	was := &p.profile
	log := p.cfg.Logger.With("stream", now.Stream)
	if replaced(was, &now) {
		p.count.Replaced++
		p.newest, p.lastSeq = 0, now.LastSequence
		log.Warn("the stream was deleted and made anew: what was acknowledged before is gone with it, and so are the ids it knew",
			"born", now.Born, "before", was.Born)
	}
	if changed := differences(was, &now); was.Verified && now.Verified && len(changed) > 0 {
		log.Warn("the stream was edited", "changed", strings.Join(changed, ", "))
		notify(p.changed)
	}
	clear(p.subjects)
	now.Created = now.Created || was.Created
	p.profile = now
	p.want.Store(newWant(now.Stream, now.Domain, now.Verified))
}

// suspectLocked notes the likely cause of trouble; "" for none.
func (p *Publisher) suspectLocked(cause string) {
	if cause == p.cause {
		return
	}
	if cause != "" {
		p.cfg.Logger.Warn("answers are missing or contradict what is known", "stream", p.cfg.Stream, "likely_cause", cause)
	}
	p.cause = cause
	notify(p.changed)
}

func replaced(was, now *Profile) bool {
	return was.Verified && now.Verified && !was.Born.IsZero() && !was.Born.Equal(now.Born)
}

// weaker tells of a change that makes an acknowledgement mean less than it did when the stream was bound. That is for
// a person to decide: who restarts the agent takes the stream as it is then.
func weaker(was, now *Profile) *FatalError {
	if !was.Verified || !now.Verified {
		return nil // the first time, or we may not look
	}
	var what string
	switch {
	case was.DuplicateWindow > now.DuplicateWindow:
		what = fmt.Sprintf("remembers ids for %v, before that for %v: a message sent again after a fault can be stored twice", now.DuplicateWindow, was.DuplicateWindow)
	case was.Replicas > now.Replicas:
		what = fmt.Sprintf("has %d replicas, before that %d", now.Replicas, was.Replicas)
	case was.Domain != now.Domain:
		what = fmt.Sprintf("is in domain %q, before that in %q", now.Domain, was.Domain)
	default:
		for _, w := range now.Warnings {
			// The window has been held against what it was above.
			if !slices.Contains(was.Warnings, w) && !strings.HasPrefix(w, shortWindow) {
				what = "is a risk now: " + w
			}
		}
	}
	if what == "" {
		return nil
	}
	return &FatalError{Code: CodeChanged, Field: "stream", Detail: fmt.Sprintf("stream %q was edited while it was in use: it %s", now.Stream, what),
		Fix: "edit it back, or restart to take it as it is"}
}

// differences names what has changed between two profiles of a stream.
func differences(was, now *Profile) (list []string) {
	note := func(name string, a, b any) {
		if a != b {
			list = append(list, fmt.Sprintf("%s from %v to %v", name, a, b))
		}
	}
	note("subjects", strings.Join(was.Subjects, " "), strings.Join(now.Subjects, " "))
	note("duplicate_window", was.DuplicateWindow, now.DuplicateWindow)
	note("replicas", was.Replicas, now.Replicas)
	note("retention", was.Retention, now.Retention)
	note("discard", was.Discard, now.Discard)
	note("max_msg_size", was.MaxMsgSize, now.MaxMsgSize)
	note("max_age", was.MaxAge, now.MaxAge)
	note("max_msgs", was.MaxMessages, now.MaxMessages)
	note("max_bytes", was.MaxBytes, now.MaxBytes)
	note("publish mode", was.Mode, now.Mode)
	note("domain", was.Domain, now.Domain)
	return list
}

// diagnose names the likely cause of silence, or of an answer that contradicts the profile, from what the server says
// of the stream: its profile, or why there is none. silent is how many messages in a row had no answer, and last the
// highest sequence that was acknowledged. It is pure; "" means that nothing is suspicious.
func diagnose(silent int, last uint64, now *Profile, err error) string {
	var refused *apiError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("the server answers for the stream: %s (%d): look at the cluster's quorum and the server's log", refused.Description, refused.ErrCode)
	case errors.Is(err, errNobody):
		return "JetStream does not answer on this server: it may be switched off after a storage error, or the account has lost it; look at the server's log"
	case err != nil && silent >= silencesDoubted:
		return "neither the stream nor JetStream's API answers although the connection works: a cluster without quorum, or a server that is stuck; look at its log"
	case err != nil:
		return err.Error()
	case now.Replicas > 1 && now.Leader == "":
		return "the stream has no leader: its replicas are choosing one, or have lost their quorum"
	case silent < silencesDoubted:
		return ""
	case len(now.Lagging) > 0:
		return fmt.Sprintf("replicas are offline or behind (%s): the stream may have lost its quorum", strings.Join(now.Lagging, ", "))
	case now.LastSequence > last:
		return "the stream stores but its acknowledgements do not arrive: look at the permissions for the inbox, and at imports and leaf nodes between us and the stream"
	}
	return "the server answers but the stream stores nothing: the broker's disk may be full or failing, which its log says and only its restart mends"
}

// contradicts tells whether an answer does not fit the profile of the stream that was bound.
func contradicts(r *Result) bool {
	switch e := r.Err.(type) {
	case *UnexpectedAckError:
		return true
	case *AckError:
		return r.Outcome == Fatal || e.Status == 503 || e.ErrCode == codeTooLarge
	}
	return false
}
