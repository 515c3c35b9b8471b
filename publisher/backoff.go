package publisher

import "time"

// backoff spaces attempts to connect and to bind.
type backoff struct{ min, max time.Duration }

// reconnect is fast enough for a server restart and slow enough for a fleet that waits for one.
var reconnect = backoff{min: 100 * time.Millisecond, max: 30 * time.Second}

// delay is the pause before attempt number n, counted from 0: doubling from min to max, and dice in [0, 1) spreads it
// over its upper half, so that a fleet does not come back as one. Clock and dice stay outside, so a table can test it.
func (b backoff) delay(n int, dice float64) time.Duration {
	d := b.max
	if n < 32 && b.min<<n > 0 {
		d = min(b.min<<n, b.max)
	}
	return d/2 + time.Duration(dice*float64(d/2))
}
