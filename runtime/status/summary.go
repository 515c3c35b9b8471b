package status

import (
	"fmt"
	"strings"
	"time"
)

// Summary is one run in numbers. With several sinks the outcome terms are sums over them, each sink's own
// terms stand in Sinks, and the books balance per sink.
type Summary struct {
	Captured        uint64        `json:"captured"`     // events taken from inputs in this run, refused lines included
	CarriedOver     uint64        `json:"carried_over"` // events that earlier runs had left on disk, summed over sinks
	Refused         uint64        `json:"refused"`      // of Captured: lines that were no event and went straight to quarantine
	Accepted        uint64        `json:"accepted"`
	Duplicates      uint64        `json:"duplicates"`
	Dropped         uint64        `json:"dropped"`
	Quarantined     uint64        `json:"quarantined"` // refused lines and events that a sink could not take
	Skipped         uint64        `json:"skipped"`
	Retries         uint64        `json:"retries"`
	Unknown         uint64        `json:"unknown"`
	UnknownResolved uint64        `json:"unknown_resolved"`
	PastWindow      uint64        `json:"past_window"` // messages sent again after the duplicate window: may be stored twice
	Spooled         uint64        `json:"spooled"`     // events that still wait on disk, summed over sinks
	SpoolFull       bool          `json:"spool_full"`  // inputs wait for room
	Balanced        bool          `json:"balanced"`
	ElapsedS        float64       `json:"elapsed_s"`
	ActiveS         float64       `json:"active_s"`     // of ElapsedS, until the last event was settled
	EventsPerS      float64       `json:"events_per_s"` // settled events of the busiest sink by active time
	Sinks           []SinkSummary `json:"sinks"`
}

// SinkSummary is one sink's share of a Summary.
type SinkSummary struct {
	ID            string `json:"id"`
	State         string `json:"state"`
	Error         string `json:"error,omitempty"`
	DeliveryClass string `json:"delivery_class"`
	Stream        string `json:"stream"`
	URL           string `json:"url"`
	LastSequence  uint64 `json:"last_sequence"`
	ModuleDigest  string `json:"module_digest"`
	Captured      uint64 `json:"captured"` // events that entered the spool in this run
	CarriedOver   uint64 `json:"carried_over"`
	Accepted      uint64 `json:"accepted"`
	Duplicates    uint64 `json:"duplicates"`
	Dropped       uint64 `json:"dropped"`
	Quarantined   uint64 `json:"quarantined"`
	Skipped       uint64 `json:"skipped"`
	Spooled       uint64 `json:"spooled"`
	Messages      uint64 `json:"messages"`
	InFlight      int64  `json:"in_flight"`
	Damaged       uint64 `json:"damaged"` // spooled events that can no longer be read

	Trouble        string `json:"trouble,omitempty"` // why messages wait although the state is ready: the stream refuses them for now, or answers do not come
	PublishMode    string `json:"publish_mode"`      // how messages travel: single, atomic or fast; empty before a stream was bound
	LateAcks       uint64 `json:"late_acks"`         // came after their attempt had been given up
	ExtraAcks      uint64 `json:"extra_acks"`        // came for what was acknowledged already: it may be stored twice
	UnexpectedAcks uint64 `json:"unexpected_acks"`   // proved nothing: should be 0
	Reconnects     uint64 `json:"reconnects"`        // connections after the first
}

// Balanced tells whether every event of the sink is accounted for exactly once.
func (s *SinkSummary) Balanced() bool {
	return s.Captured+s.CarriedOver == s.Accepted+s.Dropped+s.Quarantined+s.Skipped+s.Spooled+s.Damaged
}

// Total fills the sums over sinks and the balance.
func (s *Summary) Total() {
	s.Balanced = true
	s.Quarantined = s.Refused
	var busiest uint64
	for i := range s.Sinks {
		k := &s.Sinks[i]
		s.CarriedOver += k.CarriedOver
		s.Accepted += k.Accepted
		s.Duplicates += k.Duplicates
		s.Dropped += k.Dropped
		s.Quarantined += k.Quarantined
		s.Skipped += k.Skipped
		s.Spooled += k.Spooled
		s.Balanced = s.Balanced && k.Balanced()
		busiest = max(busiest, k.Accepted+k.Dropped+k.Quarantined)
	}
	if s.ActiveS > 0 {
		s.EventsPerS = float64(busiest) / s.ActiveS
	}
}

// String is the summary for a person: a few short lines.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "captured %s, accepted %s (%s duplicates), dropped %s, quarantined %s, on disk %s\n",
		Count(s.Captured), Count(s.Accepted), Count(s.Duplicates), Count(s.Dropped), Count(s.Quarantined), Count(s.Spooled))
	if s.ActiveS > 0 {
		fmt.Fprintf(&b, "%s events/s over %s", Count(uint64(s.EventsPerS)), seconds(s.ActiveS))
	} else {
		fmt.Fprintf(&b, "nothing was settled in %s", seconds(s.ElapsedS))
	}
	if s.Retries > 0 || s.Unknown > 0 {
		fmt.Fprintf(&b, "; %s messages sent again, %s attempts unanswered, %s of them resolved", Count(s.Retries), Count(s.Unknown), Count(s.UnknownResolved))
	}
	if s.PastWindow > 0 {
		fmt.Fprintf(&b, "; %s sent again after the duplicate window, these may be stored twice", Count(s.PastWindow))
	}
	if s.CarriedOver > 0 {
		fmt.Fprintf(&b, "; %s events came from earlier runs", Count(s.CarriedOver))
	}
	b.WriteByte('\n')
	for i := range s.Sinks {
		k := &s.Sinks[i]
		fmt.Fprintf(&b, "sink %s: %s, stream %s", k.ID, k.State, orDash(k.Stream))
		if k.LastSequence > 0 {
			fmt.Fprintf(&b, " at sequence %d", k.LastSequence)
		}
		if k.DeliveryClass != "" {
			fmt.Fprintf(&b, ", %s", k.DeliveryClass)
		}
		if k.URL != "" {
			fmt.Fprintf(&b, ", %s", k.URL)
		}
		if k.PublishMode != "" && k.PublishMode != "single" {
			fmt.Fprintf(&b, ", %s batches", k.PublishMode)
		}
		if k.Error != "" {
			fmt.Fprintf(&b, "\n  %s", k.Error)
		}
		if k.Trouble != "" {
			fmt.Fprintf(&b, "\n  messages wait: %s", k.Trouble)
		}
		if k.UnexpectedAcks > 0 || k.ExtraAcks > 0 {
			fmt.Fprintf(&b, "\n  %s acknowledgements proved nothing, %s came twice: look for a second stream or responder", Count(k.UnexpectedAcks), Count(k.ExtraAcks))
		}
		b.WriteByte('\n')
	}
	if !s.Balanced {
		b.WriteString("ALARM: the books do not balance: an event is missing or was counted twice; please report this with the log\n")
	}
	return b.String()
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Count writes n with a comma every three digits.
func Count(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
