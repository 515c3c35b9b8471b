package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stored is what a stream holds of a run.
type stored struct {
	messages  uint64
	distinct  int       // events that are there
	doubled   int       // messages whose event was there already
	foreign   int       // messages that are no event of this run, or not as the module makes them
	reordered int       // messages behind a later event of the same robot
	last      time.Time // when the server stored the last one
	example   string    // of a foreign message
}

// verify reads the whole stream back and holds each message against the event that its id names.
func verify(nc *nats.Conn, events int) (stored, error) {
	var s stored
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return s, err
	}
	stream, err := js.Stream(ctx, "EDGE")
	if err != nil {
		return s, fmt.Errorf("look at the stream: %w", err)
	}
	state := stream.CachedInfo().State
	s.messages, s.last = state.Msgs, state.LastTime
	if s.messages == 0 {
		return s, nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return s, fmt.Errorf("read the stream back: %w", err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(5000))
	if err != nil {
		return s, fmt.Errorf("read the stream back: %w", err)
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	seen := make([]bool, events)
	newest := map[string]uint64{}
	var want []byte
	for range s.messages {
		m, err := messages.Next()
		if err != nil {
			return s, fmt.Errorf("read the stream back: %w", err)
		}
		i, ok := parseID(m.Headers().Get("Nats-Msg-Id"))
		if ok = ok && i < uint64(events); ok {
			want = append(appendID(append(want[:0], `{"_event_id":"`...), i), '"')
			ok = bytes.HasPrefix(m.Data(), want) && m.Subject() == "edge.imu."+string(appendRobot(nil, i))
		}
		switch {
		case !ok:
			if s.foreign++; s.foreign == 1 {
				s.example = fmt.Sprintf("%s %v %.300s", m.Subject(), m.Headers(), m.Data())
			}
			continue
		case seen[i]:
			s.doubled++
			continue
		}
		seen[i] = true
		s.distinct++
		if i < newest[m.Subject()] {
			s.reordered++
		}
		newest[m.Subject()] = max(newest[m.Subject()], i)
	}
	return s, nil
}

// check returns what is wrong with the stream after a run of so many events.
func (s stored) check(events int) error {
	switch {
	case s.foreign > 0:
		return fmt.Errorf("%d messages are not what they should be, for example %s", s.foreign, s.example)
	case s.distinct < events:
		return fmt.Errorf("%d of %d events are not in the stream", events-s.distinct, events)
	case s.doubled > 0:
		return fmt.Errorf("%d events are in the stream more than once", s.doubled)
	}
	return nil
}
