// Package flow moves events of one sink from the spool to their outcomes: the lane.
//
// A lane is one goroutine. It reads blocks of events from the sink's cursor, has them rendered, keeps a
// bounded window of messages with the publisher, takes the results, and moves the floor. Everything that it
// decides is in plain state of that goroutine; the only channels are the publisher's results and three
// notices (something to read, the publisher changed, stop).
//
// What a lane promises:
//
//   - The floor passes an event only when the event is settled: every message of it acknowledged and checked,
//     or the module dropped it, or its quarantine entry is durable.
//   - Nothing is decided by reading. A lane that dies at any point starts again at the floor, and events keep
//     their ids, so that the stream's duplicate window recognises what had been stored.
//   - Exactly one layer retries, and it is this one: per stream, not per event. The first refusal pauses the
//     lane, halves the window and lets one message probe; retries go before fresh events, in their old order.
//   - What somebody has to mend ends the lane, or makes it wait: every message stays open, and one at a time probes.
//   - Unknown is sticky: a message with an unanswered attempt behind it is done only by an acknowledgement. A
//     refusal after that proves nothing about the earlier copy; after UnknownRefusals of them the
//     event goes to quarantine with the reason that it may have been stored.
//   - A refusal by a number of a newer server is tried again, but after UnlistedRefusals in a row it is permanent.
//
// What it does not: order among messages is kept except across retries, and an event that was sent again
// after the stream's duplicate window may be stored twice (counted as past_window).
package flow
