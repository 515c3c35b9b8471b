package status

import (
	"math"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	f := func(n uint64, want string) {
		t.Helper()
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	f(0, "0")
	f(999, "999")
	f(1000, "1,000")
	f(1234567, "1,234,567")
	f(math.MaxUint64, "18,446,744,073,709,551,615")
}

// TestStrange: what a person has to look at is in the text, and nothing of it when all is well.
func TestStrange(t *testing.T) {
	f := func(k SinkSummary, want ...string) {
		t.Helper()
		s := Summary{Sinks: []SinkSummary{k}}
		got := s.String()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q is not in %q", w, got)
			}
		}
		if len(want) == 0 && strings.Contains(got, "strange") || strings.Contains(got, "batches") && k.PublishMode == "single" {
			t.Errorf("got %q", got)
		}
	}
	f(SinkSummary{PublishMode: "single", LateAcks: 3, Reconnects: 1})
	f(SinkSummary{PublishMode: "atomic"}, "atomic batches")
	f(SinkSummary{Trouble: "the broker's disk may be full"}, "messages wait: the broker's disk may be full")
	f(SinkSummary{ExtraAcks: 2}, "0 acknowledgements proved nothing, 2 came twice")
}

func TestBooks(t *testing.T) {
	f := func(k SinkSummary, want bool) {
		t.Helper()
		if got := k.Balanced(); got != want {
			t.Errorf("Balanced = %v of %+v", got, k)
		}
		s := Summary{Sinks: []SinkSummary{{}, k}, Captured: 5, Refused: 2}
		s.Total()
		if s.Balanced != want || s.Accepted != k.Accepted || s.Quarantined != k.Quarantined+2 || s.Spooled != k.Spooled {
			t.Errorf("totals %+v of %+v", s, k)
		}
		if alarm := strings.Contains(s.String(), "ALARM"); alarm == want {
			t.Errorf("alarm = %v in %q", alarm, s.String())
		}
	}
	f(SinkSummary{}, true)
	f(SinkSummary{Captured: 10, CarriedOver: 5, Accepted: 6, Dropped: 1, Quarantined: 2, Skipped: 3, Spooled: 2, Damaged: 1}, true)
	f(SinkSummary{Captured: 10, Accepted: 9}, false)
	f(SinkSummary{Captured: 10, Accepted: 11}, false)
}
