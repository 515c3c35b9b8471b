package flow

import (
	"time"

	"edge/publisher"
)

// Schedule spaces the probes of a stream that refuses. Min and Max are at least 1 ms, Max at least Min.
type Schedule struct {
	Min, Max time.Duration
}

// Delay is the pause after the given number of refused rounds in a row (1 is the first), spaced as a publisher spaces
// its own attempts. It has neither clock nor dice: both come in, so a table can test it.
func (s Schedule) Delay(rounds int, dice float64) time.Duration {
	return publisher.Backoff{Min: s.Min, Max: s.Max}.Delay(max(rounds-1, 0), dice)
}

// gate decides how many messages may be in flight now. Times are nanoseconds on the lane's own clock.
//
// Invariant: 1 <= window <= max. rounds > 0 means that the stream refused last and a single probe is allowed.
type gate struct {
	schedule Schedule
	max      int
	window   int
	rounds   int   // refused rounds in a row
	until    int64 // nothing is sent before; what was sent before it belongs to the round that it ended
}

func newGate(s Schedule, window int) gate {
	return gate{schedule: s, max: window, window: window}
}

// room is how many more messages may be sent at now, with inFlight unanswered.
func (g *gate) room(now int64, inFlight int) int {
	switch {
	case now < g.until:
		return 0
	case g.rounds > 0:
		return max(1-inFlight, 0)
	default:
		return max(g.window-inFlight, 0)
	}
}

// accepted notes an acknowledgement of a message that was sent at sent. One that was sent before the pause
// says nothing about the stream after it.
func (g *gate) accepted(sent int64) {
	if sent < g.until {
		return
	}
	g.rounds = 0
	g.window = min(g.window+1, g.max)
}

// restored notes that what somebody had to mend is mended: the stream was never too slow, so the whole window is open.
func (g *gate) restored() { g.rounds, g.window = 0, g.max }

// refused notes that the stream could not take a message that was sent at sent. Only the first refusal of a
// round counts: the rest of the window was on its way already. It tells whether this one did.
func (g *gate) refused(sent, now int64, dice float64) bool {
	if sent < g.until {
		return false
	}
	g.rounds++
	g.window = max(g.window/2, 1)
	g.until = now + int64(g.schedule.Delay(g.rounds, dice))
	return true
}
