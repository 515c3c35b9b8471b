package flow

import (
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	f := func(s Schedule, rounds int, dice float64, want time.Duration) {
		t.Helper()
		if got := s.Delay(rounds, dice); got != want {
			t.Errorf("Delay(%d, %v) of %v = %v, want %v", rounds, dice, s, got, want)
		}
	}
	s := Schedule{Min: 100 * time.Millisecond, Max: 3 * time.Second}
	f(s, 1, 0, 50*time.Millisecond)
	f(s, 1, 0.5, 75*time.Millisecond)
	f(s, 2, 0, 100*time.Millisecond)
	f(s, 5, 0, 800*time.Millisecond)
	f(s, 6, 0, 1500*time.Millisecond) // 3.2 s is over the maximum
	f(s, 1000, 0, 1500*time.Millisecond)
	f(s, 0, 0, 50*time.Millisecond)
	f(Schedule{Min: time.Hour, Max: 1 << 62}, 31, 0, 1<<61) // the shift would overflow
	for rounds := range 64 {
		if d := s.Delay(rounds, 0.999999); d <= 0 || d > s.Max {
			t.Errorf("Delay(%d) = %v leaves (0, %v]", rounds, d, s.Max)
		}
	}
}

// TestGate plays a stream that refuses, recovers and refuses again; times are in nanoseconds.
func TestGate(t *testing.T) {
	g := newGate(Schedule{Min: 100, Max: 1000}, 8)
	room := func(now int64, inFlight, want int) {
		t.Helper()
		if got := g.room(now, inFlight); got != want {
			t.Errorf("room(%d, %d) = %d, want %d (%+v)", now, inFlight, got, want, g)
		}
	}
	refused := func(sent, now int64, want bool) {
		t.Helper()
		if got := g.refused(sent, now, 0); got != want {
			t.Errorf("refused(%d, %d) = %v, want %v", sent, now, got, want)
		}
	}
	room(1, 0, 8)
	room(1, 8, 0)
	room(1, 9, 0) // never negative
	refused(1, 10, true)
	room(10, 7, 0)
	refused(2, 11, false) // the rest of the same window says nothing new
	g.accepted(3)         // nor does an answer to it open the gate
	room(59, 0, 0)
	room(60, 0, 1) // one probe
	room(60, 1, 0)
	refused(61, 70, true)
	room(169, 0, 0) // the second pause is longer
	room(170, 0, 1)
	g.accepted(171)
	room(171, 0, 3) // 8 halved twice, and one earned back
	for i := range int64(20) {
		g.accepted(172 + i)
	}
	room(200, 0, 8) // never over the maximum
	for range 20 {
		refused(g.until, g.until, true)
	}
	if g.window != 1 {
		t.Errorf("window = %d after many refusals, want 1", g.window)
	}
}
