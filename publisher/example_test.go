package publisher_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"edge/envelope"
	"edge/publisher"
	"edge/publisher/embedded"
)

// address is that of the server that start has started last.
var address string

// start runs a publisher into a stream that it creates, on a real server in this process. The function that it
// returns ends both.
func start() (*publisher.Publisher, func()) {
	dir, err := os.MkdirTemp("", "publisher-example-")
	if err != nil {
		log.Fatal(err)
	}
	server, err := embedded.Start(embedded.Config{StoreDir: dir})
	if err != nil {
		log.Fatal(err)
	}
	address = server.URL()
	p, err := publisher.New(publisher.Config{
		URL: address, Stream: "READINGS", Subjects: []string{"readings.>"}, CreateStream: true,
	})
	if err != nil {
		log.Fatal(err) // a *publisher.ConfigError names the field
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	return p, func() {
		stop()
		running.Wait()
		server.Close()
		if err := os.RemoveAll(dir); err != nil {
			log.Fatal(err)
		}
	}
}

func reading(n int) envelope.Message {
	return envelope.Message{
		ID:      envelope.HashID("example", fmt.Appendf(nil, "reading %d", n)), // the same for every copy
		Subject: []byte("readings.r7"),
		Payload: fmt.Appendf(nil, `{"temp":%d}`, 40+n),
	}
}

// What a person has to mend is in the status, with a code, the field of the configuration and what to do. The publisher
// goes on trying; who would rather end stops Run.
func ExamplePublisher_Status() {
	p, err := publisher.New(publisher.Config{
		URL: "nats://127.0.0.1:4222", Stream: "READINGS", CredsFile: "testdata/none.creds",
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	for p.Status().State != publisher.Failed {
		<-p.Changed()
	}
	f := p.Status().Fatal
	fmt.Println(f.Code, f.Field)
	fmt.Println(f.Fix)
	stop()
	running.Wait()
	// Output:
	// credentials creds_file
	// give the file that the account's administrator made for this user (nsc, or nats auth)
}

// A look at a server and a stream without publishing or changing anything.
func ExampleProbe() {
	p, end := start()
	defer end()
	m := reading(1)
	p.Deliver(context.Background(), &m) // now there is a stream
	found, err := publisher.Probe(context.Background(), publisher.Config{
		URL: address, Stream: "READINGS", Subjects: []string{"readings.>"},
	})
	if err != nil {
		log.Fatal(err) // a *publisher.FatalError if a publisher would fail
	}
	fmt.Println(found.Profile.Storage, found.Profile.DeliveryClass, found.Profile.DuplicateWindow, found.Profile.Messages, found.Inbox)
	// Output: file idempotent_batch 2m0s 1 allowed
}

// One message at a time: the result says what became of it. A second copy is recognised by its id.
func ExamplePublisher_Deliver() {
	p, end := start()
	defer end()
	m := reading(1)
	for range 2 {
		r := p.Deliver(context.Background(), &m)
		fmt.Println(r.Outcome, r.Sequence, r.Duplicate)
	}
	m.Subject = []byte("elsewhere.r7")
	r := p.Deliver(context.Background(), &m)
	fmt.Println(r.Outcome, r.Err)
	// Output:
	// accepted 1 false
	// accepted 1 true
	// permanent publish message to "elsewhere.r7": stream READINGS takes only readings.>: change the subject or the stream
}

// A batch, again and again until every message is settled. What is retryable or unknown goes out once more with the
// same id, and only within the stream's duplicate window of its first attempt; see the package's documentation.
func ExamplePublisher_Write() {
	p, end := start()
	defer end()
	var msgs []envelope.Message
	for n := range 100 {
		msgs = append(msgs, reading(n))
	}
	fmt.Println("batch", publisher.BatchID("READINGS", msgs))
	unknown := make(map[envelope.ID]bool) // it has an attempt behind it that may have been stored
	results := make([]publisher.Result, len(msgs))
	for len(msgs) > 0 {
		batch, err := p.Write(context.Background(), msgs, results)
		if err != nil {
			log.Fatal(err) // a *publisher.FatalError says what to mend
		}
		fmt.Println(batch.Accepted, "accepted")
		again := msgs[:0]
		for i, r := range results[:len(msgs)] {
			switch m := msgs[i]; publisher.Settle(unknown[m.ID], r) {
			case publisher.Accepted:
			case publisher.Permanent:
				log.Printf("message %s: %v", m.ID, r.Err)
			case publisher.Fatal:
				log.Fatal(r.Err) // a subject that is denied to us, say; the message is still ours
			case publisher.Unknown:
				unknown[m.ID] = true
				again = append(again, m)
			case publisher.Retryable:
				again = append(again, m)
			}
		}
		msgs = again // a real program waits here for a moment, longer each time
	}
	// Output:
	// batch ba1ac7534d0673be96ed8aa9694ec89a
	// 100 accepted
}

// A pipeline: Send admits what the window takes, Results says what became of it. Tags are the caller's own.
func ExamplePublisher_Send() {
	p, end := start()
	defer end()
	const n = 1000
	accepted := 0
	for sent := 0; accepted < n; {
		m := reading(sent)
		if sent < n && p.Send(&m, uint64(sent)) == nil {
			sent++
			continue
		}
		// The window is full, everything is sent, or there is no stream yet.
		select {
		case r := <-p.Results():
			if r.Outcome != publisher.Accepted {
				log.Fatal(r.Tag, r.Outcome, r.Err) // a real program sends it again, see the example of Write
			}
			accepted++
		case <-p.Changed():
		}
	}
	fmt.Println(accepted, "accepted, the last as", p.Status().LastSequence)
	// Output: 1000 accepted, the last as 1000
}
