package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestLimitFileSize fills one stream's file: the server stores no more of that stream and says nothing to its
// publishers, until it is restarted. Another stream goes on.
func TestLimitFileSize(t *testing.T) {
	s := Start(t)
	js := s.JetStream(t)
	big, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "BIG", Subjects: []string{"big"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SMALL", Subjects: []string{"small"}}); err != nil {
		t.Fatal(err)
	}
	publish := func(subject string, size int) {
		t.Helper()
		if _, err := js.Publish(t.Context(), subject, make([]byte, size), jetstream.WithRetryAttempts(1000)); err != nil {
			t.Fatal(err)
		}
	}
	stored := func(want uint64) {
		t.Helper()
		info, err := big.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs != want {
			t.Errorf("%d messages are stored, want %d", info.State.Msgs, want)
		}
	}
	const size, limit = 40 << 10, 100 << 10 // two messages fit, a third does not
	s.LimitFileSize(limit)
	publish("big", size)
	publish("big", size)
	reply := js.Conn().NewRespInbox()
	answers, err := js.Conn().SubscribeSync(reply)
	if err != nil {
		t.Fatal(err)
	}
	// refused publishes what is not stored until the server has written that to its log, which it does not do each time.
	refused := func() {
		t.Helper()
		const text = "failed to store a msg on stream '$G > BIG'"
		before := s.count(text)
		for end := time.Now().Add(patience); s.count(text) == before; time.Sleep(20 * time.Millisecond) {
			if err := js.Conn().PublishRequest("big", reply, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(end) {
				t.Fatalf("the server has stored beyond the limit, or not tried\n%s", s.log())
			}
		}
	}
	refused()
	stored(2)
	publish("small", 100)
	s.UnlimitFileSize()
	refused() // one failed write is enough
	s.Restart()
	publish("big", size)
	stored(3)
	if n, _, err := answers.Pending(); err != nil || n != 0 {
		t.Errorf("%d answers to what was not stored, %v", n, err)
	}
}
