package publisher

import (
	"fmt"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"edge/publisher/natstest"
)

// doubledID publishes two copies of one id to a replicated stream, the second before the replicas have agreed on the
// first. The leader refuses it, and its refusal says nothing of the first, which is stored.
func doubledID(t *testing.T, proven map[int]bool) {
	c := natstest.StartCluster(t, 3)
	c.Ready(t)
	l := newLive(t, c.Connect(t), proven)
	l.stream(func(c *natsserver.StreamConfig) { c.Replicas = 3 })
	const tries = 100
	for i := range tries {
		m := msg("x", "Nats-Msg-Id", fmt.Sprint("m", i))
		before := l.stored()
		first, second := l.send(m), l.send(m)
		a, b := l.answer(first, second), l.answer(first, second)
		if a.Subject == second { // a refusal may overtake
			a, b = b, a
		}
		if _, r := judge(a); r.Outcome != Accepted {
			t.Fatalf("first copy: %v, %v", r.Outcome, r.Err)
		}
		if after := l.stored(); after != before+1 {
			t.Fatalf("two copies of one id stored %d messages", after-before)
		}
		if _, r := judge(b); r.Outcome == Accepted && r.Duplicate {
			continue // the replicas were quicker
		}
		l.check(b, 10158, Unknown, "duplicate message id is in process")
		return
	}
	t.Errorf("the replicas were quicker %d times", tries)
}
