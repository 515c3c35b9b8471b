package runtime

import (
	"time"

	"edge/publisher"
	"edge/runtime/status"
)

// Progress is how far the inputs are: bytes read of bytes known, and whether they have all ended.
type Progress struct {
	Read, Total uint64 // Total is 0 when an input cannot know its end
	Done        bool
}

// Progress may be called at any time, from any goroutine.
func (a *Agent) Progress() Progress {
	var p Progress
	known := true
	for _, c := range a.counts {
		p.Read += c.Bytes.Load()
		if t := c.Total.Load(); t > 0 {
			p.Total += uint64(t)
		} else {
			known = false
		}
	}
	if !known {
		p.Total = 0
	}
	a.life.mu.Lock()
	p.Done = a.life.inputsDone
	a.life.mu.Unlock()
	return p
}

// Summary says what the agent has done so far. It may be called at any time between Open and Close, from any
// goroutine. While lanes work its terms are read one after the other, so only the summary of an agent at rest
// is sure to balance.
func (a *Agent) Summary() *status.Summary {
	s := new(status.Summary)
	for _, c := range a.counts {
		s.Captured += c.Captured.Load()
		s.Refused += c.Refused.Load()
	}
	passed := make([]uint64, len(a.sinks)) // before the spool's end is read, which only grows
	for i, k := range a.sinks {
		passed[i] = k.counts.Passed.Load()
	}
	now := a.spool.Stats()
	last := uint64(now.LastSeq)
	for i, k := range a.sinks {
		s.Retries += k.counts.Retries.Load()
		s.Unknown += k.counts.Unknown.Load()
		s.UnknownResolved += k.counts.UnknownResolved.Load()
		s.PastWindow += k.counts.PastWindow.Load()
		s.Sinks = append(s.Sinks, k.summary(last-uint64(a.opened.LastSeq), uint64(a.opened.LastSeq-a.opened.Floor(k.cfg.ID)), last-passed[i], now.Skipped(k.cfg.ID)))
	}
	s.SpoolFull = now.Full
	a.life.mu.Lock()
	started, ended := a.life.started, a.life.ended
	a.life.mu.Unlock()
	if !started.IsZero() {
		if ended.IsZero() {
			ended = time.Now()
		}
		s.ElapsedS = ended.Sub(started).Seconds()
	}
	for _, k := range a.sinks {
		if at := k.counts.LastSettled.Load(); at > 0 {
			s.ActiveS = max(s.ActiveS, time.Unix(0, at).Sub(started).Seconds())
		}
	}
	s.Total()
	return s
}

// summary is the share of one sink: entered events in this run, carried over from earlier ones, spooled now, and
// damaged on disk.
func (k *sink) summary(entered, carried, spooled, damaged uint64) status.SinkSummary {
	c := &k.counts
	out := status.SinkSummary{
		ID: k.cfg.ID, State: "idle", ModuleDigest: k.digest, Stream: k.cfg.NATS.Stream, LastSequence: c.LastSequence.Load(),
		Captured: entered, CarriedOver: carried, Spooled: spooled, Damaged: damaged,
		Accepted: c.Accepted.Load(), Duplicates: c.Duplicates.Load(), Dropped: c.Dropped.Load(),
		Quarantined: c.Quarantined.Load(), Skipped: c.Skipped.Load(), Messages: c.Messages.Load(), InFlight: c.InFlight.Load(),
	}
	k.link.mu.Lock()
	defer k.link.mu.Unlock()
	out.URL = k.link.url
	if k.link.pub == nil {
		return out
	}
	st := k.link.pub.Status()
	out.DeliveryClass = st.Profile.DeliveryClass
	if st.Profile.DeliveryClass != "" { // a stream was bound
		out.PublishMode = st.Profile.Mode.String()
	}
	out.LateAcks, out.ExtraAcks, out.UnexpectedAcks, out.Reconnects = st.Counters.LateAcks, st.Counters.ExtraAcks, st.Counters.UnexpectedAcks, st.Counters.Reconnects
	out.LastSequence = max(out.LastSequence, st.Profile.LastSequence)
	out.Trouble = st.Trouble
	if k.link.ended {
		out.Trouble = k.link.last.Trouble
		st.State, st.Err = k.link.last.State, k.link.last.Err
	}
	if paused := c.Paused.Load(); paused != nil && out.Trouble == "" {
		out.Trouble = *paused
	}
	failing := c.Failing.Load()
	switch {
	case k.link.halt != nil:
		out.State, out.Error = publisher.Failed.String(), k.link.halt.Cause.Error()
	case st.State == publisher.Failed:
		out.State, out.Error = st.State.String(), st.Err
	case failing != nil: // the publisher is well, but what it is asked to publish is refused
		out.State, out.Error = publisher.Failed.String(), *failing
	case !k.link.ended:
		out.State, out.Error = st.State.String(), st.Err
	case spooled == 0:
		out.State = "settled"
	default:
		out.State, out.Error = "stopped", st.Err // there is more on disk
	}
	return out
}
