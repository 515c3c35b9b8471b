package publisher_test

import (
	"context"
	"log"
	"sync"

	"edge/envelope"
	"edge/publisher"
)

// A program that publishes a batch and sends again, with the same ids, what was not accepted.
func Example() {
	p, err := publisher.New(publisher.Config{
		URL: "nats://127.0.0.1:4222", Stream: "EDGE", Subjects: []string{"edge.>"}, CreateStream: true,
	})
	if err != nil {
		log.Fatal(err) // a *publisher.ConfigError names the field
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	defer running.Wait()
	defer stop()

	msgs := []envelope.Message{{
		ID:      envelope.HashID("example", []byte("reading 1")),
		Subject: []byte("edge.imu.r7"),
		Payload: []byte(`{"temp":43.25}`),
	}}
	results := make([]publisher.Result, len(msgs))
	for len(msgs) > 0 {
		if _, err := p.Write(ctx, msgs, results); err != nil { // a *publisher.FatalError says what to mend
			return
		}
		again := msgs[:0]
		for i, r := range results[:len(msgs)] {
			switch r.Outcome {
			case publisher.Accepted:
			case publisher.Retryable, publisher.Unknown:
				again = append(again, msgs[i])
			default:
				log.Printf("message %s: %v", msgs[i].ID, r.Err)
			}
		}
		msgs = again
	}
}
