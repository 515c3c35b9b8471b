package flow

import "testing"

// TestBlockReset: a block is used again for any number of events after any other.
func TestBlockReset(t *testing.T) {
	for a := range blockEvents + 1 {
		for b := range blockEvents + 1 {
			var k block
			k.reset(a)
			for i := range k.state {
				k.state[i], k.open[i] = eventSettled, 7
			}
			k.settled = a
			k.reset(b)
			if len(k.events) != b || len(k.state) != b || len(k.open) != b {
				t.Fatalf("reset(%d), reset(%d): %d events, %d states, %d counts", a, b, len(k.events), len(k.state), len(k.open))
			}
			for i := range b {
				if k.state[i] != eventOpen || k.open[i] != 0 {
					t.Fatalf("reset(%d), reset(%d): event %d is in state %d with %d open messages", a, b, i, k.state[i], k.open[i])
				}
			}
		}
	}
}
