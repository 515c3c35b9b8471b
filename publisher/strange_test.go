package publisher

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// TestStrangeServer says what no server should: a message under a subject that is not of our inbox, and that we may not
// publish to the empty subject. Neither ends the process.
func TestStrangeServer(t *testing.T) {
	p, err := New(Config{URL: "nats://127.0.0.1:1", Stream: "EDGE"})
	if err != nil {
		t.Fatal(err)
	}
	p.answer(&nats.Msg{Subject: "x", Data: []byte(`{"stream":"EDGE","seq":1}`)})
	if s := p.Status(); s.Counters.LateAcks != 0 {
		t.Errorf("it was taken for an answer: %+v", s.Counters)
	}
	if new(session).denyRequest("", "Permissions Violation for Publish to \"\"") {
		t.Error("no request is under way, and one was denied")
	}
}
