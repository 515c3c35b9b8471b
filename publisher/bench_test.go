package publisher

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"edge/envelope"
	"edge/publisher/natstest"
)

const (
	benchPayload = 256 // bytes
	benchWindow  = 256
)

// BenchmarkSend is one message from Send to its checked acknowledgement, with a full window, in each mode and with the
// server's two ways to sync.
func BenchmarkSend(b *testing.B) {
	for _, sync := range []string{"2m", "always"} {
		for _, mode := range []Mode{ModeSingle, ModeAtomic, ModeFast} {
			for _, window := range []int{benchWindow, 4 * benchWindow} {
				b.Run(fmt.Sprintf("sync=%s/%v/window=%d", sync, mode, window), func(b *testing.B) { benchSend(b, sync, mode, window) })
			}
		}
	}
}

func benchSend(b *testing.B, sync string, mode Mode, window int) {
	srv := natstest.Start(b, natstest.SyncInterval(sync))
	p, err := New(Config{URL: srv.URL(), Token: srv.Token(), Stream: "EDGE", Subjects: []string{"e.>"}, CreateStream: true, MaxInFlight: window, Mode: mode})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { p.Run(ctx); close(ended) }()
	for p.Status().State != Ready {
		<-p.Changed()
	}
	m := message(0, "e.bench")
	m.Payload = make([]byte, benchPayload)
	b.ReportAllocs()
	b.ResetTimer()
	done := 0
	for i := range b.N {
		m.ID = envelope.PositionID([16]byte{1}, uint64(i))
		for p.Send(m, uint64(i)) != nil {
			if r := <-p.Results(); r.Outcome != Accepted {
				b.Fatal(r)
			}
			done++
		}
	}
	for ; done < b.N; done++ {
		if r := <-p.Results(); r.Outcome != Accepted {
			b.Fatal(r)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	c := p.Status().Counters
	b.ReportMetric(float64(b.N)/float64(max(c.Batches, 1)), "msg/batch")
	if c.Resent != 0 {
		b.Errorf("%d were sent again: %+v", c.Resent, c)
	}
	stop()
	<-ended
}

// BenchmarkPublishAsync is the same work done by the client library's own asynchronous publisher.
func BenchmarkPublishAsync(b *testing.B) {
	srv := natstest.Start(b, natstest.SyncInterval("2m"))
	nc := srv.Connect(b)
	failed := make(chan error, 1)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(benchWindow), jetstream.WithPublishAsyncTimeout(10*time.Second),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) {
			select {
			case failed <- err:
			default:
			}
		}))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "EDGE", Subjects: []string{"e.>"}}); err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, benchPayload)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		m := nats.NewMsg("e.bench")
		m.Data = payload
		m.Header.Set(headerID, fmt.Sprintf("%032x", i))
		m.Header.Set(headerStream, "EDGE")
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
}
