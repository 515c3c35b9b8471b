package publisher

import "time"

// Backoff spaces attempts at what failed: ours to connect and to bind, a caller's to send again. Min and Max are at
// least 1 ms, Max at least Min.
type Backoff struct{ Min, Max time.Duration }

// reconnect is fast enough for a server restart and slow enough for a fleet that waits for one.
var reconnect = Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}

// Delay is the pause before attempt number n, counted from 0: doubling from Min to Max, and dice in [0, 1) spreads it
// over its upper half, so that a fleet does not come back as one. Clock and dice stay outside, so a table can test it.
func (b Backoff) Delay(n int, dice float64) time.Duration {
	d := b.Max
	if n < 32 && b.Min<<n > 0 {
		d = min(b.Min<<n, b.Max)
	}
	return d/2 + time.Duration(dice*float64(d/2))
}
