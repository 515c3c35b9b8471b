// Package faults holds the publisher against schedules of faults on real servers. It has tests only.
//
//	go test ./publisher/faults -run TestSchedules -timeout 60m -faults.seeds 200 -faults.first 1 -faults.events 5000
//
// One seed is one schedule: a server behind a proxy or a cluster of three, a publish mode, a window, a list of events
// and a list of faults. A fault comes when a number of events is settled, not at a time, so that a slow machine sees
// the same schedule. Meanwhile a caller sends every event, by Send, Write or Deliver, and sends again what was
// retryable or unknown, under the same id, until it is accepted or refused for good.
//
// What is held at the end of each schedule:
//
//   - each admitted attempt had one Result, and each event ended once: accepted, or permanent if it was made so
//   - the stream, read through another connection, holds every accepted event once, with its subject and payload, at
//     the sequence that its Result named (in fast mode not after it); it holds no refused event and nothing else
//   - in single mode no event is a duplicate that was never unknown: what was called retryable was not stored
//   - the counters are the sum of the Results, and one server acknowledges nothing twice
//   - when Run has returned nothing is pending and none of its goroutines is left
//
// A schedule is the same for the same seed and number of events; how the servers answer is not, so a failure may need
// several runs of its seed to come again. Subtests run in parallel, as many as -parallel says, each on servers of its
// own.
package faults
